"""DistributedDataParallel with a checkpoint: after a stop signal, all ranks agree on a step, and rank 0 takes three seconds
to save it before it exits; a restart resumes there. The argument: the number of steps. SAVE_EVERY: the steps from one
checkpoint to the next, without a signal."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

PATH = "/data/checkpoint.pt"
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "0"))

asked = []
signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
done = []
if os.path.exists(PATH):
    saved = torch.load(PATH)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    done = saved["done"]
last = len(done) + int(sys.argv[1])
print(f"rank {rank} begins after {len(done)} steps", flush=True)
parallel = DistributedDataParallel(model)


def save():
    if rank == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "done": done}, PATH + ".new")
        os.replace(PATH + ".new", PATH)
        print(f"saved after {len(done)} steps", flush=True)


while len(done) < last:
    inputs = torch.randn(16, 8, generator=torch.Generator().manual_seed(1000 * rank + len(done)))
    loss = (parallel(inputs) - inputs.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    done.append(len(done))
    print(f"step {len(done)} loss {loss.item():.4f}", flush=True)
    if SAVE_EVERY and len(done) % SAVE_EVERY == 0:
        save()
    time.sleep(0.1)
    stop = torch.tensor([float(len(asked))])
    dist.all_reduce(stop)
    if stop.item():
        time.sleep(3)
        save()
        os._exit(143)
save()
dist.destroy_process_group()
# A thread of PyTorch that needs the interpreter while it ends aborts the process (SIGABRT).
os._exit(0)
