"""chart.py TREE - deploy/chart: the objects that Helm makes of it are those of install.yaml and install-namespaced.yaml, field by
field; each value changes the field that it describes and nothing else; Helm refuses wrong values by name. Skipped (77) where Helm is not built.
"""

import functools
import hashlib
import http.server
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path

import yaml

TREE = Path(sys.argv[1])
CHART = TREE / "deploy" / "chart"
HELM = TREE / "build" / "tools" / "helm"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SYSTEM, JOBS = "torchkeeper-system", "torchkeeper-jobs"
CRD = "CustomResourceDefinition/pytorchtrainingjobs.batch.tensorstack.dev"
OPERATOR = f"Deployment/{SYSTEM}/torchkeeper-operator"
CONTAINER = ("spec", "template", "spec", "containers", 0)
DIGEST = "sha256:" + "a" * 64
VALUES = TREE / "tests" / "unit" / "deploy" / "values"
WITH_POLICY = {"networkPolicy": {"enabled": True}} # as the manifests have it; the chart alone leaves the port to who installs
ACCOUNT = f"ServiceAccount/{SYSTEM}/torchkeeper-operator"
ROLES = {"ClusterRole/torchkeeper-operator", "ClusterRoleBinding/torchkeeper-operator", f"Role/{SYSTEM}/torchkeeper-operator-leader",
         f"RoleBinding/{SYSTEM}/torchkeeper-operator-leader", "ClusterRole/torchkeeper-view", "ClusterRole/torchkeeper-edit"}
BUDGET = f"PodDisruptionBudget/{SYSTEM}/torchkeeper-operator"
POLICY = f"NetworkPolicy/{SYSTEM}/torchkeeper-operator"
# Flags that the chart sets itself, or that make no sense in its Deployment.
OWN_FLAGS = {"namespace", "server", "ca-file", "token-file", "metrics-bind-address", "health-probe-bind-address", "leader-elect",
             "leader-elect-namespace", "tensorboard", "tensorboard-image", "launcher-image", "isolate-jobs", "scraper-namespace", "job-keys", "gang-scheduler",
             "log-level", "version", "help"}


def helm(*args, values=None):
    return subprocess.run([HELM, *map(str, args)], input=json.dumps(values or {}), text=True, capture_output=True)


def by_name(text):
    objects = [o for o in yaml.load_all(text, Loader=LOADER) if o]
    named = {"/".join(filter(None, [o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]])): o for o in objects}
    assert len(named) == len(objects), "two objects of one name"
    return named


@functools.cache
def rendered(values, namespace):
    done = helm("template", "torchkeeper", CHART, "--namespace", namespace, "--values", "-", values=json.loads(values))
    assert done.returncode == 0, done.stderr
    return done.stdout


def template(values=None, namespace=SYSTEM):
    return by_name(rendered(json.dumps(values or {}), namespace))


def installed(file):
    return by_name((TREE / "deploy" / file).read_text())


def differences(a, b, path=""):
    """The paths at which two values differ, each with both values."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [d for key in sorted(a.keys() | b.keys()) for d in differences(a.get(key), b.get(key), f"{path}.{key}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [d for i, (x, y) in enumerate(zip(a, b)) for d in differences(x, y, f"{path}[{i}]")]
    return [] if a == b and type(a) is type(b) else [f"{path}: {a!r} is {b!r}"]


def same(wanted, got):
    assert wanted.keys() == got.keys(), wanted.keys() ^ got.keys()
    found = {name: differences(wanted[name], got[name]) for name in wanted}
    assert not any(found.values()), json.dumps({name: d for name, d in found.items() if d}, indent=1)


def as_helm_has_it(objects):
    """But for the namespace, which Helm makes (--create-namespace), and the annotation by which it keeps the CRD."""
    del objects[f"Namespace/{SYSTEM}"]
    objects[CRD]["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    return objects


def test_default_is_install_yaml():
    """But for the NetworkPolicy, which waits for somebody who knows the API server's port."""
    wanted = as_helm_has_it(installed("install.yaml"))
    same(wanted, template(WITH_POLICY))
    del wanted[POLICY]
    same(wanted, template())


def test_one_namespace_is_install_namespaced_yaml():
    same(installed("install-namespaced.yaml"), template({"watchNamespace": JOBS, **WITH_POLICY}, JOBS))


