#!/usr/bin/env python3
"""F12: the API server and its store go away, come back, come back older or empty; the CRD comes late or goes. The operator is
never restarted, all jobs end as without the fault, and no pod is created twice. Pods are counted by etcd's history: what an API
server does just before it is killed is in no audit log."""

import signal
import sys
import time

from cases import Cases, check
from follow import Follow
from history import History
from jobs import Audit, Observer, job, phase
from kubelet import Kubelet
from plane import ACCOUNT, GROUP, JOBS, SYSTEM, Plane, job_path, pod_path

END_S = 600  # bounds a hang
# Who puts an old copy back needs longer than that. A watch that was away for ten seconds is not resumed; one that is would wait for
# changes beyond a number that the server has not reached again.
RESTORE_S = 12


class World:
    """A plane, a node, an operator, and whoever looks at them."""

    def __init__(self, plane):
        self.plane, self.follows, self.kubelet = plane, [], None
        self.operator = plane.operator()
        self.look()

    def look(self):
        """With fresh eyes: what was seen before is another world."""
        self.close()
        self.kubelet = Kubelet(self.plane)
        self.observer, self.history = Observer(), History(self.plane)
        self.follows = [Follow(self.plane.api, "/api/v1/pods", self.observer.seen_pod),
                        Follow(self.plane.api, f"{JOBS}/pytorchtrainingjobs", self.observer.seen_job)]
        for follow in self.follows:
            follow.start()

    def check(self):
        self.kubelet.check()
        for follow in self.follows:
            check(not follow.problem, follow.problem)
        check(not self.observer.problems, self.observer.problems[:3])
        check(self.operator.process.popen.poll() is None, "the operator ended")

    def close(self):
        for follow in self.follows:
            follow.end()
        if self.kubelet:
            self.kubelet.close()


def mix(prefix):
    """Jobs in all states of life, with how they end and how many pods they take: {name: (manifest, phase, pods)}."""
    return {
        f"{prefix}-short": (job(f"{prefix}-short", 2, run=1), "Succeeded", 2),
        f"{prefix}-long": (job(f"{prefix}-long", 2, run=8), "Succeeded", 2),
        f"{prefix}-again": (job(f"{prefix}-again", 2, run=3, codes=[137, 137, 0]), "Succeeded", 6),
        f"{prefix}-wrong": (job(f"{prefix}-wrong", 1, run=4, codes=[1]), "Failed", 1),
        f"{prefix}-limit": (job(f"{prefix}-limit", 1, run=2, codes=[137], runPolicy={"backoffLimit": 1}), "Failed", 2),
    }


def post(world, ns, jobs):
    for name, (manifest, _, _) in jobs.items():
        world.plane.api.post(job_path(ns), dict(manifest, metadata={"name": name}))


def await_ends(world, ns, jobs, count=True):
    plane = world.plane

    def ends():
        world.check()
        return {name: phase(plane, ns, name) for name in jobs}

    plane.wait("the jobs to end", lambda: all(p in ("Succeeded", "Failed") for p in ends().values()), END_S, 0.5)
    check(ends() == {name: end for name, (_, end, _) in jobs.items()}, f"ends: {ends()}")
    if count:
        created = world.history.born(ns)
        want = sum(n for _, _, n in jobs.values())
        check(len(created) == want, f"{len(created)} pods created, expected {want}: {sorted(created)}")


def midlife(world, ns):
    time.sleep(1.5)  # whatever they are at then


def first_pod(world, ns):
    """The others are being created, by an operator that waits for its answers."""
    world.plane.wait("the first pod", lambda: world.plane.api.get(pod_path(ns))["items"], every=0.001)


def through(world, prefix, fault, moment=midlife):
    """The jobs, the fault in the middle of their lives, more jobs, and the end of all."""
    ns = world.plane.namespace()
    early, late = mix(f"{prefix}-early"), mix(f"{prefix}-late")
    world.history.mark(ns)
    post(world, ns, early)
    moment(world, ns)
    fault()
    post(world, ns, late)
    await_ends(world, ns, {**early, **late})


# --- the faults


def part(part_name, number, moment=midlife):
    def run(world, prefix):
        def fault():
            world.plane.end_part(part_name, number)
            time.sleep(2)
            world.plane.up()
        through(world, prefix, fault, moment)
    return run


