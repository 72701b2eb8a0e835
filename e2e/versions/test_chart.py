"""The chart on a real API server, and its monitoring: each query of the dashboards has data in a Prometheus that scraped the
operator and a launcher, and the server accepts PodMonitors and PrometheusRules by the Prometheus operator's own schema.

The operator and the launcher are processes of this machine; the rest is as Helm installed it.
"""

import base64
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jobs
import pytest
from conftest import PROGRAM, access, established
from kube import BOUND_S, GROUP, REPO, STATE, SYSTEM, apply, field, get, kubectl, status, wait_for, wait_phase
from prometheus import Prometheus, discovered, job_of, static_job

CHART = REPO / "deploy" / "chart"
VALUES = REPO / "tests" / "unit" / "deploy" / "values"
TORCHRUN = REPO / "build" / "release" / "bin" / "torchrun"
CRD = f"pytorchtrainingjobs.{GROUP}"
ON = {"enabled": True}
METRICS = {"service": ON, "podMonitor": {**ON, "jobs": True}, "prometheusRule": ON, "dashboards": ON}
# The servers' block of ports ends with these two, which none of its parts uses.
API_PORT = int((STATE / "config" / "port").read_text())
LAUNCHER_PORT, PROMETHEUS_PORT = API_PORT + 6, API_PORT + 7


def helm(*args, values=None):
    done = subprocess.run(["helm", "--namespace", SYSTEM, *args], input=json.dumps(values or {}), text=True, capture_output=True)
    assert done.returncode == 0, f"helm {' '.join(map(str, args))}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def release_notes():
    """The chart with all that it has, once the Prometheus operator's definitions are there; what Helm printed."""
    for kind in ("podmonitors", "prometheusrules"):
        kubectl("apply", "--server-side", "-f", str(Path(os.environ["MONITORS"]) / f"monitoring.coreos.com_{kind}.yaml"))
        crd = f"{kind}.monitoring.coreos.com"
        wait_for(f"the CRD {crd}", lambda crd=crd: established(crd))
    printed = helm("install", "torchkeeper", CHART, "--create-namespace", "--values", "-",
                   values={"metrics": METRICS, "networkPolicy": ON})
    wait_for("the CRD", lambda: established(CRD))
    return printed


@contextlib.contextmanager
def running_operator(log):
    """The process, with the arguments of the Deployment but for its addresses, and the port of its metrics."""
    pod = get("deployment", "torchkeeper-operator", SYSTEM)["spec"]["template"]["spec"]
    args = [a for a in pod["containers"][0]["args"] if "-bind-address=" not in a]
    with log.open("w") as out:
        process = subprocess.Popen(
            [PROGRAM, *args, *access(pod["serviceAccountName"]), f"--leader-elect-namespace={SYSTEM}",
             "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0"], stderr=out)
    try:
        port = wait_for(lambda: f"the operator's port: {log.read_text()}",
                        lambda: re.findall(r"/metrics on port (\d+)", log.read_text()) or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield SimpleNamespace(process=process, port=int(port[0]))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=BOUND_S) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def operator(release_notes):
    with running_operator(STATE / "logs" / "operator.log") as running:
        yield running


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    """The file by which Prometheus is told of the jobs' pods."""
    file = tmp_path_factory.mktemp("targets") / "pods.json"
    file.write_text("[]")
    return file


@pytest.fixture(scope="module")
def prometheus(operator, targets, tmp_path_factory):
    made = Prometheus(tmp_path_factory.mktemp("prometheus"), PROMETHEUS_PORT, [
        static_job(get("podmonitor", "torchkeeper-operator", SYSTEM), f"127.0.0.1:{operator.port}", "operator-0"),
        job_of(get("podmonitor", "torchkeeper-jobs", SYSTEM), targets, LAUNCHER_PORT)])
    yield made
    made.close()


