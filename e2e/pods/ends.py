"""Ends badly once: rank RANK_TO_END meets END while its peers wait for it in a collective. END is a signal's name, an
exit code, an exception's text, or PARENT for a torchrun that is told to stop. A file in /data remembers that it was."""

import os
import signal
import sys
import time

import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


def end(how):
    if how == "PARENT":
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(600)
    if how.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, how))
    if how.isdigit():
        sys.exit(int(how))
    raise ValueError(how)


@record
def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == int(os.environ["RANK_TO_END"]) and not os.path.exists("/data/ended"):
        open("/data/ended", "x").close()
        end(os.environ["END"])
    dist.barrier()
    print(f"rank {dist.get_rank()} of {dist.get_world_size()} came through\n", end="", flush=True)
    dist.destroy_process_group()


main()
