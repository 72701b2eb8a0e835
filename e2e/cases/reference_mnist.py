"""reference_mnist.py - the network of the mnist-cnn preset as a PyTorch module, and its accuracy on the test images."""

import gzip

import numpy
import torch
from torch import nn
from torch.nn import functional as F
from trainjobs import DATA


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, 1)
        self.conv2 = nn.Conv2d(32, 64, 3, 1)
        self.conv3 = nn.Conv2d(64, 64, 3, 1)
        self.dense1 = nn.Linear(576, 64)
        self.dense2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2, 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2, 2)
        x = torch.flatten(F.relu(self.conv3(x)), 1)
        return F.softmax(self.dense2(F.relu(self.dense1(x))), dim=1)


def load(kind):
    """Images as (N,1,28,28) in -1..1 and labels, of "train" or "t10k"."""
    with gzip.open(f"{DATA}/{kind}-images-idx3-ubyte.gz") as f:
        pixels = numpy.frombuffer(f.read(), numpy.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(f"{DATA}/{kind}-labels-idx1-ubyte.gz") as f:
        labels = numpy.frombuffer(f.read(), numpy.uint8, offset=8).astype(numpy.int64)
    images = (torch.from_numpy(pixels.astype(numpy.float32)) / 255 - 0.5) / 0.5
    return images, torch.from_numpy(labels)


def accuracy_of(path):
    net = Net()
    net.load_state_dict(torch.load(path, weights_only=True))
    images, labels = load("t10k")
    with torch.no_grad():
        guessed = torch.cat([net(batch).argmax(1) for batch in images.split(1000)])
    return (guessed == labels).float().mean().item()
