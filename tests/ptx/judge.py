"""judge.py - the second judge of kernels/cuda: every kernel's PTX, run by an interpreter and compared with numpy.

  judge.py FOLDER                   what `make test` runs: each case at its quick shapes, and the table of kernels
  judge.py FOLDER --full            at all its shapes
  judge.py FOLDER --only attention  cases and kernels whose name has that word

FOLDER: build/release/tests/ptx. Ends with 1 when a result is wrong, a checker has spoken, or a kernel has no case.
"""

import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from cases import cases  # noqa: E402
from device import Device, Program  # noqa: E402


def run_case(program, case, element, shapes):
    """{kernel: launches}, what was found, steps."""
    launched, found, steps = set(), [], 0
    with Device(program, element, **case.context) as d:
        for shape in shapes:
            d.found = []
            case.run(d, *shape)
            d.done()
            found += [f"{case.name} {element} {shape}: {line}" for line in d.found]
        launched |= set(d.launched)
        steps += d.steps
    return launched, found, steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    program = Program(options.folder)
    judged, wrong = {}, []
    for case in cases:
        if options.only not in case.name:
            continue
        for element in case.elements:
            began = time.monotonic()
            shapes = case.quick + (case.full if options.full else [])
            launched, found, steps = run_case(program, case, element, shapes)
            for kernel in launched:
                judged.setdefault(kernel, []).append(case.name)
            wrong += found
            print(f"{case.name:24} {element:5} {len(shapes):3} shapes {steps:9} steps {time.monotonic() - began:6.1f} s", "WRONG" if found else "", flush=True)
    for line in wrong:
        print("  " + line)
    missing = [k for k in program.kernels if k not in judged and not options.only]
    for file, name in program.kernels:
        if (file, name) in judged or not options.only:
            print(f"  {file + '.cu':20} {name:100} {'judged twice: ' + ', '.join(judged[file, name]) if (file, name) in judged else 'NO CASE'}")
    sys.exit(1 if wrong or missing else 0)


main()
