"""Our trainer in two pods on two nodes: whatever happens to one node, the job is restarted once at most, names that node, goes on
from the last checkpoint, and ends with the weights of an undisturbed training."""

import time
from pathlib import Path

import pytest
from kube import GROUP, REPO, apply, audit, field, get, kubectl, status, wait_for
from torchjobs import said
from trainjobs import checkpoints, is_rank, script
from twonodes import (HOMES, LAUNCHED, NODE1, NODE2, UNHURT, as_if_nothing_had_been, at_home, await_lost, counts, drain, ended,
                      in_training, node2, node_of, ready, train)

CUT_S = 6  # less than ranks and launchers wait for a silent peer, and than the API server waits for the node


@pytest.mark.parametrize("torchrun", [LAUNCHED, None], ids=["torchrun", "plain"])
@pytest.mark.parametrize("lost", HOMES)
def test_a_node_dies(ns, data, lost, torchrun):
    train("hurt", data, ns, homes=HOMES[lost], torchrun=torchrun)
    at_home("hurt", ns, HOMES[lost])
    in_training("hurt", ns, data)
    node2("down")
    end = ended("hurt", ns)
    assert counts(end) == {**UNHURT, "attempt": 1, "disruptionCount": 1}
    assert end["lastFailure"]["node"] == NODE2
    assert [node_of(f"hurt-{t}-0", ns) for t in ("master", "worker")] == [NODE1, NODE1]
    assert sorted(audit("create", "pods", ns)) == ["hurt-master-0"] * 2 + ["hurt-worker-0"] * 2
    assert as_if_nothing_had_been("hurt", ns, data, torchrun) % 10 == 0


def steps(name, data):
    """Changes with each checkpoint."""
    return checkpoints(name, data)[-1:]


@pytest.mark.parametrize("torchrun", [LAUNCHED, None], ids=["torchrun", "plain"])
def test_a_short_cut_costs_nothing(ns, data, torchrun):
    """The ranks wait for each other, and go on as soon as packets pass again: no restart."""
    train("calmed", data, ns, torchrun=torchrun, text=script("calmed", first=400, options="--save_steps 10"))
    at_home("calmed", ns)
    in_training("calmed", ns, data)
    node2("cut")
    before = steps("calmed", data)
    time.sleep(CUT_S)
    # A checkpoint may have been under way.
    assert steps("calmed", data)[0] <= before[0] + 10
    node2("heal")
    end = ended("calmed", ns)
    assert counts(end) == UNHURT
    assert not said("resumed from", "calmed-master-0", ns)


@pytest.mark.parametrize("how", ["cut", "cut in", "cut out"])
def test_a_node_is_cut_and_returns(ns, data, how):
    """It is back after the ranks have given up, and before its pods are evicted: each ends by itself and says that it lost its peer."""
    train("hurt", data, ns, torchrun=LAUNCHED)
    at_home("hurt", ns)
    in_training("hurt", ns, data)
    node2(*how.split())
    await_lost(NODE2)
    wait_for("the end of pod 0", lambda: field("pod", "hurt-master-0", ns, "status.phase") == "Failed")
    node2("heal")
    end = ended("hurt", ns)
    assert counts(end)["attempt"] == 1
    assert as_if_nothing_had_been("hurt", ns, data, LAUNCHED) % 10 == 0


@pytest.mark.parametrize("lost", HOMES)
def test_a_node_is_cut_until_its_pods_are_evicted(ns, data, lost):
    """When it is back, the kubelet ends what has been replaced, and the job does not notice."""
    train("hurt", data, ns, homes=HOMES[lost], torchrun=LAUNCHED)
    at_home("hurt", ns, HOMES[lost])
    in_training("hurt", ns, data)
    node2("cut")
    wait_for("the next attempt", lambda: counts(status("hurt", ns))["attempt"] == 1)
    node2("heal")
    wait_for("the node", lambda: ready(NODE2))
    end = ended("hurt", ns)
    assert counts(end) == {**UNHURT, "attempt": 1, "disruptionCount": 1}
    assert (end["lastFailure"]["node"], end["lastFailure"]["reason"]) == (NODE2, "DeletionByTaintManager")
    assert as_if_nothing_had_been("hurt", ns, data, LAUNCHED) % 10 == 0


