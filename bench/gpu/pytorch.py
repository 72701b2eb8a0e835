#!/usr/bin/env python3
"""pytorch.py [--device cuda] [--steps 200] [--nets gpt2 ...] - the nets of gpu-bench in PyTorch, on data that lie on the GPU:
eager, and with torch.compile (the small ones with CUDA graphs: mode="reduce-overhead"). GPT-2 is trained under bf16 autocast
with scaled_dot_product_attention and fused AdamW, for a tenth of the steps. Prints the same columns as gpu-bench. A size that
fails is told, and the next one runs. Exit status 77 without a GPU, 1 when one failed; a size without room in the GPU's memory
counts only where its net had room for none."""

import argparse
import contextlib
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

ROUNDS = 9
BATCHES = (32, 512, 8192)
SEQUENCES = (64, 32, 4, 8, 16)  # 64 may need more than 80 GB
PEAK = 989e12  # H100 SXM and H200: NVIDIA's data sheets, bf16 without sparsity
PIXELS, TOKENS = 784, 1024


class Block(nn.Module):
    """GPT-2's: norm, attention, norm, four times as wide and back, each added to what came in."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        rows, time_, width = x.shape
        q, k, v = self.attn(self.ln_1(x)).view(rows, time_, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(rows, time_, width))
        return x + self.mlp_proj(functional.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """124 million parameters; the head's matrix is the embedding's."""

    VOCAB, LAYERS, HEADS, WIDTH = 50257, 12, 12, 768

    def __init__(self, vocab=VOCAB, layers=LAYERS, heads=HEADS, width=WIDTH):
        super().__init__()
        self.vocab, self.layers, self.width = vocab, layers, width
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(TOKENS, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.ln_f = nn.LayerNorm(width)
        for table in (self.wte, self.wpe):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        return functional.linear(self.ln_f(self.blocks(x)), self.wte.weight)

    def operations(self):
        """Of a token, as gpu-bench counts them: 6 N + 6 L C T."""
        return 6 * sum(p.numel() for p in self.parameters()) + 6 * self.layers * self.width * TOKENS


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(PIXELS, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 64), nn.ReLU(), nn.Linear(64, 10), nn.Softmax(1))


def convnet():
    return nn.Sequential(
        nn.Conv2d(3, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4608, 64), nn.ReLU(), nn.Linear(64, 10))


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=1e-3)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3, capturable=torch.cuda.is_available())


def adamw(parameters):
    matrices = [p for p in parameters if p.dim() > 1]
    others = [p for p in parameters if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=torch.cuda.is_available())


# What makes it, its channels (0: tokens), its optimiser.
NETS = {"gpt2": (Gpt2, 0, adamw), "fashion-mlp": (mlp, 1, sgd), "mnist-cnn": (cnn, 1, adam), "convnet": (convnet, 3, sgd)}


class Run:
    def __init__(self, name, batch, device, compiled):
        make, channels, optimizer = NETS[name]
        self.device, self.batch, self.channels = device, batch, channels
        self.net = make().to(device)
        self.optimizer = optimizer(list(self.net.parameters()))
        self.items = 64 * batch
        if channels:
            self.inputs = torch.randint(0, 256, (self.items, channels, 28, 28), dtype=torch.uint8, device=device)
            self.labels = torch.randint(0, 10, (self.items,), device=device)
        else:
            self.inputs = torch.randint(0, self.net.vocab, (self.items, TOKENS + 1), device=device)
            self.labels = None
        mode = "reduce-overhead" if channels else "default"
        self.forward = torch.compile(self.loss, mode=mode) if compiled else self.loss

    def loss(self, inputs, labels):
        if self.channels:
            return functional.cross_entropy(self.net((inputs.float() / 255 - 0.5) / 0.5), labels)
        logits = self.net(inputs[:, :-1])
        return functional.cross_entropy(logits.flatten(0, 1), inputs[:, 1:].flatten())

    def autocast(self):
        if self.channels:
            return contextlib.nullcontext()
        return torch.autocast(self.device, dtype=torch.bfloat16)

    def steps(self, n):
        start = time.perf_counter()
        for i in range(n):
            if i % 64 == 0:
                order = torch.randperm(self.items, device=self.device)
            mine = order[i % 64 * self.batch:][:self.batch]
            self.optimizer.zero_grad(set_to_none=True)
            with self.autocast():
                loss = self.forward(self.inputs[mine], None if self.labels is None else self.labels[mine])
            loss.backward()
            if not self.channels:
                nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            self.optimizer.step()
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start


def measure(name, batch, device, compiled, steps):
    start = time.perf_counter()
    run = Run(name, batch, device, compiled)
    if not run.channels:
        steps = max(2, steps // 10)
    run.steps(1)
    first = time.perf_counter() - start
    run.steps(min(10, steps))
    rounds = [run.steps(steps) / steps for _ in range(ROUNDS)]
    median = statistics.median(rounds)
    how = "compiled" if compiled else "eager"
    print(f"{name:12} {batch:6} {first * 1e3:10.1f} ms {median * 1e6:10.1f} us {min(rounds) * 1e6:10.1f} us "
          f"{batch / median:12.0f}  {how}", flush=True)
    if not run.channels:
        tokens = batch * TOKENS / median
        share = tokens * run.net.operations() / PEAK
        print(f"{'':12} {tokens:.0f} tokens/s, {100 * share:.1f} % of {PEAK / 1e12:.0f} TFLOPS", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batches", type=int, nargs="+")
    parser.add_argument("--nets", nargs="+", default=list(NETS), choices=list(NETS))
    asked = parser.parse_args()
    if asked.device == "cuda" and not torch.cuda.is_available():
        print("gpu-bench: PyTorch: skipped: it sees no GPU", file=sys.stderr)
        return 77
    print(f"PyTorch {torch.__version__}")
    print(f"{'net':12} {'batch':>6} {'first step':>13} {'step, median':>13} {'step, best':>13} {'samples/s':>12}")
    failed = 0
    for name in asked.nets:
        measured = 0
        for batch in asked.batches or (BATCHES if NETS[name][1] else SEQUENCES):
            for compiled in (False, True) if asked.device == "cuda" else (False,):
                try:
                    measure(name, batch, asked.device, compiled, asked.steps)
                    measured += 1
                except (RuntimeError, OSError) as why:  # out of memory, a compiler that is missing
                    print(f"{name:12} {batch:6} {'compiled' if compiled else 'eager'}: {str(why).splitlines()[0]}", flush=True)
                    failed |= not isinstance(why, torch.cuda.OutOfMemoryError)
                if asked.device == "cuda":
                    torch.cuda.empty_cache()
        failed |= not measured
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
