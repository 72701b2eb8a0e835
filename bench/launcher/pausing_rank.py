"""A rank of torch.distributed over gloo that pauses: `pausing_rank.py RANK [STEP:SECONDS...]`. RANK sleeps so long at these steps,
and -1 means all ranks. Rank 0 prints a line every tenth of 100 steps. Until it trains it prints a dot each second: on a busy machine
torch loads longer than a short limit."""

import os
import sys
import threading
import time

loaded = threading.Event()


def print_dots():
    while not loaded.wait(1):
        print(".", flush=True)


threading.Thread(target=print_dots).start()
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

who = int(sys.argv[1])
pauses = dict((int(step), float(seconds)) for step, seconds in (word.split(":") for word in sys.argv[2:]))
rank = int(os.environ["RANK"])
try:
    dist.init_process_group("gloo")
    model = torch.nn.Linear(8, 1)
    dist.barrier()
finally:
    loaded.set()
for step in range(1, 101):
    model.zero_grad()
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    for weights in model.parameters():
        dist.all_reduce(weights.grad)
    with torch.no_grad():
        for weights in model.parameters():
            weights -= 0.05 * weights.grad
    if who in (-1, rank):
        time.sleep(pauses.get(step, 0))
    if rank == 0 and step % 10 == 0:
        print(f"step {step}/100 loss: {loss.item():.4f}", flush=True)
dist.destroy_process_group()
