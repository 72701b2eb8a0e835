"""The operator's permissions are those that it uses: its roles against the API server's audit log; and its health and metrics.
The cases before the comparison make the operator use each permission once, so that this file can run alone; those that wait run
side by side with others, the comparison comes at the end.
"""

import json
import re
import subprocess
import urllib.request

import jobs
import pytest
from auditlog import OPERATOR, account, audited, forbidden, used
from kube import BOUND_S, GROUP, REPO, SYSTEM, apply, events, field, forwarded, get, items, kubectl, status, wait_for, wait_phase

# Asked for by OwnerReferencesPermissionEnforcement when a child is created; never a request of its own.
UNSEEN = {(GROUP, "pytorchtrainingjobs/finalizers", "update")}


def is_subject(binding, namespace):
    return any(s["kind"] == "ServiceAccount" and s["name"] == OPERATOR and s.get("namespace") == namespace
               for s in binding.get("subjects", []))


def roles_of(namespace, kinds):
    """The rules that are bound to the operator's account of that namespace."""
    for kind in kinds:
        bindings = json.loads(kubectl("get", kind, "--all-namespaces", "-o", "json"))["items"]
        for binding in bindings:
            if not is_subject(binding, namespace):
                continue
            where = binding["metadata"].get("namespace")
            ref = binding["roleRef"]
            scope = ["-n", where] if ref["kind"] == "Role" else []
            yield from json.loads(kubectl(*scope, "get", ref["kind"].lower(), ref["name"], "-o", "json"))["rules"]


def granted(namespace, kinds=("clusterrolebindings", "rolebindings")):
    return {(group, resource, verb) for rule in roles_of(namespace, kinds) for group in rule["apiGroups"]
            for resource in rule["resources"] for verb in rule["verbs"]}


def did(verb, resource, namespace):
    """Whether the operator sent this request in the namespace, whatever the answer."""
    return any(e["verb"] == verb and e["objectRef"]["resource"] == resource and not e["objectRef"].get("subresource")
               and e["objectRef"].get("namespace") == namespace
               for e in audited(account(SYSTEM)) if e.get("objectRef"))


def patch(job, namespace, spec):
    kubectl("-n", namespace, "patch", "ptj", job, "--type=merge", "-p", json.dumps({"spec": spec}))


def tensorboard(**more):
    return {"image": jobs.IMAGE, "logDir": {"pvc": [{"name": "none"}]}, **more}


# ---- each permission, used


def test_ttl_deletes_the_job(ns):
    apply(jobs.job("brief", jobs.replica("true"), runPolicy={"ttlSecondsAfterFinished": 2}), namespace=ns)
    wait_for("the job's deletion", lambda: did("delete", "pytorchtrainingjobs", ns))
    wait_for("nothing to be left", lambda: not get("ptj", "brief", ns) and not items("pods", ns))


def test_tensorboard_comes_and_goes(ns):
    apply(jobs.job("board", jobs.replica("sleep 3600"), tensorboardSpec=tensorboard()), namespace=ns)
    wait_phase("board", ns, "Running")
    wait_for("its deployment", lambda: get("deployment", "board-tensorboard", ns))
    wait_for("a replica", lambda: field("deployment", "board-tensorboard", ns, "spec.replicas") == 1)
    patch("board", ns, {"tensorboardSpec": {"suspend": True}})
    wait_for("no replicas", lambda: field("deployment", "board-tensorboard", ns, "spec.replicas") == 0)
    patch("board", ns, {"tensorboardSpec": None})
    for kind in ("deployment", "service"):
        wait_for(f"the {kind} to go", lambda k=kind: not get(k, "board-tensorboard", ns))
    assert status("board", ns)["phase"] == "Running"


