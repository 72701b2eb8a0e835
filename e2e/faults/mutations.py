#!/usr/bin/env python3
"""F9: each field of the CRD's schema with each kind of wrong, odd or extreme value, against a real API server. If the server
refuses it, the message names the field; else the operator runs the job or its status has the reason. The operator never exits,
never loops, and other jobs continue. Then the same with running jobs, and back."""

import json
import math
import re
import sys
import time
from collections import Counter, defaultdict
from datetime import datetime

from cases import Cases, check
from jobs import Audit, job
from plane import GROUP, Plane, job_path, pod_path
from schema import mutations

BATCH = 40
PODS_MAX = 50  # a job of more is paused from the start: it is the object that is tested, not the size
SAID_S = 600  # bounds a hang
WRITES_MAX = 12  # of one job's status, and creates of one pod; more in a long time, by the back-off of what is refused
BACKOFF_S, BACKOFF_MAX_S = 0.005, 60
# Fields of a pod that the schema keeps as they are: the API server judges them when the pod is created.
POD_FIELDS = [
    ("containers", [{"name": "UPPER CASE", "image": "none"}]),
    ("containers", [{"name": "a", "image": "none"}, {"name": "a", "image": "none"}]),
    ("containers", [{"name": "a", "image": " "}]),
    ("containers", [{"name": "a", "image": "none", "resources": {"limits": {"cpu": "much"}}}]),
    ("containers", [{"name": "a", "image": "none", "resources": {"limits": {"cpu": "-1"}}}]),
    ("containers", [{"name": "a", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "2"}}}]),
    ("containers", [{"name": "a", "image": "none", "resources": {"limits": {"memory": "1" + "0" * 40}}}]),
    ("containers", [{"name": "a", "image": "none", "volumeMounts": [{"name": "nowhere", "mountPath": "/x"}]}]),
    ("containers", [{"name": "a", "image": "none", "ports": [{"containerPort": 70000}]}]),
    ("containers", [{"name": "a", "image": "none", "securityContext": {"runAsUser": -5}}]),
    ("containers", [{"name": "a", "image": "none", "securityContext": {"privileged": True, "allowPrivilegeEscalation": False}}]),
    ("containers", [{"name": "a", "image": "none", "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nothing"}}}]}]),
    ("containers", [{"name": "a", "image": "none", "imagePullPolicy": "Sometimes"}]),
    ("containers", [{"name": "a", "image": "none", "terminationMessagePath": 7}]),
    ("priorityClassName", "no-such-class"),
    ("serviceAccountName", "no-such-account"),
    ("runtimeClassName", "no-such-class"),
    ("schedulerName", "nobody"),
    ("restartPolicy", "Always"),
    ("nodeSelector", {"a": 7}),
    ("nodeSelector", {"bad key!": "x"}),
    ("tolerations", [{"operator": "Perhaps"}]),
    ("affinity", {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
    ("affinity", {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ""}]}}),
    ("volumes", [{"name": "v"}, {"name": "v"}]),
    ("volumes", [{"name": "v", "hostPath": {"path": ".."}}]),
    ("dnsPolicy", "None"),
    ("hostNetwork", "yes"),
    ("terminationGracePeriodSeconds", -1),
    ("activeDeadlineSeconds", 0),
    ("overhead", {"cpu": "1"}),
    ("initContainers", [{"name": "pytorch", "image": "none"}]),
    ("ephemeralContainers", [{"name": "e", "image": "none"}]),
    ("hostname", "-"),
    ("subdomain", "x" * 64),
    ("topologySpreadConstraints", [{"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}]),
    ("os", {"name": "plan9"}),
    ("securityContext", {"sysctls": [{"name": "..", "value": "1"}]}),
]
# Rules about several fields: the API server names what holds them all, and says the rule's text, which has to name the field.
STARTED = "types and replicas are immutable once the job has started"
ELASTIC = "enabled, minReplicas and maxReplicas are immutable once the job has started"
LOG_DIR = 'spec.tensorboardSpec.logDir: Invalid value: "object": expected at least one PVC in pvc'
ONE_OF_TWO = "expected it or trainingLogFilesets, one of them"
RULES = {
    ("elastic", "enabled"): ["elastic jobs need torchrunConfig.enabled", ELASTIC],
    ("elastic", "minReplicas"): [ELASTIC],
    ("elastic", "maxReplicas"): [ELASTIC],
    ("replicaSpecs", 0, "replicas"): [STARTED],
    ("replicaSpecs", 0, "type"): ["must fit 63 characters: shorten metadata.name or the type", STARTED],
    ("replicaSpecs", 0, "template", "spec", "dnsPolicy"): ["must provide `dnsConfig` when `dnsPolicy` is None"],
    ("runMode", "debug", "replicaSpecs", 0, "type"): ["every type of runMode.debug must be one of spec.replicaSpecs"],
    ("runMode", "pause", "resumeSpecs", 0, "type"): ["every type of runMode.pause must be one of spec.replicaSpecs"],
    ("tensorboardSpec", "logDir", "pvc"): [LOG_DIR],
    ("tensorboardSpec", "logDir", "pvc", 0): [LOG_DIR],
    ("tensorboardSpec", "trainingLogFilesets"): [ONE_OF_TWO],
    ("tensorboardSpec", "trainingLogFilesets", 0): [ONE_OF_TWO],
    ("torchrunConfig", "minNodes"): ["expected torchrunConfig.minNodes <= the number of pods"],
}
# Of a job that has started nothing in it may change, and the rule says so of the whole.
WHOLE = {"torchrunConfig": 'spec.torchrunConfig: Invalid value: "object": is immutable once the job has started'}


def base():
    return job("x")["spec"]


def pod_mutations():
    for field, value in POD_FIELDS:
        spec = base()
        spec["replicaSpecs"][0]["template"]["spec"][field] = value
        yield f"template.spec.{field} = {json.dumps(value)[:60]}", ("replicaSpecs", 0, "template", "spec", field), spec


def places(path):
    """Where a message may say that the field is: in the job, and in the pod what is a part of the template. An element has no name of
    its own: its array's is enough."""
    while path[-1] == 0:
        path = path[:-1]
    yield "spec", *path
    if "template" in path:
        yield path[path.index("template") + 1:]


def names(message, path):
    """Whether it names the field itself, by its whole path, or something in it."""
    rules = RULES.get(path, []) + ([WHOLE[path[0]]] if path[0] in WHOLE else [])
    if any(rule in message for rule in rules):
        return True
    for place in places(path):
        pattern = "".join(r"\[\d+\]" if step == 0 else r"\." + re.escape(step) for step in place)[2:]
        if re.search(r"(?<![\w.])" + pattern + r"(?!\w)", message):
            return True
    return False


def pods_of(spec):
    try:
        return sum(r.get("replicas", 1) for r in spec["replicaSpecs"])
    except (TypeError, AttributeError, KeyError):
        return 1


def allowed(seconds):
    """How often a job's status may be written, or a pod be created, in this time."""
    return max(WRITES_MAX, 2 + math.log2(1 + seconds / BACKOFF_S) + seconds / BACKOFF_MAX_S)


class Mutations:
    def __init__(self, cases, plane):
        self.cases, self.plane, self.api = cases, plane, plane.api
        self.ns = plane.namespace()
        self.outcomes, self.canaries, self.numbers = Counter(), 0, 0
        self.audit = Audit(plane.audit_log)

    # --- answers of the API server

    def admit(self, what, path, spec, method, at, problems, **meta):
        """The name of the object that it took, or None."""
        manifest = {"apiVersion": f"{GROUP}/v1beta1", "kind": "PyTorchTrainingJob", "metadata": meta, "spec": spec}
        code, text = self.api.send(method, at, json.dumps(manifest).replace("1e+300", "1e300"))
        if code < 300:
            return meta["name"]
        try:
            message = json.loads(text).get("message", "")
        except json.JSONDecodeError:
            message = ""
        self.outcomes["refused by the API server"] += 1
        if code not in (400, 422) or not names(message, path):
            problems.append(f"{what}: {code} without the field's name: {message[:300]}")
        return None

    # --- answers of the operator

    def outcome(self, found, pods, path):
        """The outcome of a job, or None while there is none."""
        spec, status = found["spec"], found.get("status", {})
        if spec.get("runPolicy", {}).get("managedBy", f"{GROUP}/ptj-operator") != f"{GROUP}/ptj-operator":
            return None if status else "left to its own controller"
        if status.get("reason") == "Unreadable":
            return "Unreadable" if "\\u0000" in json.dumps(spec) else "BAD Unreadable without a NUL"
        if status.get("observedGeneration") != found["metadata"]["generation"]:
            return None
        held = {c["type"]: c.get("message", "") for c in status.get("conditions", []) if c["status"] == "True"}
        if "InvalidSpec" in held:
            message = held["InvalidSpec"]
            if names(message, path):
                return "InvalidSpec"
            # What a pod's field cannot even be read as, the API server refuses without naming it, and we can but repeat it.
            unread = "cannot be handled as a Pod" in message and "template" in path
            return "InvalidSpec, in the API server's words" if unread else f"BAD InvalidSpec without the field's name: {message}"
        if status.get("phase") in ("Paused", "Succeeded", "Failed"):
            return status["phase"]
        if pods:
            return "runs"
        reason = status.get("reason")
        told = [c["message"] for c in status.get("conditions", []) if c.get("reason") == reason and c.get("message")]
        return f"{reason}, with a message" if reason and told else None

    def await_outcomes(self, jobs, problems):
        """jobs: {name: (what, path)}"""
        end = time.monotonic() + SAID_S
        open_jobs = dict(jobs)
        while open_jobs:
            time.sleep(0.3)
            found = {j["metadata"]["name"]: j for j in self.api.get(job_path(self.ns))["items"]}
            pods = Counter(p["metadata"]["labels"][f"{GROUP}/job"] for p in self.api.get(pod_path(self.ns))["items"])
            for name, (what, path) in list(open_jobs.items()):
                said = self.outcome(found[name], pods[name], path) if name in found else "deleted by its ttl"
                if said:
                    del open_jobs[name]
                    self.outcomes[said.split(":")[0]] += 1
                    if said.startswith("BAD"):
                        problems.append(f"{what}: {said}")
                elif time.monotonic() > end:
                    del open_jobs[name]
                    problems.append(f"{what}: nothing within {SAID_S} s: {json.dumps(found[name].get('status'))[:300]}")
            check(self.operator.process.popen.poll() is None, "the operator ended")

    def canary(self):
        """Another job runs as usual."""
        self.canaries += 1
        name = f"canary-{self.canaries}"
        self.api.post(job_path(self.ns), job(name) | {"metadata": {"name": name}})
        self.plane.wait(f"the pod of {name}", lambda: self.api.find(pod_path(self.ns, f"{name}-node-0")))

    # --- the two halves

    def fresh(self, all_of_them):
        """Each as a new job. Returns those that were taken, by field."""
        taken, problems, batch = {}, [], {}
        for what, path, spec in all_of_them:
            self.numbers += 1
            name = f"m{self.numbers}"
            if pods_of(spec) > PODS_MAX:
                spec["suspend"] = True
            if self.admit(what, path, spec, "POST", job_path(self.ns), problems, name=name):
                batch[name] = (what, path)
                taken.setdefault(path, []).append((what, spec))
            if len(batch) == BATCH:
                self.settle(batch, problems)
                batch = {}
        self.settle(batch, problems)
        self.cases.count("as new jobs", len(all_of_them), problems)
        return taken

    def settle(self, batch, problems):
        self.await_outcomes(batch, problems)
        self.canary()
        self.clear(batch)

    def clear(self, batch):
        """There is no garbage collector here."""
        for name in batch:
            self.api.send("DELETE", job_path(self.ns, name))
        for pod in self.api.get(pod_path(self.ns))["items"]:
            if pod["metadata"]["labels"][f"{GROUP}/job"] in batch:
                self.api.send("DELETE", pod_path(self.ns, pod["metadata"]["name"]))

    def in_flight(self, chosen):
        """Each change to a job that runs; then back, and its pod is still the same."""
        problems = []
        for first in range(0, len(chosen), BATCH):
            part, names = chosen[first:first + BATCH], {}
            for what, path, spec in part:
                self.numbers += 1
                name = f"m{self.numbers}"
                self.api.post(job_path(self.ns), job(name))
                names[name] = (what, path, spec)
            uids = self.await_pods(names)
            self.await_running(names)
            changed = {}
            for name, (what, path, spec) in names.items():
                version = self.api.get(job_path(self.ns, name))["metadata"]["resourceVersion"]
                if self.admit(what, path, spec, "PUT", job_path(self.ns, name), problems, name=name, resourceVersion=version):
                    changed[name] = (what, path)
            self.await_outcomes(changed, problems)
            self.back(changed, uids, problems)
            self.clear(names)
        self.canary()
        self.cases.count("of jobs that run, and back", len(chosen), problems)

    def await_pods(self, names):
        def have():
            return {p["metadata"]["labels"][f"{GROUP}/job"]: p["metadata"]["uid"] for p in self.api.get(pod_path(self.ns))["items"]}
        self.plane.wait("the pods", lambda: names.keys() <= have().keys())
        return have()

    def await_running(self, names):
        """As a kubelet would have it: of an attempt that never ran the operator would replace the pod for a changed template."""
        for pod in self.api.get(pod_path(self.ns))["items"]:
            running = [{"name": c["name"], "image": c["image"], "imageID": "none", "ready": True, "restartCount": 0, "state": {"running": {}}}
                       for c in pod["spec"]["containers"]]
            code, text = self.api.send("PATCH", pod_path(self.ns, pod["metadata"]["name"]) + "/status",
                                       {"status": {"phase": "Running", "containerStatuses": running}}, "application/merge-patch+json")
            check(code == 200, f"the pod's status: {code} {text[:200]}")
        self.plane.wait("the jobs to run", lambda: all(
            self.api.get(job_path(self.ns, name)).get("status", {}).get("phase") == "Running" for name in names))

    def back(self, changed, uids, problems):
        original = job("x")["spec"]
        returned = {}
        for name, (what, path) in changed.items():
            found = self.api.find(job_path(self.ns, name))
            if not found:
                continue  # a ttl
            code, text = self.api.send("PATCH", job_path(self.ns, name), [{"op": "replace", "path": "/spec", "value": original}],
                                       "application/json-patch+json")
            if code < 300 and found.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
                returned[name] = (f"{what}, and back", path)
            elif code not in (200, 422):
                problems.append(f"{what}, and back: {code} {text[:200]}")
        self.await_outcomes(returned, problems)
        pods = self.await_pods(returned)
        for name, (what, _) in returned.items():
            paused = "suspend" in what or "pause" in what
            if pods[name] != uids[name] and not paused:
                problems.append(f"{what}: its pod is another one")

    def judge_circles(self):
        """No job's status was written again and again, and no pod asked for again and again."""
        times = defaultdict(list)
        for entry in self.audit.read():
            ref = entry.get("objectRef", {})
            if entry["verb"] in ("patch", "create") and ref.get("namespace") == self.ns and ref.get("resource") in ("pytorchtrainingjobs", "pods"):
                times[ref.get("name", "?"), entry["verb"]].append(datetime.fromisoformat(entry["stageTimestamp"]).timestamp())
        worst = {f"{verb} {name}": len(t) for (name, verb), t in times.items() if len(t) > allowed(max(t) - min(t))}
        check(not worst, f"asked for again and again: {dict(list(worst.items())[:5])}")

    def run(self, short):
        self.operator = self.plane.operator(None, "--leader-elect=false")
        schema = self.api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pytorchtrainingjobs.{GROUP}")
        schema = schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        every = list(mutations(schema, base())) + list(pod_mutations())
        if short:
            every = every[::8]
        taken = self.fresh(every)
        chosen = [(what, path, spec) for path, some in taken.items() for what, spec in some[:1 if short else 3]]
        self.in_flight(chosen[::2] if short else chosen)
        with self.cases("the operator turned in no circles", counts=False):
            self.judge_circles()
        self.operator.end()
        for outcome, n in sorted(self.outcomes.items(), key=lambda row: -row[1]):
            print(f"        {n:5} {outcome}", flush=True)


def main():
    cases = Cases("F9", __doc__)
    args = cases.parse()
    with cases.up(Plane(args.operator, controller_manager=False)) as plane:
        plane.install()
        Mutations(cases, plane).run(args.short)
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
