#!/usr/bin/env python3
"""F11, the real part: a user deletes a job and creates it again under the same name at once, at any moment of a restart of its
attempt. The operator keeps running, the new job gets its pods, and nothing of the old one remains. No node: pods are only objects here."""

import sys
import time

from cases import Cases, check
from jobs import job
from plane import Plane, job_path, pod_path

SIZES = {True: (8, 60), False: (8, 60, 250, 1000)}
TRIES = {True: 3, False: 20}
LATEST_S = {True: 0.2, False: 0.5}  # after the new attempt stands in the status
END_S = 600  # bounds a hang
NAME = "again"


class Trial:
    def __init__(self, plane, operator, pods):
        self.plane, self.operator, self.pods, self.ns = plane, operator, pods, plane.namespace()
        self.uid = self.create()

    def create(self):
        manifest = job(NAME, self.pods)
        manifest["metadata"] = {"name": NAME}
        return self.plane.api.post(job_path(self.ns), manifest)["metadata"]["uid"]

    def wait(self, what, test, every=0.2):
        def still():
            code = self.operator.process.popen.poll()
            check(code is None, f"the operator ended with {code} while waiting for {what}: {self.operator.complaints()[-3:]}")
            return test()
        self.plane.wait(what, still, END_S, every)

    def status(self):
        return self.plane.api.get(job_path(self.ns, NAME)).get("status", {})

    def is_whole(self):
        """The status knows the UID of each pod."""
        replicas = [r for task in self.status().get("tasks", []) for r in task["replicas"]]
        return len(replicas) == self.pods and all(r.get("uid") for r in replicas)

    def run(self, delay):
        self.wait("all pods to stand in the status", self.is_whole)
        self.plane.api.delete(pod_path(self.ns, f"{NAME}-node-1"))
        self.wait("the next attempt", lambda: self.status().get("attempt", 0) > 0, 0.002)
        time.sleep(delay)
        self.plane.api.delete(job_path(self.ns, NAME))
        self.uid = self.create()
        self.wait("the pods of the job that was created again", self.has_its_pods)

    def has_its_pods(self):
        """What is the old job's goes meanwhile, as the garbage collector deletes it; that one would first take half a minute to
        learn of our kind."""
        owners = {kind: self.owners(kind) for kind in ("pods", "services")}
        for kind, found in owners.items():
            for name, owner in found.items():
                if owner != self.uid:
                    self.plane.api.send("DELETE", f"/api/v1/namespaces/{self.ns}/{kind}/{name}")
        return list(owners["pods"].values()) == [self.uid] * self.pods

    def owners(self, kind):
        items = self.plane.api.get(f"/api/v1/namespaces/{self.ns}/{kind}")["items"]
        return {i["metadata"]["name"]: i["metadata"]["ownerReferences"][0]["uid"] for i in items}


def main():
    cases = Cases("F11", __doc__)
    args = cases.parse()
    tries = TRIES[args.short]
    with cases.up(Plane(args.operator, controller_manager=False)) as plane:
        plane.install()
        operator = plane.operator()
        plane.await_leading(operator)
        for pods in SIZES[args.short]:
            if not cases.wanted(f"{pods}-pods"):
                continue
            trial = None
            for i in range(tries):
                delay = LATEST_S[args.short] * i / (tries - 1)
                with cases(f"{pods}-pods after {delay * 1000:.0f} ms"):
                    trial = trial or Trial(plane, operator, pods)
                    trial.run(delay)
            if trial:
                plane.api.delete(job_path(trial.ns, NAME))
        with cases("the operator", counts=False):
            operator.end()
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
