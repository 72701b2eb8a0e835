"""How jobs end, each with an undisturbed operator and with one that is killed in the middle."""

from datetime import datetime

import jobs
import pytest
from kube import apply, audit, audited, events, field, get, items, kubectl, status, wait_for, wait_phase


def restarts_once(ns, replica_script):
    apply(jobs.job("once", jobs.replica(replica_script)), namespace=ns)
    return wait_phase("once", ns, "Succeeded", "Failed")


def test_exit_137_restarts_and_is_counted_once(ns, weather):
    end = restarts_once(ns, 'sleep 2; [ "$ATTEMPT" = 0 ] && exit 137; exit 0')
    assert end["phase"] == "Succeeded"
    assert (end["attempt"], end["backoffCount"]) == (1, 1)
    assert end["lastFailure"]["exitCode"] == 137
    assert audit("create", "pods", ns) == ["once-node-0"] * 2
    assert end["completionTime"]


def test_exit_1_fails_at_once(ns, weather):
    apply(jobs.job("fatal", jobs.replica("sleep 2; exit 1")), namespace=ns)
    end = wait_phase("fatal", ns, "Succeeded", "Failed")
    assert end["phase"] == "Failed"
    assert (end.get("attempt", 0), end.get("backoffCount", 0)) == (0, 0)
    assert end["lastFailure"]["exitCode"] == 1
    assert audit("create", "pods", ns) == ["fatal-node-0"]
    assert get("pod", "fatal-node-0", ns), "cleanUpPolicy Unfinished keeps a finished pod for its logs"


@pytest.mark.early
def test_backoff_limit_stops_the_fourth_restart(ns, weather):
    apply(jobs.job("loop", jobs.replica("sleep 1; exit 137"), runPolicy={"backoffLimit": 3}), namespace=ns)
    end = wait_phase("loop", ns, "Succeeded", "Failed")
    assert end["phase"] == "Failed"
    assert end["backoffCount"] == 3
    failed = next(c for c in end["conditions"] if c["type"] == "Failed")
    assert (failed["status"], failed["reason"]) == ("True", "BackoffLimitExceeded")
    assert audit("create", "pods", ns) == ["loop-node-0"] * 4


@pytest.mark.parametrize("code", [0, 1])
def test_a_sidecar_is_ended_and_the_log_stays(ns, weather, code):
    """The kubelet ends what goes on beside the training, and makes the pod a failed one: exit code 0 wins over that."""
    side = jobs.beside(jobs.replica(f"until [ -e /both/began ]; do sleep 0.2; done; echo loss 0.1; exit {code}"),
                       "echo uploading; touch /both/began; sleep 3600")
    pod = side["template"]["spec"]
    pod["volumes"] = [{"name": "both", "emptyDir": {}}]
    for one in pod["containers"]:
        one["volumeMounts"] = [{"name": "both", "mountPath": "/both"}]
    apply(jobs.job("side", side, runPolicy={"sidecarGraceSeconds": 3}), namespace=ns)
    end = wait_phase("side", ns, "Succeeded", "Failed")
    wait_for("the pod's end", lambda: field("pod", "side-node-0", ns, "status.reason") == "DeadlineExceeded")
    pod = get("pod", "side-node-0", ns)["status"]
    ended = {c["name"]: c["state"]["terminated"]["exitCode"] for c in pod["containerStatuses"]}
    assert pod["phase"] == "Failed"
    assert ended["pytorch"] == code
    assert ended["uploader"] != 0
    for container, text in ("pytorch", "loss 0.1"), ("uploader", "uploading"):
        assert kubectl("-n", ns, "logs", "side-node-0", "-c", container).strip() == text
    wait_for("the event", lambda: events("side", ns, "SidecarEnded") >= 1)
    assert end["phase"] == status("side", ns)["phase"] == ("Failed" if code else "Succeeded")
    assert audit("delete", "pods", ns) == []


def test_a_sidecar_that_ends_in_time_is_left_alone(ns):
    side = jobs.beside(jobs.replica("echo loss 0.1"), "sleep 5; echo uploaded")
    apply(jobs.job("side", side, runPolicy={"sidecarGraceSeconds": 3600}), namespace=ns)
    assert wait_phase("side", ns, "Succeeded", "Failed")["phase"] == "Succeeded"
    wait_for("the pod's end", lambda: field("pod", "side-node-0", ns, "status.phase") == "Succeeded")
    assert kubectl("-n", ns, "logs", "side-node-0", "-c", "uploader").strip() == "uploaded"
    assert audit("patch", "pods", ns) == audit("delete", "pods", ns) == []