def test_a_sidecar_is_ended(ns):
    side = jobs.beside(jobs.replica("true"), "sleep 3600")
    apply(jobs.job("side", side, runPolicy={"sidecarGraceSeconds": 0}), namespace=ns)
    wait_for("the patch", lambda: did("patch", "pods", ns))
    wait_for("the pod's end", lambda: field("pod", "side-node-0", ns, "status.phase") == "Failed")


def test_a_job_of_two_nodes_has_guards(ns):
    """They go with the job; the pods refer to the key, and do not show it."""
    apply(jobs.job("guarded", jobs.replica("sleep 3600", replicas=2), torchrunConfig={"enabled": True}), namespace=ns)
    wait_for("its pods", lambda: len(items("pods", ns)) == 2)
    name = f'guarded-{get("ptj", "guarded", ns)["metadata"]["uid"]}'
    policy, secret = get("networkpolicy", name, ns), get("secret", name, ns)
    assert secret["immutable"] and len(secret["data"]["key"]) == 88  # 64 hex digits in base64
    for pod in items("pods", ns):
        assert policy["spec"]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        env = {e["name"]: e for e in pod["spec"]["containers"][0]["env"]}
        assert env["TORCHKEEPER_JOB_KEY"]["valueFrom"]["secretKeyRef"] == {"name": name, "key": "key"}
    kubectl("-n", ns, "delete", "ptj", "guarded")
    wait_for("both to go", lambda: not get("networkpolicy", name, ns) and not get("secret", name, ns))


def test_services_and_deployments_of_others_are_looked_at(ns):
    labels = {"app": "theirs"}
    apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "taken-rdzv"},
           "spec": {"clusterIP": "None", "selector": labels}},
          {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "taken-tensorboard"},
           "spec": {"replicas": 0, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels},
                                 "spec": {"containers": [{"name": "c", "image": jobs.IMAGE}]}}}}, namespace=ns)
    theirs = {kind: get(kind, name, ns)["metadata"]["uid"]
              for kind, name in (("service", "taken-rdzv"), ("deployment", "taken-tensorboard"))}
    apply(jobs.job("taken", jobs.replica("sleep 3600"), tensorboardSpec=tensorboard()), namespace=ns)
    wait_for(lambda: status("taken", ns), lambda: events("taken", ns, "NameConflict"))
    assert get("service", "taken-rdzv", ns)["metadata"]["uid"] == theirs["service"]
    kubectl("-n", ns, "delete", "service", "taken-rdzv")
    wait_phase("taken", ns, "Running")
    wait_for(lambda: status("taken", ns),
             lambda: status("taken", ns).get("tensorboard", {}).get("reason") == "NameConflict")
    assert get("deployment", "taken-tensorboard", ns)["metadata"]["uid"] == theirs["deployment"]
    wait_for("both to be looked at", lambda: did("get", "services", ns) and did("get", "deployments", ns))


def test_pods_of_others_are_looked_at(ns):
    apply(jobs.pod("held-node-0", "sleep 3600"), namespace=ns)
    uid = get("pod", "held-node-0", ns)["metadata"]["uid"]
    apply(jobs.job("held", jobs.replica("sleep 3600")), namespace=ns)
    wait_for(lambda: status("held", ns), lambda: events("held", ns, "NameConflict"))
    assert get("pod", "held-node-0", ns)["metadata"]["uid"] == uid
    wait_for("it to be looked at", lambda: did("get", "pods", ns))


def test_an_old_status_is_not_believed(ns):
    apply(jobs.job("old", jobs.replica("sleep 3600")), namespace=ns)
    wait_phase("old", ns, "Running")
    kubectl("-n", ns, "delete", "pod", "old-node-0", "--force", "--grace-period=0")
    wait_for(lambda: status("old", ns),
             lambda: status("old", ns).get("disruptionCount") == 1 and status("old", ns)["phase"] == "Running")
    # Older than the labels of its pods: the operator believes them.
    kubectl("-n", ns, "patch", "ptj", "old", "--subresource=status", "--type=merge", "-p", '{"status": {"attempt": 0}}')
    wait_for(lambda: status("old", ns), lambda: status("old", ns)["attempt"] == 1)
    assert not did("get", "pytorchtrainingjobs", ns)


