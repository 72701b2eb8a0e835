"""A rank of torch.distributed over gloo that pauses: `pausing_rank.py RANK [STEP:SECONDS...]`. RANK sleeps so long at these steps,
and -1 means all ranks. Rank 0 prints a line every tenth of 100 steps."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

who = int(sys.argv[1])
pauses = dict((int(step), float(seconds)) for step, seconds in (word.split(":") for word in sys.argv[2:]))
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(8, 1))
for step in range(1, 101):
    model.zero_grad()
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    with torch.no_grad():
        for weights in model.parameters():
            weights -= 0.05 * weights.grad
    if who in (-1, rank):
        time.sleep(pauses.get(step, 0))
    if rank == 0 and step % 10 == 0:
        print(f"step {step}/100 loss: {loss.item():.4f}", flush=True)
dist.destroy_process_group()
