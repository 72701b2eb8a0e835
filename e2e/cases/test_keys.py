"""The key of a job: our launchers on two nodes get it by reference and show it nowhere; a pod without it, or with another one, cannot join;
an additional node with the key ends with an error. No case needs a network that enforces policies."""

import base64
import json
import re
from pathlib import Path

import jobs
from kube import SYSTEM, apply, get, items, kubectl, wait_for, wait_phase

OURS = {"enabled": True, "launcher": "Torchkeeper"}
# Prints its own and its launcher's environment to the pod's log.
SHOWS = "env; tr '\\0' '\\n' </proc/$PPID/environ; "


def start(name, ns, data, script, hold="true"):
    """A job of two nodes, whose pods first run the commands in `hold`."""
    replica = jobs.replica(script, replicas=2, policy="Never")
    pod = replica["template"]["spec"]
    (one,) = pod["containers"]
    del one["command"]
    one["args"] = ["--no_python", "sh", "-c", script]
    job = jobs.mounted(data, jobs.job(name, replica, torchrunConfig=OURS))
    pod["initContainers"] = [jobs.container(hold, env=[], name="hold", volumeMounts=one["volumeMounts"])]
    apply(job, namespace=ns)
    return wait_for("the first pod", lambda: get("pod", f"{name}-node-0", ns))


def log(pod, ns):
    return kubectl("-n", ns, "logs", pod, "-c", "pytorch", check=False)


def digits(name, ns):
    secret = get("secret", f'{name}-{get("ptj", name, ns)["metadata"]["uid"]}', ns)
    return base64.b64decode(secret["data"]["key"]).decode()


def option(pod, name):
    (one,) = pod["spec"]["containers"]
    (value,) = [a for a in one["command"] + one.get("args", []) if a.startswith(f"--{name}=")]
    return value


def stranger(name, ns, like, seconds, key=None):
    """A pod without a job that tries to join the run of the pod `like`, whose arguments everyone may read."""
    pod = jobs.pod(name, "")
    (one,) = pod["spec"]["containers"]
    one["command"] = ["torchrun", "--nnodes=2", "--rdzv_backend=c10d", option(like, "rdzv_id"), option(like, "rdzv_endpoint"),
                      f"--rdzv_conf=is_host=false,join_timeout={seconds}", "--no_python", "true"]
    one["env"] = [{"name": "TORCHKEEPER_JOB_KEY", **key}] if key else []
    pod["spec"]["restartPolicy"] = "Never"
    apply(pod, namespace=ns)


def ended(name, ns):
    """Its exit code and its log."""
    def state():
        (container,) = (get("pod", name, ns) or {}).get("status", {}).get("containerStatuses") or [{}]
        return container.get("state", {}).get("terminated")

    return wait_for(f"the end of {name}", state)["exitCode"], log(name, ns)


def processes(uid):
    """The arguments and the environment of each process of the job's pods, from /proc."""
    shown = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            environ, cmdline = (path / "environ").read_bytes(), (path / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if f"PTJ_JOB_UID={uid}".encode() in environ.split(b"\0"):
            shown[path.name] = environ + cmdline
    return shown


def test_the_key_is_nowhere(ns, data):
    start("quiet", ns, data, SHOWS + jobs.until("go"))
    wait_phase("quiet", ns, "Running")
    uid, key = get("ptj", "quiet", ns)["metadata"]["uid"], digits("quiet", ns)
    assert re.fullmatch("[0-9a-f]{64}", key)
    for i in range(2):
        wait_for(f"rank {i}'s words", lambda i=i: f"RANK={i}\n" in log(f"quiet-node-{i}", ns))
    shown = processes(uid)
    assert len(shown) >= 4, shown  # a launcher and a shell on each node
    assert [pid for pid, text in shown.items() if key.encode() in text] == []
    (data / "go").touch()
    wait_phase("quiet", ns, "Succeeded")
    said = {f"log of quiet-node-{i}": log(f"quiet-node-{i}", ns) for i in range(2)}
    said["log of the operator"] = kubectl("-n", SYSTEM, "logs", "deployment/torchkeeper-operator", "--tail=-1")
    said |= {kind: json.dumps(items(kind, ns)) for kind in ("pods", "events", "ptj", "services", "networkpolicies")}
    assert "TORCHKEEPER_KEY_FILE=" in said["log of quiet-node-0"]
    assert [what for what, text in said.items() if key in text] == []


def test_who_lacks_the_key_takes_no_place(ns, data):
    """The second node is held back, so that another one could join."""
    first = start("shut", ns, data, "true", hold=f'[ "$(hostname)" = shut-node-0 ] || {jobs.until("go")}')
    wait_for("the first node to wait", lambda: "1 of 2 nodes have joined" in log("shut-node-0", ns))
    stranger("keyless", ns, first, 600)
    code, words = ended("keyless", ns)
    assert code == 1 and "has a key, and this one has none" in words, (code, words)
    stranger("guesser", ns, first, 600, key={"value": "00" * 32})
    wait_for("the guesser to be left waiting", lambda: "does not have the key of this job" in log("guesser", ns))
    (data / "go").touch()
    assert wait_phase("shut", ns, "Succeeded", "Failed")["phase"] == "Succeeded"
    assert get("pod", "guesser", ns)["status"]["phase"] == "Running"


def test_a_node_too_many(ns, data):
    """It has the key, but the run is full: it trained nothing."""
    first = start("full", ns, data, jobs.until("go"))
    wait_phase("full", ns, "Running")
    wait_for("both nodes' ranks", lambda: len(processes(get("ptj", "full", ns)["metadata"]["uid"])) >= 4)
    name = f'full-{get("ptj", "full", ns)["metadata"]["uid"]}'
    stranger("spare", ns, first, 600, key={"valueFrom": {"secretKeyRef": {"name": name, "key": "key"}}})
    wait_for("it to wait", lambda: "waiting for a place" in log("spare", ns))
    (data / "go").touch()
    code, words = ended("spare", ns)
    assert code == 1 and "has ended well without this node" in words, (code, words)
    assert wait_phase("full", ns, "Succeeded", "Failed")["phase"] == "Succeeded"
