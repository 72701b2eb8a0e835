#!/usr/bin/env python3
"""How often torchrun names the right rank of a training that hangs, and how soon.

    bench/launcher/hangs.py [--count 20] [--limit 2] [--ranks 2 3 4] [--python PYTHON] [WAY...]

Ways of PyTorch over gloo (tests/unit/launcher/hang_rank.py; PYTHON has torch): stopped, loop, fifo (reads one that nobody writes),
lock (a C call holds the interpreter's lock for ever), disk (uninterruptible sleep by vfork), read and open (of a file server that is
stopped; tests/unit/launcher/file_server.py, as root), left (sleeps in its own code), lost (all ranks wait for a message that nobody
sent). Ways of this project's trainer: trainer-stopped, trainer-missing (never comes to the
first exchange). The numbers of ranks take turns; rank 1 hangs. A run is right when torchrun ends with 138 and names that rank,
or for `lost` says that all wait. Times are seconds from when the rank hung, less the limit: to the first line, to the line with the
name, and to the end (5 s more where a rank cannot be killed)."""

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from trainings import BIN, REPO, trainer, trains

TORCH = ["stopped", "loop", "fifo", "lock", "disk", "read", "open", "left", "lost"]
SERVED = ["read", "open"]
TRAINER = ["trainer-stopped", "trainer-missing"]


def program(way, folder, python):
    if way in TORCH:
        return [python, "-u", REPO / "tests/unit/launcher/hang_rank.py", way, "1", folder]
    return trainer(folder, f"[ $RANK = 1 ] && touch {folder}/hangs && exec sleep 100000; " if way == "trainer-missing" else "")


def stop_rank_1(folder):
    """Once rank 0 trains."""
    while not trains(folder):
        time.sleep(0.01)
    (folder / "hangs").touch()
    os.kill(int((folder / "pid.1").read_text()), signal.SIGSTOP)


@contextlib.contextmanager
def file_server(folder):
    server = subprocess.Popen([sys.executable, REPO / "tests/unit/launcher/file_server.py", folder])
    try:
        while not (folder / "server").exists():
            if server.poll() is not None:
                sys.exit("no file server")
            time.sleep(0.01)
        yield
    finally:
        server.kill()
        server.wait()
        subprocess.run(["umount", "-l", folder / "mount"], check=True)


def watch(launcher, way, folder, limit):
    """Whether it was right, the times of the first line, of the last one about the hang and of the end, and that line."""
    first, named, word, last = None, None, "nothing was said", ""
    for line in launcher.stderr:
        last = line.strip() or last
        if line.startswith("torchrun: no progress"):
            named = time.time()
            first = first or named
            word = line.strip()
    code, end = launcher.wait(), time.time()
    if not (folder / "hangs").exists():
        return False, 0, 0, 0, f"{code}, before a rank hung: {word}; {last}"
    since = (folder / "hangs").stat().st_mtime + limit
    right = code == 138 and ("all ranks wait" if way == "lost" else f"no progress for {limit} s: rank 1 ") in word
    return right, (first or end) - since, (named or end) - since, end - since, f"{code}: {word}"


def run(way, ranks, limit, python):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hangs-"))
    try:
        command = [BIN / "torchrun", "--no-python", f"--nproc-per-node={ranks}", "--max-restarts=3", *program(way, folder, python)]
        env = {**os.environ, "TORCHKEEPER_PROGRESS_TIMEOUT": str(limit)}
        with file_server(folder) if way in SERVED else contextlib.nullcontext():
            p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)
            if way == "trainer-stopped":
                stop_rank_1(folder)
            return watch(p, way, folder, limit)
    finally:
        shutil.rmtree(folder)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("ways", nargs="*", metavar="WAY")
    args.add_argument("--count", type=int, default=20)
    args.add_argument("--limit", type=int, default=2)
    args.add_argument("--ranks", type=int, nargs="+", default=[2, 3, 4])
    args.add_argument("--python", default=sys.executable)
    a = args.parse_args()
    wrong = 0
    print("way              right     s: first line: median, max     named: median, max     end: median, max")
    for way in a.ways or TORCH + TRAINER:
        runs = [run(way, a.ranks[i % len(a.ranks)], a.limit, a.python) for i in range(a.count)]
        right, *times, words = zip(*runs)
        columns = "  ".join(f"{statistics.median(t):>14.2f} {max(t):>6.2f}" for t in times)
        print(f"{way:<16} {sum(right):>2} of {len(runs):<4} {columns}", flush=True)
        for ok, word in zip(right, words):
            if not ok:
                print(f"    {word}")
        wrong += len(runs) - sum(right)
    sys.exit(wrong > 0)


main()
