"""Measurements of the running operator: /proc, its metrics, and the API server's audit log."""

import json
import os
import re
import urllib.request
from collections import Counter
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ([0-9.e+-]+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')


def memory_kib(pid, field):
    """VmRSS: now; VmHWM: the most that it ever was."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise KeyError(field)


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


class Metrics:
    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/metrics"

    def read(self):
        """{name: {labels: value}}, labels as a sorted tuple of pairs."""
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(self.url, timeout=600) as answer:
            text = answer.read().decode()
        families = {}
        for line in text.splitlines():
            sample = SAMPLE.match(line)
            if sample:
                labels = tuple(sorted(LABEL.findall(sample[2] or "")))
                families.setdefault(sample[1], {})[labels] = float(sample[3])
        return families

    def value(self, name):
        return self.read()[name][()]

    def requests(self):
        """Answered requests by HTTP method."""
        by_method = Counter()
        for labels, value in self.read().get("rest_client_requests_total", {}).items():
            by_method[dict(labels)["method"]] += int(value)
        return by_method


VERB_METHODS = {"create": "POST", "patch": "PATCH", "update": "PUT", "delete": "DELETE", "get": "GET", "list": "GET",
                "watch": "GET"}


class Audit:
    """The requests of the operator as the API server saw them: complete ones, from where the last look ended."""

    def __init__(self, path):
        self.path, self.at = path, 0

    def read(self):
        """Counter of (verb, resource with subresource). Leaves in `firsts` when the first of each was answered."""
        seen, self.firsts = Counter(), {}
        with open(self.path, "rb") as log:
            log.seek(self.at)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self.at += len(line)
                event = json.loads(line)
                ref = event.get("objectRef", {})
                what = ref.get("resource", "?") + ("/" + ref["subresource"] if "subresource" in ref else "")
                seen[event["verb"], what] += 1
                self.firsts.setdefault((event["verb"], what), event["stageTimestamp"])
        return seen


def by_method(audit):
    methods = Counter()
    for (verb, _), n in audit.items():
        methods[VERB_METHODS[verb]] += n
    return methods


def writes(audit):
    return {key: n for key, n in audit.items() if key[0] not in ("get", "list", "watch") and key[1] != "leases"}


def percentile(values, p):
    """The smallest value that is not below p per cent of all."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * p // 100) - 1)]
