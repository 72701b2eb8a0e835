"""Parts of a node, or all of it, restart under a job of our trainer."""

import os
import signal

from kube import get, status, wait_for
from twonodes import PATIENCE, UNHURT, begun, counts, each, in_training, newest, node2, part_pid, was_hurt_once


def test_parts_of_the_node_restart(ns, data):
    """The containers live on, and the job does not notice."""
    begun(ns, data, tolerations=PATIENCE)
    for part in "kubelet", "containerd":
        before = part_pid(part)
        os.kill(before, signal.SIGKILL)
        wait_for(f"another {part}", lambda p=part, b=before: part_pid(p) not in (None, b))
        node2("up")
        in_training("hurt", ns, data, newest("hurt", data))
        assert counts(status("hurt", ns)) == UNHURT, part
        assert not get("pod", "hurt-worker-0", ns)["metadata"].get("deletionTimestamp")


def test_the_node_restarts(ns, data):
    """Its containers are lost without an exit code of their own (255, Unknown): one disruption."""
    jobs = begun(ns, data, each(), tolerations=PATIENCE)
    node2("down")
    node2("up")
    for name in jobs:
        was_hurt_once(name, ns, data, "ContainerStatusUnknown", exitCode=255)
