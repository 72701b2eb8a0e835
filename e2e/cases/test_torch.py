"""Real PyTorch under its own torchrun, in pods: what it makes of the operator's command line, and what the operator
makes of its ends."""

from kube import audit, wait_phase
from torchjobs import logs, replica, said, torch_job


def ended(name, ns):
    return wait_phase(name, ns, "Succeeded", "Failed", timeout=240)


def test_two_pods_of_two_processes(ns):
    torch_job("sum", replica("allreduce.py", replicas=2), torchrun={"procPerNode": 2}, namespace=ns)
    end = ended("sum", ns)
    assert end["phase"] == "Succeeded", logs("sum-node-0", ns)
    assert sorted(said(r"rank (\d) of 4 on sum-node-0: sum 10(?!\d)", "sum-node-0", ns)) == ["0", "1"]
    assert audit("create", "pods", ns) == ["sum-node-0", "sum-node-1"]


def test_without_torchrun(ns):
    """WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT are all that init_method env:// asks for."""
    torch_job("plain", replica("allreduce.py", replicas=2, command=["python"]), namespace=ns)
    end = ended("plain", ns)
    assert end["phase"] == "Succeeded"
    assert said(r"rank (\d) of 2 on \S+: sum 3(?!\d)", "plain-node-0", ns) == ["0"]
    assert audit("create", "pods", ns) == ["plain-node-0", "plain-node-1"]
