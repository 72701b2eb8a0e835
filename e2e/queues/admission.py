#!/usr/bin/env python3
"""admission.py - what an admission of the real Kueue says: fewer pods than expected, labels and selectors of an admission check, nodes of
one rack; and before it, the place in the queue, for the operator and for users. Runs docs/kueue.md's commands."""

import os
import subprocess
import sys
import time

from cases import Cases, check
from life import Job, play
from plane import job_path
from queues import FLAVOR_LABEL, KUEUE, Held, Queues, holds, job
from rig import REPO

ELASTIC = {"elastic": {"enabled": True, "minReplicas": 2, "maxReplicas": 4, "expectedReplicas": 4},
           "torchrunConfig": {"enabled": True, "maxRestarts": 1}}
CHECK = "example.org/check"
RACK, HOST = "example.org/rack", "kubernetes.io/hostname"
RACKS = {"a-1": "a", "a-2": "a", "b-1": "b", "b-2": "b"}
ROOM = {"a": "1", "b": "2"}  # for pods, on each node of a rack
GATE = "kueue.x-k8s.io/topology"


class Racks(Held):
    """More nodes, for Kueue to choose from; the pods are still bound to one of paper."""

    def beat(self):
        super().beat()
        for name in RACKS:
            self.api.send("PATCH", f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}?fieldManager=node&force=true", {
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 40,
                         "renewTime": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())}}, "application/apply-patch+yaml")


def as_user(plane, user, *words):
    """What `kubectl ptj` says to this user."""
    env = {**os.environ, "PATH": f"{plane.tool('kubectl').parent}:{os.environ['PATH']}"}
    done = subprocess.run([str(REPO / "build/release/bin/kubectl-ptj"), *words, "--kubeconfig", str(plane.admin), f"--as={user}"], env=env,
                          capture_output=True, text=True)
    check(done.returncode == 0, done.stdout + done.stderr)
    return " ".join(done.stdout.split())


def allow(plane, ns, user, role):
    plane.kubectl("-n", ns, "create", "rolebinding", user, f"--clusterrole={role}", f"--user={user}")


def place(world):
    """In REASON, and by `why` for a user with permission; gone with Kueue's API."""
    ns, plane = world.fresh(), world.plane
    first = world.start("first", priority="high")
    first.await_running()
    second, third = world.start("second", priority="low"), world.start("third", priority="high")
    plane.kubectl("-n", ns, "create", "rolebinding", "less", "--clusterrole=torchkeeper-view", "--user=bob")
    allow(plane, ns, "ann", "view")
    for waiting, number in ((third, 1), (second, 2)):
        world.wait(f"place {number} of {waiting.name}", lambda: f"Queued place {number}: " in waiting.status.get("reason", ""))
        world.wait("the same for ann", lambda: f"place {number} of all that wait in the ClusterQueue" in as_user(plane, "ann", "why", waiting.name, "-n", ns))
    text = as_user(plane, "bob", "why", "second", "-n", ns)
    check("waits in its queue" in text and "place" not in text, text)
    columns = plane.kubectl("-n", ns, "get", "ptj", "second", "-o", "wide").stdout
    check("Queued place 2: " in columns, columns)
    first.finish()
    third.await_running()
    world.wait("the first place", lambda: "Queued place 1: " in second.status.get("reason", ""))
    service = plane.api.get("/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.visibility.kueue.x-k8s.io")
    plane.api.delete("/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.visibility.kueue.x-k8s.io")
    world.wait("no place", lambda: "place" not in second.status.get("reason", ""))
    check("place" not in as_user(plane, "ann", "why", "second", "-n", ns), "a place of an API that is gone")
    plane.api.post("/apis/apiregistration.k8s.io/v1/apiservices", {
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {
            "name": service["metadata"]["name"], "labels": service["metadata"]["labels"]}, "spec": service["spec"]})
    world.wait("the place again", lambda: "Queued place 1: " in second.status.get("reason", ""))
    third.finish()
    second.await_running()
    second.finish()


def in_part(world):
    """Three pods of four, and no quota for a fourth; then fewer, at once."""
    world.fresh(quota=3)
    it = world.start("it", **ELASTIC)
    world.wait("three pods", lambda: holds(it.workload, "PodsReady") and len(it.pods()) == 3)
    assignment = it.workload["status"]["admission"]["podSetAssignments"][0]
    check(assignment["count"] == 3 and it.workload["spec"]["podSets"][0]["count"] == 4, f"assignment: {assignment}")
    other = world.start("other", replicas=1)
    other.await_condition("QuotaReserved", status="False")
    world.api.patch(job_path(world.ns, "it"), {"spec": {"elastic": {"expectedReplicas": 2}}})
    world.wait("two pods", lambda: len(it.pods()) == 2)
    world.wait("the other one's admission", lambda: holds(other.workload, "PodsReady"))
    check(len(it.pods()) == 2, "pods of the first one")
    other.finish()
    it.finish()


