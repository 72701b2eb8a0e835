"""A training loop as people write it: gloo, a line on rank 0 for each step. HANG=RANK:STEP:HOW makes a rank hang there, once.

HOW is "loop", "stopped" or "fifo". A file in DATA remembers that it has hung, so that the next attempt trains through."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist

STEPS = int(sys.argv[1])


def hang(how):
    if how == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "fifo":
        os.mkfifo("/tmp/nobody-writes")
        open("/tmp/nobody-writes").read()
    while True:
        pass


def main():
    dist.init_process_group("gloo", init_method="env://")
    rank = dist.get_rank()
    who, when, how = os.environ.get("HANG", "-1:0:").split(":")
    mark = os.path.join(os.environ.get("DATA", "/tmp"), "has-hung")
    total = torch.zeros(1)
    for step in range(1, STEPS + 1):
        if rank == int(who) and step == int(when) and not os.path.exists(mark):
            open(mark, "w").close()
            hang(how)
        dist.all_reduce(total)
        time.sleep(0.1)
        if rank == 0:
            print(f"step {step}/{STEPS} loss: {1 / step:.4f}", flush=True)
    # Not through the end of the interpreter: a thread of PyTorch's that wants it then ends the process by SIGABRT.
    os._exit(0)


main()
