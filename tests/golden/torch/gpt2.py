#!/usr/bin/env python3
"""Records what GPT-2 does in PyTorch, small, for the trainer's to be held against: gpt2.safetensors and gpt2.bin.

    gpt2.py        with torch 2.15 and safetensors, in this folder

The model is GPT-2's with the names and the order of initial draws of nanoGPT and build-nanogpt (wte shared with lm_head,
normal weights of 0.02, those into the residual stream narrower). In gpt2.safetensors, a tensor of a group as GROUP/NAME: `start`, the initial weights of SEED;
`weights`, others that make every part work harder, with the `logits`, `loss` and `grads` they give for `tokens`;
`losses`, `norms` and `final` of a training from `start` on gpt2.bin, a shard of tokens, with AdamW, a warm-up into a
cosine, gradients bounded by their norm, and two micro-batches a step.
"""
import math
import struct

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F
from torch.utils.data.distributed import DistributedSampler

SEED, VOCAB, TIME, LAYERS, HEADS, WIDTH = 1337, 31, 12, 2, 2, 16
BATCH, MICRO, STEPS, WARMUP = 4, 2, 10, 3
LR, LEAST, CLIP = 6e-3, 6e-4, 1.0


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)
        self.c_proj.residual = True

    def forward(self, x):
        rows, time, _ = x.shape
        q, k, v = (part.view(rows, time, HEADS, WIDTH // HEADS).transpose(1, 2)
                   for part in self.c_attn(x).split(WIDTH, dim=2))
        weights = q @ k.transpose(-2, -1) / math.sqrt(WIDTH // HEADS)
        later = torch.ones(time, time).triu(1).bool()
        mixed = weights.masked_fill(later, float("-inf")).softmax(-1) @ v
        return self.c_proj(mixed.transpose(1, 2).reshape(rows, time, WIDTH))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.c_proj = nn.Linear(4 * WIDTH, WIDTH)
        self.c_proj.residual = True

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.mlp = Mlp()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(VOCAB, WIDTH), wpe=nn.Embedding(TIME, WIDTH),
            h=nn.ModuleList(Block() for _ in range(LAYERS)), ln_f=nn.LayerNorm(WIDTH)))
        self.lm_head = nn.Linear(WIDTH, VOCAB, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self.draw)

    @staticmethod
    def draw(module):
        if isinstance(module, nn.Linear):
            std = 0.02 * (2 * LAYERS) ** -0.5 if hasattr(module, "residual") else 0.02
            nn.init.normal_(module.weight, mean=0.0, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, tokens):
        t = self.transformer
        x = t.wte(tokens) + t.wpe(torch.arange(tokens.shape[1]))
        for block in t.h:
            x = block(x)
        return self.lm_head(t.ln_f(x))


def loss_of(model, tokens, labels):
    return F.cross_entropy(model(tokens).reshape(-1, VOCAB), labels.reshape(-1))


def copy_of(tensors):
    return {name: t.detach().clone() for name, t in tensors}


def save(record, path):
    """Dicts of tensors inside as NAME/KEY."""
    flat = {}
    for name, value in record.items():
        flat.update({f"{name}/{k}": v for k, v in value.items()} if isinstance(value, dict) else {name: value})
    save_file({name: t.contiguous() for name, t in flat.items()}, path)


def rate(step):
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    done = (step - WARMUP) / (STEPS - WARMUP)
    return LEAST + 0.5 * (1 + math.cos(math.pi * done)) * (LR - LEAST)


def text(length):
    """Tokens with something to learn: each is likely to follow from the one before."""
    g = torch.Generator().manual_seed(3)
    out = [0]
    for jump in torch.rand(length - 1, generator=g):
        out.append((out[-1] * 7 + 3 + int(jump * 4)) % VOCAB)
    return out


def train(model, stream, seed=0):
    """Windows in DistributedSampler's order, as one rank of one has them."""
    windows = (len(stream) - 1) // TIME
    data = torch.tensor(stream)
    order = list(DistributedSampler(range(windows), num_replicas=1, rank=0, seed=seed))
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=LR, betas=(0.9, 0.95), eps=1e-8)
    losses, norms = [], []
    for step in range(STEPS):
        total = 0.0
        optimizer.zero_grad()
        for micro in range(MICRO):
            at = order[step * BATCH + micro * BATCH // MICRO:][:BATCH // MICRO]
            tokens = torch.stack([data[i * TIME:(i + 1) * TIME] for i in at])
            labels = torch.stack([data[i * TIME + 1:(i + 1) * TIME + 1] for i in at])
            loss = loss_of(model, tokens, labels) / MICRO
            total += loss.item()
            loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        losses.append(total)
    return losses, norms


def main():
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    model = Gpt2()
    record = {"start": copy_of(model.named_parameters())}
    stream = text(TIME * BATCH * STEPS + 1)
    with open("gpt2.bin", "wb") as f:
        f.write(struct.pack("<256i", 20240520, 1, len(stream), *[0] * 253))
        f.write(struct.pack(f"<{len(stream)}H", *stream))
    losses, norms = train(model, stream)
    record.update(losses=torch.tensor(losses), norms=torch.tensor(norms), final=copy_of(model.named_parameters()))

    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(record["start"][next(n for n, q in model.named_parameters() if q is p)])
            p.add_(torch.randn(p.shape, generator=generator), alpha=0.3)
    tokens = torch.randint(VOCAB, (3, TIME + 1), generator=generator)
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), tokens[:, 1:].reshape(-1))
    model.zero_grad()
    loss.backward()
    record.update(weights=copy_of(model.named_parameters()), tokens=tokens, logits=logits.detach().clone(),
                  loss=loss.detach().clone(), grads={n: p.grad.clone() for n, p in model.named_parameters()})
    save(record, "gpt2.safetensors")
    print("losses", losses)
    print("norms", norms)


if __name__ == "__main__":
    main()