def test_a_namespace_that_is_not_the_operators_own():
    """Rights in the one, the rest in the other; the binding names the account where it is."""
    got = template({"watchNamespace": JOBS}, "ops")
    assert {n for n in got if f"/{JOBS}/" in n} == {f"{k}/{JOBS}/torchkeeper-operator" for k in ("Role", "RoleBinding")}
    assert not any(k.startswith(("Cluster", "CustomResource")) for k in got)
    binding = got[f"RoleBinding/{JOBS}/torchkeeper-operator"]
    assert binding["roleRef"]["kind"] == "Role" and binding["subjects"][0]["namespace"] == "ops"


def test_the_clusters_rights_follow_the_namespace_of_the_release():
    got = template(namespace="ops")
    assert got["ClusterRoleBinding/torchkeeper-operator"]["subjects"][0]["namespace"] == "ops"
    assert not any(SYSTEM in json.dumps(o) for o in got.values())


def put(objects, name, path, value):
    """Change one field of one of the objects; None removes it."""
    at = objects[name]
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value


def test_values_change_their_fields_and_nothing_else():
    pod, container = CONTAINER[:3], CONTAINER
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
    values = {
        "replicas": 2, "resources": {"limits": {"memory": "1Gi"}}, "nodeSelector": {"disk": "ssd"}, "affinity": affinity,
        "tolerations": [{"key": "k", "operator": "Exists"}], "logLevel": "debug", "crds": {"keep": False},
        "flags": {"leader-elect-lease-duration": 3600},
        "images": {"operator": {"repository": "r.example:5000/op", "tag": "v1", "digest": DIGEST}, "tensorboard": {"tag": "v2"},
                   "launcher": {"digest": DIGEST}, "pullPolicy": "Always", "pullSecrets": [{"name": "r"}]},
    }
    wanted = template()
    args = wanted[OPERATOR]["spec"]["template"]["spec"]["containers"][0]["args"]
    for path, value in (
            (("spec", "replicas"), 2), ((*container, "resources", "limits", "memory"), "1Gi"),
            ((*pod, "nodeSelector"), {"disk": "ssd"}), ((*pod, "affinity"), affinity), ((*pod, "tolerations"), values["tolerations"]),
            ((*container, "image"), f"r.example:5000/op@{DIGEST}"), ((*container, "imagePullPolicy"), "Always"),
            ((*pod, "imagePullSecrets"), [{"name": "r"}]),
            ((*container, "args"),
             [a.replace("board:dev", "board:v2").replace("launcher:dev", f"launcher@{DIGEST}") for a in args]
             + ["--log-level=debug", "--leader-elect-lease-duration=3600"])):
        put(wanted, OPERATOR, path, value)
    put(wanted, CRD, ("metadata", "annotations"), None)
    same(wanted, template(values))


def test_parts_can_be_left_out():
    off, all_parts = {"enabled": False}, template(WITH_POLICY)
    for values, left_out in (({"crds": {"install": False}}, {CRD}), ({"networkPolicy": off}, {POLICY}),
                             ({"podDisruptionBudget": off}, {BUDGET}), ({"serviceAccount": {"create": False}}, {ACCOUNT}), ({"rbac": {"create": False}}, ROLES)):
        assert all_parts.keys() > left_out
        same({n: o for n, o in all_parts.items() if n not in left_out}, template({**WITH_POLICY, **values}))
    got = template({"watchNamespace": JOBS, "rbac": {"create": False}})
    assert not any("Role" in n for n in got), got.keys()


def test_the_pod_as_a_platform_team_wants_it():
    """Each value where it belongs, beside what the chart needs itself; values that nobody gives leave no empty field."""
    own = template()[OPERATOR]["spec"]["template"]
    assert not own["metadata"].keys() - {"labels"} and not {"priorityClassName", "topologySpreadConstraints"} & own["spec"].keys()
    values = yaml.safe_load((VALUES / "platform.yaml").read_text())
    got = template(values)
    spec = got[OPERATOR]["spec"]
    pod, container = spec["template"]["spec"], spec["template"]["spec"]["containers"][0]
    selector = {"app.kubernetes.io/name": "torchkeeper", "app.kubernetes.io/component": "operator"}
    assert spec["selector"]["matchLabels"] == selector and spec["replicas"] == 2
    labels = {**selector, **values["commonLabels"], "inject": "false"}
    assert spec["template"]["metadata"] == {"labels": labels, "annotations": {"checked-by": "platform"}}
    assert pod["priorityClassName"] == "system-cluster-critical" and pod["serviceAccountName"] == "training-operator"
    zone, host = pod["topologySpreadConstraints"]
    assert zone == {**values["topologySpreadConstraints"][0], "labelSelector": {"matchLabels": selector}}, zone
    assert host == values["topologySpreadConstraints"][1]
    assert container["env"] == own["spec"]["containers"][0]["env"] + values["extraEnv"]


