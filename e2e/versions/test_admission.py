"""The optional admission policies: a job cannot exceed the permissions of the user who creates it, nor can the operator's account; jobs
whose Secret or NetworkPolicy is refused; and Pod Security, as installed."""

import copy
import json
import subprocess

import jobs
import pytest
from kube import BOUND_S, GROUP, REPO, SYSTEM, apply, field, get, items, kubectl, status, wait_for, wait_phase

ADMISSION = REPO / "deploy" / "admission"
EVE = "eve@example.com"
RBAC = "rbac.authorization.k8s.io"


def grant(namespace, name, group, resource):
    apply({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": name},
           "rules": [{"apiGroups": [group], "resources": [resource], "verbs": ["create", "get", "patch", "update"]}]},
          {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": {"name": name},
           "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
           "subjects": [{"apiGroup": RBAC, "kind": "User", "name": EVE}]}, namespace=namespace)


def job(name, **pod):
    made = jobs.job(name, copy.deepcopy(jobs.replica("true")), suspend=True)
    made["spec"]["replicaSpecs"][0]["template"]["spec"].update(pod)
    return made


def create(namespace, obj, *args):
    return subprocess.run(["kubectl", "-n", namespace, "create", *args, "-f", "-"], input=json.dumps(obj), text=True,
                          capture_output=True)


def refusal(namespace, obj, *args):
    """Why Eve may not create it; nothing when she may."""
    done = create(namespace, obj, f"--as={EVE}", *args)
    return done.stderr if done.returncode else ""


def patched(namespace, name, change):
    done = subprocess.run(["kubectl", "-n", namespace, f"--as={EVE}", "patch", "ptj", name, "--type=json", "-p",
                           json.dumps([change])], text=True, capture_output=True)
    return done.stderr if done.returncode else ""


def account(name):
    return {"op": "add", "path": "/spec/replicaSpecs/0/template/spec/serviceAccountName", "value": name}


def applied(file):
    """A policy that is there as long as the test runs."""
    kubectl("apply", "-f", str(ADMISSION / file))
    yield
    kubectl("delete", "-f", str(ADMISSION / file))


@pytest.fixture
def policy(installed):
    yield from applied("service-accounts.yaml")


def test_a_job_gives_no_account_that_its_author_could_not_use(ns, policy):
    grant(ns, "jobs", GROUP, "pytorchtrainingjobs")
    other = job("other", serviceAccountName="builder")
    wait_for("the policy to be in force", lambda: "create pods" in refusal(ns, other, "--dry-run=server"))
    assert f'"{ns}", which {EVE} does not have' in refusal(ns, other)
    assert "create pods" in refusal(ns, job("old-name", serviceAccount="builder"))
    for name, pod in (("plain", {}), ("named", {"serviceAccountName": "default"}), ("empty", {"serviceAccountName": ""})):
        assert refusal(ns, job(name, **pod)) == ""
    # The operator's own writes go through.
    wait_phase("plain", ns, "Paused")
    # Nor by a change of a job; what is not in its spec may change, whoever made it.
    assert "create pods" in patched(ns, "plain", account("builder"))
    assert create(ns, job("theirs", serviceAccountName="builder")).returncode == 0
    assert patched(ns, "theirs", {"op": "add", "path": "/metadata/labels", "value": {"team": "blue"}}) == ""
    assert "create pods" in patched(ns, "theirs", {"op": "replace", "path": "/spec/suspend", "value": False})
    # Who may create pods could use the account anyway.
    grant(ns, "pods", "", "pods")
    wait_for("the right to count", lambda: refusal(ns, other) == "")
    assert get("ptj", "other", ns)


@pytest.fixture
def authors(installed):
    yield from applied("job-authors.yaml")


def test_who_writes_a_job_may_create_pods(ns, authors):
    grant(ns, "jobs", GROUP, "pytorchtrainingjobs")
    plain = job("plain")
    wait_for("the policy to be in force", lambda: "create pods" in refusal(ns, plain, "--dry-run=server"))
    assert f'"{ns}", which {EVE} does not have' in refusal(ns, plain)
    assert create(ns, job("theirs")).returncode == 0
    assert patched(ns, "theirs", {"op": "add", "path": "/metadata/labels", "value": {"team": "blue"}}) == ""
    assert "create pods" in patched(ns, "theirs", {"op": "replace", "path": "/spec/suspend", "value": False})
    wait_phase("theirs", ns, "Paused")
    grant(ns, "pods", "", "pods")
    wait_for("the right to count", lambda: refusal(ns, plain) == "")


@pytest.fixture
def fenced(installed):
    yield from applied("operator.yaml")


def as_operator(namespace, obj):
    done = create(namespace, obj, f"--as=system:serviceaccount:{SYSTEM}:torchkeeper-operator", "--dry-run=server")
    return done.stderr if done.returncode else ""


