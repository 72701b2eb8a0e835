#!/usr/bin/env python3
"""pytorch.py [--device cuda] [--steps 200] - the nets of gpu-bench in PyTorch, on data that lie on the GPU: eager, and with
torch.compile and CUDA graphs (mode="reduce-overhead"). Prints the same columns as gpu-bench. Exit status 77 without a GPU."""

import argparse
import statistics
import sys
import time

import torch
from torch import nn

ROUNDS = 9
BATCHES = (32, 512, 8192)


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


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


NETS = {"fashion-mlp": (mlp, 1, sgd), "mnist-cnn": (cnn, 1, adam), "convnet": (convnet, 3, sgd)}


class Run:
    def __init__(self, name, batch, device, compiled):
        make, channels, optimizer = NETS[name]
        self.device, self.batch = device, batch
        self.net = make().to(device)
        self.optimizer = optimizer(self.net.parameters())
        self.images = torch.randint(0, 256, (64 * batch, channels, 28, 28), dtype=torch.uint8, device=device)
        self.labels = torch.randint(0, 10, (64 * batch,), device=device)
        self.forward = torch.compile(self.loss, mode="reduce-overhead") if compiled else self.loss

    def loss(self, images, labels):
        return nn.functional.cross_entropy(self.net((images.float() / 255 - 0.5) / 0.5), labels)

    def steps(self, n):
        start = time.perf_counter()
        for i in range(n):
            if i % 64 == 0:
                order = torch.randperm(len(self.labels), device=self.device)
            mine = order[i % 64 * self.batch:][:self.batch]
            self.optimizer.zero_grad(set_to_none=True)
            self.forward(self.images[mine], self.labels[mine]).backward()
            self.optimizer.step()
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start


def measure(name, batch, device, compiled, steps):
    start = time.perf_counter()
    run = Run(name, batch, device, compiled)
    run.steps(1)
    first = time.perf_counter() - start
    run.steps(10)
    rounds = [run.steps(steps) / steps for _ in range(ROUNDS)]
    median = statistics.median(rounds)
    how = "compiled" if compiled else "eager"
    print(f"{name:12} {batch:6} {first * 1e3:10.1f} ms {median * 1e6:10.1f} us {min(rounds) * 1e6:10.1f} us "
          f"{batch / median:12.0f}  {how}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    asked = parser.parse_args()
    if asked.device == "cuda" and not torch.cuda.is_available():
        print("gpu-bench: PyTorch: skipped: it sees no GPU", file=sys.stderr)
        return 77
    print(f"{'net':12} {'batch':>6} {'first step':>13} {'step, median':>13} {'step, best':>13} {'samples/s':>12}")
    for name in NETS:
        for batch in asked.batches:
            for compiled in (False, True) if asked.device == "cuda" else (False,):
                measure(name, batch, asked.device, compiled, asked.steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
