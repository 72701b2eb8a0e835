"""Real PyTorch under our torchrun in two pods of two processes each: the scripts are those of test_torch.py, unchanged;
the pods' own exit codes are the root cause's."""

import pytest
from kube import audit, get, kubectl, wait_for, wait_phase
from torchjobs import HASTE, OURS, await_world, elastic, kill_torchrun, logs, replica, said, stop, torch_job, uid

LOST = "was lost: its launcher's connection ended"


def run(name, ns, pods, max_restarts=0, **spec):
    torch_job(name, pods, torchrun={"procPerNode": 2, "maxRestarts": max_restarts, **OURS}, namespace=ns, **spec)


def ended(name, ns):
    return wait_phase(name, ns, "Succeeded", "Failed")


def exit_code(pod, ns):
    def terminated():
        (container,) = (get("pod", pod, ns) or {}).get("status", {}).get("containerStatuses") or [{}]
        return container.get("state", {}).get("terminated")

    return wait_for(f"the end of {pod}", terminated)["exitCode"]


def test_gloo_over_two_pods(ns):
    run("sum", ns, replica("allreduce.py", replicas=2))
    end = ended("sum", ns)
    assert end["phase"] == "Succeeded", logs("sum-node-0", ns)
    assert sorted(said(r"rank (\d) of 4 on sum-node-0: sum 10", "sum-node-0", ns)) == ["0", "1"]
    assert sorted(said(r"rank (\d) of 4 on sum-node-1: sum 10", "sum-node-1", ns)) == ["2", "3"]
    assert [exit_code(f"sum-node-{i}", ns) for i in range(2)] == [0, 0]
    assert sorted(audit("create", "pods", ns)) == ["sum-node-0", "sum-node-1"]


@pytest.mark.early
@pytest.mark.parametrize(("how", "code"), [("7", 7), ("SIGSEGV", 139), ("PARENT", 143)])
def test_a_pod_ends_as_its_rank_did(ns, data, how, code):
    """Rank 3 fails in pod 1; pod 0 only reports a lost peer."""
    # Nothing is restarted, so that the pods stay to be looked at.
    run("ends", ns, replica("ends.py", replicas=2, policy="Never", env={"END": how, "RANK_TO_END": "3"}, data=data,
                            grace=60))
    end = ended("ends", ns)
    assert (end["phase"], end["attempt"]) == ("Failed", 0)
    assert (end["lastFailure"]["pod"], end["lastFailure"]["exitCode"]) == ("ends-node-1", code)
    assert [exit_code(f"ends-node-{i}", ns) for i in range(2)] == [140, code]


def test_a_pod_that_is_gone(ns, data):
    """Pod 1 is gone and reports nothing; pod 0 notices the closed connection."""
    run("gone", ns, replica("steps.py", replicas=2, policy="Never", data=data))
    await_world(4, "gone-node-1", ns)
    kill_torchrun(get("ptj", "gone", ns)["metadata"]["uid"])
    end = ended("gone", ns)
    assert (end["lastFailure"]["pod"], end["lastFailure"]["exitCode"]) == ("gone-node-1", 137)
    assert [exit_code(f"gone-node-{i}", ns) for i in range(2)] == [140, 137]
    assert LOST in logs("gone-node-0", ns)


def test_a_pod_that_never_comes(ns):
    late = replica("steps.py", type_="worker", policy="Never", schedulingGates=[{"name": "e2e/never"}])
    torch_job("alone", replica("steps.py", type_="master", policy="Never"), late,
              torchrun={"extraOptions": ["--rdzv_conf=join_timeout=5"], **OURS}, namespace=ns)
    assert exit_code("alone-master-0", ns) == 138
    assert "1 of at least 2 nodes came within 5 s" in logs("alone-master-0", ns)


@pytest.mark.early
def test_an_elastic_job_grows_loses_a_pod_and_shrinks(ns, data):
    """Pod 0 trains through all of it."""
    torch_job("grows", replica("steps.py", replicas=2, data=data), torchrun={"maxRestarts": 9, **HASTE, **OURS},
              **elastic(3, 2), namespace=ns)
    await_world(2, "grows-node-0", ns)
    first = [uid(f"grows-node-{i}", ns) for i in range(2)]
    kubectl("-n", ns, "scale", "ptj/grows", "--replicas=3")
    await_world(3, "grows-node-0", ns)
    await_world(3, "grows-node-2", ns)
    killed = uid("grows-node-2", ns)
    kill_torchrun(get("ptj", "grows", ns)["metadata"]["uid"], "grows-node-2")
    wait_for("another pod 2", lambda: uid("grows-node-2", ns) not in (None, killed))
    await_world(3, "grows-node-2", ns)
    for i in range(2):
        wait_for(f"pod {i} in the new round", lambda i=i: len(said(r"of world 3\n", f"grows-node-{i}", ns)) == 2)
    kubectl("-n", ns, "scale", "ptj/grows", "--replicas=1")
    await_world(1, "grows-node-0", ns)
    stop(data)
    end = ended("grows", ns)
    assert end["phase"] == "Succeeded", logs("grows-node-0", ns)
    assert (end["attempt"], end["backoffCount"], end["lastFailure"]["exitCode"]) == (0, 1, 137)
    told = logs("grows-node-0", ns)
    assert told.count(LOST) == 1
    assert "restart 1 of 9" not in told
    assert uid("grows-node-0", ns) == first[0]
    assert sorted(audit("create", "pods", ns)) == ["grows-node-0", "grows-node-1"] + ["grows-node-2"] * 2


def test_restarts_inside_need_no_new_pods(ns, data):
    run("inner", ns, replica("ends.py", replicas=2, env={"END": "SIGKILL", "RANK_TO_END": "3"}, data=data),
        max_restarts=3)
    end = ended("inner", ns)
    assert end["phase"] == "Succeeded", logs("inner-node-0", ns)
    assert (end["attempt"], end["backoffCount"]) == (0, 0)
    assert (data / "ended").exists()
    came = [said(r"rank (\d) of 4 came through", f"inner-node-{i}", ns) for i in range(2)]
    assert [sorted(c) for c in came] == [["0", "1"], ["2", "3"]]
    assert sorted(audit("create", "pods", ns)) == ["inner-node-0", "inner-node-1"]
