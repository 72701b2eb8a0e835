#!/usr/bin/env python3
"""Hold each of 100 training steps against PyTorch, every one started from PyTorch's own weights and moments.

Later steps of two trainings drift apart chaotically, so each step is compared by itself. PyTorch's side is recorded in
a temporary file (1.5 MB per step) and given to a test program of the trainer, whose exit status becomes ours:

    mnist_cnn_steps.py build/release/tests/unit_trainer_run_test_parity_steps
"""
import argparse
import os
import subprocess
import sys
import tempfile

import torch
from torch import nn
from torch.utils.data import random_split
from torch.utils.data.distributed import DistributedSampler

import mnist_cnn


def flat(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors]).to(torch.float32)


def record(out, folder, steps):
    """For each step: weights, both moments, gradients, loss; little-endian float32."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = mnist_cnn.Net()
    data = mnist_cnn.load(folder, "train")
    train, _ = random_split(data, [48000, 12000])
    images, labels = data.tensors
    sampler = DistributedSampler(train, num_replicas=1, rank=0, shuffle=True, seed=0)
    sampler.set_epoch(0)
    order = torch.tensor(train.indices)[torch.tensor(list(sampler))]
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    params = list(net.parameters())

    for batch in order.split(32)[:steps]:
        moments = [[optimizer.state[p].get(key, torch.zeros_like(p)) for p in params]
                   for key in ("exp_avg", "exp_avg_sq")]
        before = [flat(params), flat(moments[0]), flat(moments[1])]
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(net(images[batch]), labels[batch])
        loss.backward()
        for part in (*before, flat([p.grad for p in params]), loss.detach().reshape(1)):
            out.write(part.numpy().tobytes())
        optimizer.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the test program")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    with tempfile.NamedTemporaryFile(suffix=".parity") as out:
        record(out, args.data, args.steps)
        out.flush()
        return subprocess.run([args.program], env={**os.environ, "TK_PARITY_STEPS": out.name}).returncode


if __name__ == "__main__":
    sys.exit(main())
