"""tenant.py TREE - what the pods of a job can do to a Prometheus that scrapes them by the chart's PodMonitor and evaluates its rules:
a real Prometheus, and servers on loopback that stand for pods. There is no operator.
"""

import datetime
import http.server
import json
import re
import sys
import tempfile
import threading
import time
from pathlib import Path

import yaml

TREE = Path(sys.argv[1])
sys.path.insert(0, str(TREE / "tests"))
import ports  # noqa: E402
import scraper  # noqa: E402

CHART = TREE / "deploy" / "chart"
BOUND_S = 600
LINK = "<https://evil.example/login|Grafana: click to acknowledge>"
STEP = "torchkeeper_training_step"
OF_OPERATOR = """pytorchtrainingjob_build_info 1
leader_election_master_status{name="torchkeeper-operator"} 0
pytorchtrainingjob_caches_synced 0
ptj_unreadable_objects{resource="pods"} 5
"""
OTHER_SERVICE = "127.0.0.2"
# What each pod answers; a number is a status. "away" leads to the other service.
PODS = {
    "honest": f'{STEP} 5\ntorchkeeper_training_straggler_ratio{{rank="3"}} 1.5\n',
    "flood": "".join(f'{STEP}{{rank="{i}"}} 1\n' for i in range(100_000)),
    "many": "".join(f'{STEP}{{rank="{i}"}} 1\n' for i in range(51)),
    "operator": OF_OPERATOR,
    "link": f'torchkeeper_training_straggler_ratio{{rank="{LINK}"}} 9\n{STEP}{{summary="{LINK}"}} 1\n',
    "digits": 'torchkeeper_training_straggler_ratio{rank="1234567890"} 9\n',
    "away": 302,
    "named": f"{STEP} 1\n",
}
JOBS = {"named": "evil.example"}  # the job's label of a pod, where it is no name of a job


def eventually(get, is_good):
    """What get() returns: good, or the last of BOUND_S. On a busy machine a scrape comes late, or not in its second."""
    end = time.monotonic() + BOUND_S
    while not is_good(value := get()) and time.monotonic() < end:
        time.sleep(0.2)
    return value


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        host, port = self.server.server_address
        self.server.asked.append(f"{host}{self.path}")
        answer = self.server.answer
        body = b"" if isinstance(answer, int) else answer.encode()
        self.send_response(answer if isinstance(answer, int) else 200)
        if isinstance(answer, int):
            self.send_header("Location", f"http://{OTHER_SERVICE}:{port}/admin/export?secret=1")
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass  # who asked has read enough

    def log_message(self, *args):
        pass


class Tenant:
    """Servers at one port of many addresses: the other service first, then one for each pod; and the Prometheus."""

    def __init__(self, folder):
        port, self.asked = ports.take(), []
        for i, answer in enumerate(["other_service 1\n", *PODS.values()]):
            server = http.server.ThreadingHTTPServer((f"127.0.0.{2 + i}", port), Handler)
            server.asked, server.answer, server.daemon_threads = self.asked, answer, True
            threading.Thread(target=server.serve_forever, daemon=True).start()
        targets = folder / "pods.json"
        targets.write_text(json.dumps([self.target(f"127.0.0.{3 + i}", pod) for i, pod in enumerate(PODS)]))
        monitor = {"metadata": {"namespace": "torchkeeper-system", "name": "torchkeeper-jobs"},
                   "spec": yaml.safe_load((CHART / "jobs-monitor.yaml").read_text())}
        rules = [folder / name for name in ("rules.yaml", "rules-of-pods.yaml")]
        for file in rules:  # an alert's time to wait is cut: promtool tests it
            file.write_text(re.sub(r"^    for: .*\n", "", (CHART / file.name).read_text(), flags=re.M))
        self.prometheus = scraper.Prometheus(folder, ports.take(), [scraper.job_of(monitor, targets, port)], *rules)

    @staticmethod
    def target(ip, pod):
        labels = {"namespace": "tenant", "pod_name": pod, "pod_ip": ip, "pod_container_name": "torchkeeper-launcher",
                  "pod_label_batch_tensorstack_dev_job": JOBS.get(pod, pod)}
        return {"targets": [ip], "labels": {f"__meta_kubernetes_{k}": v for k, v in labels.items()}}

    def targets(self):
        return {t["labels"]["pod"]: t for t in self.prometheus.ask("targets", state="active")["activeTargets"]}

    def settle(self):
        """Each pod has been asked, and afterwards each rule was evaluated."""
        def wait(what, done):
            assert eventually(done, lambda is_done: is_done), f"waited for {what}: {self.targets()}"

        def groups_since(when):
            return all(datetime.datetime.fromisoformat(g["lastEvaluation"]) > when
                       for g in self.prometheus.ask("rules")["groups"])

        wait("targets", lambda: len(self.targets()) >= len(PODS) - len(JOBS))
        wait("scrapes", lambda: len(self.prometheus.values("up")) == len(self.targets()))
        now = datetime.datetime.now(datetime.timezone.utc)
        wait("rules", lambda: groups_since(now))

    def series_of(self, pod):
        found = self.prometheus.values(f'{{pod="{pod}", __name__!~"up|scrape_.*|ALERTS.*"}}')
        return sorted((s["metric"]["__name__"], s["metric"].get("rank")) for s in found)

    def firing(self):
        return [a for a in self.prometheus.ask("alerts")["alerts"] if a["state"] == "firing"]

    def fired(self):
        labels = [a["labels"] for a in self.firing()]
        return sorted((of["alertname"], of.get("training_job"), of.get("rank")) for of in labels)


