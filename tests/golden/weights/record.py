#!/usr/bin/env python3
"""Record one small GPT-2's weights as two programs name and lay them out.

    pip install torch==2.15.0 safetensors==0.8.0
    tests/golden/weights/record.py tests/golden/weights

huggingface.safetensors: GPT2Model's bare names, matrices as (in, out), masks.
nanogpt.safetensors:     a compiled module's state_dict, matrices as (out, in), the shared matrix under both names.
"""
import os
import sys

import torch
from safetensors.torch import save_file

VOCAB, POSITIONS, LAYERS, WIDTH = 11, 6, 2, 8


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
    names["_orig_mod.lm_head.weight"] = w["wte.weight"].clone()
    save_file(names, path)


def main(folder):
    w = weights()
    huggingface(w, os.path.join(folder, "huggingface.safetensors"))
    nanogpt(w, os.path.join(folder, "nanogpt.safetensors"))


main(sys.argv[1])