def test_an_event_that_comes_again_is_counted(ns):
    apply(jobs.job("again", jobs.replica("sleep 3600")), namespace=ns)
    for n in (1, 2):
        wait_phase("again", ns, "Running")
        patch("again", ns, {"suspend": True})
        wait_phase("again", ns, "Paused")
        wait_for("the event", lambda n=n: events("again", ns, "Paused") >= n)
        patch("again", ns, {"suspend": False})
    wait_for("the event's patch", lambda: did("patch", "events", ns))


@pytest.mark.serial
def test_everything_is_listed_at_the_start(ns):
    kubectl("-n", SYSTEM, "rollout", "restart", "deployment", OPERATOR)
    kubectl("-n", SYSTEM, "rollout", "status", "deployment", OPERATOR, "--timeout=600s")
    apply(jobs.job("listed", jobs.replica("true")), namespace=ns)
    assert wait_phase("listed", ns, "Succeeded", "Failed")["phase"] == "Succeeded"
    assert {resource for _, resource, verb in used(account(SYSTEM)) if verb == "list"} == {
        "pytorchtrainingjobs", "pods", "services", "deployments"}


# ---- the comparison


@pytest.mark.serial
def test_rights_are_those_that_are_used():
    """In the whole audit log of all cases so far: no request was refused, no permission is unused."""
    assert forbidden(account(SYSTEM)) == []
    have, need = granted(SYSTEM), used(account(SYSTEM))
    assert need - have == set(), "used without a role of its own"
    assert have - need - UNSEEN == set(), "granted, and never used"
    assert have >= UNSEEN


def test_no_wildcards_and_no_secrets_are_read():
    for rule in roles_of(SYSTEM, ("clusterrolebindings", "rolebindings")):
        words = {*rule.get("apiGroups", []), *rule.get("resources", []), *rule["verbs"]}
        assert not words & {"*", "configmaps", "nodes", "pods/exec", "escalate", "bind", "impersonate"}
        if words & {"secrets", "networkpolicies"}:
            assert rule["verbs"] == ["create"], "they are made, and never read"
        assert not rule.get("nonResourceURLs")


def test_the_finalizers_right_is_needed(ns):
    """Without it the API server refuses a child whose owner reference blocks the owner's deletion."""
    apply(jobs.job("owner", jobs.replica("true"), suspend=True), namespace=ns)
    owner = get("ptj", "owner", ns)
    may_create = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]
    finalizers = {"apiGroups": [GROUP], "resources": ["pytorchtrainingjobs/finalizers"], "verbs": ["update"]}

    def role(rules):
        return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "probe"}, "rules": rules}

    apply(role(may_create),
          {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "probe"},
           "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "probe"},
           "subjects": [{"kind": "ServiceAccount", "name": "probe", "namespace": ns}]}, namespace=ns)
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child", "ownerReferences": [
        {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": "owner", "uid": owner["metadata"]["uid"],
         "controller": True, "blockOwnerDeletion": True}]}}

    def create():
        return subprocess.run(["kubectl", "-n", ns, f"--as=system:serviceaccount:{ns}:probe", "create", "-f", "-"],
                              input=json.dumps(child), text=True, capture_output=True)

    wait_for("the role to count, and the owner reference to be refused",
             lambda: "blockOwnerDeletion" in create().stderr)
    apply(role([*may_create, finalizers]), namespace=ns)
    wait_for("the child to be admitted", lambda: create().returncode == 0)


# ---- one namespace only


