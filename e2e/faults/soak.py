#!/usr/bin/env python3
"""F13: many job life cycles at random against a real API server, all by one process of the operator. Each job must end as its life cycle
requires and use exactly the pods that it needs; at the end nothing remains, and neither memory nor descriptors have grown."""

import csv
import os
import random
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import measure
from cases import Cases, check
from follow import Follow
from jobs import GONE, Audit, Observer, done, job
from kubelet import Kubelet
from plane import JOBS, Plane, job_path, pod_path

AT_ONCE = 30
LIFE_S = 600  # bounds a hang
GROWTH = 1.05  # last quarter over second quarter, of the medians
SAMPLE_S = 0.5


class Life:
    """One job. A generator: it yields a condition to be waited for, and does its next step when that is true."""

    def __init__(self, soak, number):
        self.soak, self.dice, self.name = soak, soak.dice, f"life-{number}"
        self.pods = None  # None: depends on when what happened
        self.kind = self.dice.choices(list(KINDS), [weight for weight, _ in KINDS.values()])[0]
        self.steps = KINDS[self.kind][1](self)
        self.began = time.monotonic()

    # --- what it does

    def create(self, replicas=1, codes=(0,), **spec):
        manifest = job(self.name, replicas, round(self.dice.uniform(0.02, 0.8), 2), codes, **spec)
        self.uid = self.soak.api.post(job_path(self.soak.ns), manifest)["metadata"]["uid"]

    def change(self, spec):
        self.soak.api.patch(job_path(self.soak.ns, self.name), {"spec": spec})

    def delete(self, policy="Background"):
        self.soak.api.delete(job_path(self.soak.ns, self.name), propagationPolicy=policy)

    # --- what it waits for

    @property
    def status(self):
        return self.soak.observer.jobs.get(self.uid, {})

    def phase(self, *phases):
        return lambda: self.status.get("phase") in phases

    def gone(self):
        return lambda: self.status is GONE

    def ended(self, phase):
        """The right end, and its object is taken away."""
        yield self.phase("Succeeded", "Failed")
        check(self.status["phase"] == phase, f"{self.name} ({self.kind}): {self.status}")
        self.delete()
        yield self.gone()

    # --- lives

    def succeed(self):
        self.pods = self.dice.randint(1, 4)
        self.create(self.pods)
        yield from self.ended("Succeeded")

    def fail(self):
        self.pods = self.dice.randint(1, 3)
        self.create(self.pods, codes=[self.dice.choice([1, 2, 127, 139])])
        yield from self.ended("Failed")

    def restart(self):
        replicas = self.dice.randint(1, 3)
        self.pods = 2 * replicas
        self.create(replicas, codes=[self.dice.choice([130, 137, 138, 143]), 0])
        yield from self.ended("Succeeded")

    def limit(self):
        self.pods = 2
        self.create(codes=[137], runPolicy={"backoffLimit": 1})
        yield from self.ended("Failed")

    def suspend(self):
        self.create(2, codes=[0])
        yield self.phase("Running", "Succeeded")
        self.change({"suspend": True})
        yield self.phase("Paused", "Succeeded")
        self.change({"suspend": False})
        yield from self.ended("Succeeded")

    def begin_suspended(self):
        self.pods = 2
        self.create(2, suspend=True)
        yield self.phase("Paused")
        self.change({"suspend": False})
        yield from self.ended("Succeeded")

    def scale(self):
        elastic = {"enabled": True, "minReplicas": 1, "maxReplicas": 4, "expectedReplicas": 2}
        self.create(2, elastic=elastic, torchrunConfig={"enabled": True, "maxRestarts": 1})
        for wanted in self.dice.choices([1, 2, 3, 4], k=3):
            yield self.phase("Running", "Succeeded", "Failed")
            self.change({"elastic": {"expectedReplicas": wanted}})
        yield self.phase("Succeeded", "Failed")
        self.delete()
        yield self.gone()

    def delete_early(self):
        self.create(self.dice.randint(1, 3))
        until = time.monotonic() + self.dice.uniform(0, 0.5)
        yield lambda: time.monotonic() > until
        self.delete(self.dice.choice(["Background", "Foreground"]))
        yield self.gone()

    def ttl(self):
        self.pods = 1
        self.create(runPolicy={"ttlSecondsAfterFinished": self.dice.randint(0, 2)})
        yield self.gone()


# Name: how often, and the life.
KINDS = {"succeed": (30, Life.succeed), "fail": (10, Life.fail), "restart": (15, Life.restart), "limit": (5, Life.limit),
         "suspend": (10, Life.suspend), "begin-suspended": (5, Life.begin_suspended), "scale": (5, Life.scale),
         "delete": (12, Life.delete_early), "ttl": (8, Life.ttl)}