def test_deleting_a_job_leaves_nothing(ns, weather):
    spec = {"tensorboardSpec": {"image": jobs.IMAGE, "logDir": {"pvc": [{"name": "none"}]}}}
    apply(jobs.job("gone", jobs.replica("sleep 3600", replicas=2), **spec), namespace=ns)
    wait_for("two running pods", lambda: status("gone", ns).get("aggregate", {}).get("running") == 2)
    wait_for("TensorBoard's deployment", lambda: items("deployments", ns))
    kubectl("-n", ns, "delete", "ptj", "gone", "--wait=false")

    def left():
        return [f"{kind}/{o['metadata']['name']}" for kind in ("ptj", "pods", "services", "deployments", "replicasets")
                for o in items(kind, ns)]

    wait_for(left, lambda: not left())


@pytest.mark.early
def test_gang_restarts_together(ns, weather, data):
    """One of three pods fails with a retryable code: all three are replaced, attempts never mix."""
    whole = "; ".join(jobs.until(f"$ATTEMPT-gang-{name}") for name in ("master-0", "worker-0", "worker-1"))
    cases = "0-gang-worker-1) exit 138;; 1-gang-master-0) exit 0;; *) sleep 3600;;"
    script = f'touch "/data/$ATTEMPT-$(hostname)"; sleep 3; {whole}; case "$ATTEMPT-$(hostname)" in {cases} esac'
    apply(jobs.mounted(data, jobs.job("gang", jobs.replica(script, "master"), jobs.replica(script, "worker", 2))), namespace=ns)
    end = wait_phase("gang", ns, "Succeeded", "Failed")
    assert end["phase"] == "Succeeded"
    assert (end["attempt"], end["backoffCount"]) == (1, 1)
    names = ["gang-master-0", "gang-worker-0", "gang-worker-1"]
    assert sorted(audit("create", "pods", ns)) == sorted(names * 2)
    assert (end["lastFailure"]["pod"], end["lastFailure"]["exitCode"]) == ("gang-worker-1", 138)


def test_a_worker_is_created_when_the_master_has_an_address(ns):
    """While the hook runs, DNS has no address of pod 0."""
    hook = {"postStart": {"exec": {"command": ["sleep", "5"]}}}
    master = jobs.replica("until getent hosts asks-worker-0.asks-rdzv; do sleep 0.5; done; sleep 5", "master", lifecycle=hook)
    worker = jobs.replica('until getent hosts "$MASTER_ADDR"; do sleep 0.5; done; sleep 3600', "worker")
    apply(jobs.job("asks", master, worker), namespace=ns)
    end = wait_phase("asks", ns, "Succeeded", "Failed")
    assert end["phase"] == "Succeeded"
    assert (end.get("attempt", 0), audit("create", "pods", ns)) == (0, ["asks-master-0", "asks-worker-0"])
    (master,) = get("pod", "asks-master-0", ns)["status"]["containerStatuses"]
    (created,) = [e["requestReceivedTimestamp"] for e in audited(ns) if e["verb"] == "create" and e["objectRef"].get("name") == "asks-worker-0"
                  and e["objectRef"]["resource"] == "pods" and not e["objectRef"].get("subresource")]
    waited = datetime.fromisoformat(created) - datetime.fromisoformat(master["state"]["terminated"]["startedAt"])
    assert waited.total_seconds() >= 5


def test_torchrun_reports_the_killed_rank(ns):
    """Our torchrun gives the pod the rank's own signal, so the job restarts where torch's own would end it with 1."""
    # In args, Kubernetes makes one dollar of two.
    script = 'sleep 1; [ "$ATTEMPT-$RANK" = 0-1 ] && kill -9 $$$$; sleep 1'
    node = jobs.replica("", command=[])
    node["template"]["spec"]["containers"][0]["args"] = ["--no_python", "sh", "-c", script]
    apply(jobs.job("rank", node, torchrunConfig={"enabled": True, "procPerNode": "2"}), namespace=ns)
    end = wait_phase("rank", ns, "Succeeded", "Failed")
    assert end["phase"] == "Succeeded"
    assert end["backoffCount"] == 1
    assert end["lastFailure"]["exitCode"] == 137
    wait_for("the event", lambda: events("rank", ns, "Restarting") == 1)


def test_status_is_told_by_kubectl(ns, data):
    apply(jobs.mounted(data, jobs.job("shown", jobs.replica(jobs.until("seen")))), namespace=ns)
    kubectl("-n", ns, "wait", "--for=jsonpath={.status.phase}=Running", "ptj/shown", "--timeout=600s")
    (data / "seen").touch()
    kubectl("-n", ns, "wait", "--for=condition=Completed", "ptj/shown", "--timeout=600s")
    header, row = kubectl("-n", ns, "get", "ptj", "shown").splitlines()
    assert header.split() == ["NAME", "PHASE", "READY", "PROGRESS", "RESTARTS", "REASON", "AGE"]
    assert row.split()[:2] == ["shown", "Succeeded"]
    wait_for("the event", lambda: events("shown", ns, "Completed") == 1)