@pytest.mark.skipif(not (REPO / "trainer/state/files/attempt_mark.h").exists(), reason="waits for the mark of attempts")
@pytest.mark.parametrize("torchrun", [LAUNCHED, None], ids=["torchrun", "plain"])
def test_a_lonely_pod_of_a_cut_node_adds_no_checkpoint(ns, data, torchrun):
    """It has no peer to lose and trains on, with the same volume as its successor; it ends when it finds that one's mark."""
    train("hurt", data, ns, homes=(NODE2,), torchrun=torchrun)
    at_home("hurt", ns, (NODE2,))
    in_training("hurt", ns, data)
    job_uid = get("ptj", "hurt", ns)["metadata"]["uid"]
    (old,) = (p for p in Path("/proc").glob("[0-9]*") if is_rank(p, job_uid, 0))
    node2("cut")
    end = ended("hurt", ns)
    assert counts(end) == {**UNHURT, "attempt": 1, "disruptionCount": 1}
    assert end["lastFailure"]["node"] == NODE2
    # Still cut off: nobody but the mark can have ended it.
    wait_for("the end of the old rank", lambda: not old.exists())
    assert not ready(NODE2)
    as_if_nothing_had_been("hurt", ns, data, torchrun, ranks=1)


@pytest.mark.parametrize("torchrun", [LAUNCHED, None], ids=["torchrun", "plain"])
@pytest.mark.parametrize("lost", HOMES)
def test_a_node_is_drained(ns, data, lost, torchrun):
    """The only checkpoint is the one that the stop writes; the job goes on from there on the other node."""
    train("moved", data, ns, homes=HOMES[lost], torchrun=torchrun, text=script("moved"), grace=300)
    at_home("moved", ns, HOMES[lost])
    wait_for("some steps", lambda: said(r"batch +10/", "moved-master-0", ns))
    done = drain("--timeout=600s")
    assert done.returncode == 0, done.stderr
    end = ended("moved", ns)
    assert counts(end) == {**UNHURT, "attempt": 1, "disruptionCount": 1}
    assert (end["lastFailure"]["node"], end["lastFailure"]["reason"]) == (NODE2, "EvictionByEvictionAPI")
    assert [node_of(f"moved-{t}-0", ns) for t in ("master", "worker")] == [NODE1, NODE1]
    assert as_if_nothing_had_been("moved", ns, data, torchrun) >= 10


def test_a_budget_holds_the_drain(ns, data):
    """While the budget allows no eviction, the node keeps its pod and the job trains; without the budget the drain goes on."""
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "whole"},
              "spec": {"minAvailable": 2, "selector": {"matchLabels": {f"{GROUP}/job": "moved"}}}}
    apply(budget, namespace=ns)
    train("moved", data, ns, torchrun=LAUNCHED, grace=300)
    at_home("moved", ns)
    in_training("moved", ns, data)
    done = drain("--timeout=5s")
    assert done.returncode != 0
    assert "would violate the pod's disruption budget" in done.stderr
    in_training("moved", ns, data, len(checkpoints("moved", data)) + 1)
    assert counts(status("moved", ns))["attempt"] == 0
    kubectl("-n", ns, "delete", "pdb", "whole")
    done = drain("--timeout=600s")
    assert done.returncode == 0, done.stderr
    end = ended("moved", ns)
    assert counts(end) == {**UNHURT, "attempt": 1, "disruptionCount": 1}
    as_if_nothing_had_been("moved", ns, data, LAUNCHED)
