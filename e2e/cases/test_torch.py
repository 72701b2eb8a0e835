"""Real PyTorch under its own torchrun, in pods: it accepts the operator's command line, and the operator interprets its exit
codes."""

import json
import tempfile
import time
from datetime import datetime
from pathlib import Path

import pytest
from kube import GROUP, IMAGE, audit, get, items, kubectl, status, wait_for, wait_phase
from torchjobs import HASTE, await_world, elastic, evict, kill_torchrun, logs, replica, said, stop, torch_job, uid

LATE_S = 90
# A rank that saves is not to be killed meanwhile, by its launcher or by its node.
PATIENCE = {"grace": 600, "env": {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "600"}}


def ended(name, ns):
    return wait_phase(name, ns, "Succeeded", "Failed")


@pytest.fixture
def data():
    """The folder that the pods of a case share as /data."""
    with tempfile.TemporaryDirectory(prefix="e2e-") as folder:
        yield Path(folder)


def test_two_pods_of_two_processes(ns):
    torch_job("sum", replica("allreduce.py", replicas=2), torchrun={"procPerNode": 2}, namespace=ns)
    end = ended("sum", ns)
    assert end["phase"] == "Succeeded"
    assert sorted(said(r"rank (\d) of 4 on sum-node-0: sum 10", "sum-node-0", ns)) == ["0", "1"]
    assert sorted(audit("create", "pods", ns)) == ["sum-node-0", "sum-node-1"]


def test_without_torchrun(ns):
    """init_method env:// needs only WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT."""
    torch_job("plain", replica("allreduce.py", replicas=2, command=["python"]), namespace=ns)
    end = ended("plain", ns)
    assert end["phase"] == "Succeeded"
    assert said(r"rank (\d) of 2 on plain-node-0: sum 3", "plain-node-0", ns) == ["0"]
    assert sorted(audit("create", "pods", ns)) == ["plain-node-0", "plain-node-1"]


def ends(how, rank, data):
    return replica("ends.py", replicas=2, env={"END": how, "RANK_TO_END": str(rank)}, data=data)


@pytest.mark.early
@pytest.mark.parametrize(("how", "code", "signal"), [
    ("SIGKILL", 137, 9),
    pytest.param("138", 138, None, marks=pytest.mark.long),
    pytest.param("PARENT", 143, 15, marks=pytest.mark.long),
])
def test_what_torchrun_hides_behind_1_restarts_the_job(ns, data, how, code, signal):
    torch_job("hidden", ends(how, 3, data), torchrun={"procPerNode": 2}, namespace=ns)
    end = ended("hidden", ns)
    last = end["lastFailure"]
    assert end["phase"] == "Succeeded"
    assert (end["attempt"], end["backoffCount"], end["tasks"][0]["restartCount"]) == (1, 1, 1)
    assert (last["exitCode"], last.get("signal")) == (code, signal)
    if how != "PARENT":  # after a stop signal, torchrun reports nothing about its ranks
        assert last["rank"] == 3
    assert sorted(audit("create", "pods", ns)) == ["hidden-node-0"] * 2 + ["hidden-node-1"] * 2


@pytest.mark.early
@pytest.mark.parametrize("rank", [3, pytest.param(0, marks=pytest.mark.long)])
def test_an_exception_fails_the_job_and_is_named(ns, data, rank):
    torch_job("raises", ends("sample 17 has no label", rank, data), torchrun={"procPerNode": 2}, namespace=ns)
    end = ended("raises", ns)
    last = end["lastFailure"]
    assert end["phase"] == "Failed"
    assert (end["attempt"], end["backoffCount"]) == (0, 0)
    assert (last["rank"], last["exitCode"]) == (rank, 1)
    assert "ValueError: sample 17 has no label" in last["message"]


@pytest.mark.long
def test_torchruns_own_restarts_stay_inside(ns, data):
    torch_job("inner", ends("once is enough", 3, data), torchrun={"procPerNode": 2, "maxRestarts": 3}, namespace=ns)
    end = ended("inner", ns)
    assert end["phase"] == "Succeeded"
    assert (end["attempt"], end["backoffCount"]) == (0, 0)
    assert "lastFailure" not in end
    assert len(said(r"rank \d of 4 came through", "inner-node-0", ns)) == 2
    assert (data / "ended").exists()
    assert sorted(audit("create", "pods", ns)) == ["inner-node-0", "inner-node-1"]


@pytest.mark.long
def test_a_killed_pod_joins_again_while_pod_0_lives_on(ns, data):
    """restartScope Replica, which is an elastic job's default."""
    torch_job("again", replica("steps.py", replicas=2, data=data), torchrun={"maxRestarts": 9, **HASTE},
              **elastic(2, 2), namespace=ns)
    await_world(2, "again-node-1", ns)
    first = [uid(f"again-node-{i}", ns) for i in range(2)]
    kill_torchrun(get("ptj", "again", ns)["metadata"]["uid"])
    wait_for("another pod 1", lambda: uid("again-node-1", ns) not in (None, first[1]))
    await_world(2, "again-node-1", ns)
    await_world(2, "again-node-0", ns)
    assert uid("again-node-0", ns) == first[0]
    stop(data)
    end = ended("again", ns)
    assert end["phase"] == "Succeeded"
    assert (end["attempt"], end["backoffCount"], end["lastFailure"]["exitCode"]) == (0, 1, 137)
    assert [r["restarts"] for r in end["tasks"][0]["replicas"]] == [0, 1]
    assert sorted(audit("create", "pods", ns)) == ["again-node-0", "again-node-1", "again-node-1"]


