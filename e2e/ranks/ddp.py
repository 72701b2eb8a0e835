"""The training script of every tutorial: DistributedDataParallel over gloo, launched by whatever sets the variables. The argument
is the init method: env://, or tcp with the address and port from the variables."""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
if sys.argv[1] == "env://":
    dist.init_process_group("gloo")
else:
    dist.init_process_group("gloo", init_method=f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", rank=rank,
                            world_size=world)
assert dist.is_torchelastic_launched()
torch.manual_seed(1)
data = TensorDataset(x := torch.randn(64, 8), x.sum(1, keepdim=True))
sampler = DistributedSampler(data)
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for inputs, targets in DataLoader(data, batch_size=8, sampler=sampler):
        optimizer.zero_grad()
        loss = (model(inputs) - targets).square().mean()
        loss.backward()
        optimizer.step()
    # one write: ranks share the stream, and print writes a line and its end apart when Python is unbuffered
    print(f"rank {rank} of {world} epoch {epoch} loss {loss.item():.4f} threads {torch.get_num_threads()}\n", end="")
dist.destroy_process_group()
sys.stdout.flush()
# A thread of PyTorch that needs the interpreter while it ends aborts the process (SIGABRT).
os._exit(0)
