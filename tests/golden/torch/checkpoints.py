#!/usr/bin/env python3
"""Trains a few steps with the trainer and opens its checkpoints and exports with PyTorch and safetensors.

    checkpoints.py TRAINER DATA [SCRATCH]    with torch 2.15 and safetensors

Every file must load; optimisers made as the preset says must take state.pt as it is and go on from it.
"""
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file
from torch import nn

MODEL = """name: small
model:
  input: {rows: 28, cols: 28, channels: 1}
  layers:
    - flatten
    - {type: linear, name: a, out: 16}
    - relu
    - {type: linear, name: b, out: 10}
loss: cross_entropy
optimizer: %s
data: {format: idx, train_items: 60000, val_items: 0}
"""


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(784, 16)
        self.b = nn.Linear(16, 10)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def groups(model):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    return [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]


OPTIMISERS = {
    "{type: sgd, lr: 0.01}": lambda m: torch.optim.SGD(m.parameters(), lr=0.5),
    "{type: sgd, lr: 0.01, momentum: 0.9, nesterov: true}": lambda m: torch.optim.SGD(
        m.parameters(), lr=0.5, momentum=0.1
    ),
    "{type: adam, lr: 0.01}": lambda m: torch.optim.Adam(m.parameters()),
    "{type: adamw, lr: 0.01, weight_decay: 0.1}": lambda m: torch.optim.AdamW(m.parameters()),
    "{type: adamw, lr: 0.01, weight_decay: 0.1, decay: matrices}": lambda m: torch.optim.AdamW(groups(m)),
}


def check(trainer, data, folder, optimiser, make):
    folder.mkdir()
    (folder / "m.yaml").write_text(MODEL % optimiser)
    command = [trainer, "m.yaml", "--data", data, "--max_steps", "7", "--save_steps", "7", "--log_interval", "100"]
    for save_path in ("m.pt", "m.safetensors"):
        subprocess.run([*command, "--resume", "never", "--save_path", save_path], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    step = folder / "checkpoints" / "step-0000000007"
    weights = [
        torch.load(folder / "m.pt", weights_only=True),
        load_file(folder / "m.safetensors"),
        load_file(step / "model.safetensors"),
    ]
    model = Small()
    for w in weights:
        model.load_state_dict(w, strict=True)
        assert all(torch.equal(w[k], weights[0][k]) for k in w)
    state = torch.load(step / "state.pt", weights_only=True)
    sums = state["trainer"].pop("sums")  # losses of the epoch so far: the mean of all ranks, then each rank's
    assert sums.dtype == torch.float64 and sums.shape == (2,) and torch.allclose(sums[0], sums[1]) and sums[0] > 0, sums
    assert state["trainer"] == {"epoch": 1, "consumed": 224, "epoch_step": 7, "step": 7, "items": 60000, "step_samples": 32,
                                "validated": False}, state["trainer"]
    counts = [s["step"].item() for s in state["state"].values() if "step" in s]
    assert all(c == 7 for c in counts), counts
    optim = make(model)
    optim.load_state_dict(state)
    ours, theirs = state["param_groups"], make(model).state_dict()["param_groups"]
    for a, b in zip(ours, theirs, strict=True):
        assert a.keys() == b.keys(), (a.keys(), b.keys())
        assert a["params"] == b["params"]
    assert optim.param_groups[0]["lr"] == 0.01
    before = model.a.weight.detach().clone()
    model(torch.rand(4, 784)).square().sum().backward()
    optim.step()
    assert not torch.equal(before, model.a.weight)
    kinds = {k for s in optim.state_dict()["state"].values() for k in s}
    assert kinds == {k for s in state["state"].values() for k in s} or not state["state"], kinds
    assert all(s["step"].item() == 8 for s in optim.state_dict()["state"].values() if "step" in s)
    print(f"ok: {optimiser}")


def main():
    trainer, data = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])
    with tempfile.TemporaryDirectory(dir=sys.argv[3] if len(sys.argv) > 3 else None) as scratch:
        for i, (optimiser, make) in enumerate(OPTIMISERS.items()):
            check(trainer, data, pathlib.Path(scratch) / str(i), optimiser, make)


main()
