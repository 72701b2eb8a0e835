"""scraper.py - a real Prometheus on loopback, whose scrape jobs are those that the Prometheus operator makes of our PodMonitors."""

import json
import re
import subprocess
import time
import urllib.parse
import urllib.request

import yaml

BOUND_S = 900  # bounds a hang, judges no speed
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# What of a PodMonitor's spec and of its endpoint becomes a field of the scrape job, under its name in Prometheus' configuration.
LIMITS = ("sampleLimit", "labelLimit", "labelNameLengthLimit", "labelValueLengthLimit", "bodySizeLimit")
OF_ENDPOINT = ("followRedirects", "honorLabels", "honorTimestamps")


def snake(name):
    return re.sub("([A-Z])", lambda m: "_" + m[1].lower(), name)


def relabelings(rules):
    return [{snake(k): v for k, v in r.items()} for r in rules]


def base_of(monitor):
    spec = monitor["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]
    known = {k: v for names, fields in ((LIMITS, spec), (OF_ENDPOINT, endpoint)) for k, v in fields.items() if k in names}
    return {
        "job_name": f"{monitor['metadata']['namespace']}/{monitor['metadata']['name']}",
        "metrics_path": endpoint.get("path", "/metrics"), **{snake(k): v for k, v in known.items()},
        "metric_relabel_configs": relabelings(endpoint.get("metricRelabelings", [])),
    }


def job_of(monitor, file, port):
    """The scrape job of a PodMonitor: the Prometheus operator's own labels, then the monitor's relabelings. The targets are those
    of a file. port is put in the place of 29402, which may have another owner here."""
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    own = [{"source_labels": [f"__meta_kubernetes_{meta}"], "target_label": label} for meta, label in (
        ("namespace", "namespace"), ("pod_container_name", "container"), ("pod_name", "pod"))]
    more = relabelings(endpoint["relabelings"])
    for rule in more:
        if "29402" in rule.get("replacement", ""):
            rule["replacement"] = rule["replacement"].replace("29402", str(port))
    return base_of(monitor) | {
        "file_sd_configs": [{"files": [str(file)], "refresh_interval": "1s"}], "relabel_configs": own + more}


def static_job(monitor, address, pod):
    """A process that stands for the pod: what that pod's target would be labelled with."""
    labels = {"namespace": monitor["metadata"]["namespace"], "pod": pod}
    return base_of(monitor) | {"static_configs": [{"targets": [address], "labels": labels}]}


class Prometheus:
    def __init__(self, folder, port, scrape_jobs, *rules):
        self.url = f"http://127.0.0.1:{port}"
        config = folder / "prometheus.yaml"
        config.write_text(yaml.safe_dump({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(r) for r in rules], "scrape_configs": scrape_jobs}))
        self.log = folder / "prometheus.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb",
                 f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            end = time.monotonic() + BOUND_S
            while not self.is_ready():
                assert time.monotonic() < end, f"Prometheus: {self.log.read_text()}"
                time.sleep(0.1)
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
        with DIRECT.open(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=600) as answer:
            return json.load(answer)["data"]

    def values(self, expression):
        """The numbers of an instant query, without those that are none."""
        found = self.ask("query", query=expression)["result"]
        return [s for s in found if s["value"][1] not in ("NaN", "+Inf", "-Inf")]

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=BOUND_S)
