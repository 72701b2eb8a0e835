#!/usr/bin/env python3
"""remote.py - MultiKueue: a manager and a worker, each with an API server, the real Kueue and the operator. Jobs of the manager run in
the worker; their status, their end, evictions in either place, deletions, and the loss of the worker. Runs docs/kueue.md's commands."""

import os
import subprocess
import sys

from cases import Cases, check
from life import Job, World
from plane import job_path
from queues import FINALIZER, KUEUE, Queues, condition, holds, workload_path
from rig import REPO

MULTIKUEUE = "kueue.x-k8s.io/multikueue"
LOST_S = 5


class Manager(World):
    """The cluster of the users, with no node. `worker` is the World in which its jobs run."""

    def __init__(self, plane, worker):
        super().__init__(plane, Idle)
        self.worker = worker

    def fresh(self, **cluster_queue):
        self.worker.fresh()
        super().fresh(admissionChecksStrategy={"admissionChecks": [{"name": "worker"}]}, **cluster_queue)
        check(self.ns == self.worker.ns, f"{self.ns} here, {self.worker.ns} there")
        return self.ns

    def wait(self, what, true, every=0.1):
        def go_on():
            self.worker.kubelet.check()
            check(self.worker.operator.process.popen.poll() is None, "the worker's operator ended")
            return true()
        super().wait(what, go_on, every)

    def start(self, name, **more):
        return Sent(self, name, managedBy=MULTIKUEUE, **more)


class Idle:
    """Where no pod may be."""

    def __init__(self, plane):
        self.plane = plane

    def check(self):
        pods = self.plane.api.get("/api/v1/pods?labelSelector=batch.tensorstack.dev/job")["items"]
        check(not pods, "pods in the manager")


class Sent(Job):
    """A job of the manager. Its pods are those of its copy."""

    @property
    def copy(self):
        return self.world.worker.api.find(job_path(self.ns, self.name))

    @property
    def remote(self):
        return self.world.worker.api.find(workload_path(self.ns, self.workload["metadata"]["name"]))

    def pods(self):
        return self.world.worker.plane.pods(self.ns, self.name)

    def finish(self, phase="Succeeded"):
        for pod in self.pods():
            self.world.worker.kubelet.end(pod)
        self.world.wait(f"{self.name} to end", lambda: self.status.get("phase") == phase)
        self.world.wait("its finalizer to go", lambda: FINALIZER not in self.workload["metadata"].get("finalizers", []))
        found = condition(self.workload, "Finished")
        check(found.get("reason") == phase, f"Finished: {found}")
        self.world.wait("its copy to go", lambda: not self.copy and not self.remote)
        self.world.wait("usage 0", lambda: self.world.plane.usage(self.ns) + self.world.worker.plane.usage(self.ns) == 0)
        self.untouched()

    def untouched(self):
        """Only MultiKueue writes the status."""
        fields = self.plane.api.get(job_path(self.ns, self.name))["metadata"].get("managedFields", [])
        writers = {f["manager"] for f in fields if f.get("subresource") == "status"}
        check("ptj-operator" not in writers, f"writers of the status: {writers}")


def runs(manager):
    """The copy has the manager's Workload, and the manager the copy's status."""
    manager.fresh()
    it = manager.start("it")
    it.await_running()
    meta = it.remote["metadata"]
    check([o["uid"] for o in meta["ownerReferences"]] == [it.copy["metadata"]["uid"]], f"owners: {meta['ownerReferences']}")
    check(meta["labels"].get("kueue.x-k8s.io/job-uid") == it.copy["metadata"]["uid"], f"labels: {meta['labels']}")
    copied = it.copy
    check("managedBy" not in copied["spec"], f"spec: {copied['spec']}")
    manager.wait("the status", lambda: it.status.get("phase") == "Running")
    it.finish()


def fails(manager):
    manager.fresh()
    it = manager.start("it", codes=[1])
    it.await_running()
    it.finish("Failed")


def waits_there(manager):
    """The worker has no room."""
    manager.fresh()
    other = Job(manager.worker, "other")
    other.await_running()
    it = manager.start("it")
    it.await_condition("QuotaReserved")
    manager.wait("a Workload that waits there", lambda: condition(it.remote, "QuotaReserved").get("status") == "False")
    check(not it.copy and not holds(it.workload, "Admitted"), "admitted, and the worker has no room")
    other.finish()
    it.await_running()
    it.finish()


