"""The local Kubernetes itself: any part is killed, `cluster up` restarts it, and running pods continue."""

import os
import signal
import subprocess
from pathlib import Path

import jobs
import pytest
from kube import REPO, apply, field, get, kubectl, wait_for

pytestmark = pytest.mark.serial

CLUSTER = REPO / "deploy" / "local" / "cluster"
RUN = Path("/run/torchkeeper")


def cluster(verb):
    return subprocess.run([CLUSTER, verb], text=True, capture_output=True)


def pid_of(part):
    return int((RUN / f"{part}.pid").read_text().split()[0])


@pytest.fixture
def pod(ns):
    """A running pod; its restart count and UID tell whether it lived through a case."""
    apply(jobs.pod("witness", "sleep 3600"), namespace=ns)
    wait_for("the pod runs", lambda: field("pod", "witness", ns, "status.phase") == "Running")
    return ns


def witness(ns):
    pod = get("pod", "witness", ns)
    return pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"]


def test_up_is_idempotent():
    assert cluster("status").returncode == 0
    before = pid_of("kube-apiserver")
    assert cluster("up").returncode == 0
    assert pid_of("kube-apiserver") == before


def test_up_mends_any_killed_part(pod):
    before = witness(pod)
    for part in ("kubelet", "kube-proxy", "kube-apiserver", "etcd", "containerd", "host-agent"):
        os.kill(pid_of(part), signal.SIGKILL)
        assert cluster("up").returncode == 0, part
        assert cluster("status").returncode == 0, part
        wait_for(part, lambda: witness(pod) == before)
    assert kubectl("-n", pod, "exec", "witness", "--", "echo", "alive").strip() == "alive"


def test_status_tells_a_dead_part():
    os.kill(pid_of("kube-scheduler"), signal.SIGKILL)
    told = cluster("status")
    assert told.returncode == 1
    assert "kube-scheduler" in told.stdout
    assert cluster("up").returncode == 0
    assert cluster("status").returncode == 0


def test_the_bridge_keeps_its_address_whatever_joins_it():
    """By default a bridge takes the lowest address of its ports; pods would then send to the old one until ARP expires."""
    address = Path("/sys/class/net/torchkeeper0/address")
    before = address.read_text()

    def link(*words):
        subprocess.run(["ip", "link", *words], check=True)

    link("add", "e2e-lowest", "address", "02:00:00:00:00:01", "type", "veth", "peer", "name", "e2e-peer")
    try:
        link("set", "e2e-lowest", "master", "torchkeeper0")
        assert address.read_text() == before
    finally:
        link("delete", "e2e-lowest")
