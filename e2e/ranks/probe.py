"""A rank that records how it was started, then executes its arguments: `exit=3@1` ends rank 1 with status 3. Each argument is an
action, with `@RANK`, `@RANK.RESTARTS` or `@.RESTARTS` for the ranks that it is for. Without torch, it starts in milliseconds.

    out=TEXT err=TEXT   print a line that names the rank
    bar=N               draw a progress bar of N steps on stderr, as tqdm does, but by one write
    exit=N kill=N       end with a status, or by a signal
    raise=TEXT          end by an exception
    error=JSON          write the error file
    wait                sleep until a signal ends it
    save=N              as wait, but note the first of SIGTERM and SIGINT and end with status N
    deaf                as wait, but only note SIGTERM and SIGINT

A failing rank waits until the other ranks of the node have reached their actions, so that their files do not depend on timing."""

import json
import os
import signal
import sys
import time

RANK = os.environ["RANK"]
RESTARTS = os.environ["TORCHELASTIC_RESTART_COUNT"]
NOTES = os.environ["PROBE_NOTES"]
BOUND_S = 600


def note(kind, content):
    """A file that is there whole or not at all."""
    path = f"{NOTES}/{kind}-{RESTARTS}.{RANK}"
    with open(path + ".new", "w") as f:
        json.dump(content, f)
    os.rename(path + ".new", path)


def meet(others):
    """Say that this rank is ready to end, or to be ended; wait for the others."""
    note("ready", os.getpid())
    give_up = time.monotonic() + BOUND_S
    while others:
        ready = [n for n in os.listdir(NOTES) if n.startswith(f"ready-{RESTARTS}.") and not n.endswith(".new")]
        if len(ready) >= int(os.environ["LOCAL_WORLD_SIZE"]):
            return
        if time.monotonic() > give_up:
            raise TimeoutError(f"of the ranks only {ready} are ready")
        time.sleep(0.01)


def sleep():
    meet(others=False)
    while True:
        time.sleep(1000)


def save(status):
    def saved(number, _):
        note("saved", number)
        os._exit(int(status))

    signal.signal(signal.SIGTERM, saved)
    signal.signal(signal.SIGINT, saved)
    sleep()


def do(deed, what):
    if deed in ("out", "err"):
        # one write: ranks share the stream
        print(f"rank {RANK} {what}\n", end="", file=sys.stdout if deed == "out" else sys.stderr)
    elif deed == "bar":
        # PyTorch's --tee puts a prefix before each part of a line that it finds by itself.
        print("".join(f"\rrank {RANK} step {i}" for i in range(int(what))) + "\n", end="", file=sys.stderr)
    elif deed == "wait":
        sleep()
    elif deed == "save":
        save(what)
    elif deed == "deaf":
        signal.signal(signal.SIGTERM, lambda number, _: note("heard", number))
        signal.signal(signal.SIGINT, lambda number, _: note("heard", number))
        sleep()
    elif deed == "error":
        with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as f:
            f.write(what)
    elif deed in ("exit", "kill", "raise"):
        meet(others=True)
        if deed == "exit":
            sys.exit(int(what))
        if deed == "kill":
            os.kill(os.getpid(), int(what))
            sleep()
        raise ValueError(what)


def meant(whom):
    rank, _, restarts = whom.partition(".")
    return rank in ("", RANK) and restarts in ("", RESTARTS)


def main():
    note("start", {"words": sys.argv[1:], "environment": dict(os.environ), "unbuffered": sys.stdout.write_through,
                   "name": __name__, "leads session": os.getsid(0) == os.getpid(), "folder": os.getcwd()})
    for word in sys.argv[1:]:
        deed, _, whom = word.rpartition("@") if "@" in word else (word, "", "")
        deed, _, what = deed.partition("=")
        if meant(whom):
            do(deed, what)
    meet(others=False)


if __name__ == "__main__":
    main()