def preempted_here(manager):
    """Quota goes back when the pods in the worker have ended."""
    manager.fresh()
    low = manager.start("low", priority="low")
    low.await_running()
    manager.worker.kubelet.hold("low-node-0")
    high = manager.start("high", priority="high")
    low.await_condition("Evicted", "Preempted")
    manager.wait("three of its pods to go", lambda: len(low.pods()) == 1)
    check(holds(low.workload, "QuotaReserved"), "quota went back while a pod was there")
    manager.worker.kubelet.let_go()
    high.await_running()
    high.finish()
    low.await_running()
    low.finish()


def evicted_there(manager):
    manager.fresh()
    it = manager.start("it")
    it.await_running()
    queue = f"{KUEUE}/namespaces/{manager.ns}/localqueues/queue"
    manager.worker.api.patch(queue, {"spec": {"stopPolicy": "HoldAndDrain"}})
    manager.wait("its pods to go", lambda: not it.pods())
    manager.wait("its quota to go back", lambda: not holds(it.workload, "Admitted"))
    manager.worker.api.patch(queue, {"spec": {"stopPolicy": "None"}})
    it.await_running()
    it.finish()


def suspended(manager):
    manager.fresh()
    it = manager.start("it")
    it.await_running()
    manager.api.patch(job_path(manager.ns, "it"), {"spec": {"suspend": True}})
    manager.wait("its Workload to go", lambda: not it.workload)
    manager.wait("its copy to go", lambda: not it.copy and not it.pods())
    manager.api.patch(job_path(manager.ns, "it"), {"spec": {"suspend": False}})
    it.await_running()
    it.finish()


def deleted(manager):
    manager.fresh()
    it = manager.start("it")
    it.await_running()
    path = it.path()
    manager.api.delete(job_path(manager.ns, "it"))
    manager.wait("its Workload to go", lambda: not manager.api.find(path))
    manager.wait("its copy to go", lambda: not it.copy and not it.pods())
    manager.wait("usage 0", lambda: manager.plane.usage(manager.ns) + manager.worker.plane.usage(manager.ns) == 0)


def lost(manager):
    """Quota goes back although nothing comes from the worker any more. When it is back, the job runs again."""
    manager.fresh()
    it = manager.start("it")
    it.await_running()
    there = manager.worker.plane
    there.end_part("kube-apiserver")
    World.wait(manager, "the eviction", lambda: holds(it.workload, "Evicted"))
    World.wait(manager, "its quota to go back", lambda: not holds(it.workload, "QuotaReserved"))
    there.up()
    manager.wait("its pods to run", lambda: it.runs() and manager.worker.operator.process.popen.poll() is None)
    it.finish()


CASES = {
    "runs in the worker": runs,
    "fails in the worker": fails,
    "waits for room in the worker": waits_there,
    "preempted in the manager": preempted_here,
    "evicted in the worker": evicted_there,
    "suspended and resumed": suspended,
    "deleted": deleted,
    "the worker lost and back": lost,
}


def connect(manager, worker):
    """As docs/kueue.md says: KUBECONFIG is the manager's, WORKER the worker's."""
    env = {**os.environ, "KUBECONFIG": str(manager.admin), "WORKER": str(worker.admin),
           "PATH": f"{manager.tool('kubectl').parent}:{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, str(REPO / "tests/docs/blocks.py"), "run", "multikueue", str(REPO / "docs/kueue.md")], cwd=REPO,
                          env=env, capture_output=True, text=True)
    check(done.returncode == 0, done.stdout + done.stderr)
    manager.wait("the worker's connection", lambda: holds(manager.api.get(f"{KUEUE}/multikueueclusters/worker"), "Active"))
    manager.wait("the check", lambda: holds(manager.api.get(f"{KUEUE}/admissionchecks/worker"), "Active"))


def main():
    cases = Cases("remote", __doc__)
    args = cases.parse()
    with cases.up(Queues(args.operator)) as there, cases.up(Queues(args.operator)) as here:
        for plane in (there, here):
            plane.install()
            plane.kueue_up({"multiKueue": {"workerLostTimeout": f"{LOST_S}s", "gcInterval": "5s"}} if plane is here else None)
            plane.priorities(low=1, high=10)
        connect(here, there)
        manager = Manager(here, World(there))
        cases.run(CASES, manager)
        manager.worker.kubelet.close()
        with cases("the operators end well", counts=False):
            manager.operator.end()
            manager.worker.operator.end()
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
