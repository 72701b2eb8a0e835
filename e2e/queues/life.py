#!/usr/bin/env python3
"""life.py - the life of a queued job under the real Kueue: admission, readiness, preemption and return, stops and deletions by users,
Kueue killed, absent and installed later."""

import sys
import time

from cases import Cases, check
from plane import job_path, pod_path
from queues import (END_S, FINALIZER, FLAVOR_LABEL, KUEUE, PRIORITY, QUEUE, TOLERATION, Held, Queues, condition, holds, job,
                    workload_path)

QUOTA = 4
LONG_S = 3600  # until its end is brought about


class World:
    """A plane with Kueue, an operator and a node; each case has a namespace and a queue with room for one job of four pods."""

    def __init__(self, plane, kubelet=Held):
        self.plane, self.api = plane, plane.api
        self.kubelet = kubelet(plane)
        self.operator = plane.operator(None, "--leader-elect=false")

    def restart_operator(self, meanwhile):
        """Killed; another one starts after `meanwhile` is done."""
        self.plane.processes.remove(self.operator.process)
        self.operator.process.popen.kill()
        self.operator.process.popen.wait()
        meanwhile()
        self.operator = self.plane.operator(None, "--leader-elect=false")

    def fresh(self, quota=QUOTA, **cluster_queue):
        self.ns = self.plane.namespace()
        self.plane.queues(self.ns, quota, **cluster_queue)
        return self.ns

    def wait(self, what, true, every=0.1):
        def go_on():
            self.kubelet.check()
            check(self.operator.process.popen.poll() is None, "the operator ended")
            return true()
        self.plane.wait(what, go_on, END_S, every)

    def first_of(self, *jobs):
        """Of several that wait, the one that runs first."""
        self.wait("one of them to run", lambda: any(each.runs() for each in jobs))
        return next(each for each in jobs if each.runs())

    def start(self, name, **more):
        """A job with its UID; it runs until it is ended."""
        return Job(self, name, **more)


def play(cases, plane, table, kubelet=Held):
    """The cases of the table in a world of this plane, and the end of its operator."""
    plane.install()
    plane.kueue_up()
    plane.priorities(low=1, high=10)
    world = World(plane, kubelet)
    cases.run(table, world)
    world.kubelet.close()
    with cases("the operator ends well", counts=False):
        world.operator.end()


class Job:
    def __init__(self, world, name, run=LONG_S, made=None, **more):
        self.world, self.plane, self.ns, self.name = world, world.plane, world.ns, name
        self.uid = self.plane.make(self.ns, made or job(name, run=run, **more))

    @property
    def workload(self):
        return self.plane.workload(self.ns, self.uid)

    @property
    def status(self):
        return self.plane.api.get(job_path(self.ns, self.name)).get("status", {})

    def pods(self):
        return self.plane.pods(self.ns, self.name)

    def path(self):
        return workload_path(self.ns, self.workload["metadata"]["name"])

    def change(self, spec):
        """Of its Workload."""
        self.plane.api.patch(self.path(), {"spec": spec})

    def runs(self):
        return holds(self.workload, "PodsReady") and len(self.pods()) == 4

    def await_running(self):
        self.world.wait(f"{self.name} to run", self.runs)

    def await_condition(self, kind, reason=None, status="True"):
        def there():
            found = condition(self.workload, kind)
            return found.get("status") == status and reason in (None, found.get("reason"))
        self.world.wait(f"{kind} {reason or ''} of {self.name}", there)

    def await_released(self):
        """No pods, no quota: as jobframework leaves it."""
        self.world.wait(f"{self.name} to give its quota back", lambda: not holds(self.workload, "QuotaReserved"))
        check(not self.pods(), "quota went back while pods were there")
        self.world.wait("admission to go", lambda: "admission" not in self.workload["status"])

    def finish(self, phase="Succeeded"):
        """Its pods end, and it with them; nothing of its quota remains."""
        for pod in self.pods():
            self.world.kubelet.end(pod)
        self.world.wait(f"{self.name} to end", lambda: self.status.get("phase") in ("Succeeded", "Failed"))
        check(self.status["phase"] == phase, f"{self.name}: {self.status}")
        self.world.wait("its finalizer to go", lambda: FINALIZER not in self.workload["metadata"].get("finalizers", []))
        found = condition(self.workload, "Finished")
        check(found.get("reason") == phase, f"Finished: {found}")