def changed_by_operator(namespace, *args):
    user = f"system:serviceaccount:{SYSTEM}:torchkeeper-operator"
    done = subprocess.run(["kubectl", "-n", namespace, f"--as={user}", *args, "--dry-run=server"], text=True, capture_output=True)
    return done.stderr if done.returncode else ""


# As much of Kueue's definition as the policy needs.
WORKLOADS = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "workloads.kueue.x-k8s.io"}, "spec": {
    "group": "kueue.x-k8s.io", "scope": "Namespaced", "names": {"kind": "Workload", "plural": "workloads", "singular": "workload"},
    "versions": [{"name": "v1beta2", "served": True, "storage": True, "subresources": {"status": {}},
                  "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


@pytest.fixture
def workloads(installed):
    role, name = str(REPO / "deploy" / "rbac" / "kueue-role.yaml"), WORKLOADS["metadata"]["name"]
    kubectl("apply", "-f", role)
    apply(WORKLOADS, namespace="default")
    kubectl("wait", "--for=condition=Established", f"crd/{name}", f"--timeout={BOUND_S}s")
    yield
    kubectl("delete", "crd", name)
    kubectl("delete", "-f", role)


def test_the_operator_takes_over_what_multikueue_sent(ns, fenced, workloads):
    """A Workload with the label of its manager, once; and nothing else that has it."""
    origin = {"labels": {"kueue.x-k8s.io/multikueue-origin": "manager"}}
    owner = {"apiVersion": f"{GROUP}/v1beta1", "kind": "PyTorchTrainingJob", "name": "j", "uid": "u", "controller": True}
    # One that exists: the garbage collector deletes what has an owner that is not there.
    apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "another"}}, namespace=ns)
    uid = json.loads(kubectl("-n", ns, "get", "configmap", "another", "-o", "json"))["metadata"]["uid"]
    another = {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "another", "uid": uid, "controller": True}]}
    for name, meta in (("sent", origin), ("plain", {}), ("owned", origin | another)):
        apply({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": name, **meta}}, namespace=ns)
    apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sent", **origin}, "spec": {"containers": [{"name": "c", "image": "none"}]}},
          namespace=ns)

    def taken(kind, name, owners):
        return changed_by_operator(ns, "patch", kind, name, "--type=merge", "-p", json.dumps({"metadata": {"ownerReferences": owners}}))

    wait_for("the policy to be in force", lambda: "PyTorchTrainingJob controls" in taken("workload", "plain", [owner]))
    assert taken("workload", "sent", [owner]) == ""
    assert "PyTorchTrainingJob controls" in taken("workload", "sent", [])
    assert "PyTorchTrainingJob controls" in taken("workload", "owned", [owner])
    assert "PyTorchTrainingJob controls" in taken("pod", "sent", [owner])
    # Nor does it give anybody quota, or take it away. (kubectl patch would first read the status, which the role does not allow.)
    for name in "plain", "owned", "sent":
        path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{ns}/workloads/{name}"
        admitted = json.loads(kubectl("get", "--raw", path)) | {"status": {"admission": {}}}
        done = subprocess.run(["kubectl", f"--as=system:serviceaccount:{SYSTEM}:torchkeeper-operator", "replace", "--raw", f"{path}/status?dryRun=All",
                               "-f", "-"], input=json.dumps(admitted), text=True, capture_output=True)
        assert "PyTorchTrainingJob controls" in done.stderr, (name, done)


def test_the_operators_account_writes_children_of_jobs_only(ns, node, fenced):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    wait_for("the policy to be in force", lambda: "PyTorchTrainingJob controls" in as_operator(ns, pod))
    assert create(ns, job("owner")).returncode == 0
    uid = get("ptj", "owner", ns)["metadata"]["uid"]
    ours = {"ownerReferences": [{"apiVersion": f"{GROUP}/v1beta1", "kind": "PyTorchTrainingJob", "name": "owner", "uid": uid,
                                 "controller": True}]}
    # Nor does it take over what is another's, by a change that adds the owner.
    theirs = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "theirs"},
              "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}},
                       "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}}}
    apply(theirs, {**pod, "metadata": {"name": "theirs"}}, namespace=ns)
    for kind in "deployment", "pod":
        taken = changed_by_operator(ns, "patch", kind, "theirs", "--type=merge", "-p", json.dumps({"metadata": ours}))
        assert "PyTorchTrainingJob controls" in taken
        assert "PyTorchTrainingJob controls" in changed_by_operator(ns, "delete", kind, "theirs")
    # What a job controls may be changed, but not let go.
    apply({**pod, "metadata": {"name": "child", **ours}}, namespace=ns)
    assert changed_by_operator(ns, "patch", "pod", "child", "--type=merge", "-p", '{"spec":{"activeDeadlineSeconds":9}}') == ""
    assert "PyTorchTrainingJob controls" in changed_by_operator(ns, "patch", "pod", "child", "--type=merge", "-p",
                                                                '{"metadata":{"ownerReferences":null}}')
    pod["metadata"].update(ours)
    assert as_operator(ns, pod) == ""
    assert "namespaces of the cluster" in as_operator("kube-system", pod)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", **ours}, "type": "Opaque"}
    assert as_operator(ns, secret) == ""
    secret |= {"type": "kubernetes.io/service-account-token"}
    secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "default"}
    assert "type Opaque" in as_operator(ns, secret)
    # A whole life of a job, with its guards, a restart, a TensorBoard and an end by its time to live.
    apply(jobs.job("life", jobs.replica("true", replicas=2), torchrunConfig={"enabled": True}, runPolicy={"ttlSecondsAfterFinished": 2},
                   tensorboardSpec={"image": jobs.IMAGE, "logDir": {"pvc": [{"name": "none"}]}}), namespace=ns)
    names = ("life-node-0", "life-node-1")
    first = {name: node.run(ns, name) for name in names}
    wait_for("TensorBoard's replica", lambda: field("deployment", "life-tensorboard", ns, "spec.replicas") == 1)
    node.end(ns, "life-node-1", 137)
    for name in names:
        wait_for("a new pod", lambda name=name: field("pod", name, ns, "metadata.uid") not in (None, first[name]))
        node.run(ns, name)
    for name in names:
        node.end(ns, name, 0)
    wait_for("its end", lambda: not get("ptj", "life", ns))


