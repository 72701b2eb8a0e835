"""cases.py - run a class of faults: each case by name, its failure, and the number of cases."""

import argparse
import signal
import sys
import time
import traceback
from contextlib import contextmanager

from rig import REPO


class Cases:
    """What a program was asked for, and its count. `with cases("name"):` is one case."""

    def __init__(self, group, about):
        parser = argparse.ArgumentParser(description=about)
        parser.add_argument("--operator", default=REPO / "build/release/bin/ptj-operator", help="the program that is tested")
        parser.add_argument("--short", action="store_true", help="the few that `make test` runs")
        parser.add_argument("--only", default="", metavar="WORD", help="cases with this word in their name")
        parser.add_argument("--keep", action="store_true", help="leave the folder with the logs")
        self.parser, self.group = parser, group
        self.good, self.bad = 0, []

    def parse(self):
        """From here on SIGTERM (from run.sh, when it is interrupted) acts like Ctrl-C, so that servers are stopped."""
        signal.signal(signal.SIGTERM, interrupted)
        self.args = self.parser.parse_args()
        return self.args

    @contextmanager
    def up(self, plane):
        """A control plane whose servers run in here. Its logs stay when a case has failed, or what is around them."""
        keep = self.args.keep
        try:
            plane.up()
            yield plane
        except Exception:
            keep = True
            raise
        finally:
            keep = keep or bool(self.bad)
            plane.close(keep)
            if keep:
                print(f"logs: {plane.folder}", flush=True)

    def wanted(self, name):
        return self.args.only in name

    def __call__(self, name, counts=True):
        """counts=False: an additional check that is not a fault of its own."""
        return Case(self, name, counts)

    def run(self, table, *world):
        """Those of {name: function} that are wanted."""
        for name, case in table.items():
            if self.wanted(name):
                with self(name):
                    case(*world)

    def count(self, name, n, problems):
        """Many small cases at once."""
        self.good += n - len(problems)
        self.bad += problems
        print(f"{'FAILED' if problems else 'ok':8}{self.group} {name}: {n}", flush=True)
        for problem in problems:
            print(f"        {problem}", flush=True)

    def end(self, n=None):
        """The line that `make faults` reads, and the exit status; n: how many cases these were when all is well."""
        self.good = n or self.good
        print(f"faults {self.group} {self.good + len(self.bad)} {self.good}", flush=True)
        if self.bad:
            print(f"{self.group}: {len(self.bad)} failed", file=sys.stderr)
        return 1 if self.bad or not self.good else 0


def interrupted(number, frame):
    raise KeyboardInterrupt


class Case:
    def __init__(self, cases, name, counts):
        self.cases, self.name, self.counts = cases, name, counts

    def __enter__(self):
        self.started = time.monotonic()

    def __exit__(self, kind, error, trace):
        seconds = time.monotonic() - self.started
        if kind is None:
            self.cases.good += self.counts
            print(f"ok      {self.cases.group} {self.name} ({seconds:.0f} s)", flush=True)
            return False
        if not issubclass(kind, Exception):
            return False
        self.cases.bad.append(self.name)
        print(f"FAILED  {self.cases.group} {self.name} ({seconds:.0f} s)", flush=True)
        traceback.print_exception(kind, error, trace, limit=-4)
        return True


def check(true, message):
    if not true:
        raise AssertionError(message)
