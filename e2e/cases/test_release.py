"""A release in a registry: jobs of the first edition continue while it is installed over it, it runs from the registry alone,
by install.yaml and by its chart, and its removal leaves nothing."""

import subprocess

import jobs
import pytest
import registry
from kube import GROUP, REPO, SYSTEM, KubectlError, apply, get, items, kubectl, status, wait_for, wait_phase

# It takes the operator away, so it runs alone; and it builds images.
pytestmark = [pytest.mark.serial, pytest.mark.long]

DEPLOYMENT = "torchkeeper-operator"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    one = registry.Registry(tmp_path_factory.mktemp("registry"))
    yield one
    one.stop()


@pytest.fixture(scope="module")
def release(server, tmp_path_factory):
    return registry.release(tmp_path_factory.mktemp("release") / "tree", server)


@pytest.fixture
def nothing_installed():
    """Remove the operator of the other cases, and restore it afterwards."""
    uninstall((REPO / "deploy" / "install.yaml").read_text())
    yield
    done = subprocess.run(["bash", "-c", f". {REPO}/scripts/lib.sh && install_operator"], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


def images(release):
    return dict(line.split() for line in (release / "images.txt").read_text().splitlines())


def install(text):
    kubectl("apply", "-f", "-", stdin=text)
    kubectl("-n", SYSTEM, "rollout", "status", "deployment", DEPLOYMENT, "--timeout=600s")
    wait_for("the resource to be served", lambda: GROUP in kubectl("api-resources", f"--api-group={GROUP}", check=False))


def uninstall(text):
    kubectl("delete", "--ignore-not-found", "--timeout=600s", "-f", "-", stdin=text)


def left():
    """All objects in the cluster with our name, of any kind that can be listed. The local cluster's own are torchkeeper:NAME."""
    kinds = [k for k in kubectl("api-resources", "--verbs=list", "-o", "name").split()
             if not k.startswith(("events", "componentstatuses"))]
    try:
        listed = kubectl("get", ",".join(kinds), "-A", "--no-headers", "--ignore-not-found", "-o",
                         "custom-columns=K:.kind,NS:.metadata.namespace,N:.metadata.name")
    except KubectlError as e:  # a kind that goes just now
        return [str(e)]
    return [line for line in listed.splitlines() if "torchkeeper-" in line or GROUP in line]


def uids(ns):
    return {p["metadata"]["name"]: (p["metadata"]["uid"], sum(c["restartCount"] for c in p["status"]["containerStatuses"]))
            for p in items("pods", ns)}


def torchrun(name, image, script, config=None, **spec):
    """A job whose pods run a shell script under torchrun, in one process each."""
    one = jobs.replica("", replicas=2, image=image, args=["--no-python", "sh", "-c", script])
    del one["template"]["spec"]["containers"][0]["command"]
    return jobs.job(name, one, torchrunConfig={"enabled": True, **(config or {})}, **spec)


def started(image):
    """Jobs in each state in which an upgrade may find them: all but the last wait for the file "end"."""
    return [jobs.job("plain", jobs.replica(jobs.until("end"), replicas=2, image=image)),
            jobs.job("paused", jobs.replica(jobs.until("end"), image=image), suspend=True),
            jobs.job("again", jobs.replica(f'[ "$ATTEMPT" = 0 ] && exit 137; {jobs.until("end")}', image=image)),
            torchrun("torch", image, jobs.until("end")),
            torchrun("elastic", image, jobs.until("end"), {"maxRestarts": 1},
                     elastic={"enabled": True, "minReplicas": 1, "maxReplicas": 3})]


def operator(release):
    """The pod of the operator runs the release's image, by digest, and leads."""
    pods = items("pods", SYSTEM, "app.kubernetes.io/component=operator")
    holder = (get("lease", DEPLOYMENT, SYSTEM) or {}).get("spec", {}).get("holderIdentity") or ""
    return (len(pods) == 1 and pods[0]["spec"]["containers"][0]["image"] == images(release)["operator"]
            and pods[0]["metadata"]["name"] in holder)


def train(ns, release, server):
    """A job of the release's own images alone: the trainer's, and the launcher that its operator brings."""
    ours = images(release)
    apply(torchrun("first", ours["trainer"], "echo rank $RANK of $WORLD_SIZE", {"launcher": "Torchkeeper"}), namespace=ns)
    end = wait_phase("first", ns, "Succeeded", "Failed")
    assert end["phase"] == "Succeeded", end
    assert "rank 1 of 2" in kubectl("-n", ns, "logs", "first-node-1")
    pod = get("pod", "first-node-1", ns)["spec"]
    assert [c["image"] for c in pod["initContainers"] + pod["containers"]] == [ours["launcher"], ours["trainer"]]
    assert all(server.pulled(name) for name in ("operator", "launcher", "trainer")), server.log.read_text()[-3000:]


def told(ns, names):
    """The parts of a continuing job's status that must not change."""
    def of(job):
        fields = ("phase", "attempt", "backoffCount", "disruptionCount", "startTime")
        return {f: job.get(f) for f in fields} | {c["type"]: c["status"] for c in job["conditions"] if c["status"] == "True"}

    return {name: of(status(name, ns)) for name in names}


def test_upgrade_restarts_no_job(ns, data, server, release, nothing_installed, tmp_path):
    """Jobs of 0.1.0 under the new operator and the new CRD: the same pods, no restart, and each ends as it must."""
    install(registry.first_edition(tmp_path / "old", server))
    made = [jobs.mounted(data, job) for job in started(images(release)["trainer"])]
    names = [job["metadata"]["name"] for job in made]
    apply(*made, namespace=ns)
    wait_for("the restart", lambda: status("again", ns).get("backoffCount") == 1)
    for name in names:
        wait_phase(name, ns, "Paused" if name == "paused" else "Running")
    pods, jobs_told = uids(ns), told(ns, names)
    install((release / "install.yaml").read_text())
    wait_for("the new operator to lead", lambda: operator(release))
    # It has seen all jobs when it acts on one that is newer.
    apply(jobs.job("newer", jobs.replica("true", image=images(release)["trainer"])), namespace=ns)
    wait_phase("newer", ns, "Succeeded")
    wait_for(lambda: f"{jobs_told} to be {told(ns, names)}", lambda: told(ns, names) == jobs_told)
    now = uids(ns)
    assert {name: now.get(name) for name in pods} == pods
    (data / "end").touch()
    kubectl("-n", ns, "patch", "ptj", "paused", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    for name in names:
        assert wait_phase(name, ns, "Succeeded", "Failed")["phase"] == "Succeeded", status(name, ns)
    train(ns, release, server)
    uninstall((release / "install.yaml").read_text())
    wait_for(left, lambda: not left())
    wait_for("the jobs' pods to go", lambda: not items("pods,services", ns))


@pytest.fixture(scope="module")
def helm():
    """Built once, into build/tools."""
    registry.run(REPO / "deploy" / "local" / "helm")
    return REPO / "build" / "tools" / "helm"


def test_chart_installs_what_its_release_pushed(ns, server, release, helm, nothing_installed):
    (chart,) = release.glob("torchkeeper-*.tgz")
    registry.run(helm, "install", "torchkeeper", chart, "-n", SYSTEM, "--create-namespace", "--wait", "--timeout=600s",
                 "--set", "crds.keep=false")
    wait_for("the operator to lead", lambda: operator(release))
    train(ns, release, server)
    registry.run(helm, "uninstall", "torchkeeper", "-n", SYSTEM, "--wait", "--timeout=600s")
    kubectl("delete", "namespace", SYSTEM)
    wait_for(left, lambda: not left())
    wait_for("the job's pods to go", lambda: not items("pods,services", ns))