class Soak:
    def __init__(self, plane, seed, path):
        self.plane, self.api, self.dice = plane, plane.api, random.Random(seed)
        self.ns = plane.namespace()
        self.observer = Observer()
        self.follows = [Follow(plane.api, "/api/v1/pods", self.observer.seen_pod),
                        Follow(plane.api, f"{JOBS}/pytorchtrainingjobs", self.observer.seen_job)]
        self.kubelet = Kubelet(plane)
        for follow in self.follows:
            follow.start()
        self.operator = plane.operator(None, "--leader-elect=false", env={
            "ASAN_OPTIONS": "quarantine_size_mb=4:thread_local_quarantine_size_kb=64:detect_leaks=1:exitcode=99", "UBSAN_OPTIONS": "halt_on_error=1"})
        plane.wait("the operator", lambda: self.operator.told("started") or self.operator.complaints())
        self.path, self.rows, self.finished = path, [], []
        self.audit = Audit(plane.audit_log)
        self.started = self.sampled = time.monotonic()

    def sample(self):
        now = time.monotonic()
        if now - self.sampled >= SAMPLE_S:
            self.sampled = now
            pid = self.operator.pid
            self.rows.append((round(now - self.started, 1), len(self.finished), measure.memory_kib(pid, "VmRSS"),
                              len(os.listdir(f"/proc/{pid}/fd")), round(measure.cpu_s(pid), 2)))

    def check(self):
        self.kubelet.check()
        check(self.operator.process.popen.poll() is None, f"the operator ended: {self.operator.complaints()[-5:]}")
        check(not self.observer.problems, self.observer.problems[:3])
        for follow in self.follows:
            check(not follow.problem, follow.problem)

    def live(self, cycles, minutes):
        """After the minutes no more lives are begun."""
        living, begun, late = [], 0, False
        while living or (begun < cycles and not late):
            late = time.monotonic() - self.started > 60 * minutes
            while begun < cycles and not late and len(living) < AT_ONCE:
                life = Life(self, begun)
                living.append((life, next(life.steps)))
                begun += 1
            still = []
            for life, condition in living:
                check(time.monotonic() - life.began < LIFE_S, f"{life.name} ({life.kind}) has not ended after {LIFE_S} s: {life.status}")
                while condition and condition():
                    condition = next(life.steps, None)
                if condition:
                    still.append((life, condition))
                else:
                    self.finished.append(life)
            living = still
            self.sample()
            self.check()
            time.sleep(0.02)

    def nothing_left(self):
        left = lambda: [o["metadata"]["name"] for path in (job_path(self.ns), pod_path(self.ns), f"/api/v1/namespaces/{self.ns}/services")
                        for o in self.api.get(path)["items"]]
        self.plane.wait("all to be gone", lambda: not left(), every=0.5)

    def pods_right(self):
        created = Counter(name.rsplit("-node-", 1)[0] for name in done(self.audit.read(), "create", "pods", self.ns))
        wrong = [f"{life.name} ({life.kind}): {created[life.name]} pods, expected {life.pods}" for life in self.finished
                 if life.pods is not None and created[life.name] != life.pods]
        check(not wrong, wrong[:5])
        return sum(created.values())

    def write(self):
        with open(self.path, "w", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(("seconds", "cycles", "rss_kib", "descriptors", "cpu_seconds"))
            rows.writerows(self.rows)

    def grown(self, column):
        """Median of the last quarter of the cycles over that of the second: the first fills pools and tables."""
        total = len(self.finished)
        quarter = lambda n: [row[column] for row in self.rows if n * total / 4 <= row[1] < (n + 1) * total / 4]
        return statistics.median(quarter(3)) / statistics.median(quarter(1)), max(quarter(1)), max(quarter(3))

    def judge(self):
        for name, column in (("memory in KiB", 2), ("descriptors", 3)):
            ratio, before, after = self.grown(column)
            print(f"        {name}: last quarter over second {ratio:.3f}; most {before} and {after}", flush=True)
            check(ratio <= GROWTH, f"{name} grew by a factor of {ratio:.3f}, at most {GROWTH} expected; see {self.path}")

    def end(self):
        for follow in self.follows:
            follow.end()
        self.kubelet.close()
        self.operator.end()  # a leak is an exit status of its own


def main():
    cases = Cases("F13", __doc__)
    cases.parser.add_argument("--cycles", type=int, help="10000, with --short 1000")
    cases.parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no more lives after these")
    cases.parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    cases.parser.add_argument("--csv", type=Path, default=Path("soak.csv"), help="memory and descriptors over time")
    args = cases.parse()
    cycles = args.cycles or (1000 if args.short else 10000)
    with cases.up(Plane(args.operator)) as plane:
        plane.install()
        print(f"up to {cycles} lives of jobs with {args.operator}, seed {args.seed}", flush=True)
        soak = Soak(plane, args.seed, args.csv)
        with cases("lives of jobs"):
            try:
                soak.live(cycles, args.minutes)
                soak.nothing_left()
                pods = soak.pods_right()
            finally:
                soak.write()
            kinds = Counter(life.kind for life in soak.finished)
            print(f"        {len(soak.finished)}: {', '.join(f'{kind} {n}' for kind, n in kinds.most_common())}; {pods} pods; "
                  f"{measure.cpu_s(soak.operator.pid):.1f} s of CPU", flush=True)
        with cases("nothing grew", counts=False):
            soak.judge()
        with cases("ends well, nothing leaked", counts=False):
            soak.end()
    return cases.end(len(soak.finished) if not cases.bad else None)


if __name__ == "__main__":
    sys.exit(main())
