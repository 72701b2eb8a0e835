#!/usr/bin/env python3
"""What it costs a rank that its output goes through torchrun: paired runs of a rank that only prints.

    bench/launcher/output.py [--megabytes 100] [--pairs 10] [--torchrun PATH] [WRITER...]

Writers: blocks (a file of lines in writes of 128 KiB), lines (Python's print, buffered), flushed (a write for each line; a tenth of
the bytes). Ways: port (TORCHKEEPER_PROGRESS_PORT), limit (TORCHKEEPER_PROGRESS_TIMEOUT), both. The pairs take turns with a torchrun
without either, which lets the rank write to the console itself. The console is a pipe that `cat` reads. Printed: the median time
without, and the ratios' lower quartile, median and upper quartile, of elapsed time and of the CPU time of all processes."""

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

REPO = pathlib.Path(__file__).parents[2]
LINE = "step 40/500 loss: 0.5312 lr: 0.001 samples/s: 1234.5 | grad norm 1.25, memory 12.5 GB"
PORT = 29413
WAYS = {"port": {"TORCHKEEPER_PROGRESS_PORT": str(PORT)}, "limit": {"TORCHKEEPER_PROGRESS_TIMEOUT": "100"}}
WAYS["both"] = {**WAYS["port"], **WAYS["limit"]}
PRINTS = "import sys\nfor _ in range({n}): print({line!r}, flush={flush})\n"


def writer(kind, size, folder):
    if kind == "blocks":
        path = folder / "text"
        path.write_text((LINE + "\n") * (size // (len(LINE) + 1)))
        return ["cat", path]
    n = size // (len(LINE) + 1) // (10 if kind == "flushed" else 1)
    return [sys.executable, "-c", PRINTS.format(n=n, line=LINE, flush=kind == "flushed")]


def run(torchrun, program, env):
    """Seconds: elapsed, and of the CPU."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("TORCHKEEPER_", "PYTHON"))}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    p = subprocess.run([torchrun, "--no-python", "--nproc-per-node=1", *program], stdout=cat.stdin, env={**plain, **env})
    cat.stdin.close()
    if cat.wait() or p.returncode:
        sys.exit(f"torchrun ended with {p.returncode}")
    elapsed, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def quartiles(ratios):
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{low:>6.2f} {middle:>5.2f} {high:>5.2f}"


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("writers", nargs="*", metavar="WRITER")
    args.add_argument("--megabytes", type=int, default=100)
    args.add_argument("--pairs", type=int, default=10)
    args.add_argument("--torchrun", default=REPO / "build/release/bin/torchrun")
    a = args.parse_args()
    print("writer    way      without s   elapsed: quartiles    CPU: quartiles")
    with tempfile.TemporaryDirectory(prefix="output-") as folder:
        for kind in a.writers or ["blocks", "lines", "flushed"]:
            program = writer(kind, a.megabytes * 1000 * 1000, pathlib.Path(folder))
            for way, env in WAYS.items():
                run(a.torchrun, program, env)
                pairs = [(run(a.torchrun, program, {}), run(a.torchrun, program, env)) for _ in range(a.pairs)]
                without = statistics.median(p[0][0] for p in pairs)
                print(f"{kind:<9} {way:<6} {without:>10.2f}   {quartiles([p[1][0] / p[0][0] for p in pairs])}    "
                      f"{quartiles([p[1][1] / p[0][1] for p in pairs])}", flush=True)


main()
