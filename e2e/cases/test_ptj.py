"""kubectl ptj logs and why, with real pods: with answers of the API server and the kubelet, not of a fake."""

import json
import subprocess
import tempfile
import threading

import pytest
from jobs import container, job, mounted, replica, until
from kube import BOUND_S, IMAGE, REPO, apply, field, kubectl, status, wait_for, wait_phase

PTJ = REPO / "build" / "release" / "bin" / "kubectl-ptj"


def ptj(*args, namespace):
    return subprocess.run([PTJ, *args, "-n", namespace], text=True, capture_output=True, timeout=BOUND_S)


class Follow(threading.Thread):
    """A running kubectl ptj; `lines` has its output so far."""

    def __init__(self, *args, namespace):
        super().__init__(daemon=True)
        self.lines, self.err = [], tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([PTJ, *args, "-n", namespace], text=True, stdout=subprocess.PIPE, stderr=self.err)
        self.start()

    def run(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def end(self):
        """(exit code, stderr)"""
        code = self.process.wait(timeout=BOUND_S)
        self.join()
        self.err.seek(0)
        return code, self.err.read()


PODS = ("[node-0]", "[node-1]")


def test_logs_waits_merges_and_goes_on_over_a_restart(ns, data):
    """It starts before there is a pod. Rank 1's pod is killed in the first attempt; each line of both attempts appears once, in order.
    The pods go on when it has shown a line of both, and the first one, whose success is the job's, waits for the other's end."""
    script = f"""echo "attempt $ATTEMPT line 1"; {until('read-$ATTEMPT')}
                for i in 2 3 4 5 6; do echo "attempt $ATTEMPT line $i"; sleep 0.5; done
                [ $ATTEMPT != 0 ] || {{ [ $RANK = 0 ] && sleep 3600; exit 137; }}
                [ $RANK = 1 ] || {until('end')}"""
    apply(mounted(data, job("merged", replica(script, replicas=2), suspend=True)), namespace=ns)
    wait_phase("merged", ns, "Paused")
    reader = Follow("logs", "merged", "--timestamps", namespace=ns)
    kubectl("-n", ns, "patch", "ptj", "merged", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    for attempt in 0, 1:
        wait_for(lambda: f"attempt {attempt} of both pods: {reader.lines}", lambda n=attempt: reader.process.poll() is not None or all(
            any(line.startswith(pod) and line.endswith(f"attempt {n} line 1") for line in reader.lines) for pod in PODS))
        (data / f"read-{attempt}").touch()
    wait_for(lambda: f"the end of pod 1: {reader.lines}", lambda: field("pod", "merged-node-1", ns, "status.phase") == "Succeeded")
    (data / "end").touch()
    code, err = reader.end()
    end = status("merged", ns)
    assert (end["phase"], end["attempt"], end["backoffCount"], code) == ("Succeeded", 1, 1, 0), (end, err)
    assert "waiting for " in err and "begins: rank 1" in err, err
    lines = [line.split(" ", 2) for line in reader.lines]
    for pod in PODS:
        said = [text for at, _, text in lines if at == pod]
        assert said[-6:] == [f"attempt 1 line {i}" for i in range(1, 7)], said
        assert said[:-6] == [f"attempt 0 line {i}" for i in range(1, len(said) - 5)], said
    # Existing lines are merged by time, however late a kubelet answers; a followed line waits for half a second.
    ended = ptj("logs", "merged", "--timestamps", namespace=ns)
    times = [line.split(" ", 2)[1] for line in ended.stdout.splitlines()]
    assert (ended.returncode, times, len(times)) == (0, sorted(times), 12), ended
    assert ptj("logs", "merged", "--rank=1", "--tail=1", namespace=ns).stdout == "[node-1] attempt 1 line 6\n"
    kept = ptj("logs", "merged", "--previous", namespace=ns).stdout
    assert "attempt 0, " in kept and "exit code 137" in kept, kept


def test_submit_runs_a_script_with_a_secret(ns, tmp_path):
    """Created suspended and resumed at once: no restart is counted."""
    script = tmp_path / "run.sh"
    script.write_text('#!/bin/sh\necho "token $HF_TOKEN"\n')
    kubectl("-n", ns, "create", "secret", "generic", "hf", "--from-literal=token=s3")
    sent = ptj("submit", script, f"--image={IMAGE}", "--name=sent", "--secret=HF_TOKEN=hf/token", namespace=ns)
    assert sent.returncode == 0 and "takes run.sh (" in sent.stderr, sent
    wait_phase("sent", ns, "Succeeded")
    end = status("sent", ns)
    assert (end["attempt"], end["backoffCount"], end["resumeCount"]) == (0, 0, 0), end
    assert "token s3\n" in ptj("logs", "sent", namespace=ns).stdout


def spec(script="true", **pod):
    """A job of one pod whose pod spec has these members, too."""
    made = replica(script, **pod.pop("container", {}))
    made["template"]["spec"].update(pod)
    return made


def claim(name):
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def quota():
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "0"}}}


