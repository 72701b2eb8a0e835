"""The walk of tests/unit/trainer/run/elastic_walk.py with pods: ranks join and leave a training of our trainer under `kubectl scale`,
each at a step's boundary; each sample is trained on once per epoch, at the undisturbed run's learning rate."""

import random
import shlex
from types import SimpleNamespace

import pytest
from jobs import container, job, mounted
from kube import apply, kubectl, status, wait_for, wait_phase
from torchjobs import HASTE, elastic, uid
from unit.trainer.run import elastic_walk as walk

SIZES = (3, 2, 4, 1)


def trainer(*options):
    """Rank 0 appends its lines to /data/NAME.out: each round of the launcher has other processes."""
    words = walk.trainer(SimpleNamespace(bin="", timeout=walk.LIMIT_S), "/data", *options)
    return f'[ "${{RANK:-0}}" = 0 ] || exec >/dev/null\nexec trainer {shlex.join(words[1:])} >>/data/%s.out'


def replica(name, *options, torchrun):
    one = container(trainer(*options) % name, securityContext={"runAsUser": 0})
    one["env"].append({"name": "OMP_NUM_THREADS", "value": "1"})
    one["resources"]["limits"]["memory"] = "512Mi"
    if torchrun:
        one["args"] = one.pop("command")
    pod = {"containers": [one], "terminationGracePeriodSeconds": 60}
    return {"type": "node", "replicas": 1, "restartPolicy": "ExitCode", "template": {"spec": pod}}


class Undisturbed(walk.Undisturbed):
    """One rank in a pod of its own."""

    def __init__(self, data, ns):
        super().__init__(None, None)
        self.data, self.ns = data, ns

    def run(self, batch, field, event, epochs):
        name = f"calm-{batch}"
        options = ["--batch_size", str(batch), "--max_steps", str(epochs * -(-walk.SAMPLES // batch)), "--ckpt_dir", f"/data/{name}"]
        apply(mounted(self.data, job(name, replica(name, *options, torchrun=False))), namespace=self.ns)
        assert wait_phase(name, self.ns, "Succeeded", "Failed")["phase"] == "Succeeded"
        return [e[field] for e in ledger(self.data / f"{name}.out").events if e["event"] == event]


class Ledger(walk.Ledger):
    def __init__(self, stream):
        self.events = []
        super().__init__(stream)

    def take(self, event):
        self.events.append(event)
        if event["event"] != "speed" or self.steps:
            super().take(event)


def ledger(path):
    """What rank 0 has written so far; the last line may not be whole."""
    text = path.read_text() if path.exists() else ""
    now = Ledger(text[:text.rfind("\n") + 1].splitlines())
    now.reader.join()
    return now


@pytest.mark.long
def test_pods_join_and_leave_at_a_steps_boundary(ns, data):
    (data / "walk.yaml").write_text(walk.MODEL)
    (data / "text.txt").write_bytes(random.Random(1).randbytes(64 * walk.SAMPLES + 1))
    apply(mounted(data, job("walk", replica("walk", "--ckpt_dir", "/data/ck", torchrun=True),
                            torchrunConfig={"enabled": True, "procPerNode": 1, "maxRestarts": 100, **HASTE}, **elastic(4, 1))),
          namespace=ns)

    def trains(size, more):
        begin = len(ledger(data / "walk.out").steps)

        def now():
            steps = ledger(data / "walk.out").steps
            return len(steps) > begin + more and steps[-1]["world"] == size

        wait_for(f"{more} steps of {size} ranks", now)

    trains(1, 20)
    first = uid("walk-node-0", ns)
    for size in SIZES:
        kubectl("-n", ns, "scale", "ptj/walk", f"--replicas={size}")
        trains(size, 40)
    end = status("walk", ns)
    assert [end.get(k, 0) for k in ("attempt", "backoffCount", "disruptionCount")] == [0, 0, 0]
    assert uid("walk-node-0", ns) == first
    kubectl("-n", ns, "delete", "ptj", "walk", "--cascade=foreground")
    walked = ledger(data / "walk.out")
    walk.check(walked, Undisturbed(data, ns))
    assert walked.redone == 0
    assert {s["world"] for s in walked.steps} == {1, *SIZES}
    print(f"1 {' '.join(map(str, SIZES))} pods: {len(walked.steps)} steps, {walked.steps[-1]['epoch']} epochs")
