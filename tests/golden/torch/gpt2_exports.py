#!/usr/bin/env python3
"""Trains a small GPT-2 with the trainer and opens what it exports with PyTorch; then the other way round.

    gpt2_exports.py TRAINER [SCRATCH]    with torch 2.15 and safetensors

Exports are --save_path's (.pt, .safetensors). Each goes into a module, the second into one with Hugging Face's Conv1D, which says the
loss that the trainer says. Then weights that PyTorch drew are written in several ways (a compiled module's names, matrices as (out, in)
and as (in, out), other numbers), and the trainer has to say their loss. A .pt it refuses, and the line that it gives makes one it takes.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import torch
from gpt2 import HEADS, LAYERS, TIME, VOCAB, WIDTH, Gpt2
from safetensors.torch import load_model, save_file
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).resolve().parent
MODEL = f"""name: small
model:
  gpt2: {{vocab: {VOCAB}, block_size: {TIME}, n_layer: {LAYERS}, n_head: {HEADS}, n_embd: {WIDTH}}}
loss: cross_entropy
optimizer: {{type: adamw, lr: 0.01}}
data: {{format: tokens, train: gpt2.bin, val: gpt2.bin}}
defaults: {{epochs: 1, batch_size: 4, seed: 5}}
"""


class Conv1D(nn.Module):
    """A linear layer as GPT2LMHeadModel has them: the matrix lies as (in, out)."""

    def __init__(self, linear):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(linear.in_features, linear.out_features))
        self.bias = nn.Parameter(torch.zeros(linear.out_features))

    def forward(self, x):
        return x @ self.weight + self.bias


def hugging_face():
    model = Gpt2()
    for block in model.transformer.h:
        for part, names in ((block.attn, ("c_attn", "c_proj")), (block.mlp, ("c_fc", "c_proj"))):
            for name in names:
                setattr(part, name, Conv1D(getattr(part, name)))
    return model


def windows():
    shard = np.fromfile(HERE / "gpt2.bin", dtype=np.uint16)[512:].astype(np.int64)
    count = (len(shard) - 1) // TIME
    tokens = torch.tensor(shard[:count * TIME]).view(count, TIME)
    return tokens, torch.tensor(shard[1:count * TIME + 1]).view(count, TIME)


def loss_of(model):
    tokens, labels = windows()
    with torch.no_grad():
        return F.cross_entropy(model(tokens).reshape(-1, VOCAB), labels.reshape(-1)).item()


def trainer(folder, *words):
    done = subprocess.run([sys.argv[1], *map(str, words)], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def trainers_loss(folder, weights):
    said = trainer(folder, "m.yaml", "--data", HERE, "--eval_only", "--init_from", weights, "--log_format", "json",
                   "--resume", "never")
    return next(json.loads(line)["loss"] for line in said.splitlines() if '"test"' in line)


def near(what, got, want, bound=2e-6):
    assert abs(got - want) <= bound * abs(want), (what, got, want)
    print(f"ok: {what}: {got:.7f}, {want:.7f}")


def exports(folder):
    for name in ("m.pt", "m.safetensors"):
        trainer(folder, "m.yaml", "--data", HERE, "--save_path", name, "--resume", "never")
    want = trainers_loss(folder, "m.safetensors")
    state = torch.load(folder / "m.pt", weights_only=True)
    pointers = {state[k].data_ptr() for k in ("lm_head.weight", "transformer.wte.weight")}
    assert len(pointers) == 1, "tied weights lie twice"
    model = Gpt2()
    model.load_state_dict(state)
    near("--save_path m.pt", loss_of(model), want)
    shaped = hugging_face()
    load_model(shaped, folder / "m.safetensors")
    near("--save_path m.safetensors", loss_of(shaped), want)


def convert(folder, name):
    """By the line that the trainer gives who hands it a .pt."""
    done = subprocess.run([sys.argv[1], "m.yaml", "--data", str(HERE), "--eval_only", "--init_from", name], cwd=folder, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 2, done
    line = re.search(r'python3 (-c ".*")', done.stdout + done.stderr)[1]
    subprocess.run(f"{shlex.quote(sys.executable)} {line}", shell=True, cwd=folder, check=True)


def imports(folder):
    torch.manual_seed(11)
    model, shaped = Gpt2(), hugging_face()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn_like(p))
    state = {name: t.clone() for name, t in model.state_dict().items()}
    turned = {k: v.t().contiguous() if v.shape != shaped.state_dict()[k].shape or "attn.c_proj.weight" in k else v
              for k, v in state.items() if k != "lm_head.weight"}
    shaped.load_state_dict(turned, strict=False)
    near("a module of Conv1D", loss_of(shaped), loss_of(model))
    save_file({f"_orig_mod.{k}": v for k, v in state.items()}, folder / "compiled.safetensors")
    save_file(turned, folder / "conv1d.safetensors")
    save_file({k: v.double() for k, v in turned.items()}, folder / "f64.safetensors")
    torch.save(model.state_dict(), folder / "p.pt")
    convert(folder, "p.pt")
    for name in ("compiled.safetensors", "conv1d.safetensors", "f64.safetensors", "model.safetensors"):
        near(f"--init_from {name}", trainers_loss(folder, name), loss_of(model))
    rough = {k: v.bfloat16() for k, v in turned.items()}
    save_file(rough, folder / "bf16.safetensors")
    shaped.load_state_dict({k: v.float() for k, v in rough.items()}, strict=False)
    near("--init_from bf16.safetensors", trainers_loss(folder, "bf16.safetensors"), loss_of(shaped))


def main():
    sys.argv[1] = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as scratch:
        folder = pathlib.Path(scratch)
        (folder / "m.yaml").write_text(MODEL)
        exports(folder)
        imports(folder)


main()