@pytest.fixture
def cluster_operator_away(ns):
    """Two operators must not overlap: the cluster's one is scaled to 0 while the namespace has one."""
    kubectl("-n", SYSTEM, "scale", "deployment", OPERATOR, "--replicas=0")
    wait_for("the operator to leave", lambda: not items("pods", SYSTEM))
    yield
    kubectl("-n", ns, "delete", "deployment", OPERATOR, "--ignore-not-found")
    kubectl("-n", SYSTEM, "scale", "deployment", OPERATOR, "--replicas=1")
    kubectl("-n", SYSTEM, "rollout", "status", "deployment", OPERATOR, "--timeout=600s")


@pytest.mark.serial
def test_one_namespace_needs_a_role_only(ns, cluster_operator_away):
    manifest = subprocess.run([REPO / "deploy" / "generate.sh", "--namespace", ns], text=True, capture_output=True,
                              check=True).stdout
    kubectl("apply", "-f", "-", stdin=manifest)
    kubectl("-n", ns, "rollout", "status", "deployment", OPERATOR, "--timeout=600s")
    assert granted(ns, ("clusterrolebindings",)) == set()
    apply(jobs.job("inside", jobs.replica('[ "$ATTEMPT" = 0 ] && exit 137; exit 0'), tensorboardSpec=tensorboard()),
          namespace=ns)
    end = wait_phase("inside", ns, "Succeeded", "Failed")
    assert (end["phase"], end["backoffCount"]) == ("Succeeded", 1)
    assert forbidden(account(ns)) == []
    assert used(account(ns)) <= granted(ns, ("rolebindings",))
    assert {e["objectRef"].get("namespace") for e in audited(account(ns)) if e.get("objectRef")} == {ns}


def objects(text):
    """Manifests as the API server would make them, by kind and name."""
    made = json.loads(kubectl("apply", "--dry-run=server", "-o", "json", "-f", "-", stdin=text))
    for item in made["items"]:
        for field in ("uid", "creationTimestamp", "resourceVersion", "generation", "annotations", "managedFields"):
            item["metadata"].pop(field, None)
        item.pop("status", None)
    return {(i["kind"], i["metadata"]["name"]): i for i in made["items"]}


@pytest.mark.parametrize("folder, file", [("deploy", "install.yaml"),
                                          ("deploy/overlays/namespaced", "install-namespaced.yaml")])
def test_kustomize_gives_what_the_file_gives(folder, file):
    text = kubectl("kustomize", str(REPO / folder))
    if "namespaced" in folder:  # a dry run needs the namespace to be there
        kubectl("create", "namespace", "torchkeeper-jobs")
    try:
        assert objects(text) == objects((REPO / "deploy" / file).read_text())
    finally:
        if "namespaced" in folder:
            kubectl("delete", "namespace", "torchkeeper-jobs", "--wait=false")


# ---- health, metrics, log


def fetch(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=BOUND_S) as answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


def test_health_and_metrics_answer():
    with forwarded(SYSTEM, f"deployment/{OPERATOR}", 8080, 8081) as local:
        for path in ("/healthz", "/readyz"):
            code, _, body = fetch(local[8081], path)
            assert (code, body) == (200, "ok\n")
        code, kind, text = fetch(local[8080], "/metrics")
    assert code == 200 and kind.startswith("text/plain; version=0.0.4")
    sample = re.compile(r'^([a-z_]+)(\{([a-z]+="[^"\\]*",?)+\})? [0-9.e+]+$')
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in lines if not sample.match(line)] == []
    families = {sample.match(line)[1] for line in lines}
    for word in ("created", "succeeded", "failed", "restarted", "deleted", "pods_created", "pods_deleted"):
        assert f"pytorchtrainingjob_{word}_total" in families
    assert families >= {"workqueue_depth", "rest_client_requests_total", "pytorchtrainingjob_build_info"}


def test_log_lines_are_json():
    lines = kubectl("-n", SYSTEM, "logs", f"deployment/{OPERATOR}").splitlines()
    assert lines
    for line in lines:
        entry = json.loads(line)
        assert {"ts", "level", "msg"} <= entry.keys(), line
        assert entry["level"] in ("debug", "info", "warn", "error")
