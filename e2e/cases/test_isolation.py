"""A job's NetworkPolicy with an enforcer: which pods can connect and join, which cannot, and what still works. Without an enforcer
all can connect; a case that tests an outsider first checks that."""

import urllib.request
from contextlib import contextmanager

import jobs
import pytest
from conftest import make_namespace
from enforcer import enforcing
from kube import GROUP, apply, field, forwarded, get, items, kubectl, status, wait_for, wait_phase
from test_keys import ended, log, option, start, stranger

pytestmark = [pytest.mark.serial, pytest.mark.long]
other = pytest.fixture(make_namespace, name="other")

PROGRESS, BOARD = 29402, 6006
# One word for each port: bash connects, and waits no longer than 3 s.
KNOCK = 'for p in {ports}; do if timeout 3 bash -c "exec 3<>/dev/tcp/{host}/$p" 2>/dev/null; then echo $p; fi; done'


def outsider(name, namespace, host_network=False, **labels):
    pod = jobs.pod(name, "sleep 3600")
    pod["metadata"]["labels"] = labels
    pod["spec"]["hostNetwork"] = host_network
    apply(pod, namespace=namespace)
    wait_for(f"{name} to run", lambda: field("pod", name, namespace, "status.phase") == "Running")

    def reaches(host, *ports):
        script = KNOCK.format(host=host, ports=" ".join(map(str, ports)))
        return {int(p) for p in kubectl("-n", namespace, "exec", name, "--", "bash", "-c", script).split()}

    return reaches


def address(pod, ns):
    return wait_for(f"an address of {pod}", lambda: field("pod", pod, ns, "status.podIP"))


@contextmanager
def enforced(who, host, *ports):
    """Wait until the job's policies keep out this outsider, which could connect before."""
    assert who(host, *ports) == set(ports)
    with enforcing():
        wait_for("the policies to hold", lambda: who(host, *ports) == set())
        yield


def test_who_gets_in(ns, other, data):
    """The second node is held back. Until it joins, an attacker needs only a connection to take part."""
    label = {f"{GROUP}/job": "kept", f"{GROUP}/isolated": "kept", f"{GROUP}/replica-index": "1"}
    away, disguised = outsider("away", other), outsider("disguised", other, **label)
    beside, inside = outsider("beside", ns), outsider("inside", ns, **label)
    node = outsider("node", ns, host_network=True)
    first = start("kept", ns, data, f"echo step 3/10; {jobs.until('end')}",
                  hold=f'[ "$(hostname)" = kept-node-0 ] || {jobs.until("go")}')
    wait_for("the first node to wait", lambda: "1 of 2 nodes have joined" in log("kept-node-0", ns))
    host, meeting = address("kept-node-0", ns), int(option(first, "rdzv_endpoint").rpartition(":")[2])
    with enforced(away, host, meeting, PROGRESS):
        assert disguised(host, meeting, PROGRESS) == beside(host, meeting, PROGRESS) == set()
        # The namespace is the boundary of trust, and Kubernetes lets the pod's own node in.
        assert inside(host, meeting, PROGRESS) == node(host, meeting, PROGRESS) == {meeting, PROGRESS}
        # Who floods, and who has even the job's key, are as far away.
        kubectl("-n", other, "exec", "away", "--", "bash", "-c",
                f"(for i in $(seq 2000); do exec 3<>/dev/tcp/{host}/{meeting}; done) >/dev/null 2>&1 &")
        name = f'kept-{get("ptj", "kept", ns)["metadata"]["uid"]}'
        stranger("thief", ns, first, 5, key={"valueFrom": {"secretKeyRef": {"name": name, "key": "key"}}})
        code, words = ended("thief", ns)
        assert code == 138, words
        assert "2 of 2" not in log("kept-node-0", ns)
        (data / "go").touch()
        wait_phase("kept", ns, "Running")
        # The operator can connect to the launcher's progress port.
        wait_for(lambda: status("kept", ns), lambda: status("kept", ns).get("progress", {}).get("step") == 3)
        (data / "end").touch()
        assert wait_phase("kept", ns, "Succeeded", "Failed")["phase"] == "Succeeded"


def test_nodes_that_start_together_meet(ns):
    """The enforcer admits each a moment after it has its address."""
    with enforcing():
        replica = jobs.replica("true", replicas=3, policy="Never")
        (one,) = replica["template"]["spec"]["containers"]
        del one["command"]
        one["args"] = ["--no_python", "true"]
        apply(jobs.job("together", replica, torchrunConfig={"enabled": True, "launcher": "Torchkeeper"}), namespace=ns)
        assert wait_phase("together", ns, "Succeeded", "Failed")["phase"] == "Succeeded"
        assert status("together", ns).get("backoffCount", 0) == 0


def test_tensorboard_is_for_its_namespace(ns, other):
    """Through the Service from a pod beside it, and by port-forward, which comes in by the pod's loopback."""
    apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "logs"},
           "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}},
          jobs.job("board", jobs.replica("sleep 3600"), tensorboardSpec={"logDir": {"pvc": [{"name": "logs"}]}}), namespace=ns)
    away, beside = outsider("away", other), outsider("beside", ns)
    wait_for("TensorBoard", lambda: status("board", ns).get("tensorboard", {}).get("ready"))
    (pod,) = items("pods", ns, f"{GROUP}/tensorboard=board")
    with enforced(away, pod["status"]["podIP"], BOARD):
        assert away("board-tensorboard." + ns, BOARD) == set()
        assert beside("board-tensorboard", BOARD) == {BOARD}
        with forwarded(ns, "svc/board-tensorboard", BOARD) as local:
            with urllib.request.urlopen(f"http://127.0.0.1:{local[BOARD]}/data/environment", timeout=60) as answer:
                assert answer.status == 200