def test_a_pod_of_too_many_series_has_none(tenant):
    """Of 100,000 the size of the answer is too much already; of 51 the number is."""
    for pod, why in (("flood", "body size limit"), ("many", "sample limit")):
        assert tenant.series_of(pod) == [], len(tenant.series_of(pod))
        said = eventually(lambda pod=pod: tenant.targets()[pod]["lastError"], lambda said, why=why: why in said)
        assert why in said, said


def test_a_redirect_is_not_followed(tenant):
    assert not any(OTHER_SERVICE + "/" in asked for asked in tenant.asked), tenant.asked
    said = eventually(lambda: tenant.targets()["away"]["lastError"], lambda said: "302" in said)
    assert "302" in said, said


def test_who_speaks_as_the_operator_fires_nothing_and_hides_nothing(tenant):
    assert tenant.series_of("operator") == []
    wanted = [("TorchkeeperOperatorDown", None, None), ("TorchkeeperRankSlow", "honest", "3")]
    fired = eventually(tenant.fired, lambda fired: fired == wanted)
    assert fired == wanted, fired


def test_what_a_tenant_tells_pages_nobody(tenant):
    paging = [a["labels"] for a in tenant.firing() if a["labels"]["severity"] != "info"]
    assert [a["alertname"] for a in paging] == ["TorchkeeperOperatorDown"], paging
    assert all(a["labels"]["source"] == "pods" for a in tenant.firing() if "training_job" in a["labels"])


def test_a_link_in_a_label_gets_no_further(tenant):
    """A sample whose rank is no number is dropped, another loses the label."""
    for pod, wanted in (("link", [(STEP, None)]), ("digits", []),
                        ("honest", [(STEP, None), ("torchkeeper_training_straggler_ratio", "3")])):
        found = eventually(lambda pod=pod: tenant.series_of(pod), lambda found, wanted=wanted: found == wanted)
        assert found == wanted, found
    known = {"__name__", "job", "instance", "namespace", "pod", "training_job", "rank"}
    assert all(s["metric"].keys() <= known for s in tenant.prometheus.values('{__name__=~"torchkeeper_.*"}'))
    assert "evil" not in json.dumps(tenant.firing()) and "named" not in tenant.targets()


def test_rules_alone_pass_no_text_of_a_tenant(tenant):
    """Also where somebody scrapes pods without the monitor's checks: rules name ranks that are numbers, and labels by name."""
    (group,) = yaml.safe_load((CHART / "rules-of-pods.yaml").read_text())["groups"]
    assert len(group["rules"]) == 3
    for rule in group["rules"]:
        assert set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"]))) <= {"namespace", "training_job", "rank"}
        assert re.match(r"(sum|max) by \(namespace, training_job(, rank)?\)", rule["expr"]), rule["expr"]
        assert ("rank)" in rule["expr"]) == ('rank=~"[0-9]{1,9}"' in rule["expr"]), rule["expr"]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        tenant = Tenant(Path(folder))
        try:
            tenant.settle()
            for name, test in sorted(globals().items()):
                if not name.startswith("test_"):
                    continue
                try:
                    test(tenant)
                    print(f"{name}: ok")
                except AssertionError as why:
                    failed = 1
                    print(f"{name}: FAILED: {str(why)[:600]}")
        finally:
            tenant.prometheus.close()
    return failed


sys.exit(main())
