"""A job that cannot work is reported where the user looks: at apply, or in the job's status and events."""

import os
import subprocess

import jobs
from kube import REPO, apply, events, get, items, kubectl, status, wait_for, wait_phase


def test_manifests_are_admitted_or_refused_with_their_path(ns):
    """Every manifest of tests/golden/crd against the real API server: schema, CEL rules, what may change later."""
    done = subprocess.run([REPO / "tests" / "golden" / "crd" / "check.py"], text=True, capture_output=True,
                          env={**os.environ, "NAMESPACE": ns})
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    assert done.stdout.count("\nok ") > 80


def test_image_that_cannot_be_pulled_shows(ns):
    bad = jobs.replica("true")
    bad["template"]["spec"]["containers"][0]["image"] = "localhost/no-such-image:1"
    apply(jobs.job("noimage", bad), namespace=ns)
    wait_for(lambda: status("noimage", ns), lambda: status("noimage", ns).get("reason") == "ImagePullFailed")
    assert status("noimage", ns)["phase"] == "Pending"
    wait_for("the event", lambda: events("noimage", ns, "ImagePullFailed"))


def test_pod_that_fits_nowhere_shows(ns):
    big = jobs.replica("true", resources={"requests": {"cpu": "900"}})
    apply(jobs.job("big", big), namespace=ns)
    wait_for(lambda: status("big", ns), lambda: status("big", ns).get("reason") == "Unschedulable")
    wait_for("the event", lambda: events("big", ns, "Unschedulable"))


def test_name_of_another_is_left_alone(ns):
    apply(jobs.pod("taken-node-0", "sleep 3600"), namespace=ns)
    uid = get("pod", "taken-node-0", ns)["metadata"]["uid"]
    apply(jobs.job("taken", jobs.replica("true")), namespace=ns)
    wait_for(lambda: status("taken", ns), lambda: events("taken", ns, "NameConflict"))
    assert get("pod", "taken-node-0", ns)["metadata"]["uid"] == uid
    kubectl("-n", ns, "delete", "pod", "taken-node-0")
    wait_for(lambda: status("taken", ns), lambda: status("taken", ns).get("phase") == "Succeeded")


def test_pod_security_refusal_shows_and_heals(ns):
    kubectl("label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")
    apply(jobs.job("refused", jobs.replica("true")), namespace=ns)
    wait_for(lambda: status("refused", ns), lambda: events("refused", ns, "PodRefused"))
    wait_phase("refused", ns, "Pending")
    assert not items("pods", ns)
    kubectl("label", "namespace", ns, "pod-security.kubernetes.io/enforce-")
    wait_for(lambda: status("refused", ns), lambda: status("refused", ns).get("phase") == "Succeeded")