def refused_for(ns, name, words):
    """A job of two nodes gets no pod, and its status has the server's words."""
    apply(jobs.job(name, jobs.replica("true", replicas=2), torchrunConfig={"enabled": True}), namespace=ns)

    def told():
        now = status(name, ns)
        conditions = {c["type"]: c for c in now.get("conditions", [])}
        return now.get("reason") == "PodRefused" and words in conditions["Running"]["message"]

    wait_for(lambda: f"{words}: {status(name, ns)}", told)
    assert items("pods", ns) == []


def test_a_quota_without_room_for_the_key(ns):
    apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"count/secrets": "0"}}},
          namespace=ns)
    wait_for("the quota to be counted", lambda: (get("resourcequota", "none", ns).get("status") or {}).get("used"))
    refused_for(ns, "poor", "exceeded quota: none, requested: count/secrets=1")
    kubectl("-n", ns, "delete", "resourcequota", "none")
    wait_for("its pods", lambda: len(items("pods", ns)) == 2)


@pytest.fixture
def old_role(installed):
    """As before the operator made guards."""
    rules = get("clusterrole", "torchkeeper-operator", "default")["rules"]
    older = [r for r in rules if r["verbs"] != ["create"]]
    assert len(rules) - len(older) == 2

    def patch(rules):
        kubectl("patch", "clusterrole", "torchkeeper-operator", "--type=merge", "-p", json.dumps({"rules": rules}))

    patch(older)
    yield lambda: patch(rules)
    patch(rules)


def test_an_operator_with_an_older_role(ns, old_role):
    user = f"system:serviceaccount:{SYSTEM}:torchkeeper-operator"
    for kind in ("secrets", "networkpolicies"):
        wait_for("the role to count", lambda kind=kind: kubectl("-n", ns, f"--as={user}", "auth", "can-i", "create", kind, check=False) == "no\n")
    refused_for(ns, "early", 'cannot create resource "')
    old_role()
    wait_for("its pods", lambda: len(items("pods", ns)) == 2)


def test_pod_security_is_enforced_where_the_operator_runs(installed):
    """The API server refuses there what is not restricted, and takes the operator's own pod, without a warning."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"},
           "spec": {"containers": [{"name": "c", "image": "none"}]}}
    refused = create(SYSTEM, pod, "--dry-run=server")
    assert refused.returncode != 0
    assert 'violates PodSecurity "restricted' in refused.stderr
    template = get("deployment", "torchkeeper-operator", SYSTEM)["spec"]["template"]
    own = create(SYSTEM, {**pod, "metadata": {"name": "own"}, "spec": template["spec"]}, "--dry-run=server")
    assert (own.returncode, own.stderr) == (0, "")


def test_tensorboard_is_restricted(ns):
    """Where only restricted pods are let in, the one of TensorBoard is."""
    board = {"image": jobs.IMAGE, "logDir": {"pvc": [{"name": "logs"}]}}
    apply(jobs.job("board", jobs.replica("true"), tensorboardSpec=board), namespace=ns)
    wait_for("its deployment", lambda: get("deployment", "board-tensorboard", ns))
    kubectl("label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted",
            "pod-security.kubernetes.io/warn=restricted")
    template = get("deployment", "board-tensorboard", ns)["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "like-it"}, "spec": template["spec"]}
    weak = copy.deepcopy(pod)
    del weak["spec"]["containers"][0]["securityContext"]
    wait_for("Pod Security to be in force", lambda: "violates PodSecurity" in create(ns, weak, "--dry-run=server").stderr)
    done = create(ns, pod, "--dry-run=server")
    assert (done.returncode, done.stderr) == (0, "")
