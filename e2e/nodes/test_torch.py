"""A stock PyTorch script (gloo) in two pods on two nodes, under our torchrun and under its own: a node dies, is drained."""


import pytest
from jobs import job
from kube import apply, audit, status, wait_for
from torchjobs import MOUNTED_AT, OURS, said, scripts, template
from twonodes import HOMES, NODE1, NODE2, TYPES, UNHURT, at_home, counts, drain, likes, node2, node_of

LAUNCHERS = {"ours": OURS, "torch's": {}}
MORE = 20


def begin(name, data, namespace, homes, launcher, grace=5, **env):
    """Steps without an end in the first attempt, MORE in the others."""
    specs = []
    for type_, home in zip(TYPES, homes):
        made = template([f"{MOUNTED_AT}/checkpoint.py", "1000000"], env=env, data=data, grace=grace)
        likes(made["spec"], home)
        specs.append({"type": type_, "replicas": 1, "restartPolicy": "ExitCode", "template": made})
    apply(scripts(), job(name, *specs, torchrunConfig={"enabled": True, **launcher}, runPolicy={"forceDeleteAfterSeconds": 0}),
          namespace=namespace)


def went_on(name, ns, homes):
    """The second attempt is on the first node and has trained from the last checkpoint."""
    pod = f"{name}-master-0"
    begun = wait_for("steps of the second attempt", lambda: said(r"begins after ([1-9]\d*) steps", pod, ns) and said(r"step (\d+) loss", pod, ns))
    assert [node_of(f"{name}-{t}-0", ns) for t in TYPES] == [NODE1, NODE1]
    return begun


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("lost", HOMES)
def test_a_node_dies(ns, data, lost, launcher):
    begin("hurt", data, ns, HOMES[lost], LAUNCHERS[launcher], SAVE_EVERY="5")
    at_home("hurt", ns, HOMES[lost])
    wait_for("a checkpoint", lambda: (data / "checkpoint.pt").exists())
    node2("down")
    went_on("hurt", ns, HOMES[lost])
    now = status("hurt", ns)
    assert counts(now) == {**UNHURT, "attempt": 1, "disruptionCount": 1}
    assert now["lastFailure"]["node"] == NODE2
    assert sorted(audit("create", "pods", ns)) == ["hurt-master-0"] * 2 + ["hurt-worker-0"] * 2


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_node_is_drained(ns, data, launcher):
    """The only checkpoint is the one that the stop writes."""
    env = {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "600"}
    begin("moved", data, ns, HOMES["rank 1"], LAUNCHERS[launcher], grace=600, **env)
    at_home("moved", ns)
    wait_for("five steps", lambda: said(r"step 5 loss", "moved-master-0", ns))
    done = drain("--timeout=600s")
    assert done.returncode == 0, done.stderr
    went_on("moved", ns, HOMES["rank 1"])
    now = status("moved", ns)
    assert counts(now) == {**UNHURT, "attempt": 1, "disruptionCount": 1}
    assert (now["lastFailure"]["node"], now["lastFailure"]["reason"]) == (NODE2, "EvictionByEvictionAPI")