def test_a_platform_teams_objects():
    """No account and no role; policies for the account that is named; the team's labels everywhere, also on what is watched."""
    values = yaml.safe_load((VALUES / "platform.yaml").read_text())
    got = template(values)
    policies = {f"{kind}/{name}" for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
                for name in ("torchkeeper-job-authors", "torchkeeper-operator")}
    assert got.keys() == {CRD, OPERATOR, BUDGET, POLICY} | policies, got.keys()
    condition = got["ValidatingAdmissionPolicy/torchkeeper-operator"]["spec"]["matchConditions"][0]["expression"]
    assert f"'system:serviceaccount:{SYSTEM}:training-operator'" in condition
    api, dns, jobs = got[POLICY]["spec"]["egress"]
    assert api == {"ports": [{"protocol": "TCP", "port": 6443}]}
    assert [p["port"] for p in dns["ports"]] == [53, 53] and [p["port"] for p in jobs["ports"]] == [29402]
    on = {"enabled": True}
    watched = template({"commonLabels": values["commonLabels"], "metrics": {
        "service": on, "podMonitor": {**on, "labels": {"team": "monitoring"}}, "prometheusRule": on, "dashboards": on}})
    for name, o in {**watched, **got}.items():
        labels = o["metadata"]["labels"]
        team = "monitoring" if o["kind"] == "PodMonitor" else "ml-platform"
        assert labels["team"] == team and labels["app.kubernetes.io/name"] == "torchkeeper", (name, labels)


def test_a_name_and_annotations_of_the_account():
    got = template({"serviceAccount": {"name": "op", "annotations": {"a": "b"}}, "admission": {"operator": True}}, "ops")
    assert got["ServiceAccount/ops/op"]["metadata"]["annotations"] == {"a": "b"}
    assert got["Deployment/ops/torchkeeper-operator"]["spec"]["template"]["spec"]["serviceAccountName"] == "op"
    bound = [s for o in got.values() if o["kind"].endswith("RoleBinding") for s in o["subjects"]]
    assert bound == [{"kind": "ServiceAccount", "name": "op", "namespace": "ops"}] * 2
    assert "serviceaccount:ops:op'" in json.dumps(got["ValidatingAdmissionPolicy/torchkeeper-operator"])


def test_a_small_cluster():
    """Neither the permission for Deployments nor an image for TensorBoards; the operator knows that it makes none."""
    got = template(yaml.safe_load((VALUES / "small.yaml").read_text()))
    wanted = template()
    del wanted[BUDGET]
    put(wanted, ACCOUNT, ("metadata", "annotations"), {"owner": "me"})
    role = "ClusterRole/torchkeeper-operator"
    rules = [r for r in wanted[role]["rules"] if r["resources"] != ["deployments"]]
    assert len(rules) == len(wanted[role]["rules"]) - 1
    put(wanted, role, ("rules",), rules)
    container = wanted[OPERATOR]["spec"]["template"]["spec"]["containers"][0]
    container["args"] = ["--tensorboard=false" if a.startswith("--tensorboard-image=") else a for a in container["args"]]
    same(wanted, got)


