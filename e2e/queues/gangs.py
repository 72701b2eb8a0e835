#!/usr/bin/env python3
"""gangs.py - 50 jobs of 4 pods at once, on kwok's nodes with room for 30 of them: with the real coscheduling as a second scheduler no
job ever holds a part of its pods for long, and all end; with the default scheduler alone all end as well."""

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
        """With room for so many pods together."""
        self.start_nodes()
        for i in range(-(-n // NODE_PODS)):
            room = str(min(NODE_PODS, n - i * NODE_PODS))
            self.api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{i}"}, "status": {
                what: {RESOURCE: room, "cpu": "64", "memory": "64Gi", "pods": "100"} for what in ("capacity", "allocatable")}})
        self.wait("the nodes", lambda: all(ready(node) for node in self.api.get("/api/v1/nodes")["items"]))


def ready(node):
    return not node["spec"].get("taints") and any(
        c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions", []))


class Bound:
    """How long each gang had some of its pods on nodes and others on none."""

    def __init__(self, api, ns):
        self.bound, self.since, self.longest = defaultdict(set), {}, {}
        self.follow = Follow(api, pod_path(ns), self.seen)
        self.follow.start()

    def seen(self, pod, gone):
        gang = (pod["metadata"]["labels"].get(JOB), pod["metadata"]["labels"].get("batch.tensorstack.dev/attempt"))
        if gone or not pod["spec"].get("nodeName") or pod["metadata"]["name"] in self.bound[gang]:
            return
        self.bound[gang].add(pod["metadata"]["name"])
        if len(self.bound[gang]) == 1:
            self.since[gang] = time.monotonic()
        if len(self.bound[gang]) == PODS:
            self.longest[gang] = time.monotonic() - self.since.pop(gang)

    def most(self):
        now = time.monotonic()
        return max([*self.longest.values(), *(now - since for since in self.since.values())], default=0)


def gang(name):
    made = job(name, PODS)
    made["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["resources"] = {"limits": {RESOURCE: "1"}}
    return made


def play(plane, n, *flags):
    """Until all have ended. Returns the operator, their watch, and how many attempts they gave up."""
    ns = plane.namespace()
    operator, bound = plane.operator(None, "--leader-elect=false", *flags), Bound(plane.api, ns)
    began = time.monotonic()
    for i in range(n):
        plane.api.post(job_path(ns), gang(f"gang-{i}"))

    def ended():
        check(not bound.follow.problem, bound.follow.problem)
        phases = [j.get("status", {}).get("phase") for j in plane.api.get(job_path(ns))["items"]]
        check("Failed" not in phases, "a job failed")
        return phases.count("Succeeded") == n
    plane.wait("the jobs to end", ended, END_S, 0.5)
    took = time.monotonic() - began
    bound.follow.ending = True
    attempts = [j["status"].get("attempt", 0) for j in plane.api.get(job_path(ns))["items"]]
    print(f"        {n} gangs in {took:.1f} s, {sum(attempts)} attempts more, partly bound for at most {bound.most():.2f} s", flush=True)
    return operator, bound, sum(attempts)


def with_coscheduling(plane, n):
    plane.coscheduler("up")
    operator, bound, given_up = play(plane, n, "--gang-scheduler=coscheduling")
    check(len(bound.longest) == n, f"{len(bound.longest)} gangs were bound, {n} jobs ended")
    check(given_up == 0, f"{given_up} attempts held a part of the nodes in vain")
    plane.wait("the PodGroups to go", lambda: not plane.api.get(PODGROUPS)["items"])
    operator.end()
    plane.coscheduler("down")


def without(plane, n):
    play(plane, n, "--gang-start-deadline=10")[0].end()


def main():
    cases = Cases("gangs", __doc__)
    args = cases.parse()
    n = GANGS[args.short]
    with cases.up(Gangs(args.operator)) as plane:
        plane.install()
        plane.nodes(int(n * PART) * PODS)
        for name, case in (("coscheduling", with_coscheduling), ("the default scheduler alone", without)):
            if cases.wanted(name):
                with cases(name):
                    case(plane, n)
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
