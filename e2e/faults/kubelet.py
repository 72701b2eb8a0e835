"""kubelet.py - a simulated node that binds every pod of a job, lets it run and end by the pod's annotation, and confirms deletions.
It has no state: it acts only on what it reads, so an outage of the API server does not matter."""

import heapq
import http.client
import itertools
import json
import threading
import time

from follow import Follow
from plane import GROUP, Refused, pod_path

NODE = "paper"
JOB = f"{GROUP}/job"
FATE = "faults/fate"  # {"run": seconds, "codes": [exit code of attempt 0, of attempt 1, ... and of all later ones]}
HEARTBEAT_S = 10
AGAIN_S = 0.3


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def fate_of(pod):
    return json.loads(pod["metadata"].get("annotations", {}).get(FATE, '{"run": 3600, "codes": [0]}'))


def in_vain(refused):
    """Whether a retry would fail the same way: the pod has changed, or is too large for a node's additions."""
    return refused.code in (404, 409, 413, 422) or "too large" in refused.text


class Kubelet:
    def __init__(self, plane, namespace=None, others=None):
        """Of all pods, of those of one namespace, or of those of all but one (`others`)."""
        self.api, self.plane, self.others = plane.api, plane, others
        self.due, self.numbers, self.lock = [], itertools.count(), threading.Condition()
        self.pods = {}  # UID: the pod as last seen
        self.ending, self.problem = False, None
        self.register()
        self.follow = Follow(self.api, pod_path(namespace) if namespace else "/api/v1/pods", self.seen)
        self.follow.start()
        self.worker = threading.Thread(target=self.work, daemon=True)
        self.worker.start()

    def close(self):
        self.follow.end()
        with self.lock:
            self.ending = True
            self.lock.notify()
        self.worker.join()

    def check(self):
        if self.problem or self.follow.problem:
            raise AssertionError(self.problem or self.follow.problem)

    # --- the node

    def register(self):
        """Nothing if it is there. With its lease it counts as alive."""
        try:
            self.api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        except Refused as e:
            if e.code != 409:
                raise
        ready = {"type": "Ready", "status": "True", "reason": "Paper", "lastHeartbeatTime": now(), "lastTransitionTime": now()}
        self.api.patch(f"/api/v1/nodes/{NODE}/status", {"status": {
            "conditions": [ready], "capacity": {"cpu": "64", "memory": "64Gi", "pods": "500"}}})

    def beat(self):
        """The namespace of leases is made by the API server a moment after its start."""
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        spec = {"holderIdentity": NODE, "leaseDurationSeconds": 40, "renewTime": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())}
        try:
            self.api.patch(f"{leases}/{NODE}", {"spec": spec})
        except Refused as e:
            if e.code != 404:
                raise
            self.register()
            self.api.send("POST", leases, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NODE}, "spec": spec})

    # --- pods

    def seen(self, pod, gone):
        uid = pod["metadata"]["uid"]
        if JOB not in pod["metadata"].get("labels", {}) or pod["metadata"]["namespace"] == self.others:
            return
        with self.lock:
            if gone:
                self.pods.pop(uid, None)
                return
            self.pods[uid] = pod
            step = self.step_of(pod)
            if step:
                delay = fate_of(pod)["run"] if step == self.end and pod["status"].get("phase") == "Running" else 0
                heapq.heappush(self.due, (time.monotonic() + delay, next(self.numbers), step, uid))
                self.lock.notify()

    def step_of(self, pod):
        """What it needs next, or None."""
        if pod["metadata"].get("deletionTimestamp"):
            return self.confirm
        if not pod["spec"].get("nodeName"):
            return self.bind
        phase = pod["status"].get("phase", "Pending")
        return {"Pending": self.run, "Running": self.end}.get(phase)

    def work(self):
        beat = 0
        while not self.ending:
            with self.lock:
                wait = self.due[0][0] - time.monotonic() if self.due else 1
                if wait > 0:
                    self.lock.wait(min(wait, 1))
                task = heapq.heappop(self.due) if self.due and self.due[0][0] <= time.monotonic() else None
                pod = self.pods.get(task[3]) if task else None
            try:
                if time.monotonic() >= beat:
                    self.beat()
                    beat = time.monotonic() + HEARTBEAT_S
                if pod and self.step_of(pod) == task[2]:
                    task[2](pod)
            except (OSError, http.client.HTTPException, Refused) as e:
                if pod and not (isinstance(e, Refused) and in_vain(e)):
                    with self.lock:
                        heapq.heappush(self.due, (time.monotonic() + AGAIN_S, next(self.numbers), task[2], task[3]))
                elif not pod:
                    time.sleep(AGAIN_S)
            except Exception as e:  # a defect of the cases: told to the main thread
                self.problem = f"kubelet: {e!r}"
                return

    @staticmethod
    def path(pod):
        return pod_path(pod["metadata"]["namespace"], pod["metadata"]["name"])

    def bind(self, pod):
        self.api.post(self.path(pod) + "/binding", {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": NODE}})

    def run(self, pod):
        self.tell(pod, "Running", {"running": {"startedAt": now()}})

    def end(self, pod):
        codes = fate_of(pod)["codes"]
        attempt = int(pod["metadata"]["labels"].get(f"{GROUP}/attempt", "0"))
        code = codes[min(attempt, len(codes) - 1)]
        self.tell(pod, "Failed" if code else "Succeeded", {"terminated": {
            "exitCode": code, "startedAt": now(), "finishedAt": now(), "reason": "Error" if code else "Completed"}})

    def tell(self, pod, phase, state):
        ready = phase == "Running"
        containers = [{"name": c["name"], "image": c["image"], "imageID": "none", "ready": ready, "restartCount": 0,
                       "state": state} for c in pod["spec"]["containers"]]
        condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": now()}
        self.api.patch(self.path(pod) + "/status", {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {
            "phase": phase, "conditions": [condition], "containerStatuses": containers}})

    def confirm(self, pod):
        self.api.delete(self.path(pod), gracePeriodSeconds=0, preconditions={"uid": pod["metadata"]["uid"]})
