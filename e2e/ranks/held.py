"""The last rank raises, loses its connections and is held in its shutdown for as many seconds as the argument says; its gloo
peers are aborted meanwhile."""

import atexit
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


def hold():
    dist.destroy_process_group()
    time.sleep(float(sys.argv[1]))
    os._exit(1)  # a thread of PyTorch that needs the interpreter while it ends aborts the process (SIGABRT)


@record
def main():
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    if dist.get_rank() == dist.get_world_size() - 1:
        atexit.register(hold)
        raise ValueError("no such table")
    try:
        dist.barrier()
    except RuntimeError:
        os.abort()


main()
