"""alerts.py TREE - deploy/chart/rules.yaml and rules-of-pods.yaml by promtool, with a case that fires and one that does not for each alert; and alerts and
dashboards name only metrics that the operator or the launcher has, and runbooks that docs/operations.md has.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

TREE = Path(sys.argv[1])
CHART = TREE / "deploy" / "chart"
RULES = (CHART / "rules.yaml", CHART / "rules-of-pods.yaml")
CASES = Path(__file__).with_name("rules_test.yaml")
METRIC = re.compile(r"\b(?:pytorchtrainingjob|ptj|torchkeeper_training|workqueue|rest_client|reflector|process|leader_election)_\w+")


def alerts():
    return [r for file in RULES for g in yaml.safe_load(file.read_text())["groups"] for r in g["rules"]]


def of_launcher():
    answer = (TREE / "launcher" / "progress" / "answer.c").read_text()
    return {f"torchkeeper_training_{n}" for n in re.findall(r'"(\w+)",\s*"(?:gauge|counter)"', answer)}


def of_operator():
    """All words of its sources that may be names, and what histograms make of theirs."""
    text = "".join((TREE / f).read_text() for f in ("operator/metrics.c", "kube/prometheus.c"))
    names = set(re.findall(r'"([a-z_]+)"', text))
    return names | {f"{n}_{end}" for n in names if n.endswith("_seconds") for end in ("bucket", "sum", "count")}


def test_promtool():
    assert shutil.which("promtool"), "promtool is not installed: scripts/deps.sh metrics"
    for args in (["check", "rules", *RULES], ["test", "rules", CASES]):
        done = subprocess.run(["promtool", *args], text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_in_a_case_and_does_not_in_another():
    seen = {}
    for check in (c for t in yaml.safe_load(CASES.read_text())["tests"] for c in t.get("alert_rule_test", [])):
        seen.setdefault(check["alertname"], set()).add(bool(check.get("exp_alerts")))
    assert seen == {a["alert"]: {True, False} for a in alerts()}


def test_only_the_operator_pages():
    """What the operator tells has no number of a pod in it; what pods tell is of severity info, and says whose it is."""
    operators, pods = (yaml.safe_load(file.read_text())["groups"] for file in RULES)
    for alert in (r for g in operators for r in g["rules"]):
        assert "torchkeeper_training_" not in alert["expr"] and 'job="torchkeeper-system/torchkeeper-operator"' in alert["expr"], alert
    for alert in (r for g in pods for r in g["rules"]):
        assert alert["labels"] == {"severity": "info", "source": "pods"}, alert["alert"]


def test_each_alert_says_what_where_and_what_to_do():
    headings = re.findall(r"^#+ (.*)$", (TREE / "docs" / "operations.md").read_text(), re.M)
    anchors = {"docs/operations.md#" + re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}
    for alert in alerts():
        assert alert["annotations"].keys() == {"summary", "description", "runbook_url"}, alert["alert"]
        assert alert["labels"]["severity"] in ("critical", "warning", "info"), alert["alert"]
        assert alert["annotations"]["runbook_url"] in anchors, alert["annotations"]["runbook_url"]


def test_only_metrics_that_exist():
    texts = [a["expr"] for a in alerts()]
    for path in (CHART / "dashboards").glob("*.json"):
        texts += re.findall(r'"(?:expr|query)": "(.*)"', path.read_text())
    named = set(METRIC.findall("\n".join(texts)))
    assert len(named) > 40
    assert named <= of_operator() | of_launcher(), named - of_operator() - of_launcher()


def test_dashboards_show_each_metric_of_a_job_and_have_names_of_their_own():
    boards = [json.loads(p.read_text()) for p in (CHART / "dashboards").glob("*.json")]
    assert len(of_launcher()) == 11 and of_launcher() <= set(METRIC.findall(json.dumps(boards)))
    assert len({b["uid"] for b in boards}) == len(boards) == 2
    for board in boards:
        ids = [p["id"] for p in board["panels"]]
        assert len(ids) == len(set(ids))


def colour_of(panel, series):
    """The fixed colour that a panel gives a series of this legend; NONE: Grafana chooses by place in the list."""
    chosen = panel["fieldConfig"]["defaults"].get("color", {}).get("fixedColor")
    for o in panel["fieldConfig"]["overrides"]:
        if o["matcher"]["id"] == "byRegexp" and re.search(o["matcher"]["options"].strip("/"), series):
            chosen = next(p["value"]["fixedColor"] for p in o["properties"] if p["id"] == "color")
    return chosen


def test_a_phase_has_its_colour_everywhere():
    colours = {"Running": "blue", "Pending": "yellow", "Paused": "purple", "Resuming": "purple", "Succeeded": "green",
               "Failed": "red", "Unknown": "orange"}
    panels = [p for path in (CHART / "dashboards").glob("*.json") for p in json.loads(path.read_text())["panels"]]
    shown = 0
    for panel in panels:
        text = " ".join(t["expr"] + t.get("legendFormat", "") for t in panel.get("targets", []))
        for phase, colour in colours.items():
            if any(t.get("legendFormat") == phase.lower() for t in panel.get("targets", [])):
                assert colour_of(panel, phase.lower()) == colour, (panel["title"], phase)
                shown += 1
            if "{{phase}}" in text or f'phase="{phase}"' in text:
                assert colour_of(panel, phase) == colour_of(panel, f"team {phase}") == colour, (panel["title"], phase)
                shown += 1
    assert shown == 4 + 2 * len(colours) + 3, shown


for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        test()
        print(f"{name}: ok")
