#!/usr/bin/env python3
"""Trains a few steps with the trainer and opens its checkpoints and exports with PyTorch and safetensors.

    checkpoints.py TRAINER DATA [SCRATCH]    with torch 2.15 and safetensors

Every file must load; the moments of optim.safetensors are those of the optimiser that the preset says, of each parameter's shape.
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


OPTIMISERS = {
    "{type: sgd, lr: 0.01}": [],
    "{type: sgd, lr: 0.01, momentum: 0.9, nesterov: true}": ["momentum_buffer"],
    "{type: adam, lr: 0.01}": ["exp_avg", "exp_avg_sq"],
    "{type: adamw, lr: 0.01, weight_decay: 0.1, decay: matrices}": ["exp_avg", "exp_avg_sq"],
}


def check(trainer, data, folder, optimiser, moments):
    folder.mkdir()
    (folder / "m.yaml").write_text(MODEL % optimiser)
    command = [trainer, "m.yaml", "--data", data, "--max_steps", "7", "--save_steps", "7", "--log_interval", "100"]
    for save_path in ("m.pt", "m.safetensors"):
        subprocess.run([*command, "--resume", "never", "--save_path", save_path], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    step = next((folder / "checkpoints").glob("*/step-0000000007"))
    weights = [
        torch.load(folder / "m.pt", weights_only=True),
        load_file(folder / "m.safetensors"),
        load_file(step / "model.safetensors"),
    ]
    model = Small()
    for w in weights:
        model.load_state_dict(w, strict=True)
        assert all(torch.equal(w[k], weights[0][k]) for k in w)
    state = load_file(step / "optim.safetensors")
    sums = state.pop("trainer.sums")  # losses of the epoch so far: the mean of all ranks, then each rank's
    assert sums.dtype == torch.float64 and sums.shape == (2,) and torch.allclose(sums[0], sums[1]) and sums[0] > 0, sums
    told = {k.removeprefix("trainer."): state.pop(k).item() for k in list(state) if k.startswith("trainer.")}
    assert told == {"epoch": 1, "consumed": 224, "epoch_step": 7, "step": 7, "items": 60000, "step_samples": 32,
                    "validated": 0}, told
    names = {f"{moment}.{name}": p.shape for moment in moments for name, p in model.named_parameters()}
    assert {k: v.shape for k, v in state.items()} == names, state.keys()
    assert all(v.abs().sum() > 0 for v in state.values())
    print(f"ok: {optimiser}")


def main():
    trainer, data = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])
    with tempfile.TemporaryDirectory(dir=sys.argv[3] if len(sys.argv) > 3 else None) as scratch:
        for i, (optimiser, moments) in enumerate(OPTIMISERS.items()):
            check(trainer, data, pathlib.Path(scratch) / str(i), optimiser, moments)


main()
