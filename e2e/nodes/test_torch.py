"""A stock PyTorch script (gloo) in two pods on two nodes, under our torchrun and under its own: a node dies, is drained."""

from jobs import job
from kube import apply, audit, kubectl, status, wait_for
from torchjobs import MOUNTED_AT, OURS, said, scripts, template
from twonodes import EVICTED_SOON, HOMES, NODE1, NODE2, TYPES, UNHURT, at_home, counts, drain, each, likes, node2, node_of

LAUNCHERS = {"ours": OURS, "torchs": {}}


def begin(name, data, namespace, homes, launcher, grace=5, **env):
    """Steps without an end."""
    specs = []
    for type_, home in zip(TYPES, homes):
        made = template([f"{MOUNTED_AT}/checkpoint.py", "1000000"], env=env, data=data, grace=grace,
                        tolerations=EVICTED_SOON)
        likes(made["spec"], home)
        specs.append({"type": type_, "replicas": 1, "restartPolicy": "ExitCode", "template": made})
    apply(scripts(), job(name, *specs, torchrunConfig={"enabled": True, **launcher}, runPolicy={"forceDeleteAfterSeconds": 0}),
          namespace=namespace)


def went_on(name, ns):
    """The second attempt is on the first node and has trained from the last checkpoint."""
    pod = f"{name}-master-0"
    wait_for("steps of the second attempt",
             lambda: said(r"begins after [1-9]\d* steps", pod, ns) and said(r"step \d+ loss", pod, ns))
    assert [node_of(f"{name}-{t}-0", ns) for t in TYPES] == [NODE1, NODE1]


def check(name, ns, reason):
    went_on(name, ns)
    now = status(name, ns)
    assert counts(now) == {**UNHURT, "attempt": 1, "disruptionCount": 1}, now
    assert (now["lastFailure"]["node"], now["lastFailure"]["reason"]) == (NODE2, reason)
    assert sorted(n for n in audit("create", "pods", ns) if n.startswith(f"{name}-")) == sorted(f"{name}-{t}-0" for t in TYPES * 2)
    # It has no end.
    kubectl("-n", ns, "delete", "ptj", name)


def test_a_node_dies(ns, data):
    jobs = each(ways=LAUNCHERS)
    for name, (homes, launcher) in jobs.items():
        (data / name).mkdir()
        begin(name, data / name, ns, homes, launcher, SAVE_EVERY="5")
    for name, (homes, _) in jobs.items():
        at_home(name, ns, homes)
        wait_for("a checkpoint", lambda n=name: (data / n / "checkpoint.pt").exists())
    node2("down")
    for name in jobs:
        check(name, ns, "DeletionByTaintManager")


def test_a_node_is_drained(ns, data):
    """The only checkpoint is the one that the stop writes."""
    jobs = each(homes={"rank1": HOMES["rank1"]}, ways=LAUNCHERS)
    for name, (homes, launcher) in jobs.items():
        (data / name).mkdir()
        begin(name, data / name, ns, homes, launcher, grace=600, TORCH_ELASTIC_SHUTDOWN_TIMEOUT="600")
    for name, (homes, _) in jobs.items():
        at_home(name, ns, homes)
        wait_for("five steps", lambda n=name: said(r"step 5 loss", f"{n}-master-0", ns))
    done = drain("--timeout=600s")
    assert done.returncode == 0, done.stderr
    for name in jobs:
        check(name, ns, "EvictionByEvictionAPI")
