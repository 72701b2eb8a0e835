#!/usr/bin/env python3
"""F7, the real part: the operator that leads is stopped (SIGSTOP) past the end of its lease while jobs live, another one takes over,
and the stopped one continues (SIGCONT). Against a real API server, whose audit log shows who wrote when."""

import os
import random
import signal
import sys
import time
from collections import Counter
from datetime import datetime

from cases import Cases, check
from follow import Follow
from jobs import Audit, Observer, done, phase
from kubelet import Kubelet
from plane import ACCOUNT, JOBS, SYSTEM, Plane
from restarts import END_S, mix, post

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/torchkeeper-operator"
TAKEOVER_S = 600  # bounds a hang; the lease lasts 15 s


class Trial:
    """Two operators, each with a token whose id identifies it in the audit log."""

    def __init__(self, plane, dice):
        self.plane, self.dice, self.api = plane, dice, plane.api
        self.operators = {}
        self.audit = Audit(plane.audit_log)
        self.kubelet, self.observer = Kubelet(plane), Observer()
        self.follows = [Follow(plane.api, "/api/v1/pods", self.observer.seen_pod),
                        Follow(plane.api, f"{JOBS}/pytorchtrainingjobs", self.observer.seen_job)]
        for follow in self.follows:
            follow.start()
        for name in ("a", "b"):
            access = plane.flags(plane.token(SYSTEM, ACCOUNT, f"{name}.token"))
            self.operators[name] = plane.operator(access, name=f"operator-{name}")
            plane.wait(f"{name} to lead or to wait", lambda o=self.operators[name]: o.told("leading") or o.told("waiting for the lease"))

    def holder(self):
        return (self.api.find(LEASE) or {}).get("spec", {}).get("holderIdentity")

    def leader(self):
        """By who said so last."""
        def leading():
            return [name for name, o in self.operators.items() if o.told("leading") > o.told("leading no more")]
        self.plane.wait("one leader", lambda: len(leading()) == 1)
        return leading()[0]

    def run(self, prefix):
        """Stopped at a random moment of the jobs' lives."""
        ns = self.plane.namespace()
        list(self.audit.read())
        jobs = mix(prefix)
        first = self.leader()
        other = "b" if first == "a" else "a"
        before = self.holder()
        post(self, ns, jobs)
        time.sleep(self.dice.uniform(0, 0.6))
        os.kill(self.operators[first].pid, signal.SIGSTOP)
        led = self.operators[other].told("leading")
        try:
            self.plane.wait("the other one to take over", lambda: self.operators[other].told("leading") > led, TAKEOVER_S)
            late = mix(f"{prefix}-late")
            post(self, ns, late)
            time.sleep(self.dice.uniform(0, 0.3))
        finally:
            os.kill(self.operators[first].pid, signal.SIGCONT)
        check(self.holder() != before, "the lease did not change hands")
        self.await_ends(ns, {**jobs, **late})
        entries = list(self.audit.read())
        self.judge(entries, ns, {**jobs, **late})

    def await_ends(self, ns, jobs):
        def ends():
            self.kubelet.check()
            return {name: phase(self.plane, ns, name) for name in jobs}
        self.plane.wait("the jobs to end", lambda: all(p in ("Succeeded", "Failed") for p in ends().values()), END_S, 0.5)
        check(ends() == {name: end for name, (_, end, _) in jobs.items()}, f"ends: {ends()}")
        check(not self.observer.problems, self.observer.problems[:3])

    def judge(self, entries, ns, jobs):
        """No pod twice; and after the second one's first write nothing that the first one wrote took effect."""
        writes = [(datetime.fromisoformat(e["requestReceivedTimestamp"].replace("Z", "+00:00")), credential(e)) for e in entries
                  if e["verb"] in ("create", "patch", "delete", "update") and e.get("objectRef", {}).get("resource") not in ("leases", "events")
                  and e["responseStatus"].get("code", 0) < 300]
        writers = [who for i, (_, who) in enumerate(sorted(writes)) if i == 0 or who != sorted(writes)[i - 1][1]]
        check(len(writers) <= 2, f"writes change hands more than once: {len(writers)}")
        check(len(set(writers)) == len(writers), "the first one wrote after the second one had")
        created = done(entries, "create", "pods", ns)
        want = sum(n for _, _, n in jobs.values()) - sum(never_made(entries, ns, name, job, writers) for name, (job, _, _) in jobs.items())
        check(len(created) == want, f"{len(created)} pods created, expected {want}: {sorted(created)}")

    def close(self):
        for follow in self.follows:
            follow.end()
        self.kubelet.close()
        for operator in self.operators.values():
            operator.end()


def never_made(entries, ns, name, job, writers):
    """Pods of a job: the first one was stopped between two of an attempt, and those that it had made failed before the second one led,
    which then made whole attempts."""
    pods = [f"{name}-node-{i}" for i in range(job["spec"]["replicaSpecs"][0]["replicas"])]
    by = [Counter(done([e for e in entries if e["verb"] == "create" and e["responseStatus"].get("code") == 201 and credential(e) == writer],
                       "create", "pods", ns)) for writer in writers]
    if len(by) < 2 or len({by[1][pod] for pod in pods}) > 1:
        return 0
    return sum(max(by[0][pod] for pod in pods) - by[0][pod] for pod in pods)


def credential(entry):
    return entry["user"]["extra"]["authentication.kubernetes.io/credential-id"][0]


def main():
    cases = Cases("F7", __doc__)
    cases.parser.add_argument("--trials", type=int, help="5, with --short 1")
    cases.parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    args = cases.parse()
    with cases.up(Plane(args.operator)) as plane:
        plane.install()
        print(f"seed {args.seed}", flush=True)
        trial = Trial(plane, random.Random(args.seed))
        for number in range(args.trials or (1 if args.short else 5)):
            with cases(f"the leader is stopped past its lease, {number + 1}"):
                trial.run(f"t{number}")
        with cases("both end well", counts=False):
            trial.close()
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
