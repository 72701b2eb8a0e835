#!/usr/bin/env python3
"""Records how far PyTorch's autocast to bf16 is from PyTorch in f32, on a small GPT-2: gpt2_bf16.safetensors and gpt2_bf16.bin.

    gpt2_bf16.py        with torch 2.15 and safetensors, in this folder

In gpt2_bf16.safetensors: `weights` that make every part work, `tokens` of LOSSES sequences, and the `loss` of each in f32; in
`errors`, by tensor, autocast's distance from f32 over sequences together, relative: of `loss`, and over the first SETS of
them of `logits` and of every gradient.
`losses` and `losses_error`: trainings of STEPS steps in f32 on gpt2_bf16.bin from SEED, in RUNS orders (the sampler's
seed), and how far autocast's losses are from theirs.

The larger a tensor, the steadier the ratio of two errors of the same kind; several sequences make up for small ones.
"""
import struct

import torch
from torch.nn import functional as F

import gpt2

gpt2.VOCAB, gpt2.TIME, gpt2.HEADS, gpt2.WIDTH = 61, 32, 4, 32
SETS, LOSSES, RUNS = 8, 32, 8


class Autocast(gpt2.Gpt2):
    """Logits back in f32, as autocast has cross_entropy take them on GPUs."""

    def forward(self, tokens):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return super().forward(tokens).float()


def pass_of(model, tokens):
    model.zero_grad()
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, gpt2.VOCAB), tokens[:, 1:].reshape(-1))
    loss.backward()
    return {"logits": logits.detach(), "loss": loss.detach(),
            **{name: p.grad.clone() for name, p in model.named_parameters()}}


def distance(got, want):
    """Of lists of tensors, each list as one."""
    wrong = sum(((g.double() - w.double()) ** 2).sum() for g, w in zip(got, want))
    return torch.sqrt(wrong / sum((w.double() ** 2).sum() for w in want))


def losses_of(kind, stream):
    losses = []
    for seed in range(RUNS):
        torch.manual_seed(gpt2.SEED)
        losses.append(torch.tensor(gpt2.train(kind(), stream, seed)[0]))
    return losses


def main():
    torch.set_num_threads(1)
    torch.manual_seed(gpt2.SEED)
    generator = torch.Generator().manual_seed(5)
    exact, rough = gpt2.Gpt2(), Autocast()
    with torch.no_grad():
        for p in exact.parameters():
            p.add_(torch.randn(p.shape, generator=generator), alpha=0.15)
    rough.load_state_dict(exact.state_dict())
    tokens = torch.randint(gpt2.VOCAB, (LOSSES, 1, gpt2.TIME + 1), generator=generator)
    want = [pass_of(exact, t) for t in tokens]
    got = [pass_of(rough, t) for t in tokens]
    errors = {name: distance([g[name] for g in got[:of]], [w[name] for w in want[:of]])
              for name in want[0] for of in [LOSSES if name == "loss" else SETS]}

    stream = gpt2.text(gpt2.TIME * gpt2.BATCH * gpt2.STEPS + 1)
    with open("gpt2_bf16.bin", "wb") as f:
        f.write(struct.pack("<256i", 20240520, 1, len(stream), *[0] * 253))
        f.write(struct.pack(f"<{len(stream)}H", *stream))
    losses, rough_losses = losses_of(gpt2.Gpt2, stream), losses_of(Autocast, stream)
    gpt2.save({"weights": gpt2.copy_of(exact.named_parameters()), "tokens": tokens,
               "loss": torch.stack([w["loss"] for w in want]), "errors": errors,
               "losses": torch.stack(losses), "losses_error": distance(rough_losses, losses)}, "gpt2_bf16.safetensors")
    for name, error in errors.items():
        print(f"{name:36} {error:.3g}")
    print("losses", distance(rough_losses, losses))


if __name__ == "__main__":
    main()
