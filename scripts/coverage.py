#!/usr/bin/env python3
"""Lines and branches per program out of llvm-cov's export, against the floors.

usage: coverage.py EXPORT FLOORS
FLOORS: "<program> <lines %> <branches %>" per line. Ends with 1 when a program is below its floor.
"""

import json
import os
import sys

PROGRAMS = {
    "operator": ("operator/", "kube/"),
    "launcher": ("launcher/", "rendezvous/"),
    "trainer": ("trainer/", "collectives/", "kernels/"),
    "cli": ("cli/",),
    "common": ("common/", "host/"),
}
# These files work on a GPU: their tests have one, or an emulation that is built WITH_CUDA, and the figures are to be the
# same without.
NOT_COUNTED = (
    "kernels/cuda/",
    "trainer/gpu/facts",
    "trainer/gpu/plugin",
    "trainer/run/resident/",
    "collectives/nccl/",
)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHOWN = 5


def program_of(name):
    for program, folders in PROGRAMS.items():
        if name.startswith(folders) and not name.startswith(NOT_COUNTED):
            return program
    return None


def read_counts(path):
    """{program: [(missing lines, file, {lines, branches})]}"""
    with open(path, encoding="utf-8") as f:
        files = json.load(f)["data"][0]["files"]
    counts = {program: [] for program in PROGRAMS}
    for entry in files:
        name = os.path.relpath(entry["filename"], ROOT)
        program = program_of(name)
        if program:
            lines = entry["summary"]["lines"]
            counts[program].append((lines["count"] - lines["covered"], name, entry["summary"]))
    return counts


def percent(rows, what):
    count = sum(row[2][what]["count"] for row in rows)
    return 100 * sum(row[2][what]["covered"] for row in rows) / count if count else 0.0


def read_floors(path):
    floors = {}
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if len(words) != 3 or words[0] not in PROGRAMS:
                sys.exit(f"{path}:{number}: expected '<program> <lines %> <branches %>', got {line.strip()!r}")
            floors[words[0]] = (float(words[1]), float(words[2]))
    missing = PROGRAMS.keys() - floors.keys()
    if missing:
        sys.exit(f"{path}: no floor for {', '.join(sorted(missing))}")
    return floors


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    counts = read_counts(sys.argv[1])
    floors = read_floors(sys.argv[2])
    below = False
    print("program      lines  (floor)  branches  (floor)  files with most lines that no test runs")
    for program, rows in counts.items():
        lines, branches = percent(rows, "lines"), percent(rows, "branches")
        floor = floors[program]
        worst = ", ".join(f"{os.path.basename(r[1])} {r[0]}" for r in sorted(rows, reverse=True)[:SHOWN] if r[0])
        print(f"{program:<10} {lines:6.1f} %  ({floor[0]:.1f})  {branches:6.1f} %  ({floor[1]:.1f})  {worst}")
        below = below or lines < floor[0] or branches < floor[1]
    if below:
        print("below a floor: more of what was changed needs a test", file=sys.stderr)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
