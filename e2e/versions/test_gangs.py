"""PodGroups with the operator's own permissions: those of Kubernetes itself, by an API server that serves them, and those of coscheduling,
whose API comes later. Pods are objects only."""

import json
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

from auditlog import OPERATOR
from conftest import PROGRAM, access, namespace
from kube import BOUND_S, GROUP, REPO, SYSTEM, field, items, kubectl, wait_for

NATIVE = "podgroups.v1alpha2.scheduling.k8s.io"
COSCHEDULING = "podgroups.scheduling.x-k8s.io"
# As much of scheduler-plugins' definition as these cases need: any spec.
DEFINITION = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": COSCHEDULING, "annotations": {
    "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"}}, "spec": {
    "group": "scheduling.x-k8s.io", "scope": "Namespaced", "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"},
    "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}]}}


@contextmanager
def operator(*flags):
    kubectl("apply", "-f", str(REPO / "deploy" / "rbac" / "gangs.yaml"))
    process = subprocess.Popen([PROGRAM, *access(OPERATOR), f"--leader-elect-namespace={SYSTEM}", "--metrics-bind-address=0",
                                "--health-probe-bind-address=0", *flags])
    try:
        yield
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(timeout=BOUND_S)


def create(document):
    done = subprocess.run(["kubectl", "create", "-f", "-"], input=json.dumps(document), text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def job(name, ns):
    create({"apiVersion": f"{GROUP}/v1beta1", "kind": "PyTorchTrainingJob", "metadata": {"name": name, "namespace": ns}, "spec": {
        "torchrunConfig": {"enabled": True}, "replicaSpecs": [
            {"type": "node", "replicas": 3, "template": {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}}}]}})


def suspend(name, ns, on):
    kubectl("-n", ns, "patch", "ptj", name, "--type=merge", "-p", json.dumps({"spec": {"suspend": on}}))


def groups(resource, ns):
    """Names of those that nobody deletes. A finalizer of Kubernetes, whose controller has no such gate here, keeps the others."""
    return {g["metadata"]["name"] for g in items(resource, ns) if "deletionTimestamp" not in g["metadata"]}


def members(ns, attempt):
    return [p for p in items("pods", ns) if p["metadata"]["labels"][f"{GROUP}/attempt"] == attempt]


def test_native(installed):
    ns = namespace()
    with operator("--gang-scheduler=native"):
        job("train", ns)
        wait_for("three pods", lambda: len(members(ns, "0")) == 3)
        assert groups(NATIVE, ns) == {"train-0"}
        assert {p["spec"]["schedulingGroup"]["podGroupName"] for p in items("pods", ns)} == {"train-0"}
        assert field(NATIVE, "train-0", ns, "spec.schedulingPolicy.gang.minCount") == 3
        suspend("train", ns, True)
        wait_for("the PodGroup to go", lambda: groups(NATIVE, ns) == set())
        suspend("train", ns, False)
        wait_for("three other pods", lambda: len(members(ns, "1")) == 3)
        assert groups(NATIVE, ns) == {"train-1"}


def test_others_and_an_api_that_comes_later(installed):
    """A PodGroup of somebody else stops the job, by name; so does a missing API. Nothing is counted, and nothing of others is deleted."""
    ns = namespace()
    with operator("--gang-scheduler=coscheduling"):
        job("train", ns)
        wait_for("the reason", lambda: field("ptj", "train", ns, "status.reason") == "PodRefused")
        conditions = {c["type"]: c["message"] for c in field("ptj", "train", ns, "status.conditions")}
        assert "no podgroups.scheduling.x-k8s.io" in conditions["Initialized"]
        assert not items("pods", ns) and field("ptj", "train", ns, "status.restarts") == 0
        create(DEFINITION)
        wait_for("three pods", lambda: len(members(ns, "0")) == 3)
        assert groups(COSCHEDULING, ns) == {"train-0"}
        create({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "other-0", "namespace": ns},
                "spec": {"minMember": 1}})
        job("other", ns)
        wait_for("the reason", lambda: field("ptj", "other", ns, "status.reason") == "NameConflict")
        suspend("other", ns, True)
        wait_for("the pause", lambda: field("ptj", "other", ns, "status.phase") == "Paused")
        assert groups(COSCHEDULING, ns) == {"train-0", "other-0"}
        kubectl("-n", ns, "delete", "ptj", "train")
        wait_for("the PodGroup to go with its job", lambda: groups(COSCHEDULING, ns) == {"other-0"})


def test_commands_of_the_docs(installed, tmp_path):
    for part in ("deploy", "tests"):
        Path(tmp_path / part).symlink_to(REPO / part)
    pages = [REPO / "docs" / f"{page}.md" for page in ("gangs", "from-t9k", "from-kubeflow")]
    done = subprocess.run([REPO / "tests" / "docs" / "blocks.py", "run", "servers", *pages], cwd=tmp_path, text=True, capture_output=True,
                          env={**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stdout + done.stderr
