#!/usr/bin/env python3
"""Record what PyTorch does in the first steps of the mnist-cnn workload, for the trainer to be held against.

One process, batch 32, seed 1, Fashion-MNIST: the order of random numbers is manual_seed, weights, random_split;
the order of samples is DistributedSampler(seed 0, epoch 0) over one rank.

    mnist_cnn.py /usr/share/datasets/fashion-mnist > mnist_cnn.txt
"""
import gzip
import struct
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split
from torch.utils.data.distributed import DistributedSampler


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, kernel_size=3)
        self.conv2 = nn.Conv2d(32, 64, kernel_size=3)
        self.conv3 = nn.Conv2d(64, 64, kernel_size=3)
        self.dense1 = nn.Linear(576, 64)
        self.dense2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.conv3(x))
        x = torch.flatten(x, 1)
        x = F.relu(self.dense1(x))
        return F.softmax(self.dense2(x), dim=1)


def idx(path):
    with gzip.open(path, "rb") as f:
        data = f.read()
    ndim = data[3]
    dims = struct.unpack(f">{ndim}I", data[4:4 + 4 * ndim])
    return torch.frombuffer(bytearray(data[4 + 4 * ndim:]), dtype=torch.uint8).reshape(dims)


def load(folder, part):
    images = idx(f"{folder}/{part}-images-idx3-ubyte.gz").to(torch.float32).div(255).sub(0.5).div(0.5)
    labels = idx(f"{folder}/{part}-labels-idx1-ubyte.gz").long()
    return TensorDataset(images.unsqueeze(1), labels)


def main():
    torch.set_num_threads(1)
    steps, batch, seed = 10, 32, 1
    torch.manual_seed(seed)
    net = Net()
    train, _ = random_split(load(sys.argv[1], "train"), [48000, 12000])
    sampler = DistributedSampler(train, num_replicas=1, rank=0, shuffle=True, seed=0)
    sampler.set_epoch(0)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    criterion = nn.CrossEntropyLoss()

    version = torch.__version__.split("+")[0]
    print(f"# mnist-cnn in PyTorch {version}: Fashion-MNIST, one rank, batch {batch}, seed {seed}")
    for step, (data, target) in enumerate(DataLoader(train, batch_size=batch, sampler=sampler), 1):
        optimizer.zero_grad()
        loss = criterion(net(data), target)
        loss.backward()
        if step == 1:
            for name, p in net.named_parameters():
                print(f"gradient {name} {p.grad.double().norm().item():.9e}")
        optimizer.step()
        print(f"loss {step} {loss.item():.9e}")
        if step == steps:
            break


if __name__ == "__main__":
    main()
