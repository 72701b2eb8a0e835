"""Our trainer in several pods: an interrupted job resumes from its checkpoint and ends with the weights of an undisturbed
training."""

import pytest
from kube import GROUP, audit, get, items, kubectl, status, wait_for, wait_phase
from torchjobs import logs, said
from trainjobs import GPT2, MNIST, checkpoints, kill_rank, script, train

WAYS = {"torchrun": {"procPerNode": 2}, "plain": None}
MORE = 20


def trained(what, name, ns, condition):
    """Wait for a training that must not end before."""
    def now():
        assert status(name, ns).get("phase") not in ("Succeeded", "Failed"), logs(f"{name}-node-0", ns)
        return condition()

    return wait_for(what, now)


def ended(name, ns):
    end = wait_phase(name, ns, "Succeeded", "Failed")
    assert end["phase"] == "Succeeded", logs(f"{name}-node-0", ns)
    return end


PARAMETERS = {MNIST: 93322, GPT2: 858880}


def as_if_nothing_had_been(name, way, data, ns, what=MNIST):
    """The job has resumed from its newest checkpoint and ends with the weights of an undisturbed one. Returns that checkpoint's step:
    a save that comes due while another is written is made at a later step."""
    (begun,) = said(r"resumed from \S+: epoch \d+, batch \d+, step (\d+)", f"{name}-node-0", ns)
    target = int(begun) + MORE
    calm = f"{name}-calm"
    train(calm, script(calm, first=target, what=what), data, ns, torchrun=WAYS[way])
    assert ended(calm, ns)["attempt"] == 0
    assert not said("resumed from", f"{calm}-node-0", ns)
    weights = (data / f"{name}.safetensors").read_bytes()
    assert len(weights) > PARAMETERS[what] * 4
    assert weights == (data / f"{calm}.safetensors").read_bytes()
    return int(begun)


@pytest.mark.early
@pytest.mark.parametrize("way", WAYS)
def test_a_rank_is_killed(ns, data, way):
    last = 3 if way == "torchrun" else 1
    train("hurt", script("hurt", more=MORE, options="--save_steps 10"), data, ns, torchrun=WAYS[way])
    trained("two checkpoints", "hurt", ns, lambda: len(checkpoints("hurt", data)) >= 2)
    kill_rank(get("ptj", "hurt", ns)["metadata"]["uid"], last)
    end = ended("hurt", ns)
    assert (end["attempt"], end["backoffCount"]) == (1, 1)
    assert (end["lastFailure"]["pod"], end["lastFailure"]["exitCode"]) == ("hurt-node-1", 137)
    assert sorted(audit("create", "pods", ns)) == ["hurt-node-0"] * 2 + ["hurt-node-1"] * 2
    assert as_if_nothing_had_been("hurt", way, data, ns) > 10  # the second, or a later one


@pytest.mark.long
def test_a_rank_of_a_gpt2_is_killed(ns, data):
    """Its samples are windows of files, its validations come in the middle of epochs."""
    train("hurt", script("hurt", more=MORE, options="--save_steps 10", what=GPT2), data, ns, torchrun=WAYS["torchrun"])
    trained("two checkpoints", "hurt", ns, lambda: len(checkpoints("hurt", data)) >= 2)
    kill_rank(get("ptj", "hurt", ns)["metadata"]["uid"], 3)
    assert ended("hurt", ns)["attempt"] == 1
    assert said(r"batch +\d+/\d+ with val loss: (\S+)", "hurt-node-0", ns)
    assert as_if_nothing_had_been("hurt", "torchrun", data, ns, what=GPT2) > 10


def unplaced(name, ns):
    """Pods of the job's second attempt that found no node."""
    return [p for p in items("pods", ns, f"{GROUP}/job={name},{GROUP}/attempt=1")
            if any(c["type"] == "PodScheduled" and c["status"] == "False" for c in p["status"].get("conditions", []))]


@pytest.mark.serial
def test_the_node_is_drained(ns, data):
    """Jobs of both ways at once. The only checkpoint to resume from is the one that the stop wrote."""
    for name, torchrun in WAYS.items():
        train(name, script(name, more=MORE), data, ns, torchrun=torchrun)
    for name in WAYS:
        trained("some steps", name, ns, lambda: said(r"batch +10/", f"{name}-node-0", ns))
        assert checkpoints(name, data) == []
    node = get("pod", "plain-node-0", ns)["spec"]["nodeName"]
    try:
        kubectl("drain", node, "--force", "--ignore-daemonsets", "--delete-emptydir-data",
                f"--pod-selector={GROUP}/job in ({','.join(WAYS)})", "--timeout=600s")
        for name in WAYS:
            wait_for("pods without a node", lambda: len(unplaced(name, ns)) == 2)
            assert status(name, ns)["phase"] == "Pending"
    finally:
        kubectl("uncordon", node)
    for name in WAYS:
        end = ended(name, ns)
        assert (end["attempt"], end["backoffCount"], end["disruptionCount"]) == (1, 0, 1)
        assert as_if_nothing_had_been(name, name, data, ns) >= 10


def test_a_pipeline_over_three_pods(ns, data):
    """Three stages in three pods of one rank have the losses of one process."""
    text = "exec trainer pipeline --epochs 2 --ckpt_dir /data/%s"
    train("stages", text % "stages", data, ns, replicas=3, torchrun={"procPerNode": 1})
    train("one", text % "one", data, ns, replicas=1)
    losses = {}
    for name in ("stages", "one"):
        assert ended(name, ns)["attempt"] == 0
        losses[name] = [float(loss) for _, loss in said(r"Epoch (\d+) Loss: (\S+)", f"{name}-node-0", ns)]
    assert len(losses["one"]) == 2
    assert losses["stages"] == pytest.approx(losses["one"], rel=1e-5)
    assert sorted(audit("create", "pods", ns)) == ["one-node-0", *(f"stages-node-{i}" for i in range(3))]
