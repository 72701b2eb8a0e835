#!/usr/bin/env python3
"""Record one small GPT-2's weights in the files of four programs.

    pip install torch==2.15.0 safetensors==0.8.0 numpy
    tests/golden/weights/record.py tests/golden/weights

huggingface.safetensors: GPT2Model's bare names, matrices as (in, out), masks, written by the package safetensors.
nanogpt.pt:              {"model": state_dict of a compiled module, ...}, as nanoGPT's train.py saves it, with torch.save.
llmc-f32.bin llmc-bf16.bin: as llm.c's train_gpt2.py writes them, the vocabulary padded to 16.
"""
import os
import sys

import numpy as np
import torch
from safetensors.torch import save_file

VOCAB, PADDED, POSITIONS, LAYERS, HEADS, WIDTH = 11, 16, 6, 2, 2, 8


def weights():
    g = torch.Generator().manual_seed(5)
    c = WIDTH

    def draw(*shape):
        return torch.randn(*shape, generator=g) * 0.3

    w = {"wte.weight": draw(VOCAB, c), "wpe.weight": draw(POSITIONS, c)}
    for i in range(LAYERS):
        for name, out, inp in (("attn.c_attn", 3 * c, c), ("attn.c_proj", c, c), ("mlp.c_fc", 4 * c, c),
                               ("mlp.c_proj", c, 4 * c)):
            w[f"h.{i}.{name}.weight"] = draw(out, inp)
            w[f"h.{i}.{name}.bias"] = draw(out)
        for name in ("ln_1", "ln_2"):
            w[f"h.{i}.{name}.weight"] = 1 + draw(c)
            w[f"h.{i}.{name}.bias"] = draw(c)
    w["ln_f.weight"] = 1 + draw(c)
    w["ln_f.bias"] = draw(c)
    return w


def is_matrix(name):
    return name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))


def huggingface(w, path):
    out = {k: v.t().contiguous() if is_matrix(k) else v for k, v in w.items()}
    for i in range(LAYERS):
        out[f"h.{i}.attn.bias"] = torch.ones(1, 1, POSITIONS, POSITIONS).tril()
    save_file(out, path)


def nanogpt(w, path):
    names = {f"_orig_mod.transformer.{k}": v for k, v in w.items()}
    names["_orig_mod.lm_head.weight"] = w["wte.weight"]
    args = {"n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "block_size": POSITIONS, "bias": True,
            "vocab_size": VOCAB, "dropout": 0.0}
    torch.save({"model": names, "model_args": args, "iter_num": 7, "best_val_loss": 2.5, "config": {"device": "cpu"}}, path)


def llmc(w, path, version):
    header = np.zeros(256, dtype=np.int32)
    header[:8] = 20240326, version, POSITIONS, VOCAB, LAYERS, HEADS, WIDTH, PADDED
    order = ["wte.weight", "wpe.weight"]
    for name in ("ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight",
                 "attn.c_proj.bias", "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight",
                 "mlp.c_proj.bias"):
        order += [f"h.{i}.{name}" for i in range(LAYERS)]
    order += ["ln_f.weight", "ln_f.bias"]
    with open(path, "wb") as f:
        f.write(header.tobytes())
        for name in order:
            t = w[name]
            if name == "wte.weight":
                t = torch.cat([t, torch.full((PADDED - VOCAB, WIDTH), 77.0)])
            if version == 3:
                f.write(t.numpy().astype("float32").tobytes())
            else:
                f.write(t.to(torch.bfloat16).view(torch.int16).numpy().tobytes())


def main(folder):
    w = weights()
    huggingface(w, os.path.join(folder, "huggingface.safetensors"))
    nanogpt(w, os.path.join(folder, "nanogpt.pt"))
    llmc(w, os.path.join(folder, "llmc-f32.bin"), 3)
    llmc(w, os.path.join(folder, "llmc-bf16.bin"), 5)


main(sys.argv[1])
