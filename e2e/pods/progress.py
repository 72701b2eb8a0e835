"""A training loop as people write it: gloo, a line on rank 0 for each step. HANG=RANK:STEP:HOW makes a rank hang there, once.

HOW is "loop", "stopped" or "fifo". A file in DATA remembers that it has hung, so that the next attempt trains through.

Until the ranks have met, a child prints a line each second: only the hang is silent, however long torch takes to load. A thread
could not, while the linker loads torch."""

import os
import signal
import subprocess
import sys
import time

loading = subprocess.Popen(["sh", "-c", f"while kill -0 {os.getpid()}; do echo loading; sleep 1; done"])

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

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
    dist.barrier()
    loading.kill()
    loading.wait()
    for step in range(1, STEPS + 1):
        if rank == int(who) and step == int(when) and not os.path.exists(mark):
            open(mark, "w").close()
            hang(how)
        dist.all_reduce(total)
        time.sleep(0.1)
        if rank == 0:
            print(f"step {step}/{STEPS} loss: {1 / step:.4f}", flush=True)
    # A thread of PyTorch that needs the interpreter while it ends aborts the process (SIGABRT).
    os._exit(0)


main()
