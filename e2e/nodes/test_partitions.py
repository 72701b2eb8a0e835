"""Our trainer in two pods on two nodes, between which packets are lost, or which the API server cannot reach."""

import pytest
from kube import field, get, status, wait_for
from twonodes import (LAUNCHED, NODE2, PATIENCE, UNHURT, as_if_nothing_had_been, await_lost, begun, counts, each, ended,
                      in_training, newest, node2, ready, was_hurt_once)

EVICTED = "DeletionByTaintManager"


def trains_on(ns, data):
    """In the first attempt."""
    in_training("hurt", ns, data, newest("hurt", data))
    assert counts(status("hurt", ns)) == UNHURT


def pods_failed(ns):
    return all(field("pod", f"hurt-{t}-0", ns, "status.phase") == "Failed" for t in ("master", "worker"))


@pytest.mark.parametrize("how", ["cut pods", "isolate"])
def test_only_the_pods_network_is_cut(ns, data, how):
    """The nodes stay ready. Each launcher gives up and names the other's; the job is restarted once, and goes on when it can."""
    begun(ns, data)
    node2(*how.split())
    wait_for("the end of both pods", lambda: pods_failed(ns) or counts(status("hurt", ns))["attempt"])
    assert ready(NODE2)
    node2("heal")
    end = ended("hurt", ns)
    assert counts(end) == {**UNHURT, "attempt": 1, "backoffCount": 1}
    assert (end["lastFailure"]["exitCode"], end["lastFailure"]["reason"]) == (140, "PeerLost")
    as_if_nothing_had_been("hurt", ns, data)


def test_a_slow_link_costs_only_time(ns, data):
    begun(ns, data)
    node2("slow", 50)
    trains_on(ns, data)
    node2("heal")
    trains_on(ns, data)


def test_the_api_server_is_out_of_reach_of_one_node_for_a_while(ns, data):
    """The node is lost, but its pods are not: if they tolerate that, the job trains as if nothing had been."""
    begun(ns, data, tolerations=PATIENCE)
    node2("cut", "api")
    await_lost(NODE2)
    trains_on(ns, data)
    node2("heal")
    wait_for("the node", lambda: ready(NODE2))
    trains_on(ns, data)


def test_the_api_server_is_out_of_reach_of_one_node_until_it_evicts(ns, data):
    """The old pods hear nothing of their eviction. Their peers are replaced, so they end, and their successors go on alone."""
    jobs = begun(ns, data, each(ways={"torchrun": LAUNCHED}))
    node2("cut", "api")
    for name in jobs:
        was_hurt_once(name, ns, data, EVICTED)


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
    was_hurt_once("hurt", ns, data, EVICTED)
