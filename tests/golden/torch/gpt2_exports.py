#!/usr/bin/env python3
"""Trains a small GPT-2 with the trainer and opens what it exports with PyTorch; then the other way round.

    gpt2_exports.py TRAINER [SCRATCH]    with torch 2.15 and safetensors

Exports are --save_path's (.pt, .safetensors). Each goes into a module by load_state_dict, which says the loss that the
trainer says. Then weights that PyTorch drew are written in several ways (nanoGPT's names, Hugging Face's names with matrices as
(in, out), llm.c's .bin of both numbers), and the trainer has to say their loss.
"""
import json
import pathlib
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


LLMC_PER_LAYER = ("ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias",
                  "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias")
LLMC_ORDER = ["wte.weight", "wpe.weight", *(f"h.{i}.{name}" for name in LLMC_PER_LAYER for i in range(LAYERS)), "ln_f.weight",
              "ln_f.bias"]


def llmc_read(path):
    """A state_dict, and the type of the numbers."""
    data = path.read_bytes()
    magic, version, positions, vocab, layers, heads, width, padded = np.frombuffer(data, dtype=np.int32, count=8)
    assert (magic, positions, vocab, layers, heads, width) == (20240326, TIME, VOCAB, LAYERS, HEADS, WIDTH)
    kind = {3: torch.float32, 5: torch.bfloat16}[int(version)]
    numbers = torch.frombuffer(bytearray(data[1024:]), dtype=kind).float()
    out, at = {}, 0
    like = Gpt2().state_dict()
    for name in LLMC_ORDER:
        shape = list(like[f"transformer.{name}"].shape)
        if name == "wte.weight":
            shape[0] = int(padded)
        n = int(np.prod(shape))
        out[f"transformer.{name}"] = numbers[at:at + n].view(shape)
        at += n
    assert at == len(numbers), (at, len(numbers))
    out["transformer.wte.weight"] = out["lm_head.weight"] = out["transformer.wte.weight"][:VOCAB]
    return out, kind


def llmc_write(state, path, version):
    header = np.zeros(256, dtype=np.int32)
    header[:8] = 20240326, version, TIME, VOCAB, LAYERS, HEADS, WIDTH, VOCAB
    kind = torch.float32 if version == 3 else torch.bfloat16
    with open(path, "wb") as f:
        f.write(header.tobytes())
        for name in LLMC_ORDER:
            f.write(state[f"transformer.{name}"].to(kind).view(torch.uint8).numpy().tobytes())


def fill(model, path):
    """As each format's own reader does it: safetensors' leaves out what is tied."""
    if path.suffix == ".safetensors":
        load_model(model, path)
        return
    lacks = model.load_state_dict(torch.load(path, weights_only=True), strict=False)
    tied = {"lm_head.weight"} if path.name.startswith("h.") else set()  # GPT2LMHeadModel's files have it under one name
    assert not lacks.unexpected_keys and set(lacks.missing_keys) <= tied, lacks


def near(what, got, want, bound=2e-6):
    assert abs(got - want) <= bound * abs(want), (what, got, want)
    print(f"ok: {what}: {got:.7f}, {want:.7f}")


def exports(folder):
    for name in ("m.pt", "m.safetensors"):
        trainer(folder, "m.yaml", "--data", HERE, "--save_path", name, "--resume", "never")
    want = trainers_loss(folder, "m.pt")
    for name in ("m.pt", "m.safetensors"):
        model = Gpt2()
        fill(model, folder / name)
        if name == "m.pt":
            state = torch.load(folder / name, weights_only=True)
            pointers = {state[k].data_ptr() for k in ("lm_head.weight", "transformer.wte.weight")}
            assert len(pointers) == 1, "tied weights lie twice"
        near(f"--save_path {name}", loss_of(model), want)


def imports(folder):
    torch.manual_seed(11)
    model, shaped = Gpt2(), hugging_face()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn_like(p))
    state = {name: t.clone() for name, t in model.state_dict().items()}
    torch.save(model.state_dict(), folder / "p.pt")
    torch.save({"model": {f"_orig_mod.{k}": v for k, v in model.state_dict().items()}, "iter_num": 3}, folder / "nanogpt.pt")
    save_file({k: v for k, v in state.items() if k != "lm_head.weight"}, folder / "p.safetensors")
    turned = {k: v.t().contiguous() if v.shape != shaped.state_dict()[k].shape or "attn.c_proj.weight" in k else v
              for k, v in state.items() if k != "lm_head.weight"}
    save_file(turned, folder / "conv1d.safetensors")
    shaped.load_state_dict(turned, strict=False)
    near("a module of Conv1D", loss_of(shaped), loss_of(model))
    torch.save(shaped.state_dict(), folder / "conv1d.pt")
    llmc_write(state, folder / "p3.bin", 3)
    llmc_write(state, folder / "p5.bin", 5)
    for name in ("p.pt", "nanogpt.pt", "p.safetensors", "conv1d.safetensors", "conv1d.pt", "p3.bin"):
        near(f"--init_from {name}", trainers_loss(folder, name), loss_of(model))
    model.load_state_dict(llmc_read(folder / "p5.bin")[0])
    near("--init_from p5.bin", trainers_loss(folder, "p5.bin"), loss_of(model))


def main():
    sys.argv[1] = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as scratch:
        folder = pathlib.Path(scratch)
        (folder / "m.yaml").write_text(MODEL)
        exports(folder)
        imports(folder)


main()
