"""Our trainer in two pods on two nodes: whatever happens to one node, each job is restarted once at most, names that node, goes on
from its newest checkpoint, and ends with the weights of an undisturbed training."""

import time
from pathlib import Path

import pytest
from kube import GROUP, apply, field, get, kubectl, status, wait_for
from torchjobs import said
from trainjobs import checkpoints, is_rank, script
from twonodes import (LAUNCHED, NODE1, NODE2, PATIENCE, TYPES, UNHURT, as_if_nothing_had_been, at_home, await_lost, begun, counts,
                      drain, each, ended, in_training, newest, node2, node_of, ready, train, was_hurt_once)

CUT_S = 1
# A rank gives up a peer whose host acknowledges nothing for 5 s. Lost packets are sent again after 3 s at the latest, then after 6.
SHORT_S = 2.8
EVICTED = "DeletionByTaintManager"


def test_a_node_dies(ns, data):
    jobs = begun(ns, data, each())
    node2("down")
    for name in jobs:
        was_hurt_once(name, ns, data, EVICTED)
        assert [node_of(f"{name}-{t}-0", ns) for t in TYPES] == [NODE1, NODE1]


def test_a_node_dies_and_its_pods_are_not_evicted(ns, data):
    """As with Kubernetes' own tolerations of 300 s: long before, its peers have lost it, and the API server its node."""
    begun(ns, data, tolerations=PATIENCE)
    node2("down")
    was_hurt_once("hurt", ns, data, "NodeLost")


def test_a_short_cut_costs_nothing(ns, data):
    """The ranks wait for each other, and go on as soon as packets pass again: no restart."""
    for trial in range(10):
        jobs = begun(ns, data, {f"{name}-{trial}": job for name, job in each().items()}, tolerations=PATIENCE)
        began = time.monotonic()
        node2("cut")
        time.sleep(CUT_S)
        node2("heal")
        if time.monotonic() - began < SHORT_S:
            break
        kubectl("-n", ns, "delete", "ptj", *jobs)  # the machine was busy, and the cut not short
    else:
        pytest.fail(f"no cut of ten was shorter than {SHORT_S} s")
    for name in jobs:
        in_training(name, ns, data, newest(name, data))
        assert counts(status(name, ns)) == UNHURT


@pytest.mark.parametrize("how", ["cut", "cut in", "cut out"])
def test_a_node_is_cut_and_returns(ns, data, how):
    """It is back after the ranks have given up, and before its pods are evicted: each ends by itself, and says so."""
    begun(ns, data, tolerations=PATIENCE)
    node2(*how.split())
    await_lost(NODE2)
    wait_for("the end of pod 0", lambda: field("pod", "hurt-master-0", ns, "status.phase") == "Failed")
    node2("heal")
    end = ended("hurt", ns)
    assert counts(end) == {**UNHURT, "attempt": 1, "backoffCount": 1}
    assert (end["lastFailure"]["exitCode"], end["lastFailure"]["reason"]) == (140, "PeerLost")
    as_if_nothing_had_been("hurt", ns, data)


def test_a_node_is_cut_until_its_pods_are_evicted(ns, data):
    """When it is back, the kubelet ends what has been replaced, and the jobs do not notice."""
    jobs = begun(ns, data, each(ways={"torchrun": LAUNCHED}))
    node2("cut")
    for name in jobs:
        wait_for("the next attempt", lambda n=name: counts(status(n, ns))["attempt"] == 1)
    node2("heal")
    wait_for("the node", lambda: ready(NODE2))
    for name in jobs:
        was_hurt_once(name, ns, data, EVICTED)


def test_a_lonely_pod_of_a_cut_node_adds_no_checkpoint(ns, data):
    """It has no peer to lose and trains on, with the same volume as its successor; it ends when it finds that one's mark."""
    jobs = begun(ns, data, each(homes={"alone": (NODE2,)}))
    uids = {name: get("ptj", name, ns)["metadata"]["uid"] for name in jobs}
    old = [p for p in Path("/proc").glob("[0-9]*") if any(is_rank(p, uid, 0) for uid in uids.values())]
    assert len(old) == len(jobs)
    node2("cut")
    for name in jobs:
        was_hurt_once(name, ns, data, EVICTED, ranks=1)
    saved = {name: checkpoints(name, data) for name in jobs}
    # Still cut off: nobody but the mark can have ended them.
    wait_for("the end of the old ranks", lambda: not any(p.exists() for p in old))
    assert not ready(NODE2)
    assert {name: checkpoints(name, data) for name in jobs} == saved


def test_a_node_is_drained(ns, data):
    """The only checkpoint is the one that the stop writes; each job goes on from there on the other node."""
    jobs = each()
    for name, (homes, torchrun) in jobs.items():
        train(name, data, ns, homes=homes, torchrun=torchrun, text=script(name), grace=300)
    for name, (homes, _) in jobs.items():
        at_home(name, ns, homes)
        wait_for("some steps", lambda n=name: said(r"batch +10/", f"{n}-master-0", ns))
    done = drain("--timeout=600s")
    assert done.returncode == 0, done.stderr
    for name in jobs:
        assert was_hurt_once(name, ns, data, "EvictionByEvictionAPI") >= 10
        assert [node_of(f"{name}-{t}-0", ns) for t in TYPES] == [NODE1, NODE1]


def test_a_budget_holds_the_drain(ns, data):
    """While the budget allows no eviction, the node keeps its pod and the job trains; without the budget the drain goes on."""
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "whole"},
              "spec": {"minAvailable": 2, "selector": {"matchLabels": {f"{GROUP}/job": "hurt"}}}}
    apply(budget, namespace=ns)
    begun(ns, data, grace=300)
    done = drain("--timeout=5s")
    assert done.returncode != 0
    assert "would violate the pod's disruption budget" in done.stderr
    in_training("hurt", ns, data, newest("hurt", data))
    assert counts(status("hurt", ns)) == UNHURT
    kubectl("-n", ns, "delete", "pdb", "whole")
    done = drain("--timeout=600s")
    assert done.returncode == 0, done.stderr
    was_hurt_once("hurt", ns, data, "EvictionByEvictionAPI")