def limits():
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"},
            "spec": {"limits": [{"type": "Container", "max": {"memory": "64Mi"}}]}}


def gpus(n):
    return {"container": {"resources": {"limits": {"nvidia.com/gpu": n}}}}


# name: objects beside the job, its one replicaSpec, members of its spec, and what the first three lines say.
STAGED = {
    "exception": ([], spec("printf '  File \"a.py\", line 7, in f\\nValueError: seven\\n' >&2; exit 1"), {},
                  "ended with an exception"),
    "exit-3": ([], spec("exit 3"), {}, "a program ended with exit code 3"),
    "signal": ([], spec("exit 139"), {}, "segmentation fault"),
    "oom": ([], spec("x=$(head -c 300m /dev/zero | tr '\\0' x); echo $x | wc -c"), {}, "out of memory"),
    "image": ([], spec(container={"image": "localhost/no-such/image:1"}), {}, "image"),
    "image-never": ([], spec(container={"image": "localhost/no-such/image:1", "imagePullPolicy": "Never"}), {},
                    "imagePullPolicy Never forbids to pull it"),
    "image-name": ([], spec(container={"image": "No/Such:Image:1"}), {}, "the image's name is not valid"),
    "claim-missing": ([], spec(volumes=claim("nowhere")), {}, "a PersistentVolumeClaim does not exist: nowhere"),
    "claim-unbound": ([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "slow"},
                        "spec": {"storageClassName": "no-such-class", "accessModes": ["ReadWriteOnce"],
                                 "resources": {"requests": {"storage": "1Mi"}}}}],
                      spec(volumes=claim("slow")), {}, "a PersistentVolumeClaim has no volume"),
    "quota": ([quota()], spec(), {}, "a resource quota of namespace"),
    "limit-range": ([limits()], spec(), {}, "a LimitRange of namespace"),
    "pod-security": ([], spec(), {}, "Pod Security forbids the job's pods"),
    "service-account": ([], spec(serviceAccountName="nobody"), {}, "the pods' service account does not exist"),
    "priority-class": ([], spec(priorityClassName="nothing"), {}, "the pods' priority class does not exist"),
    "gpus": ([], spec(**gpus(99)), {}, "no node has enough free GPUs"),
    "memory": ([], spec(container={"resources": {"requests": {"memory": "64Ti"}}}), {}, "no node has room for the pod"),
    "selector": ([], spec(nodeSelector={"no-such": "label"}), {}, "no node matches the pod's node selector"),
    "gate": ([], spec(schedulingGates=[{"name": "example.com/wait"}]), {}, "a scheduling gate holds the pod"),
    "config-map": ([], spec(container={"envFrom": [{"configMapRef": {"name": "absent"}}]}), {},
                   "a ConfigMap or a key of it does not exist: absent"),
    "secret": ([], spec(container={"envFrom": [{"secretRef": {"name": "absent"}}]}), {},
               "a Secret or a key of it does not exist: absent"),
    "config-map-volume": ([], spec(volumes=[{"name": "c", "configMap": {"name": "absent"}}],
                                     container={"volumeMounts": [{"name": "c", "mountPath": "/c"}]}), {},
                          "a ConfigMap or a key of it does not exist: absent"),
    "no-command": ([], spec(container={"command": ["no-such-program"]}), {},
                   "the command was not found in the image"),
    "no-command-127": ([], spec("no-such-program"), {}, "the command was not found in the image"),
    "missing-data": ([], spec("cat /data/nowhere"), {}, "a file or folder is missing"),
    "bad-option": ([], spec("torchrun --nprocs=1 train.py"), {}, "a program refused its options"),
    "deadline": ([], spec("sleep 3600"), {"runPolicy": {"activeDeadlineSeconds": 2}},
                 "longer than activeDeadlineSeconds"),
    "start-deadline": ([], spec(**gpus(99)), {"runPolicy": {"startDeadlineSeconds": 2, "backoffLimit": 0}},
                       "no node has enough free GPUs|not all pods started within startDeadlineSeconds"),
    "evicted": ([], spec("head -c 40m /dev/zero >/tmp/x; sleep 3600",
                         container={"resources": {"limits": {"ephemeral-storage": "10Mi", "memory": "128Mi"}}}), {},
                "evicted: the pod used more disk"),
    "init": ([], spec(initContainers=[{**container("exit 4"), "name": "fetch"}]), {}, "init container fetch failed"),
    "managed-by": ([], spec(), {"runPolicy": {"managedBy": "example.com/other"}}, "another controller manages this job"),
}


