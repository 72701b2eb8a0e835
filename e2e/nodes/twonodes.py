"""twonodes.py - the two nodes of the local cluster, the faults of the second one, and jobs with a pod on each."""

import json
import os
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from jobs import container, job
from kube import REPO, apply, get, kubectl, wait_for
from trainjobs import MNIST, script

NODE1, NODE2 = "torchkeeper", "torchkeeper2"
CLUSTER = REPO / "deploy" / "local" / "cluster"
# Ranks and launchers that wait for a silent peer give up after this long. Eviction comes 27 s after the last heartbeat (TIMERS=short).
DEADLINE_S = 15
# Each job's pods have these types, the first on the first node.
TYPES = ("master", "worker")


def node2(*words):
    done = subprocess.run([CLUSTER, "node", "2", *map(str, words)], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def ready(node):
    conditions = (get("node", node, "default") or {}).get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def schedulable(node):
    return ready(node) and not get("node", node, "default")["spec"].get("taints")


def await_lost(node):
    wait_for(f"{node} not ready", lambda: not ready(node))


def bring_back():
    """Both nodes as before a case, whatever it did."""
    node2("heal")
    node2("up")
    for node in NODE1, NODE2:
        kubectl("uncordon", node)
        wait_for(f"{node} to take pods", lambda n=node: schedulable(n))


def node_of(pod, namespace):
    found = get("pod", pod, namespace)
    return found and found["spec"].get("nodeName")


def at_home(name, namespace, homes=(NODE1, NODE2)):
    """Wait until the job's pods have nodes, which must be those that they would like best."""
    pods = [f"{name}-{type_}-0" for type_, _ in zip(TYPES, homes)]
    wait_for("pods with nodes", lambda: all(node_of(p, namespace) for p in pods))
    assert [node_of(p, namespace) for p in pods] == list(homes)


def likes(pod, node):
    """The pod goes to the node if that takes pods, else anywhere."""
    wish = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    pod["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": wish}]}}
    return pod


def train(name, data, namespace, homes=(NODE1, NODE2), torchrun=None, text=None, grace=5, **policy):
    """A job of our trainer with a pod for each node of homes; torchrun as in trainjobs.train."""
    text = (text or script(name, options="--save_steps 10")).replace("--timeout 300", f"--timeout {DEADLINE_S}")
    specs, config = [], {}
    if torchrun is not None:
        config = {"torchrunConfig": {"enabled": True, **torchrun}}
    for type_, home in zip(TYPES, homes):
        one = container(text, volumeMounts=[{"name": "data", "mountPath": "/data"}], securityContext={"runAsUser": 0})
        one["resources"]["limits"]["memory"] = "1Gi"
        if torchrun is not None:
            one["args"] = one.pop("command")
        volume = {"name": "data", "hostPath": {"path": str(data), "type": "Directory"}}
        pod = likes({"containers": [one], "volumes": [volume], "terminationGracePeriodSeconds": grace}, home)
        specs.append({"type": type_, "replicas": 1, "restartPolicy": "ExitCode", "template": {"spec": pod}})
    apply(job(name, *specs, **config, runPolicy={"forceDeleteAfterSeconds": 0, **policy}), namespace=namespace)


def part_pid(part):
    """The pid, as this machine counts, of a part of the second node."""
    mark = f"TORCHKEEPER_NODE2={part}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0") and (folder / "comm").read_text().strip() == part:
                return int(folder.name)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return None
