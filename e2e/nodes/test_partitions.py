"""Our trainer in two pods on two nodes, between which packets are lost, or which the API server cannot reach."""

import time

import pytest
from kube import field, get, status, wait_for
from torchjobs import said
from trainjobs import checkpoints
from twonodes import (HOMES, LAUNCHED, NODE1, NODE2, UNHURT, as_if_nothing_had_been, at_home, await_lost, counts, ended,
                      in_training, node2, node_of, ready, train)

EVICTED = {**UNHURT, "attempt": 1, "disruptionCount": 1}
PEER_LOST = {**UNHURT, "attempt": 1, "backoffCount": 1}


def begun(ns, data, homes=(NODE1, NODE2), **more):
    train("hurt", data, ns, homes=homes, torchrun=LAUNCHED, **more)
    at_home("hurt", ns, homes)
    in_training("hurt", ns, data)


def trains_on(ns, data, seconds):
    """Checkpoints go on for so long, in the first attempt."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        in_training("hurt", ns, data, len(checkpoints("hurt", data)) + 1)
    assert counts(status("hurt", ns)) == UNHURT


def pods_failed(ns):
    return all(field("pod", f"hurt-{t}-0", ns, "status.phase") == "Failed" for t in ("master", "worker"))


@pytest.mark.parametrize("how", ["cut pods", "isolate"])
def test_only_the_pods_network_is_cut(ns, data, how):
    """The nodes stay ready. Each launcher gives up and names the other pod's; the job is restarted once, and goes on when it can."""
    begun(ns, data)
    node2(*how.split())
    wait_for("the end of both pods", lambda: pods_failed(ns) or counts(status("hurt", ns))["attempt"])
    assert ready(NODE2)
    node2("heal")
    end = ended("hurt", ns)
    assert counts(end) == PEER_LOST
    assert (end["lastFailure"]["exitCode"], end["lastFailure"]["reason"]) == (140, "PeerLost")
    as_if_nothing_had_been("hurt", ns, data, LAUNCHED)


def test_the_api_server_is_out_of_reach_of_one_node_for_a_while(ns, data):
    """The node is lost, but its pods are not: until they are evicted, the job trains as if nothing had been."""
    begun(ns, data)
    node2("cut", "api")
    await_lost(NODE2)
    trains_on(ns, data, 3)
    node2("heal")
    wait_for("the node", lambda: ready(NODE2))
    trains_on(ns, data, 3)


@pytest.mark.parametrize("lost", HOMES)
def test_the_api_server_is_out_of_reach_of_one_node_until_it_evicts(ns, data, lost):
    """The old pod hears nothing of its eviction. Its peer is replaced, so it ends, and the successor goes on alone."""
    begun(ns, data, HOMES[lost])
    node2("cut", "api")
    end = ended("hurt", ns)
    assert counts(end) == EVICTED
    assert (end["lastFailure"]["node"], end["lastFailure"]["reason"]) == (NODE2, "DeletionByTaintManager")
    as_if_nothing_had_been("hurt", ns, data, LAUNCHED)


def test_a_pod_stays_terminating_until_its_node_is_back(ns, data):
    """Without forceDeleteAfterSeconds the job waits, and its status says for which pod and node."""
    begun(ns, data, forceDeleteAfterSeconds=None)
    node2("down")
    wait_for("the status to say so", lambda: status("hurt", ns).get("reason") == "PodStuckTerminating")
    (running,) = (c for c in status("hurt", ns)["conditions"] if c["type"] == "Running")
    assert "hurt-worker-0" in running["message"]
    assert NODE2 in running["message"]
    assert get("pod", "hurt-worker-0", ns)["metadata"]["deletionTimestamp"]
    node2("up")
    end = ended("hurt", ns)
    assert counts(end) == EVICTED
    assert (end["lastFailure"]["node"], end["lastFailure"]["reason"]) == (NODE2, "DeletionByTaintManager")
    as_if_nothing_had_been("hurt", ns, data, LAUNCHED)