@pytest.fixture(scope="module")
def launcher(tmp_path_factory):
    folder = tmp_path_factory.mktemp("launcher")
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [TORCHRUN, "--standalone", "--nproc-per-node=3", "--no-python", sys.executable,
             str(Path(__file__).with_name("training.py")), str(folder / "end")],
            env={**os.environ, "TORCHKEEPER_PROGRESS_PORT": str(LAUNCHER_PORT)}, stdout=out, stderr=out)
    yield log
    (folder / "end").touch()
    try:
        assert process.wait(timeout=BOUND_S) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def watched(prometheus, targets, launcher, node):
    """Jobs of all sorts, begun when the operator has been scraped: a rate needs a number from before."""
    wait_for("the operator's first numbers",
             lambda: prometheus.values("pytorchtrainingjob_jobs or pytorchtrainingjob_created_total"))
    kubectl("create", "namespace", "watched")
    annotated = jobs.replica("true")
    annotated["template"]["metadata"] = {"annotations": {"prometheus.io/scrape": "true"}}
    annotated["template"]["spec"]["containers"].append({"name": "sidecar", "image": "none"})
    apply(*(jobs.job(name, jobs.replica("true")) for name in ("good", "gone", "bad", "again", "waits")),
          jobs.job("trains", jobs.replica("true"),
                   torchrunConfig={"enabled": True, "procPerNode": "3", "launcher": "Torchkeeper"}),
          jobs.job("annotated", annotated), namespace="watched")
    for name, code in (("good", 0), ("gone", 0), ("bad", 1), ("again", 137)):
        first = node.run("watched", f"{name}-node-0")
        wait_phase(name, "watched", "Running")
        node.end("watched", f"{name}-node-0", code)
    wait_for("a new pod", lambda: field("pod", "again-node-0", "watched", "metadata.uid") not in (None, first))
    for name in ("again", "trains", "annotated"):
        node.run("watched", f"{name}-node-0")
        node.patch("watched", "pod", f"{name}-node-0", {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]})
    with_address = discovered(get("podmonitor", "torchkeeper-jobs", SYSTEM))
    assert len(with_address) == 5, "one container, and two pods of two"
    targets.with_suffix(".new").write_text(json.dumps(with_address))
    targets.with_suffix(".new").replace(targets)
    for name, phase in (("good", "Succeeded"), ("gone", "Succeeded"), ("bad", "Failed"), ("again", "Running"), ("waits", "Pending"), ("trains", "Running"),
                        ("annotated", "Running")):
        wait_phase(name, "watched", phase)
    kubectl("-n", "watched", "delete", "ptj", "gone")
    return prometheus


def dashboards():
    return {p.stem: json.loads(p.read_text()) for p in sorted((CHART / "dashboards").glob("*.json"))}


def query_of(variable):
    """label_values(SERIES, LABEL) as a query that has an answer when the variable has values."""
    series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
    named = f'{label}!=""}}'
    return f"count by ({label}) ({series.removesuffix('}') + ',' if series.endswith('}') else series + '{'}{named})"


def queries():
    for name, board in dashboards().items():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                yield f"{name}: variable {variable['name']}", query_of(variable)
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                # What stands in for data counts as none.
                yield f"{name}: {panel['title']} {target['refId']}", target["expr"].removesuffix(" or vector(0)")


def filled_in(expression, rate="5m"):
    expression = expression.replace("$__rate_interval", rate)
    return re.sub(r"\$\w+", ".*", expression)


def test_server_takes_what_the_chart_brings(release_notes):
    assert "works on PyTorchTrainingJobs of all namespaces" in release_notes
    platform = helm("template", "torchkeeper", CHART, "--values", VALUES / "platform.yaml")
    for objects, kinds in ((helm("get", "manifest", "torchkeeper"), ("podmonitor", "prometheusrule", "poddisruptionbudget")), (platform, ())):
        done = subprocess.run(["kubectl", "apply", "--dry-run=server", "--validate=strict", "-f", "-"], input=objects, text=True,
                              capture_output=True)
        assert done.returncode == 0, done.stderr
        for kind in ("networkpolicy", "deployment", *kinds):
            assert f"{kind}." in done.stdout, done.stdout
    secret = get("secret", "sh.helm.release.v1.torchkeeper.v1", SYSTEM)
    assert len(base64.b64decode(secret["data"]["release"])) < 200_000, "at most 1 MiB fits"


