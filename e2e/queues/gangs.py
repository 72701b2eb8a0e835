#!/usr/bin/env python3
"""gangs.py - 50 jobs of 4 pods at once, on kwok's nodes with room for 30 of them; a pod ends only after all pods of its job run. With
the real coscheduling as a second scheduler no job holds a part of the nodes in vain, and all end. With the default scheduler alone
they begin in a deadlock, each with a part of the nodes, and all end as well."""

import os
import signal
import subprocess
import sys
import time
from collections import defaultdict

from cases import Cases, check
from follow import Follow
from jobs import job
from kubelet import JOB
from plane import Plane, job_path, pod_path
from queues import RESOURCE
from rig import REPO, RigError

GANGS, PODS = {False: 50, True: 10}, 4
PART = 0.6  # of the gangs fit on the nodes
NODE_PODS = 6  # no multiple of a gang
DEADLINE_S = 10
WHOLE = "example.org/whole"
END_S = 1500  # bounds a hang; coscheduling may wake a gang as late as 41 s
PODGROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"


class Gangs(Plane):
    """`coscheduler` starts or ends the second scheduler."""

    def install(self, crd=True):
        super().install(crd)
        self.kubectl("apply", "-f", str(REPO / "deploy/rbac/gangs.yaml"))

    def coscheduler(self, verb):
        done = subprocess.run([str(REPO / "deploy/local/coscheduler"), verb, str(self.state)], capture_output=True, text=True,
                              start_new_session=True)
        if done.returncode:
            raise RigError(f"coscheduler {verb}: {done.stderr.strip()}")

    def nodes(self, n):
        """With room for so many pods together. A pod with the annotation `WHOLE` ends a second later."""
        stages = (REPO / "bench/operator/kwok.yaml").read_text()
        running = "    - {key: .status.phase, operator: In, values: [Running]}\n"
        check(running in stages and "5000" in stages, "kwok.yaml has changed")
        file = self.folder / "kwok.yaml"
        file.write_text(stages.replace(running, running + f"    - {{key: '.metadata.annotations[\"{WHOLE}\"]', operator: Exists}}\n")
                        .replace("5000", "1000"))
        self.scheduler, self.room = self.start_nodes(file), n
        for i in range(-(-n // NODE_PODS)):
            room = str(min(NODE_PODS, n - i * NODE_PODS))
            self.api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{i}"}, "status": {
                what: {RESOURCE: room, "cpu": "64", "memory": "64Gi", "pods": "100"} for what in ("capacity", "allocatable")}})
        self.wait("the nodes", lambda: all(ready(node) for node in self.api.get("/api/v1/nodes")["items"]))


def ready(node):
    return not node["spec"].get("taints") and any(
        c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions", []))


class Bound:
    """The pods of each attempt that run. When all of one do, they are to end."""

    def __init__(self, api, ns):
        self.api, self.running, self.whole = api, defaultdict(set), set()
        self.follow = Follow(api, pod_path(ns), self.seen)
        self.follow.start()

    def seen(self, pod, gone):
        meta = pod["metadata"]
        gang = meta["labels"].get(JOB), meta["labels"].get("batch.tensorstack.dev/attempt")
        if gone or pod["status"].get("phase") != "Running" or gang in self.whole:
            return
        self.running[gang].add(meta["name"])
        if len(self.running[gang]) == PODS:
            self.whole.add(gang)
            for name in self.running[gang]:
                self.api.patch(pod_path(meta["namespace"], name), {"metadata": {"annotations": {WHOLE: "yes"}}})


def gang(name):
    made = job(name, PODS)
    made["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["resources"] = {"limits": {RESOURCE: "1"}}
    return made


def play(plane, n, *flags, begin=lambda ns: None):
    """Until all have ended. Returns how many attempts they gave up."""
    ns = plane.namespace()
    operator, bound = plane.operator(None, "--leader-elect=false", *flags), Bound(plane.api, ns)
    began = time.monotonic()
    for i in range(n):
        plane.api.post(job_path(ns), gang(f"gang-{i}"))
    begin(ns)

    def ended():
        check(not bound.follow.problem, bound.follow.problem)
        phases = [j.get("status", {}).get("phase") for j in plane.api.get(job_path(ns))["items"]]
        check("Failed" not in phases, "a job failed")
        return phases.count("Succeeded") == n
    plane.wait("the jobs to end", ended, END_S, 0.5)
    bound.follow.end()
    attempts = sum(j["status"].get("attempt", 0) for j in plane.api.get(job_path(ns))["items"])
    print(f"        {n} gangs in {time.monotonic() - began:.1f} s, {attempts} attempts given up", flush=True)
    check({f"gang-{i}" for i in range(n)} == {name for name, _ in bound.whole}, f"{n} jobs ended, whole ran {sorted(bound.whole)}")
    operator.end()
    return attempts


def with_coscheduling(plane, n):
    plane.coscheduler("up")
    attempts = play(plane, n, "--gang-scheduler=coscheduling")
    check(attempts == 0, f"{attempts} attempts held a part of the nodes in vain")
    plane.wait("the PodGroups to go", lambda: not plane.api.get(PODGROUPS)["items"])
    plane.coscheduler("down")


def without(plane, n):
    """The scheduler sleeps until the pods of each gang hold a part of the nodes, and all of the nodes are held."""
    os.kill(plane.scheduler.pid, signal.SIGSTOP)

    def begin(ns):
        plane.wait("all pods", lambda: len(plane.api.get(pod_path(ns))["items"]) == n * PODS)
        pods = [f"gang-{i}-node-{number}" for number in range(PODS) for i in range(n)]
        for i, name in enumerate(pods[:plane.room]):
            plane.api.post(pod_path(ns, name) + "/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                           "target": {"apiVersion": "v1", "kind": "Node", "name": f"node-{i // NODE_PODS}"}})
        os.kill(plane.scheduler.pid, signal.SIGCONT)
    attempts = play(plane, n, f"--gang-start-deadline={DEADLINE_S}", begin=begin)
    check(attempts > 0, "there was no deadlock")


def main():
    cases = Cases("gangs", __doc__)
    args = cases.parse()
    n = GANGS[args.short]
    with cases.up(Gangs(args.operator)) as plane:
        plane.install()
        plane.nodes(int(n * PART) * PODS)
        cases.run({"coscheduling": with_coscheduling, "the default scheduler alone": without}, plane, n)
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
