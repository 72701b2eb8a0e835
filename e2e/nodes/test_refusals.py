"""A node whose device plugin allocates nothing any more refuses every pod: the job is not fed to it for ever."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from kube import get, kubectl, wait_for
from trainjobs import script
from twonodes import LAUNCHED, NODE1, NODE2, UNHURT, counts, ended, node_of, part_pid, train

RESOURCE = "example.com/broken"  # of plugin.py
PLUGIN = Path(__file__).with_name("plugin.py")


def offered(node):
    return int(get("node", node, "default")["status"]["allocatable"].get(RESOURCE, 0))


def offer(count):
    """By the first node, whose kubelet knows nothing of it and so refuses nothing."""
    patch = {"status": {kind: {RESOURCE: count} for kind in ("capacity", "allocatable")}}
    kubectl("patch", "node", NODE1, "--subresource=status", "--type=merge", "-p", json.dumps(patch))


@pytest.fixture
def broken_plugin():
    # The mounts and the network of the second node.
    inside = ["nsenter", "--target", str(part_pid("kubelet")), "--mount", "--net"]
    plugin = subprocess.Popen([*inside, sys.executable, str(PLUGIN)])
    try:
        wait_for("the second node's devices", lambda: offered(NODE2))
        offer("8")
        yield
    finally:
        offer(None)
        plugin.kill()
        plugin.wait()


def test_a_node_refuses_every_pod(ns, data, broken_plugin):
    train("moved", data, ns, homes=(NODE2,), torchrun=LAUNCHED, text=script("moved", first=40), limits={RESOURCE: "1"})
    end = ended("moved", ns)
    assert [(f["node"], f["reason"]) for f in end["failures"]] == [(NODE2, "UnexpectedAdmissionError")] * 2
    assert counts(end) == {**UNHURT, "attempt": 2, "admissionCount": 2}
    assert [n["node"] for n in end["avoidedNodes"]] == [NODE2]
    assert node_of("moved-master-0", ns) == NODE1
