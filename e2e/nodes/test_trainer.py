"""Our trainer in two pods on two nodes: whatever happens to one node, the job is restarted once at most, names that node, goes on
from the last checkpoint, and ends with the weights of an undisturbed training."""

import pytest
from kube import audit, get, kubectl, status, wait_for, wait_phase
from torchjobs import logs, said
from trainjobs import MNIST, checkpoints, script
from twonodes import NODE1, NODE2, at_home, await_lost, node2, node_of, train

LAUNCHED = {"procPerNode": 1}
MORE = 20
# Whose node is lost: that of rank 0, which writes the checkpoints, or the other one.
HOMES = {"rank 0": (NODE2, NODE1), "rank 1": (NODE1, NODE2)}


def in_training(name, ns, data, count=2):
    def now():
        assert status(name, ns).get("phase") not in ("Succeeded", "Failed"), logs(f"{name}-master-0", ns)
        return len(checkpoints(name, data)) >= count

    wait_for(f"{count} checkpoints", now)


def ended(name, ns):
    end = wait_phase(name, ns, "Succeeded", "Failed")
    assert end["phase"] == "Succeeded", end
    return end


def counts(end):
    return {k: end.get(k, 0) for k in ("attempt", "backoffCount", "disruptionCount", "admissionCount")}


def as_if_nothing_had_been(name, ns, data, torchrun):
    """The job has gone on from its newest checkpoint and ends with the weights of an undisturbed one."""
    (begun,) = said(r"resumed from \S+: epoch \d+, batch \d+, step (\d+)", f"{name}-master-0", ns)
    train("calm", data, ns, torchrun=torchrun, text=script("calm", first=int(begun) + MORE))
    assert counts(ended("calm", ns))["attempt"] == 0
    assert (data / f"{name}.safetensors").read_bytes() == (data / "calm.safetensors").read_bytes()
    return int(begun)


@pytest.mark.parametrize("torchrun", [LAUNCHED, None], ids=["torchrun", "plain"])
@pytest.mark.parametrize("lost", HOMES)
def test_a_node_dies(ns, data, lost, torchrun):
    train("hurt", data, ns, homes=HOMES[lost], torchrun=torchrun)
    at_home("hurt", ns, HOMES[lost])
    in_training("hurt", ns, data)
    node2("down")
    end = ended("hurt", ns)
    print(end)
    assert counts(end) == {"attempt": 1, "backoffCount": 0, "disruptionCount": 1, "admissionCount": 0}
    assert end["lastFailure"]["node"] == NODE2
    assert [node_of(f"hurt-{t}-0", ns) for t in ("master", "worker")] == [NODE1, NODE1]
    assert sorted(audit("create", "pods", ns)) == ["hurt-master-0"] * 2 + ["hurt-worker-0"] * 2
    assert as_if_nothing_had_been("hurt", ns, data, torchrun) % 10 == 0
