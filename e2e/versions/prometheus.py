"""prometheus.py - a real Prometheus on loopback, which finds its targets by the chart's PodMonitors."""

import json
import re
import subprocess
import urllib.parse
import urllib.request

import yaml
from kube import BOUND_S, REPO, kubectl, wait_for

RULES = REPO / "deploy" / "chart" / "rules.yaml"
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def snake(name):
    return re.sub("([A-Z])", lambda m: "_" + m[1].lower(), name)


def word(text):
    return re.sub("[^a-zA-Z0-9_]", "_", text)


def discovered(monitor):
    """What Prometheus' discovery of pods finds for a PodMonitor: a target for each container, init containers too, without a port
    where the container declares none. (Debian's Prometheus is built without that discovery.)"""
    selector = [f"{k}={v}" for k, v in monitor["spec"]["selector"]["matchLabels"].items()]
    selector += [e["key"] for e in monitor["spec"]["selector"].get("matchExpressions", []) if e["operator"] == "Exists"]
    found = json.loads(kubectl("get", "pods", "--all-namespaces", "-l", ",".join(selector), "-o", "json"))["items"]
    targets = []
    for pod in (p for p in found if p["status"].get("podIP")):
        meta, ip = pod["metadata"], pod["status"]["podIP"]
        labels = {"namespace": meta["namespace"], "pod_name": meta["name"], "pod_ip": ip}
        labels |= {f"pod_label_{word(k)}": v for k, v in meta.get("labels", {}).items()}
        labels |= {f"pod_annotation_{word(k)}": v for k, v in meta.get("annotations", {}).items()}
        for container in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]:
            named = labels | {"pod_container_name": container["name"]}
            targets.append({"targets": [ip], "labels": {f"__meta_kubernetes_{k}": v for k, v in named.items()}})
    return targets


def job_of(monitor, file, port):
    """The scrape job that the Prometheus operator makes of a PodMonitor, as far as ours go: its own labels, then the monitor's
    relabelings. The targets are those of a file. port is put in the place of 29402, which may have another owner here."""
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    own = [{"source_labels": [f"__meta_kubernetes_{meta}"], "target_label": label} for meta, label in (
        ("namespace", "namespace"), ("pod_container_name", "container"), ("pod_name", "pod"))]
    more = [{snake(k): v for k, v in r.items()} for r in endpoint["relabelings"]]
    for rule in more:
        if "29402" in rule.get("replacement", ""):
            rule["replacement"] = rule["replacement"].replace("29402", str(port))
    return {
        "job_name": f"{monitor['metadata']['namespace']}/{monitor['metadata']['name']}",
        "metrics_path": endpoint.get("path", "/metrics"), "honor_labels": endpoint.get("honorLabels", False),
        "file_sd_configs": [{"files": [str(file)], "refresh_interval": "1s"}],
        "relabel_configs": own + more,
    }


def static_job(monitor, address, pod):
    """A process that stands for the pod: what that pod's target would be labelled with."""
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    namespace = monitor["metadata"]["namespace"]
    return {
        "job_name": f"{namespace}/{monitor['metadata']['name']}", "metrics_path": endpoint.get("path", "/metrics"),
        "honor_labels": endpoint.get("honorLabels", False),
        "static_configs": [{"targets": [address], "labels": {"namespace": namespace, "pod": pod}}],
    }


class Prometheus:
    def __init__(self, folder, port, scrape_jobs):
        self.url = f"http://127.0.0.1:{port}"
        config = folder / "prometheus.yaml"
        config.write_text(yaml.safe_dump({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)], "scrape_configs": scrape_jobs}))
        self.log = folder / "prometheus.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb",
                 f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            wait_for(lambda: f"Prometheus: {self.log.read_text()}", self.is_ready)
        except BaseException:
            self.close()
            raise

    def is_ready(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            DIRECT.open(f"{self.url}/-/ready", timeout=5).close()
            return True
        except OSError:
            return False

    def ask(self, path, **parameters):
        with DIRECT.open(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=30) as answer:
            return json.load(answer)["data"]

    def values(self, expression):
        """The numbers of an instant query, without those that are none."""
        found = self.ask("query", query=expression)["result"]
        return [s for s in found if s["value"][1] not in ("NaN", "+Inf", "-Inf")]

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=BOUND_S)