def test_each_query_of_the_dashboards_has_data(watched, launcher):
    left = {name: filled_in(q) for name, q in queries()}
    assert len(left) > 60

    def tell():
        targets = [(t["scrapeUrl"], t["health"], t["lastError"]) for t in watched.ask("targets")["activeTargets"]]
        return f"data for {json.dumps(left, indent=1)}\ntargets {targets}\n{launcher.read_text()[-3000:]}"

    def all_have():
        for name in [n for n, q in left.items() if watched.values(q)]:
            del left[name]
        return not left

    wait_for(tell, all_have)


def test_jobs_that_can_answer_have_one_target_with_their_names(watched):
    """All these pods lead to the one launcher here; the job "again" has no launcher of ours, and is not asked."""
    def labels():
        return sorted((m["namespace"], m["pod"], m["training_job"], "container" in m) for m in (
            s["metric"] for s in watched.values("torchkeeper_training_step")))

    # A scrape may fail on a busy machine: the series is away until the next one.
    wait_for(labels, lambda: labels() == [("watched", f"{job}-node-0", job, False) for job in ("annotated", "trains")])


def test_a_jobs_namespace_is_not_the_operators(watched):
    def failed():
        return [(s["metric"]["namespace"], s["value"][1]) for s in watched.values('pytorchtrainingjob_jobs{phase="Failed"}')]

    wait_for(failed, lambda: failed() == [("watched", "1")])


def test_rules_are_evaluated_and_the_failed_job_is_told(watched):
    def rules():
        return [r for g in watched.ask("rules")["groups"] for r in g["rules"]]

    wait_for("each rule's first evaluation", lambda: all(r["health"] != "unknown" for r in rules()))
    assert {r["health"] for r in rules()} == {"ok"}, rules()
    wait_for(lambda: f"the alert: {rules()}", lambda: {r["name"] for r in rules() if r["state"] == "firing"} == {"TorchkeeperJobFailed"})


def test_without_tensorboards_the_operator_needs_no_deployments(operator, watched):
    """The role lacks them, the operator does not ask for them, and the job says why it has none."""
    helm("upgrade", "torchkeeper", CHART, "--values", VALUES / "small.yaml")
    account = f"--as=system:serviceaccount:{SYSTEM}:torchkeeper-operator"
    wait_for("the role to count", lambda: kubectl("auth", "can-i", "list", "deployments.apps", "-A", account, check=False) == "no\n")
    operator.process.send_signal(signal.SIGTERM)
    assert operator.process.wait(timeout=BOUND_S) == 0
    log = STATE / "logs" / "operator-small.log"
    with running_operator(log):
        apply(jobs.job("board", jobs.replica("true"), tensorboardSpec={"logDir": {"pvc": [{"name": "p"}]}}), namespace="watched")
        wait_for(lambda: f"the reason: {status('board', 'watched')}", lambda: (status("board", "watched") or {}).get("tensorboard"))
        assert status("board", "watched")["tensorboard"]["reason"] == "Disabled"
    assert "orbidden" not in log.read_text(), log.read_text()


def test_upgrade_changes_what_was_asked_for_and_uninstall_keeps_the_jobs(watched):
    helm("upgrade", "torchkeeper", CHART, "--values", "-", values={"replicas": 2, "crds": {"install": False}})
    assert field("deployment", "torchkeeper-operator", SYSTEM, "spec.replicas") == 2
    assert CRD not in helm("get", "manifest", "torchkeeper")
    helm("upgrade", "torchkeeper", CHART, "--set", "crds.install=true")
    assert CRD in helm("get", "manifest", "torchkeeper")
    assert get("podmonitor", "torchkeeper-jobs", SYSTEM) is None
    helm("uninstall", "torchkeeper")
    wait_for("the Deployment's end", lambda: get("deployment", "torchkeeper-operator", SYSTEM) is None)
    assert status("trains", "watched")["phase"] == "Running"
    assert established(CRD)
