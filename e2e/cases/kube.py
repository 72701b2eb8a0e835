"""kube.py - the cluster for the cases: kubectl, objects, waiting, the audit log, and killing the operator."""

import fcntl
import json
import os
import re
import signal
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from api import BOUND_S, GROUP, get, items  # noqa: F401 - the cases have them from here

REPO = Path(__file__).resolve().parents[2]
STATE = Path(os.environ.get("TORCHKEEPER_STATE", "/var/lib/torchkeeper"))
IMAGE = "localhost/torchkeeper/trainer:dev"
SYSTEM = "torchkeeper-system"
UNSENT = re.compile(r"TLS handshake timeout|dial tcp .*i/o timeout")  # a busy server has not read the request


class KubectlError(Exception):
    pass


def kubectl(*args, stdin=None, check=True):
    end = time.monotonic() + BOUND_S
    while True:
        done = subprocess.run(["kubectl", *args], input=stdin, text=True, capture_output=True)
        if not (done.returncode and UNSENT.search(done.stderr)) or time.monotonic() > end:
            break
    if check and done.returncode != 0:
        raise KubectlError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


def field(kind, name, namespace, path):
    """The value at a dotted path, or None while the object or the field does not exist."""
    value = get(kind, name, namespace)
    for key in path.split("."):
        value = (value or {}).get(key)
    return value


def apply(*objects, namespace):
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return kubectl("-n", namespace, "apply", "-f", "-", stdin=text)


def wait_for(what, condition):
    """Poll until condition() is true and return its value."""
    deadline = time.monotonic() + BOUND_S
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {BOUND_S} s: {what() if callable(what) else what}"
        time.sleep(0.3)


def status(job, namespace):
    return (get("ptj", job, namespace) or {}).get("status", {})


def wait_phase(job, namespace, *phases):
    def show():
        return f"phase in {phases}: {json.dumps(status(job, namespace))}"

    wait_for(show, lambda: status(job, namespace).get("phase") in phases)
    return status(job, namespace)


def events(job, namespace, reason):
    """How often the job has this event."""
    found = [e for e in items("events", namespace)
             if e["involvedObject"]["name"] == job and e["involvedObject"]["kind"] == "PyTorchTrainingJob"
             and e["reason"] == reason]
    return sum(e.get("count", 1) for e in found)


def namespace_told(namespace):
    """The jobs, events, pods and the end of their logs, for the report of a failed case."""
    told = [kubectl("-n", namespace, "get", "ptj", "-o", "jsonpath={range .items[*]}{.metadata.name} {.status}{'\\n'}{end}",
                    check=False),
            kubectl("-n", namespace, "get", "events", "--sort-by=.lastTimestamp", check=False)[-6000:],
            kubectl("-n", namespace, "get", "pods", "-o", "wide", check=False)]
    told += [f"--- {pod}\n" + kubectl("-n", namespace, "logs", pod, "--tail=60", check=False)[-6000:]
             for pod in kubectl("-n", namespace, "get", "pods", "-o", "name", check=False).split()[:8]]
    return "\n".join(told)


@contextmanager
def forwarded(namespace, what, *ports):
    """Local ports, which kubectl chooses, for ports of a service or of a deployment's pod."""
    process = subprocess.Popen(["kubectl", "-n", namespace, "port-forward", what, *(f":{p}" for p in ports)],
                               stdout=subprocess.PIPE, text=True)
    try:
        local = {}
        while len(local) < len(ports):
            line = process.stdout.readline()
            assert line, "kubectl port-forward ended"
            found = re.match(r"Forwarding from 127\.0\.0\.1:(\d+) -> (\d+)", line)
            if found:
                local[int(found[2])] = int(found[1])
        yield local
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def audited(word):
    """The entries of the audit log in whose lines this word stands, rotated files included, in order."""
    for path in sorted((STATE / "logs").glob("audit*.log")):
        with path.open(errors="replace") as lines:
            for line in lines:
                if f'"{word}"' in line and line.endswith("\n"):  # the API server may be writing the last one
                    yield json.loads(line)


def audit(verb, resource, namespace, user="torchkeeper"):
    """Names of the objects on which the operator's successful requests of this kind acted, in order."""
    names = []
    for entry in audited(namespace):
        ref = entry.get("objectRef", {})
        if (entry["verb"] == verb and ref.get("resource") == resource and ref.get("namespace") == namespace
                and not ref.get("subresource") and user in entry["user"]["username"]
                and entry.get("responseStatus", {}).get("code", 0) < 300 and entry["stage"] == "ResponseComplete"):
            names.append(ref.get("name"))
    return names


def operator_pids():
    """The operator's processes in pods of this cluster, not one that runs outside of it."""
    found = subprocess.run(["pgrep", "-x", "ptj-operator"], text=True, capture_output=True).stdout.split()
    return [int(pid) for pid in found if in_pod(pid)]


def in_pod(pid):
    try:
        return "kubepods" in Path(f"/proc/{pid}/cgroup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill_operator():
    """kill -9, then create a new pod that can lead at once: without the kubelet's restart back-off, and without the
    fifteen seconds of the dead one's lease."""
    for pid in operator_pids():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    kubectl("-n", SYSTEM, "delete", "lease", "torchkeeper-operator", "--ignore-not-found", check=False)
    kubectl("-n", SYSTEM, "delete", "pod", "--all", "--force", "--grace-period=0", "--wait=false", check=False)


@contextmanager
def alone(what):
    """One process at a time does this, of all that test this cluster."""
    with open(STATE / f"e2e-{what}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class OperatorKiller(threading.Thread):
    """Kills the operator again and again while a case runs, then leaves one alive to finish. Where several cases run side by side,
    an operator still lives as long as one of them gives it, and each of them meets the kills of the others too."""

    def __init__(self, times=4, pause=1.5, start=lambda: True):
        super().__init__(daemon=True)
        self.times, self.pause, self.start_when, self.killed = times, pause, start, 0

    def run(self):
        wait_for("the moment to begin killing", self.start_when)
        for _ in range(self.times):
            with alone("killer"):
                wait_for("an operator to kill", operator_pids)
                time.sleep(self.pause)
                kill_operator()
            self.killed += 1