def admitted(world):
    """Pods come with admission alone, and as the flavour says."""
    world.fresh()
    first = world.start("first")
    world.wait("the Workload", lambda: first.workload)
    meta = first.workload["metadata"]
    check(FINALIZER in meta["finalizers"], f"finalizers: {meta}")
    owner = meta["ownerReferences"][0]
    check((owner["uid"], owner.get("controller")) == (first.uid, True), f"owner: {owner}")
    first.await_running()
    for pod in first.pods():
        selector, labels = pod["spec"].get("nodeSelector", {}), pod["metadata"]["labels"]
        check(FLAVOR_LABEL.items() <= selector.items(), f"nodeSelector: {selector}")
        check(any(TOLERATION.items() <= t.items() for t in pod["spec"]["tolerations"]), f"tolerations: {pod['spec']['tolerations']}")
        check(QUEUE not in labels, f"labels: {labels}")
        check(labels.get("kueue.x-k8s.io/local-queue-name") == "queue", f"labels: {labels}")
        check(pod["metadata"]["annotations"].get("kueue.x-k8s.io/workload") == meta["name"], f"annotations: {pod['metadata']}")
    second = world.start("second")
    second.await_condition("QuotaReserved", status="False")
    check(not second.pods() and len(first.pods()) == 4, "pods without quota")
    first.finish()
    second.await_running()
    second.finish()
    world.wait("usage 0", lambda: world.plane.usage(world.ns) == 0)


def fails(world):
    world.fresh()
    bad = world.start("bad", codes=[1])
    bad.await_running()
    bad.finish("Failed")


def preempted(world):
    """Quota goes back when the last pod is gone, not before; the job returns after the other's end, and counts nothing."""
    world.fresh()
    low = world.start("low", priority="low")
    low.await_running()
    world.kubelet.hold("low-node-0")
    high = world.start("high", priority="high")
    low.await_condition("Evicted", "Preempted")
    world.wait("three of its pods to go", lambda: len(low.pods()) == 1)
    time.sleep(1)  # in which nothing may happen
    check(holds(low.workload, "QuotaReserved"), "quota went back while a pod was there")
    check(not high.pods(), "the other job has pods, and no quota")
    world.kubelet.let_go()
    high.await_running()
    check(not low.pods(), "both have pods")
    check("admission" not in low.workload["status"], f"admission: {low.workload['status']}")
    high.finish()
    low.await_running()
    check(not low.status.get("backoffCount") and not low.status.get("disruptionCount"), f"counted: {low.status}")
    low.finish()


def queue_stopped(world):
    world.fresh()
    it = world.start("it")
    it.await_running()
    queue = f"{KUEUE}/namespaces/{world.ns}/localqueues/queue"
    world.api.patch(queue, {"spec": {"stopPolicy": "HoldAndDrain"}})
    it.await_released()
    world.api.patch(queue, {"spec": {"stopPolicy": "None"}})
    it.await_running()
    it.finish()


def deactivated(world):
    world.fresh()
    it = world.start("it")
    it.await_running()
    it.change({"active": False})
    it.await_released()
    it.change({"active": True})
    it.await_running()
    it.finish()


def workload_deleted(world):
    """Its pods go first; then a new one takes its place."""
    world.fresh()
    it = world.start("it")
    it.await_running()
    world.kubelet.hold("it-node-0")
    old, pods = it.workload["metadata"]["uid"], {p["metadata"]["uid"] for p in it.pods()}
    world.api.delete(it.path())
    world.wait("three of its pods to go", lambda: len(it.pods()) == 1)
    check(it.workload["metadata"]["uid"] == old, "the Workload went before the pods")
    world.kubelet.let_go()
    world.wait("another Workload", lambda: (it.workload or {"metadata": {"uid": old}})["metadata"]["uid"] != old)
    it.await_running()
    check(not pods & {p["metadata"]["uid"] for p in it.pods()}, "pods of the old admission")
    it.finish()


def job_deleted(world):
    world.fresh()
    it, other = world.start("it"), None
    it.await_running()
    other = world.start("other")
    path = it.path()
    world.api.delete(job_path(world.ns, "it"))
    world.wait("its Workload to go", lambda: not world.api.find(path))
    other.await_running()
    other.finish()


def moved(world):
    """Another queue and another priority, before it is admitted."""
    world.fresh()
    first = world.start("first")
    first.await_running()
    second = world.start("second", queue="nowhere", priority="low")
    second.await_condition("QuotaReserved", status="False")
    world.api.patch(job_path(world.ns, "second"), {"metadata": {"labels": {QUEUE: "queue", PRIORITY: "high"}}})
    second.await_running()  # by preemption of the first one
    second.finish()
    first.await_running()
    first.finish()


