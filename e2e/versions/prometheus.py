"""prometheus.py - what a real Prometheus on loopback (tests/scraper.py) finds on a real API server by the chart's PodMonitors."""

import json
import re

import scraper
from kube import REPO, kubectl
from scraper import job_of, static_job  # noqa: F401

CHART = REPO / "deploy" / "chart"


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


def Prometheus(folder, port, scrape_jobs):
    return scraper.Prometheus(folder, port, scrape_jobs, CHART / "rules.yaml", CHART / "rules-of-pods.yaml")