def checked(world):
    """What an admission check wants is in the pods."""
    ns = world.plane.namespaces + 1
    world.plane.put(f"{KUEUE}/admissionchecks", "AdmissionCheck", f"check-{ns}", {"controllerName": CHECK})
    world.api.patch(f"{KUEUE}/admissionchecks/check-{ns}/status", {"status": {"conditions": [{
        "type": "Active", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
    world.fresh(admissionChecksStrategy={"admissionChecks": [{"name": f"check-{ns}"}]})
    it = world.start("it")
    it.await_condition("QuotaReserved")
    world.wait("the wait for the check", lambda: it.status.get("reason", "") == "Queued the quota is reserved; admission checks are pending")
    check(not it.pods(), "pods before the check")
    toleration = {"key": "example.org/slow", "operator": "Exists", "effect": "NoSchedule"}
    world.api.patch(it.path() + "/status", {"status": {"admissionChecks": [{
        "name": f"check-{ns}", "state": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "podSetUpdates": [{
            "name": "node", "labels": {"example.org/l": "1"}, "annotations": {"example.org/a": "2"},
            "nodeSelector": {"example.org/pool": "p"}, "tolerations": [toleration]}]}]}})
    it.await_running()
    for pod in it.pods():
        meta, spec = pod["metadata"], pod["spec"]
        check(meta["labels"].get("example.org/l") == "1" and meta["annotations"].get("example.org/a") == "2", f"metadata: {meta}")
        check({**FLAVOR_LABEL, "example.org/pool": "p"}.items() <= spec["nodeSelector"].items(), f"nodeSelector: {spec['nodeSelector']}")
        check(any(toleration.items() <= t.items() for t in spec["tolerations"]), f"tolerations: {spec['tolerations']}")
    it.finish()


def one_rack(world):
    """All pods get nodes of a rack with room for them, one after a loss, too."""
    for name, rack in RACKS.items():
        world.plane.put_node(name, {RACK: rack, HOST: name, "example.org/racks": "yes"}, ROOM[rack])
    world.plane.put(f"{KUEUE}/topologies", "Topology", "racks", {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]})
    world.plane.put(f"{KUEUE}/resourceflavors", "ResourceFlavor", "racks", {"nodeLabels": {"example.org/racks": "yes"}, "topologyName": "racks"})
    world.ns = world.plane.namespace()
    world.plane.queues(world.ns, 6, flavor="racks")
    made = job("it", run=3600, restartScope="Replica")
    made["spec"]["replicaSpecs"][0]["template"]["metadata"]["annotations"]["kueue.x-k8s.io/podset-required-topology"] = RACK
    it = Job(world, "it", made=made)
    it.await_running()

    def nodes():
        for pod in it.pods():
            check(GATE not in [g["name"] for g in pod["spec"].get("schedulingGates", [])], f"gates of a pod that runs: {pod['spec']}")
        return sorted(pod["spec"]["nodeSelector"][HOST] for pod in it.pods())
    check(nodes() == ["b-1", "b-1", "b-2", "b-2"], f"nodes: {nodes()}")
    lost = it.pods()[1]["metadata"]
    world.api.delete(f"/api/v1/namespaces/{world.ns}/pods/{lost['name']}", gracePeriodSeconds=0)
    world.wait("another pod", lambda: lost["uid"] not in [p["metadata"]["uid"] for p in it.pods()] and it.runs())
    check(nodes() == ["b-1", "b-1", "b-2", "b-2"], f"nodes: {nodes()}")
    it.finish()


def commands(world):
    """Of the docs: permissions, and a Workload that nobody removes the finalizer of."""
    world.fresh()
    it = world.start("it")
    it.await_running()
    path, meta = it.path(), it.workload["metadata"]

    def leave():
        world.api.delete(job_path(world.ns, "it"))
        world.plane.wait("its end", lambda: world.api.get(path)["metadata"].get("deletionTimestamp"))
        env = {**os.environ, "KUBECONFIG": str(world.plane.admin), "NAMESPACE": world.ns, "NAME": meta["name"],
               "PATH": f"{world.plane.tool('kubectl').parent}:{os.environ['PATH']}"}
        done = subprocess.run([sys.executable, str(REPO / "tests/docs/blocks.py"), "run", "kueue", str(REPO / "docs/kueue.md")], cwd=REPO, env=env,
                              capture_output=True, text=True)
        check(done.returncode == 0, done.stdout + done.stderr)
    world.restart_operator(leave)
    world.wait("the Workload to go", lambda: not world.api.find(path))
    world.wait("usage 0", lambda: world.plane.usage(world.ns) == 0)


CASES = {
    "the place in the queue": place,
    "admitted in part": in_part,
    "updates of an admission check": checked,
    "a rack for all pods": one_rack,
    "the commands of docs/kueue.md": commands,
}


def main():
    cases = Cases("admission", __doc__)
    args = cases.parse()
    with cases.up(Queues(args.operator)) as plane:
        play(cases, plane, CASES, Racks)
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
