"""A rank of torch.distributed over gloo that trains a little, and then one rank hangs: `hang_rank.py HOW RANK FOLDER`.

Until then a child prints a line ten times a second, so that the launcher's clock starts when the rank hangs, however long torch
takes to load. The file FOLDER/hangs has the time of that."""

import ctypes
import itertools
import os
import signal
import subprocess
import sys
import time

how, victim, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
flag = f"{folder}/hangs"
subprocess.Popen(["sh", "-c", f"while kill -0 {os.getpid()} && [ ! -e {flag} ]; do echo .; sleep 0.1; done"])

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402


def say_so():
    with open(flag, "w"):
        pass


def stand():
    say_so()
    if how == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif how == "loop":
        while True:
            pass
    elif how == "fifo":
        os.mkfifo(f"{folder}/fifo")
        open(f"{folder}/fifo").read()
    elif how == "lock":
        ctypes.PyDLL(None).pause()
    elif how == "disk":
        if ctypes.PyDLL(None).vfork() == 0:
            time.sleep(100000)
    elif how in ("read", "open"):  # of a file server that stops (file_server.py)
        file = open(f"{folder}/mount/data", "rb", buffering=0)
        with open(f"{folder}/server") as server:
            os.kill(int(server.read()), signal.SIGSTOP)
        os.pread(file.fileno(), 4096, 1 << 19) if how == "read" else open(f"{folder}/mount/data")
    elif how == "left":
        time.sleep(100000)


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    for step in itertools.count() if how == "cut" else range(1000):
        model.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        with torch.no_grad():  # torch.optim would load for another second
            for weights in model.parameters():
                weights -= 0.05 * weights.grad
        if step == 3 and how == "lost":
            dist.barrier()
            say_so()
            dist.recv(torch.zeros(1), (rank + 1) % world)  # which nobody sends: as if the connection had lost it
        if step == 3 and how == "cut":  # from outside, once rank 0 prints that it trains
            open(f"{folder}/trains.{rank}", "w").close()
        elif step == 3 and rank == victim:
            stand()


main()
