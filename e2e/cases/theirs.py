"""theirs.py - PyTorch's launcher, imported once and forked for each launch, for launchers.py: importing torch takes seconds,
a launch then a fraction of one. The child runs the module as `python -m` does.

A line of JSON on stdin requests a launch: {"module", "words", "environment", "directory", "out", "err"}; the answer is the
process id. {"wait": PID} waits for its end; the answer is waitpid's status."""

import ctypes
import gc
import json
import os
import runpy
import signal
import sys
import threading

PR_SET_PDEATHSIG = 1


def die_with_parent():
    """End with the parent, so that a killed tester leaves no launcher behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def become(launch):
    """In the child: everything as for a process of its own."""
    die_with_parent()
    os.setsid()
    os.chdir(launch["directory"])
    os.environ.clear()
    os.environ.update(launch["environment"])
    for name, fd in (("/dev/null", 0), (launch["out"], 1), (launch["err"], 2)):
        opened = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        os.dup2(opened, fd)
        os.close(opened)
    sys.argv = [launch["module"], *launch["words"]]
    sys.path[0] = launch["directory"]
    del sys.modules[launch["module"]]
    runpy.run_module(launch["module"], run_name="__main__", alter_sys=True)


def answer(value):
    print(json.dumps(value), flush=True)


def main():
    die_with_parent()
    import torch.distributed.launch
    import torch.distributed.run

    assert threading.active_count() == len(os.listdir("/proc/self/task")) == 1, "threads do not survive a fork"
    gc.collect()
    gc.freeze()  # a child that collects would copy all of it
    answer("ready")
    while line := sys.stdin.readline():
        asked = json.loads(line)
        if "wait" in asked:
            answer(os.waitpid(asked["wait"], 0)[1])
        elif pid := os.fork():
            answer(pid)
        else:
            return become(asked)


if __name__ == "__main__":
    main()
