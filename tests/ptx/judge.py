#!/usr/bin/env python3
"""judge.py - the second judge of kernels/cuda: every kernel's PTX, run by an interpreter and compared with numpy.

  judge.py FOLDER                   what `make test` runs: each case at its quick shapes, some mutants, the table of kernels
  judge.py FOLDER --full            all shapes, all mutants
  judge.py FOLDER --only attention  the cases whose name begins so, without mutants; --shape 1,65,2,64,0 --element bf16: one run of them

FOLDER: build/release/tests/ptx. Ends with 1 when a result is wrong, a checker has spoken, a mutant is not found or a kernel has no
case; with 77 when no Python here has numpy.
"""

import argparse
import ast
import importlib.util
import os
import pathlib
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def have_numpy():
    """Goes on in a Python that has it."""
    if importlib.util.find_spec("numpy"):
        return
    for python in (str(HERE.parents[1] / "build" / "venv" / "bin" / "python"), "/usr/bin/python3"):
        if os.environ.get("PTX_PYTHON") != python and os.access(python, os.X_OK):
            os.environ["PTX_PYTHON"] = python
            os.execv(python, [python, *sys.argv])
    print("ptx: skipped: no Python here has numpy: scripts/deps.sh test")
    sys.exit(SKIPPED)


have_numpy()
sys.path.insert(0, str(HERE))
from cases import cases  # noqa: E402
from device import Device, Program  # noqa: E402
from mutants import check, found, mutants  # noqa: E402


def run_case(program, case, element, shapes):
    """Kernels that it launched, what is wrong, instructions that were run."""
    wrong = []
    with Device(program, element, **case.context) as d:
        for shape in shapes:
            d.found = []
            case.run(d, *shape)
            d.done()
            wrong += [f"{case.name} {element} {shape}: {line}" for line in d.found]
    return set(d.launched), wrong, d.steps


def run_cases(program, options):
    """{kernel: cases}, what is wrong."""
    judged, wrong = {}, []
    for case in cases:
        for element in case.elements:
            if not case.name.startswith(options.only) or options.element not in ("", element):
                continue
            shapes = [options.shape] if options.shape else case.quick + (case.full if options.full else [])
            began = time.monotonic()
            launched, bad, steps = run_case(program, case, element, shapes)
            for kernel in launched:
                judged.setdefault(kernel, set()).add(case.name)
            wrong += bad
            took = time.monotonic() - began
            print(f"{case.name:32} {element:5} {len(shapes):3} shapes {steps:9} instructions {took:6.1f} s  {'WRONG' if bad else 'right'}", flush=True)
    return judged, wrong


def run_mutants(program, options):
    wrong, chosen = [], [m for m in mutants if options.full or m.quick]
    check()
    for mutant in chosen:
        lines = found(mutant, program)
        first = lines[0].splitlines()[0] if lines else "NOT FOUND"
        print(f"mutant {mutant.unit + '.cu':18} {mutant.what:48} {first[:110]}", flush=True)
        wrong += [] if lines else [f"a mutant that nobody finds: {mutant.unit}.cu, {mutant.what}"]
    print(f"{len(chosen) - len(wrong)} of {len(chosen)} mutants found ({len(mutants)} with --full)")
    return wrong


def body(program, kernel):
    """A kernel's instructions without what differs from file to file."""
    module, mangled = program.kernels[kernel]
    text = re.sub(r"^\s*\.loc[^\n]*\n", "", module.parts[mangled][1].replace(mangled, ""), flags=re.M)
    return re.sub(r"BB\d+_|_GLOBAL__N__\w+?_cu_[0-9a-f]{8}|//[^\n]*", "", text)


def table(program, judged):
    """A line per kernel; those that nobody has judged."""
    missing, bodies = [], {(key[1], body(program, key)): key for key in judged}
    for key in program.kernels:
        by = ", ".join(sorted(judged.get(key, ())))
        twin = bodies.get((key[1], body(program, key)))
        if not by and twin:
            by = f"the same instructions as in {twin[0]}.cu: {', '.join(sorted(judged[twin]))}"
        missing += [] if by else [f"a kernel without a case: {key[1]} of {key[0]}.cu"]
        print(f"{key[0] + '.cu':18} {key[1][:96]:96} {'emulator and PTX: ' + by if by else 'EMULATOR ONLY'}")
    print(f"{len(program.kernels) - len(missing)} of {len(program.kernels)} kernels judged by their PTX; the emulator runs their operations in unit/kernels/cuda "
          "and unit/trainer/run/resident")  # fmt: skip
    return missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--element", default="", choices=("", "f32", "bf16"))
    parser.add_argument("--shape", type=lambda text: ast.literal_eval(f"({text},)"), metavar="N,...")
    options = parser.parse_args()
    program = Program(options.folder)
    judged, wrong = run_cases(program, options)
    if not options.only and not options.shape:
        wrong += run_mutants(program, options)
        wrong += table(program, judged)
    for line in wrong:
        print("ptx: " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
