"""Parts of a node, or all of it, restart under a job of our trainer."""

import os
import signal

import pytest
from kube import get, status, wait_for
from trainjobs import checkpoints
from twonodes import LAUNCHED, NODE2, UNHURT, as_if_nothing_had_been, at_home, counts, ended, in_training, node2, part_pid, train


@pytest.mark.parametrize("part", ["kubelet", "containerd"])
def test_a_part_of_the_node_restarts(ns, data, part):
    """The containers live on, and the job does not notice."""
    train("calm", data, ns, torchrun=LAUNCHED)
    at_home("calm", ns)
    in_training("calm", ns, data)
    before = part_pid(part)
    os.kill(before, signal.SIGKILL)
    wait_for(f"another {part}", lambda: part_pid(part) not in (None, before))
    node2("up")
    in_training("calm", ns, data, len(checkpoints("calm", data)) + 2)
    assert counts(status("calm", ns)) == UNHURT
    assert not get("pod", "calm-worker-0", ns)["metadata"].get("deletionTimestamp")


def test_the_node_restarts(ns, data):
    """Its containers are lost without an exit code of their own (255, Unknown): one disruption, and the pods come back to it."""
    train("hurt", data, ns, torchrun=LAUNCHED)
    at_home("hurt", ns)
    in_training("hurt", ns, data)
    node2("down")
    node2("up")
    end = ended("hurt", ns)
    assert counts(end) == {**UNHURT, "attempt": 1, "disruptionCount": 1}
    assert (end["lastFailure"]["node"], end["lastFailure"]["exitCode"]) == (NODE2, 255)
    as_if_nothing_had_been("hurt", ns, data, LAUNCHED)