def test_guards_of_jobs():
    """A switch takes the flag and the right together."""
    role = "ClusterRole/torchkeeper-operator"
    for value, flag, resource in (("networkPolicy", "--isolate-jobs=false", "networkpolicies"), ("keys", "--job-keys=false", "secrets")):
        wanted = template()
        rules = wanted[role]["rules"]
        put(wanted, role, ("rules",), [r for r in rules if resource not in r["resources"]])
        assert len(wanted[role]["rules"]) == len(rules) - 1
        assert [r["verbs"] for r in rules if resource in r["resources"]] == [["create"]]
        wanted[OPERATOR]["spec"]["template"]["spec"]["containers"][0]["args"].append(flag)
        same(wanted, template({"jobs": {value: False}}))
    wanted = template()
    gangs = template({"jobs": {"gangScheduler": "volcano"}})
    assert gangs.keys() - wanted.keys() == {"ClusterRole/torchkeeper-operator-gangs", "ClusterRoleBinding/torchkeeper-operator-gangs"}, gangs.keys()
    assert gangs[OPERATOR]["spec"]["template"]["spec"]["containers"][0]["args"][-1] == "--gang-scheduler=volcano"
    assert not any("gangs" in name for name in template({"jobs": {"gangScheduler": "native"}, "rbac": {"create": False}}))
    wanted[OPERATOR]["spec"]["template"]["spec"]["containers"][0]["args"].append("--scraper-namespace=monitoring")
    same(wanted, template({"jobs": {"scraperNamespace": "monitoring"}}))


def test_kueue():
    """A role of its own, only where it is wanted; an operator of one namespace writes Workloads there alone."""
    role = by_name((TREE / "deploy" / "rbac" / "kueue-role.yaml").read_text())
    assert len(role) == 4 and not role.keys() & template().keys()
    same({**template(), **role}, template({"kueue": {"enabled": True}}))
    wanted = template()
    wanted[OPERATOR]["spec"]["template"]["spec"]["containers"][0]["args"].append("--kueue=off")
    same(wanted, template({"flags": {"kueue": "off"}}))
    got = template({"watchNamespace": JOBS, "kueue": {"enabled": True}})
    kinds = {n.split("/")[0] + "/" + n.split("/")[-1] for n in got if "queues" in n or "-cluster" in n}
    assert kinds == {"Role/torchkeeper-operator-queues", "RoleBinding/torchkeeper-operator-queues",
                     f"ClusterRole/torchkeeper-operator-{JOBS}-cluster", f"ClusterRoleBinding/torchkeeper-operator-{JOBS}-cluster"}, kinds
    assert {r for rule in got[f"ClusterRole/torchkeeper-operator-{JOBS}-cluster"]["rules"] for r in rule["verbs"]} == {"list", "watch"}
    assert got[f"ClusterRoleBinding/torchkeeper-operator-{JOBS}-cluster"]["roleRef"]["name"] == f"torchkeeper-operator-{JOBS}-cluster"


