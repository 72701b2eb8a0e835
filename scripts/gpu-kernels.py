#!/usr/bin/env python3
"""gpu-kernels.py LOG - print a table of kernels from the output of nvcc -Xptxas=-v: registers, bytes of stack, spilled bytes, shared
memory. Kernels that spill come first. Exit status 1: the log has no kernel."""

import re
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(sm_[0-9a-z]+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def read(lines):
    """(mangled name, architecture, registers, stack, spilled, shared) of each kernel."""
    kernels, entry, frame = [], None, (0, 0, 0)
    for line in lines:
        if found := ENTRY.search(line):
            entry, frame = found.groups(), (0, 0, 0)
        elif found := FRAME.search(line):
            frame = tuple(int(n) for n in found.groups())
        elif (found := USED.search(line)) and entry:
            shared = SHARED.search(line)
            kernels.append((*entry, int(found[1]), frame[0], frame[1] + frame[2], int(shared[1]) if shared else 0))
            entry = None
    return kernels


def plain(names):
    """Demangled names, without parameters."""
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    short = []
    for name in text.splitlines():
        name = name.replace("(anonymous namespace)::", "").removeprefix("void ")
        depth, end = 0, len(name)
        for i, c in enumerate(name):
            depth += (c == "<") - (c == ">")
            if c == "(" and depth == 0 and i > 0:
                end = i
                break
        short.append(name[:end])
    return short


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
        kernels = read(log)
    if not kernels:
        print(f"{sys.argv[1]}: no line of ptxas about a kernel: expected nvcc's output with -Xptxas=-v", file=sys.stderr)
        return 1
    names = plain([k[0] for k in kernels])
    rows = sorted(zip(kernels, names), key=lambda row: (-row[0][4], row[1], row[0][1]))
    print(f"{'registers':>9} {'stack':>6} {'spilled':>8} {'shared':>7}  for     kernel")
    for (_, architecture, registers, stack, spilled, shared), name in rows:
        print(f"{registers:9} {stack:6} {spilled:8} {shared:7}  {architecture:7} {name}")
    print(f"{len(rows)} kernels, {sum(1 for k, _ in rows if k[4])} of them spill registers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
