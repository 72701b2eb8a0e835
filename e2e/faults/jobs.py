"""jobs.py - small jobs whose pods end as configured, and the rules that every run must keep."""

import json
from collections import Counter

from kubelet import FATE
from plane import GROUP, job_path


def job(name, replicas=1, run=0.5, codes=(0,), **spec):
    if replicas > 1:  # under torchrun all pods of an attempt come at once, however soon the first one ends
        spec = {"torchrunConfig": {"enabled": True}, **spec}
    template = {"metadata": {"annotations": {FATE: json.dumps({"run": run, "codes": list(codes)})}},
                "spec": {"containers": [{"name": "pytorch", "image": "none", "args": ["train.py"]}], "terminationGracePeriodSeconds": 1}}
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": "PyTorchTrainingJob", "metadata": {"name": name}, "spec": {
        "replicaSpecs": [{"type": "node", "replicas": replicas, "restartPolicy": "ExitCode", "template": template}], **spec}}


def phase(plane, namespace, name):
    return (plane.api.find(job_path(namespace, name)) or {}).get("status", {}).get("phase")


GONE = {"phase": "gone"}


class Observer:
    """Watches each job's status and each pod, and checks the rules of every run: counters never decrease, an end is final, pods of
    two attempts never exist together. `seen_job` and `seen_pod` are for a Follow each."""

    def __init__(self):
        self.jobs, self.pods, self.problems = {}, {}, []  # by UID; a job that is gone leaves an empty status
        self.created = Counter()

    def seen_job(self, job, gone):
        uid, name = job["metadata"]["uid"], job["metadata"]["name"]
        if gone:
            self.jobs[uid] = GONE
            return
        status, old = job.get("status", {}), self.jobs.get(uid, {})
        for field in ("attempt", "backoffCount", "disruptionCount", "admissionCount", "resumeCount"):
            if status.get(field, 0) < old.get(field, 0):
                self.problems.append(f"job {name}: {field} fell from {old[field]} to {status.get(field, 0)}")
        if old.get("phase") in ("Succeeded", "Failed") and status.get("phase") != old["phase"]:
            self.problems.append(f"job {name}: {old['phase']} became {status.get('phase')}")
        held = [c["type"] for c in status.get("conditions", []) if c["status"] == "True" and c["type"] in ("Completed", "Failed")]
        if len(held) > 1:
            self.problems.append(f"job {name}: both Completed and Failed")
        self.jobs[uid] = status

    def seen_pod(self, pod, gone):
        meta = pod["metadata"]
        labels, owners = meta.get("labels", {}), meta.get("ownerReferences", [])
        if f"{GROUP}/job" not in labels or not owners:
            return
        if gone:
            self.pods.pop(meta["uid"], None)
            return
        if meta["uid"] not in self.pods:
            self.created[owners[0]["uid"]] += 1
        self.pods[meta["uid"]] = (owners[0]["uid"], labels[f"{GROUP}/attempt"], meta["name"])
        beside = {attempt for owner, attempt, _ in self.pods.values() if owner == owners[0]["uid"]}
        if len(beside) > 1:
            self.problems.append(f"pod {meta['name']}: pods of attempts {sorted(beside)} side by side")


class Audit:
    """The audit log, read from the end of the last read."""

    def __init__(self, path):
        self.path, self.at = path, 0

    def read(self):
        with open(self.path, "rb") as log:
            log.seek(self.at)
            for line in log:
                if not line.endswith(b"\n"):
                    return
                self.at += len(line)
                yield json.loads(line)


def done(entries, verb, resource, namespace=None):
    """Names of the objects on which successful requests of this kind acted, in order."""
    return [e["objectRef"]["name"] for e in entries
            if e["verb"] == verb and e.get("objectRef", {}).get("resource") == resource and "subresource" not in e["objectRef"]
            and namespace in (None, e["objectRef"].get("namespace")) and e["responseStatus"].get("code", 0) < 300]