def test_one_release_for_each_namespace():
    """Helm refuses a second release that has an object of the first."""
    values = {"kueue": {"enabled": True}, "jobs": {"gangScheduler": "volcano"}, "metrics": {"service": {"enabled": True}}}
    one, two = ({(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"])
                 for o in template({**values, "watchNamespace": ns}, f"ops-{ns}").values()} for ns in ("a", "b"))
    assert len(one) > 10 and not one & two, one & two


def test_admission():
    """Each policy with its binding; the operator's names the account of this release."""
    for values, file in (({"jobs": "Pods"}, "job-authors"), ({"jobs": "ServiceAccounts"}, "service-accounts"),
                         ({"operator": True}, "operator")):
        text = (TREE / "deploy" / "admission" / f"{file}.yaml").read_text()
        wanted = by_name(text.replace("serviceaccount:torchkeeper-system:", "serviceaccount:ops:"))
        assert len(wanted) == 2
        same({**template(namespace="ops"), **wanted}, template({"admission": values}, "ops"))
    done = helm("template", "torchkeeper", CHART, "--values", "-", values={"watchNamespace": JOBS, "admission": {"operator": True}})
    assert done.returncode != 0 and "deploy/admission" in done.stderr, done.stderr


def test_metrics():
    enabled = {"enabled": True}
    more = {"labels": {"release": "prom"}}
    got = template({"metrics": {"service": enabled, "podMonitor": {**enabled, **more, "jobs": True}, "dashboards": enabled,
                                "prometheusRule": {**enabled, **more, "runbookPrefix": "https://git.example/"}}})
    before = template()
    added = {n: o for n, o in got.items() if n not in before}
    assert added.keys() == {f"{kind}/{SYSTEM}/{name}" for kind, name in (
        ("Service", "torchkeeper-operator-metrics"), ("PodMonitor", "torchkeeper-operator"), ("PodMonitor", "torchkeeper-jobs"),
        ("PrometheusRule", "torchkeeper"), ("ConfigMap", "torchkeeper-dashboards"))}
    for name, o in added.items():
        assert o["metadata"]["labels"].get("release") == ("prom" if name.startswith("P") else None), name
    pods = got[OPERATOR]["spec"]["template"]
    named = {p["name"]: p["containerPort"] for p in pods["spec"]["containers"][0]["ports"]}
    service = added[f"Service/{SYSTEM}/torchkeeper-operator-metrics"]["spec"]
    monitor = added[f"PodMonitor/{SYSTEM}/torchkeeper-operator"]["spec"]
    jobs = yaml.safe_load((CHART / "jobs-monitor.yaml").read_text()) | {"namespaceSelector": {"any": True}}
    jobs["podMetricsEndpoints"][0]["interval"] = "30s"
    assert differences(jobs, added[f"PodMonitor/{SYSTEM}/torchkeeper-jobs"]["spec"]) == []
    assert service["selector"] == monitor["selector"]["matchLabels"]
    assert service["selector"].items() <= pods["metadata"]["labels"].items()
    assert service["ports"][0]["targetPort"] in named and monitor["podMetricsEndpoints"][0]["port"] in named
    groups = [g for file in ("rules.yaml", "rules-of-pods.yaml") for g in yaml.safe_load((CHART / file).read_text())["groups"]]
    for rule in (r for g in groups for r in g["rules"]):
        rule["annotations"]["runbook_url"] = "https://git.example/" + rule["annotations"]["runbook_url"]
    assert differences({"groups": groups}, added[f"PrometheusRule/{SYSTEM}/torchkeeper"]["spec"]) == []
    boards = added[f"ConfigMap/{SYSTEM}/torchkeeper-dashboards"]
    assert boards["metadata"]["labels"]["grafana_dashboard"] == "1"
    files = {f"torchkeeper-{p.name}": p.read_text() for p in (CHART / "dashboards").glob("*.json")}
    assert {k: v.strip() for k, v in boards["data"].items()} == {k: v.strip() for k, v in files.items()} and len(files) == 2
    assert f"PodMonitor/{SYSTEM}/torchkeeper-jobs" not in template({"metrics": {"podMonitor": {"enabled": True}}})


def test_jobs_of_one_namespace_are_scraped_there_alone():
    got = template({"watchNamespace": JOBS, "metrics": {"podMonitor": {"enabled": True, "jobs": True}}})
    assert got[f"PodMonitor/{SYSTEM}/torchkeeper-jobs"]["spec"]["namespaceSelector"] == {"matchNames": [JOBS]}


def test_wrong_values_are_refused_by_name():
    """All at once, Helm names each."""
    wrong = {
        "replica": 2, "replicas": "2", "watchNamespace": "Not_A_Namespace", "logLevel": "trace", "crds": {"install": "no"},
        "images": {"operator": {"tga": "v1"}, "launcher": {"digest": "sha256:12"}, "tensorboard": {"repository": "a b"},
                   "pullPolicy": "always"},
        "flags": {"kube-api-qps": 1, "namespace": "x", "leader-elect-lease-duration": 0}, "affinity": {"node": {}}, "resources": {"limit": {}},
        "metrics": {"podMonitor": {"interval": "often"}, "prometheusRule": {"runbookPrefix": "docs"}},
        "jobs": {"network": True, "scraperNamespace": "A"}, "admission": {"jobs": "All"},
        "image": {"tag": "v1"}, "commonLabels": {"app.kubernetes.io/name": "mine"}, "podLabels": {"a": 1}, "priorityClassName": "High!",
        "topologySpreadConstraints": [{"maxSkew": 1}], "extraEnv": [{"name": "POD_NAMESPACE", "value": "x"}, {"value": "x"}],
        "serviceAccount": {"name": "A"}, "rbac": {"enabled": True}, "networkPolicy": {"apiPorts": ["6443"]}, "tensorboard": {"enable": True},
        "podDisruptionBudget": {"minAvailable": 1},
    }
    done = helm("template", "torchkeeper", CHART, "--values", "-", values=wrong)
    assert done.returncode != 0
    lines = done.stderr.splitlines()
    for words in (["'replica'"], ["/replicas", "integer"], ["/watchNamespace"], ["/logLevel", "debug"], ["/crds/install", "boolean"],
                  ["/images/operator", "tga"], ["/images/launcher/digest"], ["/images/tensorboard/repository"],
                  ["/images/pullPolicy", "IfNotPresent"], ["/flags'", "kube-api-qps"], ["/flags'", "namespace"],
                  ["/flags/leader-elect-lease-duration"], ["/affinity", "'node'"], ["/resources", "'limit'"],
                  ["/metrics/podMonitor/interval"], ["/metrics/prometheusRule/runbookPrefix"],
                  ["/jobs'", "network"], ["/jobs/scraperNamespace"], ["/admission/jobs", "ServiceAccounts"],
                  ["/image'", "images.operator.tag"], ["/commonLabels/app.kubernetes.io~1name", "torchkeeper"], ["/podLabels/a", "string"],
                  ["/priorityClassName"], ["/topologySpreadConstraints/0", "topologyKey"], ["/extraEnv/0/name"], ["/extraEnv/1", "'name'"],
                  ["/serviceAccount/name"], ["/rbac'", "enabled"], ["/networkPolicy/apiPorts/0", "integer"], ["/tensorboard'", "enable"],
                  ["/podDisruptionBudget'", "minAvailable"]):
        assert any(all(w in line for w in words) for line in lines), f"{words}: {done.stderr}"


def test_flags_are_those_of_the_operator():
    table = (TREE / "operator" / "options.c").read_text().split("options_rows[] = {", 1)[1].split("};", 1)[0]
    known = set(re.findall(r'\{"([a-z-]+)"', table))
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert known > OWN_FLAGS and set(schema["properties"]["flags"]["properties"]) == known - OWN_FLAGS


def test_rules_name_the_operator_of_this_release():
    """By the label job that the Prometheus operator makes of its PodMonitor's namespace and name. What pods tell has rules only where
    pods are scraped."""
    for pods in (False, True):
        got = template({"metrics": {"podMonitor": {"enabled": True, "jobs": pods}, "prometheusRule": {"enabled": True}}}, "ops")
        assert "PodMonitor/ops/torchkeeper-operator" in got
        rules = [r for g in got["PrometheusRule/ops/torchkeeper"]["spec"]["groups"] for r in g["rules"]]
        named = {r["alert"]: set(re.findall(r'\bjob="([^"]*)"', r["expr"])) for r in rules}
        assert len(named) == (13 if pods else 10)
        assert sorted(named.values(), key=len) == [set()] * (3 * pods) + [{"ops/torchkeeper-operator"}] * 10, named


def notes(namespace, **values):
    done = helm("install", "torchkeeper", CHART, "--namespace", namespace, "--dry-run=client", "--values", "-", values=values)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("NOTES:", 1)[1]


def test_notes_name_what_works_there_and_what_a_package_has():
    assert "kubectl get ptj -A\n" in notes(SYSTEM)
    scraped = {"podMonitor": {"enabled": True, "jobs": True}}
    assert "jobs.scraperNamespace" in notes(SYSTEM, metrics=scraped)
    for jobs in {"scraperNamespace": "monitoring"}, {"networkPolicy": False}:
        assert "jobs.scraperNamespace" not in notes(SYSTEM, metrics=scraped, jobs=jobs)
    assert "jobs.scraperNamespace" not in notes(SYSTEM)
    assert "Disabled" in notes(SYSTEM, tensorboard={"enabled": False}) and "Disabled" not in notes(SYSTEM)
    assert "torchkeeper-system:op" in notes(SYSTEM, rbac={"create": False}, serviceAccount={"name": "op"})
    text = notes(JOBS, watchNamespace=JOBS)
    assert f"kubectl get ptj -n {JOBS}\n" in text and "-A" not in text, text
    assert not re.search(r"[a-z]+/[a-z-]+[.]yaml", text.replace("templates/cluster.yaml", "")), text
    assert f"helm template torchkeeper CHART --namespace {JOBS} --show-only templates/cluster.yaml | kubectl apply -f -" in text, text
    done = helm("template", "torchkeeper", CHART, "--namespace", JOBS, "--show-only", "templates/cluster.yaml")
    assert by_name(done.stdout).keys() == {CRD, "ClusterRole/torchkeeper-view", "ClusterRole/torchkeeper-edit"}, done


def test_lint_and_package():
    for values in [], ["--values", VALUES / "platform.yaml"], ["--values", VALUES / "small.yaml"]:
        done = helm("lint", "--strict", CHART, *values)
        assert done.returncode == 0, done.stdout + done.stderr
    old = helm("template", "t", CHART, "--kube-version", "1.31.9")
    assert old.returncode != 0 and "kubeVersion: >=1.32" in old.stderr, old.stderr
    assert helm("template", "t", CHART, "--kube-version", "v1.32.1-eks-1").returncode == 0
    with tempfile.TemporaryDirectory() as folder:
        done = helm("package", CHART, "--destination", folder, "--version", "1.2.3", "--app-version", "v1.2.3")
        assert done.returncode == 0, done.stderr
        archive = Path(folder) / "torchkeeper-1.2.3.tgz"
        # A release's Secret holds the chart and its objects, compressed; 1 MiB is the most that a Secret may have.
        assert archive.stat().st_size < 200_000
        with tarfile.open(archive) as tar:
            assert all(member.isfile() or member.isdir() for member in tar), "links do not leave this tree"
        done = helm("template", "torchkeeper", archive, "--namespace", SYSTEM)
    wanted = re.sub(r"(localhost/torchkeeper/\w+):dev", r"\1:v1.2.3", (TREE / "deploy" / "install.yaml").read_text())
    wanted = as_helm_has_it(by_name(wanted))
    del wanted[POLICY]
    same(wanted, by_name(done.stdout))


class Registry(http.server.BaseHTTPRequestHandler):
    """A registry that has one OCI archive, under the name me/torchkeeper."""

    files = {}

    def do_GET(self):
        blobs = {name.rsplit("/", 1)[1]: data for name, data in self.files.items() if name.startswith("blobs/")}
        (one,) = json.loads(self.files["index.json"])["manifests"]
        word = self.path.removeprefix("/v2/me/torchkeeper/")
        data = blobs.get(word.rsplit(":", 1)[-1])
        if word == f"manifests/{one['annotations']['org.opencontainers.image.ref.name']}":
            data = blobs[one["digest"].removeprefix("sha256:")]
        self.send_response(200 if data or self.path == "/v2/" else 404)
        self.send_header("Content-Length", str(len(data or b"")))
        self.send_header("Content-Type", one["mediaType"] if word.startswith("manifests/") else "application/octet-stream")
        if data:
            self.send_header("Docker-Content-Digest", f"sha256:{hashlib.sha256(data).hexdigest()}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data or b"")

    do_HEAD = do_GET

    def log_message(self, *args):
        pass


def test_the_oci_archive_is_what_helm_pulls():
    with tempfile.TemporaryDirectory() as folder, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert helm("package", CHART, "--destination", folder, "--version", "1.2.3").returncode == 0
        chart, archive = Path(folder) / "torchkeeper-1.2.3.tgz", Path(folder) / "chart.oci.tar"
        written = []
        for _ in range(2):
            subprocess.run([TREE / "scripts" / "chart-oci.sh", chart, archive], check=True)
            written.append(archive.read_bytes())
        assert written[0] == written[1]
        with tarfile.open(archive) as tar:
            Registry.files = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}
        for name, data in Registry.files.items():
            assert not name.startswith("blobs/") or hashlib.sha256(data).hexdigest() == name.rsplit("/", 1)[1], name
        (Path(folder) / "pulled").mkdir()
        done = helm("pull", f"oci://127.0.0.1:{server.server_port}/me/torchkeeper", "--version", "1.2.3", "--plain-http",
                    "--destination", Path(folder) / "pulled")
        server.shutdown()
        assert done.returncode == 0, done.stderr
        assert (Path(folder) / "pulled" / chart.name).read_bytes() == chart.read_bytes()
        (config,) = [json.loads(b) for b in Registry.files.values() if b.startswith(b'{"name"')]
        assert config["version"] == "1.2.3" and config["kubeVersion"] == ">=1.32.0-0" and config["type"] == "application", config
    refused = subprocess.run([TREE / "scripts" / "chart-oci.sh", TREE / "README.md", "/dev/null"], text=True, capture_output=True)
    assert refused.returncode == 1 and "is no packaged chart" in refused.stderr, refused


def main():
    if not HELM.exists():
        print("Helm is not built: deploy/local/helm")
        return 77
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"{name}: ok")
    return 0


sys.exit(main())