@pytest.mark.long
def test_an_elastic_job_grows_and_shrinks_without_a_restart(ns, data):
    torch_job("grows", replica("steps.py", replicas=2, data=data), torchrun={"maxRestarts": 9, **HASTE},
              **elastic(3, 2), namespace=ns)
    await_world(2, "grows-node-0", ns)
    first = uid("grows-node-0", ns)
    for size in (3, 1):
        kubectl("-n", ns, "scale", "ptj/grows", f"--replicas={size}")
        await_world(size, "grows-node-0", ns)
        wait_for("the pods that are wanted", lambda n=size: status("grows", ns)["replicas"] == n)
    path = f"/apis/{GROUP}/v1beta1/namespaces/{ns}/pytorchtrainingjobs/grows/scale"
    assert json.loads(kubectl("get", "--raw", path))["status"] == {"replicas": 1, "selector": f"{GROUP}/job=grows"}
    assert [p["metadata"]["name"] for p in items("pods", ns, f"{GROUP}/job=grows")] == ["grows-node-0"]
    assert uid("grows-node-0", ns) == first
    stop(data)
    end = ended("grows", ns)
    assert end["phase"] == "Succeeded"
    assert (end["attempt"], end["backoffCount"], end["disruptionCount"]) == (0, 0, 0)
    assert sorted(audit("create", "pods", ns)) == [f"grows-node-{i}" for i in range(3)]


@pytest.mark.early
def test_a_paused_job_saves_its_work_and_goes_on_from_there(ns, data):
    import torch

    def done():
        return torch.load(data / "checkpoint.pt")["done"]

    def pause(enabled):
        kubectl("-n", ns, "patch", "ptj", "saved", "--type=merge", "-p",
                json.dumps({"spec": {"runMode": {"pause": {"enabled": enabled}}}}))

    resumed = [{"type": "node", "args": ["/scripts/checkpoint.py", "20"]}]
    torch_job("saved", replica("checkpoint.py", "1000000", replicas=2, data=data, **PATIENCE), torchrun={},
              runMode={"pause": {"enabled": False, "resumeSpecs": resumed}}, namespace=ns)
    wait_for("five steps", lambda: said(r"step 5 loss", "saved-node-0", ns))
    pause(True)
    wait_phase("saved", ns, "Paused")
    wait_for("no pods", lambda: not items("pods", ns, f"{GROUP}/job=saved"))
    before = done()
    assert len(before) >= 5
    pause(False)
    end = ended("saved", ns)
    assert end["phase"] == "Succeeded", logs("saved-node-0", ns)
    assert said(r"rank 0 begins after (\d+) steps", "saved-node-0", ns) == [str(len(before))]
    assert done() == list(range(len(before) + 20))
    assert (end["attempt"], end["backoffCount"], end["disruptionCount"], end["resumeCount"]) == (1, 0, 0, 1)


@pytest.mark.long
def test_pods_that_others_remove_are_disruptions(ns, data):
    def await_attempt(number):
        wait_for(f"attempt {number}", lambda: status("moved", ns).get("attempt") == number)
        wait_for("its pods", lambda: [p["metadata"]["labels"][f"{GROUP}/attempt"] for p in
                                      items("pods", ns, f"{GROUP}/job=moved")] == [str(number)] * 2)
        await_world(2, "moved-node-0", ns)

    torch_job("moved", replica("steps.py", replicas=2, data=data), torchrun={}, namespace=ns)
    await_attempt(0)
    evict("moved-node-1", ns)
    await_attempt(1)
    kubectl("-n", ns, "delete", "pod", "moved-node-0", "--wait=false")
    await_attempt(2)
    stop(data)
    end = ended("moved", ns)
    assert end["phase"] == "Succeeded"
    assert (end["disruptionCount"], end["backoffCount"], end["admissionCount"]) == (2, 0, 0)
    assert [f["reason"] for f in end["failures"]] == ["EvictionByEvictionAPI", "PodDeleted"]
    assert sorted(audit("create", "pods", ns)) == ["moved-node-0"] * 3 + ["moved-node-1"] * 3


def started(pod, ns):
    (container,) = get("pod", pod, ns)["status"]["containerStatuses"]
    return datetime.fromisoformat(container["state"]["terminated"]["startedAt"])


@pytest.mark.long
def test_pod_0_comes_late(ns):
    """For the first half of the time pod 0 has no node, so its name is unknown; then it has an address, where nobody
    listens yet."""
    pull = {"name": "pull", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["sleep", str(LATE_S // 2)]}
    master = replica("allreduce.py", type_="master", schedulingGates=[{"name": "e2e/late"}], initContainers=[pull])
    torch_job("late", master, replica("allreduce.py", type_="worker"), torchrun={"procPerNode": 2}, namespace=ns)
    wait_for("pod 0", lambda: uid("late-master-0", ns))
    time.sleep(LATE_S / 2)
    kubectl("-n", ns, "patch", "pod", "late-master-0", "--type=json",
            "-p", json.dumps([{"op": "remove", "path": "/spec/schedulingGates"}]))
    end = ended("late", ns)
    assert end["phase"] == "Succeeded"
    made = datetime.fromisoformat(get("pod", "late-master-0", ns)["metadata"]["creationTimestamp"])
    assert (started("late-master-0", ns) - made).total_seconds() >= LATE_S
    assert started("late-worker-0", ns) < started("late-master-0", ns)
    assert (end["attempt"], end["backoffCount"], end["admissionCount"]) == (0, 0, 0)
    assert len(said(r"rank \d of 4 on late-master-0: sum 10", "late-master-0", ns)) == 2
    assert sorted(audit("create", "pods", ns)) == ["late-master-0", "late-worker-0"]
