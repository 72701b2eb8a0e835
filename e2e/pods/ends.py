"""Fails once: rank RANK_TO_END ends by END while a peer on each other node waits for it in a collective. END is a signal's
name, an exit code, an exception's text, or PARENT: stop torchrun. A file in /data records that it has happened.

The other ranks sleep meanwhile. Would two ranks of a node fail of the broken connection, torchrun could terminate one
that is writing down its exception, and then dies itself of reading half of it (ProcessFailure.__post_init__)."""

import os
import signal
import sys
import time

import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


def fail(how):
    if how == "PARENT":
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(3600)
    if how.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, how))
    if how.isdigit():
        sys.exit(int(how))
    raise ValueError(how)


def part():
    """Of this rank, the first time: to end, to wait for the one that ends, or to sleep."""
    local = int(os.environ["LOCAL_WORLD_SIZE"])
    node, place = divmod(int(os.environ["RANK_TO_END"]), local)
    if int(os.environ["GROUP_RANK"]) == node:
        return "end" if int(os.environ["LOCAL_RANK"]) == place else "sleep"
    return "wait" if os.environ["LOCAL_RANK"] == "0" else "sleep"


@record
def main():
    first = not os.path.exists("/data/ended")
    dist.init_process_group("gloo")
    dist.barrier()
    if first and part() == "end":
        open("/data/ended", "x").close()
        fail(os.environ["END"])
    if first and part() == "sleep":
        time.sleep(3600)
    dist.barrier()
    print(f"rank {dist.get_rank()} of {dist.get_world_size()} came through\n", end="", flush=True)
    dist.destroy_process_group()


code = 0
try:
    main()
except SystemExit as end:
    code = end.code
except Exception:
    code = 1
    sys.excepthook(*sys.exc_info())
sys.stderr.flush()
# A thread of PyTorch that needs the interpreter while it ends aborts the process (SIGABRT).
os._exit(code)
