"""queues.py - a control plane without a node (e2e/faults/plane.py) with the real Kueue beside it, the queues of the cases, and jobs
that go through them."""

import base64
import json
import ssl
import subprocess
import urllib.request

import jobs
from kubelet import Kubelet
from plane import Plane, Refused, job_path, pod_path
from rig import REPO, RigError

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
RESOURCE = "example.org/gpu"
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
FINALIZER = "kueue.x-k8s.io/resource-in-use"
FLAVOR_LABEL = {"example.org/kind": "big"}
TOLERATION = {"key": "example.org/reserved", "operator": "Exists", "effect": "NoSchedule"}
END_S = 1800  # bounds a hang


def workload_path(namespace, name=""):
    return f"{KUEUE}/namespaces/{namespace}/workloads" + (f"/{name}" if name else "")


def condition(workload, kind):
    """The condition of this type, or {}."""
    return next((c for c in (workload or {}).get("status", {}).get("conditions", []) if c["type"] == kind), {})


def holds(workload, kind):
    return condition(workload, kind).get("status") == "True"


def job(name, replicas=4, queue="queue", priority="", **more):
    """One unit of RESOURCE for each pod."""
    made = jobs.job(name, replicas, **more)
    made["metadata"]["labels"] = {key: value for key, value in ((QUEUE, queue), (PRIORITY, priority)) if value}
    for spec in made["spec"]["replicaSpecs"]:
        spec["template"]["spec"]["containers"][0]["resources"] = {"limits": {RESOURCE: "1"}}
    return made


class Held(Kubelet):
    """A node on which pods of the names in `held` do not end when they are to, until `let_go`; and none starts while it is asleep."""

    def __init__(self, plane):
        self.held, self.sleeping = set(), False
        super().__init__(plane)

    def hold(self, *names):
        self.held |= set(names)

    def let_go(self):
        with self.lock:
            self.held, self.sleeping = set(), False
            pods = list(self.pods.values())
        for pod in pods:
            self.seen(pod, False)

    def step_of(self, pod):
        if pod["metadata"]["name"] in self.held and pod["metadata"].get("deletionTimestamp"):
            return None
        step = super().step_of(pod)
        return None if self.sleeping and step == self.run else step


class Queues(Plane):
    """`kueue_up` starts Kueue, or starts it again."""

    def install(self, crd=True):
        """With the operator's permissions for queues."""
        super().install(crd)
        self.kubectl("apply", "-f", str(REPO / "deploy/rbac/kueue-role.yaml"))

    # --- Kueue

    def kueue(self, verb, *args):
        done = subprocess.run([str(REPO / "deploy/local/kueue"), verb, str(self.state), *args], capture_output=True, text=True,
                              start_new_session=True)
        if done.returncode:
            raise RigError(f"kueue {verb}: {done.stderr.strip()}")

    def kueue_up(self, configuration=None):
        if configuration is not None:
            file = self.folder / "kueue.json"
            file.write_text(json.dumps(configuration))
            self.kueue("up", "--configuration", str(file))
        else:
            self.kueue("up")

    def kill_kueue(self):
        self.end_part("kueue")

    # --- queues: one flavour, one ClusterQueue, one LocalQueue in a namespace of its own

    def queues(self, namespace, quota, name="queue", flavor="flavor", **cluster_queue):
        """The ClusterQueue has the namespace's name."""
        self.put(f"{KUEUE}/resourceflavors", "ResourceFlavor", flavor,
                 {"nodeLabels": FLAVOR_LABEL, "tolerations": [TOLERATION]})
        self.put(f"{KUEUE}/clusterqueues", "ClusterQueue", namespace, {
            "namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": [RESOURCE], "flavors": [
                {"name": flavor, "resources": [{"name": RESOURCE, "nominalQuota": quota}]}]}], **cluster_queue})
        self.put(f"{KUEUE}/namespaces/{namespace}/localqueues", "LocalQueue", name, {"clusterQueue": namespace})

    def put_node(self, name, labels, room):
        """Ready, with room for so many pods of ours."""
        amounts = {RESOURCE: room, "cpu": "64", "memory": "64Gi", "pods": "100"}
        self.api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
        self.api.patch(f"/api/v1/nodes/{name}/status", {"status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "Paper"}], "capacity": amounts, "allocatable": amounts}})

    def priorities(self, **values):
        for name, value in values.items():
            self.put(f"{KUEUE}/workloadpriorityclasses", "WorkloadPriorityClass", name, value=value)

    def put(self, path, kind, name, spec=None, **more):
        """Made, if it is not there. Kueue's webhooks may need a moment after its start."""
        body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, **({"spec": spec} if spec else {}), **more}

        def put():
            code, text = self.api.send("POST", path, body)
            if code in (201, 409):
                return True
            if code != 500:
                raise Refused("POST", path, code, text)
            return False
        self.wait(f"{kind} {name}", put)

    def usage(self, cluster_queue):
        """What Kueue counts as used."""
        status = self.api.get(f"{KUEUE}/clusterqueues/{cluster_queue}").get("status", {})
        return sum(int(r["total"]) for f in status.get("flavorsUsage", []) for r in f["resources"])

    # --- jobs

    def make(self, namespace, manifest):
        return self.api.post(job_path(namespace), manifest)["metadata"]["uid"]

    def phase(self, namespace, name):
        return jobs.phase(self, namespace, name)

    def workload(self, namespace, uid):
        """The job's, or None."""
        found = self.api.get(workload_path(namespace) + f"?labelSelector=kueue.x-k8s.io/job-uid={uid}")["items"]
        if len(found) > 1:
            raise AssertionError(f"{len(found)} Workloads of one job: {[w['metadata']['name'] for w in found]}")
        return found[0] if found else None

    def pods(self, namespace, name):
        """Of a job, those that are there and have not ended."""
        return [p for p in self.api.get(pod_path(namespace) + f"?labelSelector=batch.tensorstack.dev/job={name}")["items"]
                if p["status"].get("phase") not in ("Succeeded", "Failed")]

    # --- the past

    def past(self, prefix, until):
        """(key, revision, value; None: deleted) of every change below a prefix of etcd's keys, up to a revision that is one of them."""
        request = urllib.request.Request(f"https://127.0.0.1:{self.etcd_port()}/v3/watch", json.dumps({"create_request": {
            "key": encoded(prefix), "range_end": encoded(prefix[:-1] + "0"), "start_revision": "1"}}).encode())
        pki = self.state / "pki"
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(str(pki / "etcd.crt"), str(pki / "etcd.key"))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        with opener.open(request, timeout=END_S) as answer:
            for line in answer:
                for event in json.loads(line)["result"].get("events", []):
                    pair = event["kv"]
                    revision = int(pair["mod_revision"])
                    yield (base64.b64decode(pair["key"]).decode().removeprefix(prefix), revision,
                           None if event.get("type") == "DELETE" else base64.b64decode(pair.get("value", "")))
                    if revision >= until:
                        return


def encoded(text):
    return base64.b64encode(text.encode()).decode()
