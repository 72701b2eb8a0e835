#!/usr/bin/env python3
"""How often torchrun names the right rank of a training that hangs, and how soon.

    bench/launcher/hangs.py [--count 20] [--limit 2] [--ranks 2 3 4] [--python PYTHON] [WAY...]

Ways of PyTorch over gloo (tests/unit/launcher/hang_rank.py; PYTHON has torch): stopped, loop, fifo (reads one that nobody writes),
lock (a C call holds the interpreter's lock for ever), disk (uninterruptible sleep), left (sleeps in its own code), lost (all
ranks wait for a message that nobody sent). Ways of this project's trainer: trainer-stopped, trainer-missing (never comes to the
first exchange). The numbers of ranks take turns; rank 1 hangs. A run is right when torchrun ends with 138 and names that rank,
or for `lost` says that all wait. Times are seconds from when the rank hung, less the limit: to the first line and to the end."""

import argparse
import os
import pathlib
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

REPO = pathlib.Path(__file__).parents[2]
BIN = REPO / "build/release/bin"
TORCH = ["stopped", "loop", "fifo", "lock", "disk", "left", "lost"]
TRAINER = ["trainer-stopped", "trainer-missing"]
MODEL = """name: tiny
model:
  input: {rows: 8, cols: 8, channels: 1}
  layers:
    - flatten
    - {type: linear, name: a, out: 10}
loss: cross_entropy
optimizer: {type: adam, lr: 0.001}
data: {format: idx, train_items: 64, val_items: 0}
defaults: {epochs: 100000, batch_size: 4, log_interval: 4}
"""


def write_data(folder):
    for part in "train", "t10k":
        for kind, dims in ("images-idx3", (64, 8, 8)), ("labels-idx1", (64,)):
            head = bytes([0, 0, 8, len(dims)]) + b"".join(struct.pack(">I", n) for n in dims)
            size = dims[0] * (64 if len(dims) > 1 else 1)
            (folder / f"{part}-{kind}-ubyte").write_bytes(head + bytes(i * 7 % 10 for i in range(size)))
    (folder / "tiny.yaml").write_text(MODEL)


def program(way, folder, python):
    if way in TORCH:
        return [python, "-u", REPO / "tests/unit/launcher/hang_rank.py", way, "1", folder]
    write_data(folder)
    missing = f"[ $RANK = 1 ] && touch {folder}/hangs && exec sleep 100000; " if way == "trainer-missing" else ""
    return ["sh", "-c", f"{missing}echo $$ >{folder}/pid.$RANK; exec {BIN}/trainer {folder}/tiny.yaml --data {folder} --threads 1 "
            f"--save_path {folder}/w.safetensors --timeout 600 --log_format json >{folder}/out.$RANK 2>&1"]


def stop_rank_1(folder):
    """Once rank 0 trains."""
    out = folder / "out.0"
    while not (out.exists() and '"event":"train"' in out.read_text()):
        time.sleep(0.01)
    (folder / "hangs").touch()
    os.kill(int((folder / "pid.1").read_text()), signal.SIGSTOP)


def run(way, ranks, limit, python):
    """Whether it was right, the time of the first line and of the end, and the last word."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hangs-"))
    try:
        command = [BIN / "torchrun", "--no-python", f"--nproc-per-node={ranks}", "--max-restarts=3", *program(way, folder, python)]
        env = {**os.environ, "TORCHKEEPER_PROGRESS_TIMEOUT": str(limit)}
        p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)
        if way == "trainer-stopped":
            stop_rank_1(folder)
        first, word = None, "nothing was said"
        for line in p.stderr:
            if line.startswith("torchrun: no progress"):
                first = first or time.time()
                word = line.strip()
        code, end = p.wait(), time.time()
        since = (folder / "hangs").stat().st_mtime + limit
        right = code == 138 and ("all ranks wait" if way == "lost" else f"no progress for {limit} s: rank 1 ") in word
        return right, (first or end) - since, end - since, f"{code}: {word}"
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
    print("way              right     first line s: median, max     end s: median, max")
    for way in a.ways or TORCH + TRAINER:
        runs = [run(way, a.ranks[i % len(a.ranks)], a.limit, a.python) for i in range(a.count)]
        right, first, end, words = zip(*runs)
        print(f"{way:<16} {sum(right):>2} of {len(runs):<4} {statistics.median(first):>10.2f} {max(first):>6.2f} "
              f"{statistics.median(end):>20.2f} {max(end):>6.2f}", flush=True)
        for ok, word in zip(right, words):
            if not ok:
                print(f"    {word}")
        wrong += len(runs) - sum(right)
    sys.exit(wrong > 0)


main()
