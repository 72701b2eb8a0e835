#!/usr/bin/env python3
"""F15: a node that refuses every pod, as one whose device plugin is gone, under a real scheduler that prefers it: the job leaves it after two
refusals. Where no other node takes its pods, it waits a minute, and is not counted out by that."""

import json
import sys
import time

from cases import Cases, check
from jobs import job, phase
from kubelet import FATE, JOB, Kubelet, fate_of, now
from plane import GROUP, Plane, job_path

BAD, GOOD = "bad", "good"
END_S = 600  # bounds a hang
HELD_S = 60


class Nodes(Kubelet):
    """Two nodes. The first one refuses the pods of the attempts that the job's annotation names: {"refused": [...]}."""

    def register(self):
        self.placed = {}  # job: {attempt: node}
        for name in (BAD, GOOD):
            self.api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {
                "name": name, "labels": {"kubernetes.io/hostname": name}}})
            ready = {"type": "Ready", "status": "True", "reason": "Paper", "lastHeartbeatTime": now(), "lastTransitionTime": now()}
            room = {"cpu": "64", "memory": "64Gi", "pods": "500"}
            self.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready], "capacity": room, "allocatable": room}})
            self.api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})  # of a node that is not ready yet

    def beat(self):
        """Nobody watches over them: there is no controller manager."""

    def step_of(self, pod):
        step = super().step_of(pod)
        return None if step == self.bind else step  # the scheduler's task

    def run(self, pod):
        labels = pod["metadata"]["labels"]
        attempt = int(labels[f"{GROUP}/attempt"])
        self.placed.setdefault(labels[JOB], {})[attempt] = pod["spec"]["nodeName"]
        if pod["spec"]["nodeName"] == BAD and attempt in fate_of(pod)["refused"]:
            self.api.patch(self.path(pod) + "/status", {"status": {
                "phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "Allocate failed due to no healthy devices"}})
        else:
            super().run(pod)


def run(plane, nodes, name, refused, affinity):
    """The job's last status, and its nodes by attempt."""
    ns = plane.namespace()
    manifest = job(name, run=1)
    template = manifest["spec"]["replicaSpecs"][0]["template"]
    template["metadata"]["annotations"][FATE] = json.dumps({"run": 1, "codes": [0], "refused": refused})
    template["spec"]["affinity"] = {"nodeAffinity": affinity}
    plane.api.post(job_path(ns), manifest)
    plane.wait(f"{name} to end", lambda: phase(plane, ns, name) in ("Succeeded", "Failed"), END_S)
    return plane.api.get(job_path(ns, name))["status"], nodes.placed[name]


def term(*nodes):
    return {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}]}


def another_node(plane, nodes):
    """The user's terms are alternatives, and each has to leave the node out."""
    status, placed = run(plane, nodes, "leaves", [0, 1, 2, 3], {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term(BAD)}],
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            term(BAD), term(BAD, GOOD), {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [BAD]}]}]}})
    check(status["phase"] == "Succeeded", status)
    check(placed == {0: BAD, 1: BAD, 2: GOOD}, placed)
    check(status["admissionCount"] == 2 and status["attempt"] == 2, status)
    check([n["node"] for n in status["avoidedNodes"]] == [BAD], status["avoidedNodes"])


def no_other_node(plane, nodes):
    """The attempt that gives up is not counted, and its node works again."""
    began = time.monotonic()
    status, placed = run(plane, nodes, "waits", [0, 1], {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term(BAD)]}})
    check(status["phase"] == "Succeeded", status)
    check(placed == {0: BAD, 1: BAD, 3: BAD}, placed)
    check(status["admissionCount"] == 2 and status["restarts"] == 2 and status["attempt"] == 3, status)
    check(status["avoidedNodes"][0]["dropped"], status["avoidedNodes"])
    check(time.monotonic() - began >= HELD_S, "it did not wait")


def main():
    cases = Cases("F15", __doc__)
    args = cases.parse()
    plane = Plane(args.operator, controller_manager=False, scheduler=True)
    with cases.up(plane):
        plane.install()
        nodes = Nodes(plane)
        plane.await_leading(plane.operator())
        for name, case in (("another node", another_node), ("no other node", no_other_node)):
            if cases.wanted(name) and not (args.short and case is no_other_node):
                with cases(name):
                    case(plane, nodes)
                    nodes.check()
        nodes.close()
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
