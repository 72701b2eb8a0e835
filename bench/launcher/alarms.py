#!/usr/bin/env python3
"""Whether torchrun reports a pause as a hang: trainings of two ranks that pause three times, for up to half of the limit.

    bench/launcher/alarms.py [--count 50] [--limit 20] [--at-once 2] [--seed 1] [--python PYTHON] [WAY...]

Ways of PyTorch over gloo (PYTHON has torch): slow (rank 1 sleeps in its own code while rank 0 waits for it), silent (both do, as in a
validation that prints nothing). Ways of this project's trainer: stopped (rank 1 gets SIGSTOP), launcher (the launcher and both ranks
do, as in a frozen container). With -nodes each rank has a launcher of its own, and `launcher-nodes` stops one of them. The ways take turns. A run
is an alarm when a launcher says "no progress", and it fails when PyTorch's does not end with 0 or the trainer's, which gets SIGTERM
in the end, with 143."""

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from trainings import BIN, REPO, trainer, trains

sys.path.append(str(REPO / "tests"))
import ports  # noqa: E402

WAYS = [way + nodes for way in ("slow", "silent", "stopped", "launcher") for nodes in ("", "-nodes")]
PAUSES = 3


def start(way, folder, limit, program):
    """One launcher, or two."""
    env = {**os.environ, "TORCHKEEPER_PROGRESS_TIMEOUT": str(limit)}
    words = ["--nproc-per-node=2"]
    if way.endswith("-nodes"):
        words = ["--nproc-per-node=1", "--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{ports.take()}", "--rdzv-id=alarms"]
    launchers = []
    for i in range(2 if way.endswith("-nodes") else 1):
        with open(folder / f"said.{i}", "w") as said:
            launchers.append(subprocess.Popen([BIN / "torchrun", "--no-python", *words, *program], stdout=subprocess.DEVNULL,
                                              stderr=said, env=env, cwd=folder))
    return launchers


def send(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it failed: the exit codes tell
            os.kill(pid, number)


def stop_for(pids, seconds):
    send(pids, signal.SIGSTOP)
    time.sleep(seconds)
    send(pids, signal.SIGCONT)


def pause_trainer(way, folder, launchers, pauses):
    while not trains(folder):
        if any(p.poll() is not None for p in launchers):
            return  # it failed
        time.sleep(0.05)
    ranks = [int((folder / f"pid.{i}").read_text()) for i in range(2)]
    whom = {"stopped": ranks[1:], "launcher": [launchers[0].pid, *ranks]}[way.removesuffix("-nodes")]
    for seconds in pauses:
        stop_for(whom, seconds)
        time.sleep(1)
    for p in launchers:
        p.terminate()


def run(way, seed, limit, python):
    """What went wrong ("" if nothing), and the longest pause."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="alarms-"))
    drawn = random.Random(seed)
    pauses = [drawn.uniform(0.1, 0.5) * limit for _ in range(PAUSES)]
    torch = way.startswith(("slow", "silent"))
    tenths = drawn.sample(range(10), PAUSES)  # each of them ends with a line
    steps = [f"{10 * tenth + drawn.randint(1, 10)}:{seconds:.3f}" for tenth, seconds in zip(tenths, pauses)]
    who = "1" if way.startswith("slow") else "-1"
    try:
        program = [python, "-u", REPO / "bench/launcher/pausing_rank.py", who, *steps] if torch else trainer(folder)
        launchers = start(way, folder, limit, program)
        if not torch:
            pause_trainer(way, folder, launchers, pauses)
        codes = [p.wait() for p in launchers]
        said = [line for i in range(len(launchers)) for line in (folder / f"said.{i}").read_text().splitlines()
                if line.startswith("torchrun: ")]
        alarm = any("no progress" in line for line in said)
        good = not alarm and all(code == (0 if torch else 143) for code in codes)
        return alarm, "" if good else f"{way}, seed {seed}, exit codes {codes}: {' | '.join(said)}", max(pauses)
    finally:
        shutil.rmtree(folder)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("ways", nargs="*", metavar="WAY")
    args.add_argument("--count", type=int, default=50)
    args.add_argument("--limit", type=int, default=20)
    args.add_argument("--at-once", type=int, default=2)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--python", default=sys.executable)
    a = args.parse_args()
    ways = a.ways or WAYS
    with concurrent.futures.ThreadPoolExecutor(a.at_once) as pool:
        jobs = [(ways[i % len(ways)], pool.submit(run, ways[i % len(ways)], a.seed + i, a.limit, os.path.abspath(a.python))) for i in range(a.count)]
        results = [(way, *job.result()) for way, job in jobs]
    print("way              jobs  alarms  failed   longest pause s")
    for way in ways:
        own = [r for r in results if r[0] == way]
        if own:
            print(f"{way:<16} {len(own):>4} {sum(r[1] for r in own):>7} {sum(bool(r[2]) for r in own):>7} {max(r[3] for r in own):>17.1f}")
    for _, _, word, _ in results:
        if word:
            print(word)
    sys.exit(any(r[1] or r[2] for r in results))


main()