def paused(world):
    """A paused job holds no quota."""
    world.fresh()
    it = world.start("it")
    it.await_running()
    other = world.start("other")
    world.api.patch(job_path(world.ns, "it"), {"spec": {"runMode": {"pause": {"enabled": True}}}})
    other.await_running()
    world.api.patch(job_path(world.ns, "it"), {"spec": {"runMode": {"pause": {"enabled": False}}}})
    other.finish()
    it.await_running()
    it.finish()


def never_ready(world):
    """Kueue evicts what is not ready in time, and takes it again."""
    world.plane.kueue_up({"waitForPodsReady": {"timeout": "5s", "requeuingStrategy": {"backoffBaseSeconds": 1}}})
    try:
        world.fresh()
        world.kubelet.sleeping = True
        it = world.start("it")
        it.await_condition("Evicted", "PodsReadyTimeout")
        it.await_released()
        world.kubelet.let_go()
        it.await_running()
        it.finish()
    finally:
        world.kubelet.let_go()
        world.plane.kueue_up()


def killed(world):
    """Kueue is gone while one job runs and loses a pod and one waits; no pod can be created meanwhile."""
    world.fresh()
    first = world.start("first", restartScope="Replica")
    first.await_running()
    second = world.start("second")
    world.plane.kill_kueue()
    pod = first.pods()[1]["metadata"]
    world.api.delete(pod_path(world.ns, pod["name"]), gracePeriodSeconds=0)
    third = world.start("third")
    time.sleep(3)  # attempts in vain
    world.plane.kueue_up()
    first.await_running()
    first.finish()
    if world.first_of(second, third) is third:  # both were made in the second of Kueue's start
        second, third = third, second
    second.finish()
    third.await_running()
    third.finish()


def killed_at_the_end(world):
    """A job that ends while Kueue is away gives its quota back afterwards."""
    world.fresh()
    first = world.start("first")
    first.await_running()
    second = world.start("second")
    world.plane.kill_kueue()
    for pod in first.pods():
        world.kubelet.end(pod)
    time.sleep(2)
    world.plane.kueue_up()
    first.finish()
    second.await_running()
    second.finish()


def both_killed_at_the_end(world):
    """The operator that starts afterwards has only an ended job and its Workload to go by."""
    world.fresh()
    first = world.start("first")
    first.await_running()
    world.plane.kill_kueue()
    for pod in first.pods():
        world.kubelet.end(pod)
    world.wait("the job to succeed", lambda: first.status.get("phase") == "Succeeded")
    world.restart_operator(world.plane.kueue_up)
    first.finish()
    world.wait("usage 0", lambda: world.plane.usage(world.ns) == 0)


def without_rights(world):
    """The entry of deploy/kueue without its permissions: no pod can be created, and the job's status names Kueue's webhook."""
    world.fresh()
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/torchkeeper-kueue"
    kept = world.api.get(binding)
    world.api.delete(binding)
    world.plane.kill_kueue()
    world.plane.kueue_up()
    it = world.start("it")
    world.wait("the refusal", lambda: "webhook" in str(it.status) and "kueue" in str(it.status).lower())
    check(not it.pods(), "pods")
    world.api.post(binding.rpartition("/")[0], {**kept, "metadata": {"name": kept["metadata"]["name"]}})
    it.await_running()
    it.finish()


def installed_later(world):
    """Kueue is removed and installed again; meanwhile jobs without the label run."""
    world.ns = world.plane.namespace()
    world.plane.kueue("down")
    queued, plain = world.start("queued"), world.start("plain", queue=None)
    world.wait("the plain job to run", lambda: len(plain.pods()) == 4)
    world.plane.kueue_up()
    world.plane.priorities(low=1, high=10)
    world.plane.queues(world.ns, QUOTA)
    queued.await_running()
    queued.finish()


CASES = {
    "admitted, ready, finished": admitted,
    "a job that fails": fails,
    "preempted and back": preempted,
    "LocalQueue stopped and opened": queue_stopped,
    "deactivated and activated": deactivated,
    "Workload deleted": workload_deleted,
    "job deleted": job_deleted,
    "queue and priority changed": moved,
    "paused and resumed": paused,
    "not ready in time": never_ready,
    "Kueue killed while jobs run and wait": killed,
    "Kueue killed while a job ends": killed_at_the_end,
    "operator and Kueue killed while a job ends": both_killed_at_the_end,
    "the entry without its permissions": without_rights,
    "Kueue removed and installed again": installed_later,
}


def main():
    cases = Cases("life", __doc__)
    args = cases.parse()
    with cases.up(Queues(args.operator)) as plane:
        play(cases, plane, CASES)
        with cases("Kueue's removal", counts=False):
            plane.kueue("down")
            left = plane.kubectl("api-resources", "-o", "name").stdout
            check("kueue" not in left, left)
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
