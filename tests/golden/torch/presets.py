#!/usr/bin/env python3
"""Record what PyTorch does in the first steps of the presets that train data-parallel without anything special:
DistributedDataParallel over gloo, DistributedSampler, torch.optim.SGD, one thread per rank.

    presets.py NAME WORLD [FOLDER] > NAME-WORLD.txt       (NAME: fashion-mlp, linear, convnet, pipeline)

`weights` is the CRC-32 of all initial parameters in the order of named_parameters(), `data` that of the synthetic
data; `loss` is the mean over all ranks, before the step's update. Record it again with tests/golden/torch/presets.sh.
"""
import os
import sys
import tempfile
import zlib

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from mnist_cnn import idx

STEPS, BATCH, SEED = 100, 32, 0


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))

    def forward(self, x):
        return self.linear_relu_stack(self.flatten(x))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 32, kernel_size=5)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Linear(4608, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv(x)))
        x = torch.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc2(x)


class SubNet(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.linear(x)


class Pipeline(nn.Module):
    """All stages in one process."""
    def __init__(self):
        super().__init__()
        self.subnets = nn.Sequential(SubNet(1024, 512), SubNet(512, 256), SubNet(256, 100))

    def forward(self, x):
        return self.subnets(x.flatten(1))


def fashion(folder):
    images = idx(f"{folder}/train-images-idx3-ubyte.gz").to(torch.float32).div(255)
    return TensorDataset(images.unsqueeze(1), idx(f"{folder}/train-labels-idx1-ubyte.gz").long())


def rows():
    """Each row is drawn as rand(20), rand(1), from the generator that makes the weights afterwards."""
    both = [(torch.rand(20), torch.rand(1)) for _ in range(2048)]
    return TensorDataset(torch.stack([x for x, _ in both]), torch.stack([y for _, y in both]))


def teacher(shape, classes):
    """A generator of its own: all pixels, then one weight per class and pixel; the class is the largest response to
    the pixels less one half, in double precision."""
    g = torch.Generator().manual_seed(SEED)
    x = torch.rand(4096, *shape, generator=g)
    w = torch.rand(classes, x[0].numel(), generator=g) * 2 - 1
    return TensorDataset(x, ((x.double() - 0.5).flatten(1) @ w.double().T).argmax(1))


def crc(tensors):
    value = 0
    for t in tensors:
        value = zlib.crc32(t.detach().contiguous().numpy().tobytes(), value)
    return value


def run(rank, world, name, folder, store, lines):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world, init_method=f"file://{store}")
    torch.manual_seed(SEED)
    data = {"fashion-mlp": lambda: fashion(folder), "linear": rows, "convnet": lambda: teacher((3, 28, 28), 10),
            "pipeline": lambda: teacher((1024, 1, 1), 100)}[name]()
    net = {"fashion-mlp": Mlp, "linear": lambda: nn.Linear(20, 1), "convnet": ConvNet, "pipeline": Pipeline}[name]()
    criterion = nn.MSELoss() if name == "linear" else nn.CrossEntropyLoss()
    lines.append(f"weights {crc(net.parameters()):08x}")
    if name != "fashion-mlp":
        targets = data.tensors[1]
        lines.append(f"data {crc([data.tensors[0], targets if targets.is_floating_point() else targets.int()]):08x}")
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 if name in ("convnet", "pipeline") else 1e-3)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=BATCH, shuffle=False, sampler=sampler)
    step, epoch = 0, 0
    while step < STEPS:
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            step += 1
            lines.append(f"loss {step} {mean.item() / world:.9e}")
            if step == STEPS:
                break
        epoch += 1
    if rank == 0:
        print(f"# {name} in PyTorch {torch.__version__.split('+')[0]}: {world} rank(s), batch {BATCH}, seed {SEED}")
        print("\n".join(lines))
    dist.destroy_process_group()


def main():
    name, world = sys.argv[1], int(sys.argv[2])
    folder = sys.argv[3] if len(sys.argv) > 3 else None
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as d:
        mp.spawn(run, (world, name, folder, os.path.join(d, "store"), []), nprocs=world)


if __name__ == "__main__":
    main()
