"""record.py - the answers of a real Prometheus to each query of the dashboards after some minutes of jobs, for the docs' pictures.

The operator, two launchers and the trainers below them are processes of this machine, on Debian's
dataset-fashion-mnist. One rank is slow, and one is killed. The pods of all jobs are on a node that exists on paper
only. For the jobs "run-*" this program writes that their pods run and end. scripts/pictures/dashboards draws the file ANSWERS.
"""

import json
import os
import subprocess
import time
from pathlib import Path

import jobs
import ports
import pytest
from kube import SYSTEM, apply, field, get, kubectl, wait_for, wait_phase
from prometheus import Prometheus, discovered, job_of, static_job
from test_chart import PROMETHEUS_PORT, TORCHRUN, dashboards, filled_in, operator, release_notes  # noqa: F401

DATA = "/usr/share/datasets/fashion-mnist"
SECONDS = 5 * 60  # Kubernetes evicts the pods of a node that does not answer after five minutes and some seconds
STEP = 5
# What $__rate_interval is in Grafana by default: four scrape intervals of 15 s.
RATE = "1m"
# Job, preset, ranks, options of the trainer.
TRAINED = (("mnist", "mnist-cnn", 3, ["--epochs=20", "--log_interval=5"]), ("mlp", "fashion-mlp", 2, ["--epochs=80", "--log_interval=20"]))
# Rank 1 is stopped half of the time.
SLOW = '[ "$RANK" != 1 ] || { while kill -STOP $$; do sleep 0.05; kill -CONT $$; sleep 0.05; done 2>/dev/null & }; exec "$@"'
# Exit codes of the jobs that come and go, in turn; 137 is tried again.
CODES = (0, 0, 137, 0, 1)
KEPT = 12


class Training:
    """A launcher with its ranks, which stands for pod 0 of a job."""

    def __init__(self, folder, name, preset, ranks, options):
        self.name, self.port, self.targets, self.ranks = name, ports.take(), folder / f"{name}.json", ranks
        self.targets.write_text("[]")
        (folder / name).mkdir()
        self.log = folder / f"{name}.log"
        self.argv = [TORCHRUN, "--standalone", f"--nproc-per-node={ranks}", "--max-restarts=3", "--no-python",
                     "sh", "-c", SLOW if ranks > 2 else 'exec "$@"', "sh", TORCHRUN.with_name("trainer"), preset, "--data", DATA,
                     "--threads=1", "--save_seconds=20", *options]
        self.folder = folder / name
        self.process = None

    def start(self):
        with self.log.open("w") as out:
            self.process = subprocess.Popen(self.argv, cwd=self.folder, stdout=out, stderr=out,
                                            env={**os.environ, "TORCHKEEPER_PROGRESS_PORT": str(self.port)})

    def kill_a_rank(self):
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        os.kill(int(children[-1]), 9)

    def set_targets(self, found):
        """Write Prometheus' targets: those of this job's pods."""
        own = [t for t in found if t["labels"]["__meta_kubernetes_pod_name"] == f"{self.name}-node-0"]
        self.targets.with_suffix(".new").write_text(json.dumps(own))
        self.targets.with_suffix(".new").replace(self.targets)

    def close(self):
        if self.process:
            self.process.terminate()
            self.process.wait(timeout=120)


@pytest.fixture(scope="module")
def trainings(tmp_path_factory):
    made = [Training(tmp_path_factory.mktemp("trainings"), *t) for t in TRAINED]
    yield made
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def prometheus(operator, trainings, tmp_path_factory):  # noqa: F811
    monitor = get("podmonitor", "torchkeeper-jobs", SYSTEM)
    launchers = [{**job_of(monitor, t.targets, t.port), "job_name": t.name} for t in trainings]
    made = Prometheus(tmp_path_factory.mktemp("prometheus"), PROMETHEUS_PORT, [
        static_job(get("podmonitor", "torchkeeper-operator", SYSTEM), f"127.0.0.1:{operator.port}", "operator-0"), *launchers])
    yield made
    made.close()


def begin(node, trainings):
    """The jobs that train: their pods run, and their launchers are begun."""
    for t in trainings:
        apply(jobs.job(t.name, jobs.replica("true"), torchrunConfig={
            "enabled": True, "procPerNode": str(t.ranks), "launcher": "Torchkeeper"}), namespace="vision")
        node.run("vision", f"{t.name}-node-0")
        node.patch("vision", "pod", f"{t.name}-node-0", {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]})
        t.start()
    found = discovered(get("podmonitor", "torchkeeper-jobs", SYSTEM))
    for t in trainings:
        t.set_targets(found)


def one_more(node, number):
    """A job that comes, runs and ends; the oldest of them goes."""
    name, code = f"run-{number}", CODES[number % len(CODES)]
    pod = f"{name}-node-0"
    apply(jobs.job(name, jobs.replica("true")), namespace="nightly")
    first = node.run("nightly", pod)
    wait_phase(name, "nightly", "Running")
    node.end("nightly", pod, code)
    if code == 137:
        wait_for("a new pod", lambda: field("pod", pod, "nightly", "metadata.uid") not in (None, first))
        node.run("nightly", pod)
        wait_phase(name, "nightly", "Running")
        node.end("nightly", pod, 0)
    wait_phase(name, "nightly", "Failed" if code == 1 else "Succeeded")
    if number >= KEPT:
        kubectl("-n", "nightly", "delete", "ptj", f"run-{number - KEPT}", "--wait=false")


def answers(prometheus, start, end):
    def one(target):
        query = filled_in(target["expr"], RATE)
        if target.get("instant"):
            return prometheus.ask("query", query=query, time=end)["result"]
        return prometheus.ask("query_range", query=query, start=start, end=end, step=STEP)["result"]

    return {name: {f"{panel['id']} {target['refId']}": one(target) for panel in board["panels"] for target in panel.get("targets", [])}
            for name, board in dashboards().items()}


def test_record(prometheus, trainings, node):
    for namespace in ("vision", "nightly"):
        kubectl("create", "namespace", namespace)
    wait_for("the operator's first numbers", lambda: prometheus.values("pytorchtrainingjob_jobs or pytorchtrainingjob_created_total"))
    apply(jobs.job("waits", jobs.replica("true")), namespace="nightly")
    begin(node, trainings)
    start = int(time.time())
    number, killed = 0, False
    while time.time() < start + SECONDS:
        one_more(node, number)
        number += 1
        if not killed and time.time() > start + SECONDS / 2:
            trainings[-1].kill_a_rank()
            killed = True
    end = int(time.time())
    assert all(t.process.poll() is None for t in trainings), [t.log.read_text()[-2000:] for t in trainings]
    recorded = {"start": start, "end": end, "step": STEP, "boards": answers(prometheus, start, end)}
    Path(os.environ["ANSWERS"]).write_text(json.dumps(recorded, separators=(",", ":")) + "\n")