@pytest.mark.parametrize("name", STAGED)
def test_why_names_the_cause_first(ns, name):
    others, made, more, causes = STAGED[name]
    if others:
        apply(*others, namespace=ns)
    if name == "pod-security":
        kubectl("label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")
    if name == "quota":
        wait_for("the quota to count", lambda: field("resourcequota", "few", ns, "status.hard"))
    apply(job("staged", made, **more), namespace=ns)
    seen = []

    def told():
        found = ptj("why", "staged", namespace=ns)
        seen[:] = [found.stdout + found.stderr]
        first = " ".join(line.strip() for line in found.stdout.splitlines()[:3])
        return any(cause in first for cause in causes.split("|"))

    wait_for(lambda: f"{causes} in:\n{seen[0]}", told)
    assert "\nOperator: " in seen[0] and "\nDo:       " in seen[0], seen[0]


def test_why_of_jobs_that_are_fine(ns):
    apply(job("runs", replica("sleep 3600")), job("ends", replica("true")), job("rests", replica("true"), suspend=True),
          namespace=ns)
    for name, phase in ("runs", "Running"), ("ends", "Succeeded"), ("rests", "Paused"):
        wait_phase(name, ns, phase)
        found = ptj("why", name, namespace=ns)
        assert found.returncode == 0 and found.stdout.startswith(phase) and len(found.stdout.splitlines()) <= 4, found
        answer = json.loads(ptj("why", name, "-o", "json", namespace=ns).stdout)
        assert answer["phase"] == phase and answer["name"] == name and "cause" not in answer, answer
    listed = [json.loads(line) for line in ptj("watch", "-o", "json", "--once", namespace=ns).stdout.splitlines()]
    assert sorted(job["name"] for job in listed) == ["ends", "rests", "runs"], listed
    assert ptj("watch", "ends", "--until=finished", "--timeout=5m", namespace=ns).returncode == 0
    assert ptj("why", "none", namespace=ns).returncode == 1


def test_a_missing_right_costs_its_part_only(ns):
    """With permission to read only jobs: the cause from the status, and the permissions that would show more."""
    user = f"reader-{ns}"
    apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "jobs"},
           "rules": [{"apiGroups": ["batch.tensorstack.dev"], "resources": ["pytorchtrainingjobs"], "verbs": ["get"]}]},
          {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "jobs"},
           "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "jobs"},
           "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]}, namespace=ns)
    apply(job("fails", replica("exit 3")), namespace=ns)
    wait_phase("fails", ns, "Failed")
    config = json.loads(kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
    config["users"][0]["user"]["as"] = user
    path = REPO / "build" / f"{ns}.conf"
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    try:
        found = ptj("why", "fails", f"--kubeconfig={path}", "--all", namespace=ns)
        read = ptj("logs", "fails", f"--kubeconfig={path}", namespace=ns)
    finally:
        path.unlink()
    assert found.stdout.startswith("Failed: a program ended with exit code 3"), found
    assert f"you lack the permission to list pods in namespace {ns}" in found.stdout, found
    assert read.returncode == 1 and "you lack the permission to watch " in read.stderr, read