def both(world, prefix):
    def fault():
        world.plane.end_store()
        time.sleep(2)
        world.plane.up()
    through(world, prefix, fault)


def cold(world, prefix):
    """Every list and watch goes to etcd, and none begins with what is there."""
    def fault():
        world.plane.end_part("kube-apiserver")
        world.plane.up("--watch-cache=false")
    through(world, prefix, fault)
    world.plane.end_part("kube-apiserver")
    world.plane.up()


def await_crd(world):
    """At the start of the operator there was none."""
    world.plane.wait("the operator to miss it", world.operator.complaints)
    time.sleep(5)
    world.plane.install_crd()


def crd_late(world, prefix):
    await_crd(world)
    through(world, prefix, lambda: None)
    missed = sum(e["responseStatus"].get("code") == 404 and e["verb"] in ("list", "watch") for e in Audit(world.plane.audit_log).read())
    check(0 < missed < 30, f"{missed} lists and watches of what was not there for some seconds")


def crd_again(world, prefix):
    """All jobs and their pods are removed with the CRD: later ones are new."""
    ns = world.plane.namespace()
    post(world, ns, mix(f"{prefix}-early"))
    time.sleep(1.5)
    crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pytorchtrainingjobs.{GROUP}"
    world.plane.api.delete(crd)
    world.plane.wait("the CRD to go", lambda: not world.plane.api.find(crd), END_S)
    world.plane.wait("the pods to go", lambda: not world.plane.api.get(pod_path(ns))["items"], END_S)
    world.plane.install_crd()
    world.history.mark(ns)
    again = mix(f"{prefix}-early")  # by the same names
    post(world, ns, again)
    await_ends(world, ns, again)


def wiped(world, prefix):
    """Another cluster at the same address: everything is gone, and resource versions start again."""
    plane = world.plane
    post(world, plane.namespace(), mix(f"{prefix}-early"))
    time.sleep(1.5)
    plane.end_store(for_another=True)
    plane.wipe_store()
    plane.up()
    plane.install()
    plane.token(SYSTEM, ACCOUNT)  # written anew: the old token is of another account
    world.look()
    through(world, f"{prefix}-anew", lambda: None)


def restored(world, prefix):
    """An older state: later changes are lost, and resource versions are used again."""
    plane, ns = world.plane, world.plane.namespace()
    early = mix(f"{prefix}-early")
    post(world, ns, early)
    time.sleep(1.5)
    plane.end_store()
    plane.keep_store()
    plane.up()
    await_ends(world, ns, early)
    plane.end_store(for_another=True)
    plane.restore_store()
    time.sleep(RESTORE_S)
    plane.up()
    world.look()
    await_ends(world, ns, early, count=False)
    through(world, f"{prefix}-after", lambda: None)


CASES = {
    "CRD installed after the start": crd_late,
    "API server killed": part("kube-apiserver", signal.SIGKILL),
    "API server killed while it creates pods": part("kube-apiserver", signal.SIGKILL, first_pod),
    "API server ends by SIGTERM": part("kube-apiserver", signal.SIGTERM),
    "etcd killed": part("etcd", signal.SIGKILL),
    "etcd killed while it stores pods": part("etcd", signal.SIGKILL, first_pod),
    "etcd ends by SIGTERM": part("etcd", signal.SIGTERM),
    "both killed": both,
    "API server comes back without a watch cache": cold,
    "CRD deleted and installed again": crd_again,
    "etcd comes back as it was earlier": restored,
    "etcd comes back empty": wiped,
}


def all_cases(cases, world):
    for number, (name, fault) in enumerate(CASES.items()):
        if fault == crd_late or cases.wanted(name):
            with cases(name):
                fault(world, f"c{number}")


def shortest(cases, world):
    with cases("CRD installed after the start, API server killed"):
        await_crd(world)
        CASES["API server killed"](world, "c")


def main():
    cases = Cases("F12", __doc__)
    args = cases.parse()
    with cases.up(Plane(args.operator, history=True)) as plane:
        plane.install(crd=False)
        world = World(plane)
        (shortest if args.short else all_cases)(cases, world)
        world.close()
        with cases("the operator ends well", counts=False):
            world.operator.end()
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
