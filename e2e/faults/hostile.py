#!/usr/bin/env python3
"""F14: what hostile tenants write (shapes.py), against a real API server. After each object that the server accepts, another tenant's job
starts without much work of the operator, and succeeds; the operator never exits, uses at most 64 MiB, and frees it when all is removed."""

import sys
import time

import crowds
from cases import Cases, check
from kubelet import Kubelet
from plane import Plane, Refused
from shapes import every, short
from tenants import Tenant
from victims import GROWTH_MIB, MEMORY_MIB, Memory, Tally, Victims

IN_PLACE = 10  # hostile objects that are there at once
PROBLEMS_MAX = 5  # of a group; then the rest of it is not tried
CALM_S = 600  # bounds a hang


class World:
    """One operator, the victims, a node for each side, and what was seen of them."""

    def __init__(self, cases, plane):
        self.cases, self.plane, self.api = cases, plane, plane.api
        self.restarts, self.tallies = 0, {}
        self.victims, self.tenant = Victims(plane), Tenant(plane)
        self.kubelet = Kubelet(plane, others=self.victims.ns)
        self.start()
        self.prove_start()
        self.before = self.memory.now()

    # --- the operator

    def start(self):
        self.operator = self.plane.operator()
        self.memory = Memory(self.operator)

    def prove_start(self):
        self.plane.await_leading(self.operator)
        _, _, complaint = self.victims.prove(self.operator.pid)
        check(not complaint, f"an operator without enemies: {complaint}")

    def alive(self):
        return self.operator.process.popen.poll() is None

    def begin_anew(self):
        """Restart the operator, for cases that start it among hostile objects."""
        self.operator.end()
        self.start()
        self.plane.await_leading(self.operator)

    def recover(self):
        """After a failure: remove the hostile objects, and restart the operator if that does not help, so that failures are independent."""
        self.tenant.purge()
        if self.alive() and self.memory.now() < MEMORY_MIB / 2 and not self.victims.prove(self.operator.pid)[2]:
            return
        self.restarts += 1
        self.plane.stop(self.operator.process)
        self.start()
        self.prove_start()
        self.memory.most()

    # --- judging

    def judge(self, tally):
        """A victim's job, and the memory since the last look: a complaint, or None."""
        self.kubelet.check()
        self.victims.check()
        start, end, complaint = self.victims.prove(self.operator.pid)
        most = self.memory.most()
        tally.memory, tally.start, tally.end = max(tally.memory, most), max(tally.start, start), max(tally.end, end or 0)
        if self.memory.killed:
            return f"the operator was ended at {most:.0f} MiB of memory"
        if not self.alive():
            return f"the operator ended with {self.operator.process.popen.returncode}: {self.operator.complaints()[-2:]}"
        if complaint:
            return complaint
        return f"the operator took {most:.0f} MiB, at most {MEMORY_MIB} expected" if most > MEMORY_MIB else None

    def hold(self, tally):
        complaint = self.judge(tally)
        check(not complaint, complaint)

    # --- the table of shapes

    def group(self, name, shapes):
        tally, placed, began = self.tallies.setdefault(name, Tally()), [], time.monotonic()
        for shape in shapes:
            tally.tried += 1
            complaint = self.one(shape, tally, placed)
            if complaint:
                tally.problems.append(f"{shape.name}: {complaint}\n            among {', '.join(placed[-4:-1]) or 'no others'}; alone: "
                                      f"{sys.argv[0]} --operator {self.plane.program} --only {shape.name}")
                print(f"        {tally.problems[-1]}", flush=True)
                self.recover()
                placed.clear()
            if len(tally.problems) == PROBLEMS_MAX:
                break
            if len(placed) == IN_PLACE:
                self.tenant.purge()
                placed.clear()
        self.tenant.purge()
        tally.seconds = time.monotonic() - began
        self.cases.count(f"{name} ({len(shapes) - tally.tried} not tried)" if tally.tried < len(shapes) else name, tally.tried, tally.problems)

    def one(self, shape, tally, placed):
        try:
            code, _ = self.tenant.write(shape)
        except (AssertionError, Refused) as e:
            placed.append(shape.name)
            return f"the tenant's own job, before: {e}"
        if not 200 <= code < 300:
            tally.refusals[code] += 1
            return None
        tally.taken += 1
        placed.append(shape.name)
        return self.judge(tally)

    def table(self, shapes):
        groups = {}
        for shape in shapes:
            if self.cases.wanted(shape.name):
                groups.setdefault(shape.group, []).append(shape)
        for name, some in groups.items():
            try:
                self.group(name, some)
            except AssertionError as e:  # the world's own, such as a namespace that does not become empty
                self.cases.count(name, 1, [str(e)])

    # --- the end

    def calm(self):
        """All is gone: the memory comes back."""
        end = time.monotonic() + CALM_S
        while self.memory.now() > self.before + GROWTH_MIB and time.monotonic() < end:
            time.sleep(0.2)
        after = self.memory.now()
        print(f"        memory before {self.before:.1f} MiB, afterwards {after:.1f}", flush=True)
        check(0 < after <= self.before + GROWTH_MIB, f"the operator keeps {after:.1f} MiB, {self.before:.1f} before, {GROWTH_MIB} more are allowed")

    def never_again(self):
        check(not self.restarts, f"the operator was started again {self.restarts} times")

    def print(self):
        print(f"        {'':34} {'tried':>6} {'taken':>6} {'MiB':>6} {'start s':>8} {'end s':>6} {'all s':>6}  refused by")
        for name, t in self.tallies.items():
            refusals = ", ".join(f"{code or 'no answer'}: {n}" for code, n in sorted(t.refusals.items()))
            print(f"        {name[:34]:34} {t.tried:6} {t.taken:6} {t.memory:6.1f} {t.start:8.2f} {t.end:6.1f} {t.seconds:6.0f}  {refusals}", flush=True)

    def close(self):
        self.victims.close()
        self.kubelet.close()


def main():
    cases = Cases("F14", __doc__)
    args = cases.parse()
    plane = Plane(args.operator, controller_manager=False)
    plane.always = ["--etcd-compaction-interval=60s"]  # hundreds of objects of a megabyte, each written several times
    with cases.up(plane):
        plane.install()
        world = World(cases, plane)
        world.table(short() if args.short else every())
        crowds.run(world, args.short)
        with cases("memory is given back", counts=False):
            world.calm()
        with cases("never started again", counts=False):
            world.never_again()
        world.print()
        world.close()
        with cases("ends well", counts=False):
            world.operator.end()
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
