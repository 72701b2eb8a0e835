#!/usr/bin/env python3
"""torch_twin.py - a preset of the trainer in PyTorch, as a rank of torch.distributed.run or alone; bench.py starts it.

usage: torch_twin.py PRESET STEPS [DATA]

Rank 0 prints `first` after the first step and, after STEPS more, `us_per_step FIGURE`. Batches are neighbouring rows of
tensors that are in memory, without shuffling or a DataLoader; the warm-up is not timed: both in PyTorch's favour.
"""
import gzip
import os
import pathlib
import sys
import time

import torch
from torch import nn

BATCH, WARM_UP = 32, 10


def idx(folder, name, header):
    return torch.frombuffer(bytearray(gzip.decompress((pathlib.Path(folder) / name).read_bytes())[header:]),
                            dtype=torch.uint8)


def fashion(folder, items):
    images = idx(folder, "train-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28)[:items]
    return images.float() / 255, idx(folder, "train-labels-idx1-ubyte.gz", 8)[:items].long()


def mlp(folder):
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return net, fashion(folder, 60000), nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=1e-3)


def cnn(folder):
    net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 64), nn.ReLU(), nn.Linear(64, 10),
                        nn.Softmax(dim=1))
    images, labels = fashion(folder, 48000)
    return net, ((images - 0.5) / 0.5, labels), nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), lr=1e-3)


def convnet(_folder):
    net = nn.Sequential(nn.Conv2d(3, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4608, 64), nn.ReLU(),
                        nn.Linear(64, 10))
    data = torch.rand(4096, 3, 28, 28), torch.randint(10, (4096,))
    return net, data, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=1e-2)


def linear(_folder):
    net = nn.Linear(20, 1)
    return net, (torch.rand(2048, 20), torch.rand(2048, 1)), nn.MSELoss(), torch.optim.SGD(net.parameters(), lr=1e-3)


PRESETS = {"fashion-mlp": mlp, "mnist-cnn": cnn, "convnet": convnet, "linear": linear}


def main():
    preset, steps, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net, (inputs, targets), loss_of, optimizer = PRESETS[preset](folder)
    if world > 1:
        torch.distributed.init_process_group("gloo")
        net = nn.parallel.DistributedDataParallel(net)
    batches = len(inputs) // BATCH

    def step(n):
        at = (n * world + rank) % batches * BATCH
        optimizer.zero_grad(set_to_none=True)
        loss_of(net(inputs[at:at + BATCH]), targets[at:at + BATCH]).backward()
        optimizer.step()

    step(0)
    if rank == 0:
        print("first", flush=True)
    for n in range(WARM_UP if steps else 0):
        step(n)
    start = time.perf_counter()
    for n in range(steps):
        step(n)
    if rank == 0 and steps:
        print(f"us_per_step {(time.perf_counter() - start) / steps * 1e6:.3f}", flush=True)
    if world > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
