"""The same operator with API servers of several Kubernetes versions: they support all its requests.
Pods are objects only; node.py sets their status. The last case reads the audit log of all earlier ones.
"""

import json
import os
import re
import signal
import subprocess

import jobs
import node as fake
from api import BUSY
from auditlog import OPERATOR, account, audited
from kube import (GROUP, REPO, SYSTEM, apply, audit, events, field, get, items, kubectl, status, wait_for, wait_phase)

RESOURCES = {"pytorchtrainingjobs", "pods", "services", "deployments"}


def patch(job, namespace, spec):
    kubectl("-n", namespace, "patch", "ptj", job, "--type=merge", "-p", json.dumps({"spec": spec}))


def pods(namespace):
    return {p["metadata"]["name"]: p for p in items("pods", namespace)}


def condition(status_of_job, name):
    return next((c for c in status_of_job.get("conditions", []) if c["type"] == name), {})


# ---- the install


def test_the_server_is_of_the_version_asked_for(release):
    assert json.loads(kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"] == release


def test_plain_apply_installs_without_a_word_of_warning(installed):
    printed, complaints = installed
    assert set(re.findall(r"^\S+ (\w+)$", printed, re.M)) == {"created"}
    assert complaints == ""
    crd = json.loads(kubectl("get", "crd", f"pytorchtrainingjobs.{GROUP}", "-o", "json"))
    held = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
    assert held["Established"] == held["NamesAccepted"] == "True"
    assert held.get("NonStructuralSchema", "False") == "False"
    # Nor does the server see anything left to do. (apply itself calls every PodDisruptionBudget "configured".)
    assert kubectl("diff", "-f", str(REPO / "deploy" / "install.yaml")) == ""


def test_manifests_are_admitted_or_refused_with_their_path(quiet_ns):
    """Every manifest of tests/golden/crd: the schema and each CEL rule answer alike in all versions."""
    done = subprocess.run([REPO / "tests" / "golden" / "crd" / "check.py"], text=True, capture_output=True,
                          env={**os.environ, "NAMESPACE": quiet_ns})
    assert done.returncode == 0, "\n".join(line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("ok "))
    assert done.stdout.count("\nok ") > 80


# ---- a job's life


def test_job_runs_and_succeeds(ns, node):
    apply(jobs.job("good", jobs.replica("true", replicas=2)), namespace=ns)
    for name in ("good-node-0", "good-node-1"):
        node.run(ns, name)
    wait_phase("good", ns, "Running")
    owner = get("ptj", "good", ns)
    for child in (get("pod", "good-node-0", ns), get("service", "good-rdzv", ns)):
        # Admitted although OwnerReferencesPermissionEnforcement asks who may block the owner's deletion.
        assert child["metadata"]["ownerReferences"] == [
            {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": "good", "uid": owner["metadata"]["uid"],
             "controller": True, "blockOwnerDeletion": True}]
    for name in ("good-node-0", "good-node-1"):
        node.end(ns, name, 0)
    kubectl("-n", ns, "wait", "--for=condition=Completed", "ptj/good", "--timeout=600s")
    assert status("good", ns)["phase"] == "Succeeded"
    assert sorted(audit("create", "pods", ns)) == ["good-node-0", "good-node-1"]
    header, row = kubectl("-n", ns, "get", "ptj", "good").splitlines()
    assert header.split() == ["NAME", "PHASE", "READY", "PROGRESS", "RESTARTS", "REASON", "AGE"]
    assert row.split()[:2] == ["good", "Succeeded"]
    wait_for("its events", lambda: events("good", ns, "Completed") == 1 and events("good", ns, "ReplicaCreated"))


def test_exit_137_restarts_the_gang_once(ns, node):
    apply(jobs.job("again", jobs.replica("true", replicas=2)), namespace=ns)
    names = ["again-node-0", "again-node-1"]
    first = {name: node.run(ns, name) for name in names}
    node.end(ns, "again-node-1", 137)

    def all_new():
        have = pods(ns)
        return set(have) == set(names) and all(have[n]["metadata"]["uid"] != first[n] for n in names)

    wait_for(lambda: status("again", ns), all_new)
    assert {p["metadata"]["labels"][f"{GROUP}/attempt"] for p in pods(ns).values()} == {"1"}
    for name in names:
        node.run(ns, name)
    for name in names:
        node.end(ns, name, 0)
    end = wait_phase("again", ns, "Succeeded", "Failed")
    assert (end["phase"], end["attempt"], end["backoffCount"]) == ("Succeeded", 1, 1)
    assert (end["lastFailure"]["pod"], end["lastFailure"]["exitCode"]) == ("again-node-1", 137)
    assert sorted(audit("create", "pods", ns)) == sorted(names * 2)
    wait_for("the event", lambda: events("again", ns, "Restarting") == 1)


def test_exit_1_fails(ns, node):
    apply(jobs.job("fatal", jobs.replica("true")), namespace=ns)
    node.run(ns, "fatal-node-0")
    node.end(ns, "fatal-node-0", 1)
    end = wait_phase("fatal", ns, "Succeeded", "Failed")
    assert end["phase"] == "Failed"
    assert end["lastFailure"]["exitCode"] == 1
    assert condition(end, "Failed")["status"] == "True"
    assert audit("create", "pods", ns) == ["fatal-node-0"]


def test_corrected_template_replaces_pods_that_never_ran(ns, node):
    apply(jobs.job("typo", jobs.replica("true")), namespace=ns)
    first = node.bind(ns, "typo-node-0")
    apply(jobs.job("typo", jobs.replica("exit 0")), namespace=ns)
    wait_for("another pod", lambda: field("pod", "typo-node-0", ns, "metadata.uid") not in (None, first))
    node.run(ns, "typo-node-0")
    wait_phase("typo", ns, "Running")
    apply(jobs.job("typo", jobs.replica("exit 00")), namespace=ns)
    generation = get("ptj", "typo", ns)["metadata"]["generation"]
    wait_for(lambda: status("typo", ns), lambda: status("typo", ns)["observedGeneration"] == generation)
    node.end(ns, "typo-node-0", 0)
    end = wait_phase("typo", ns, "Succeeded", "Failed")
    assert (end["phase"], end["attempt"], end["restarts"], end["backoffCount"]) == ("Succeeded", 1, 1, 0)
    assert audit("create", "pods", ns) == ["typo-node-0"] * 2
    wait_for("the event", lambda: events("typo", ns, "TemplateChanged") == 1)
    row = kubectl("-n", ns, "get", "ptj", "typo").splitlines()[1]
    assert row.split()[:4] == ["typo", "Succeeded", "-", "1"]
    kubectl("-n", ns, "wait", "--for=jsonpath={.status.completionTime}", "ptj/typo", "--timeout=600s")


def misspelt(name, *before):
    """The field of a container's resources is `resource`, and the pod's labels are called `label`."""
    wrong = jobs.replica("true", resource={"limits": {"nvidia.com/gpu": "1"}})
    return jobs.job(name, *before, wrong)


def test_misspelt_template_runs_in_no_part(ns, node):
    first = jobs.replica("true", type_="chief")
    apply(misspelt("strict", first), namespace=ns)
    wait_for(lambda: status("strict", ns), lambda: status("strict", ns).get("reason") == "InvalidSpec")
    message = condition(status("strict", ns), "InvalidSpec")["message"]
    assert 'unknown field "spec.replicaSpecs[node].template.spec.containers[pytorch].resource"' in message
    wait_for("the pod of the first replicaSpec to go", lambda: pods(ns) == {})
    wait_for("the event", lambda: events("strict", ns, "InvalidSpec") == 1)
    apply(jobs.job("strict", first, jobs.replica("true")), namespace=ns)
    for name in ("strict-chief-0", "strict-node-0"):
        node.run(ns, name)
    end = wait_phase("strict", ns, "Running", "Failed")
    assert (end["phase"], condition(end, "InvalidSpec")["status"], end["restarts"]) == ("Running", "False", 0)


def test_misspelt_job_of_an_older_operator_runs_on(ns, node, operator):
    """What an operator that did not ask for strict validation left: it is upgraded, and the job's next attempt begins."""
    job = misspelt("older")
    job["spec"]["replicaSpecs"][0]["template"]["metadata"] = {"label": {"a": "b"}}
    operator.send_signal(signal.SIGSTOP)
    try:
        apply(job, namespace=ns)
        owner = {"apiVersion": f"{GROUP}/v1beta1", "kind": "PyTorchTrainingJob", "name": "older", "controller": True,
                 "uid": get("ptj", "older", ns)["metadata"]["uid"]}
        labels = {"job": "older", "replica-type": "node", "replica-index": "0", "attempt": "0", "restart": "0"}
        template = job["spec"]["replicaSpecs"][0]["template"]
        kubectl("-n", ns, "create", "--validate=false", "-f", "-", stdin=json.dumps({
            "apiVersion": "v1", "kind": "Pod", "spec": {**template["spec"], "restartPolicy": "Never"}, "metadata": {
                "name": "older-node-0", "labels": {f"{GROUP}/{k}": v for k, v in labels.items()}, "ownerReferences": [owner]}}))
        first = node.run(ns, "older-node-0")
        node.patch(ns, "ptj", "older", {"phase": "Running", "observedGeneration": 1, "attempt": 0, "conditions": [
            {"type": "Running", "status": "True", "reason": "PodsRunning", "message": "", "lastTransitionTime": fake.now()}]})
    finally:
        operator.send_signal(signal.SIGCONT)
    wait_for(lambda: status("older", ns), lambda: status("older", ns).get("ready") == "1/1")
    assert condition(status("older", ns), "InvalidSpec")["status"] == "False"
    node.end(ns, "older-node-0", 137)
    wait_for("another pod", lambda: field("pod", "older-node-0", ns, "metadata.uid") not in (None, first))
    node.run(ns, "older-node-0")
    wait_for("the event", lambda: events("older", ns, "Ignored") == 1)
    node.end(ns, "older-node-0", 0)
    end = wait_phase("older", ns, "Succeeded", "Failed")
    assert (end["phase"], end["attempt"], end["backoffCount"]) == ("Succeeded", 1, 1)


def test_suspend_and_resume(ns, node):
    apply(jobs.job("rest", jobs.replica("true"), suspend=True), namespace=ns)
    wait_phase("rest", ns, "Paused")
    assert pods(ns) == {}
    patch("rest", ns, {"suspend": False})
    first = node.run(ns, "rest-node-0")
    wait_phase("rest", ns, "Running")
    patch("rest", ns, {"suspend": True})
    wait_phase("rest", ns, "Paused")
    wait_for("its pod to go", lambda: pods(ns) == {})
    patch("rest", ns, {"suspend": False})
    assert node.run(ns, "rest-node-0") != first
    node.end(ns, "rest-node-0", 0)
    end = wait_phase("rest", ns, "Succeeded", "Failed")
    assert (end["phase"], end.get("backoffCount", 0)) == ("Succeeded", 0)


def test_scale_subresource(ns, node):
    elastic = {"enabled": True, "minReplicas": 1, "maxReplicas": 4, "expectedReplicas": 2}
    apply(jobs.job("wide", jobs.replica("true", replicas=2), elastic=elastic,
                   torchrunConfig={"enabled": True, "maxRestarts": 1}), namespace=ns)

    def names(count):
        return {f"wide-node-{i}" for i in range(count)}

    for name in sorted(names(2)):
        node.run(ns, name)
    wait_phase("wide", ns, "Running")
    kubectl("-n", ns, "scale", "ptj", "wide", "--replicas=3")
    wait_for(lambda: pods(ns).keys(), lambda: pods(ns).keys() == names(3))
    node.run(ns, "wide-node-2")

    def scale():
        return json.loads(kubectl("get", "--raw", f"/apis/{GROUP}/v1beta1/namespaces/{ns}/pytorchtrainingjobs/wide/scale"))

    wait_for(scale, lambda: scale()["status"]["replicas"] == 3)
    assert scale()["spec"]["replicas"] == 3
    assert {p["metadata"]["name"] for p in items("pods", ns, scale()["status"]["selector"])} == names(3)
    kubectl("-n", ns, "scale", "ptj", "wide", "--replicas=1")
    wait_for(lambda: pods(ns).keys(), lambda: pods(ns).keys() == names(1))
    assert status("wide", ns).get("backoffCount", 0) == 0


def test_ttl_deletes_the_job_and_its_children(ns, node):
    apply(jobs.job("brief", jobs.replica("true"), runPolicy={"ttlSecondsAfterFinished": 1}), namespace=ns)
    node.run(ns, "brief-node-0")
    node.end(ns, "brief-node-0", 0)
    wait_for("the job to go", lambda: not get("ptj", "brief", ns))
    # The garbage collector looks for new kinds of owners every 30 s.
    wait_for("its children to go", lambda: not items("pods", ns) and not items("services", ns))
    assert audit("delete", "pytorchtrainingjobs", ns) == ["brief"]


def test_foreground_deletion_waits_for_the_children(ns, node):
    apply(jobs.job("gone", jobs.replica("true")), namespace=ns)
    node.run(ns, "gone-node-0")
    wait_phase("gone", ns, "Running")
    kubectl("-n", ns, "delete", "ptj", "gone", "--cascade=foreground", "--timeout=600s")
    assert not items("pods", ns) and not items("services", ns)
    assert audit("create", "pods", ns) == ["gone-node-0"], "a job that is being deleted gets no pods"


def test_tensorboard_comes_with_the_pods_and_goes(ns, node):
    board = {"image": jobs.IMAGE, "logDir": {"pvc": [{"name": "logs"}]}}
    apply(jobs.job("board", jobs.replica("true"), tensorboardSpec=board), namespace=ns)
    wait_for("its deployment", lambda: get("deployment", "board-tensorboard", ns))
    assert get("deployment", "board-tensorboard", ns)["spec"]["replicas"] == 0
    node.run(ns, "board-node-0")
    wait_for("a replica", lambda: field("deployment", "board-tensorboard", ns, "spec.replicas") == 1)
    # The controller manager makes a pod of it: the template is one that the server takes.
    wait_for("TensorBoard's pod", lambda: any(n.startswith("board-tensorboard-") for n in pods(ns)))
    assert get("service", "board-tensorboard", ns)["spec"]["ports"][0]["port"] == 6006
    patch("board", ns, {"tensorboardSpec": None})
    for kind in ("deployment", "service"):
        wait_for(f"the {kind} to go", lambda k=kind: not get(k, "board-tensorboard", ns))
    wait_phase("board", ns, "Running")


# ---- what the API server thought of it


def test_lease_is_held_and_renewed(ns):
    def renewed():
        return get("lease", OPERATOR, SYSTEM)["spec"]["renewTime"]

    first = renewed()
    assert get("lease", OPERATOR, SYSTEM)["spec"]["holderIdentity"]
    wait_for("a renewal", lambda: renewed() > first)


def test_every_kind_was_listed():
    listed = {e["objectRef"]["resource"] for e in audited(account(SYSTEM))
              if e["verb"] == "list" and e["responseStatus"]["code"] == 200}
    assert listed >= RESOURCES


def expected(entry):
    """Not found and conflict are answers that the operator reckons with, and so is a misspelt pod; and those of a server that is
    overloaded, or too late for a watch."""
    code = entry["responseStatus"]["code"]
    return code < 400 or code in (404, 409, 410, *BUSY) or code == 400 and "fieldValidation=Strict" in entry["requestURI"]


def test_nothing_else_was_refused(operator):
    asked = list(audited(account(SYSTEM)))
    assert len(asked) > 100
    assert [f"{e['responseStatus']['code']} {e['verb']} {e['requestURI']}" for e in asked if not expected(e)] == []
    assert [e["requestURI"] for e in asked if e.get("annotations", {}).get("k8s.io/deprecated")] == []
    assert {e["verb"] for e in asked} == {"list", "watch", "get", "create", "update", "patch", "delete"}
