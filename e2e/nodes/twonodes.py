"""twonodes.py - the two nodes of the local cluster, the faults of the second one, and jobs with a pod on each."""

import json
import subprocess
from pathlib import Path

from jobs import container, job
from kube import REPO, SYSTEM, apply, audit, get, kubectl, status, wait_for, wait_phase
from torchjobs import logs, said
from trainjobs import checkpoints, script

NODE1, NODE2 = "torchkeeper", "torchkeeper2"
CLUSTER = REPO / "deploy" / "local" / "cluster"
# Ranks that wait for a peer give up after this long: also at their start, when a busy machine starts one pod much later than the
# other. One whose host acknowledges nothing is given up after 5 s.
DEADLINE_S = 120


def tolerate(seconds):
    """A lost node keeps its pods so long. It is lost 12 s after its last heartbeat."""
    return [{"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for state in ("not-ready", "unreachable")]


# The operator waits 30 s for what explains a lost peer; on a busy machine the eviction is to come in that time.
EVICTED_SOON = tolerate(5)
# For pods that are not to be evicted while a case goes on.
PATIENCE = tolerate(3600)
# The types of a job's pods: the first one has rank 0.
TYPES = ("master", "worker")
# How a job starts its ranks: torchrunConfig, besides `enabled`.
LAUNCHED = {"procPerNode": 1}
WAYS = {"torchrun": LAUNCHED, "plain": None}
SAVE_STEPS = 10
# Trainings end after a multiple of so many steps, so that few undisturbed ones serve all comparisons. One that resumes behind its
# end, since its predecessor went on, ends there.
ROUND = 50
UNHURT = {"attempt": 0, "backoffCount": 0, "disruptionCount": 0, "admissionCount": 0}
# Whose node is lost: that of rank 0, which writes the checkpoints, or the other one.
HOMES = {"rank0": (NODE2, NODE1), "rank1": (NODE1, NODE2)}


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


def set_operator(replicas, **pod):
    """So many, with these members of their pods."""
    patch = {"spec": {"replicas": replicas, "template": {"spec": pod}}}
    kubectl("-n", SYSTEM, "patch", "deployment", "torchkeeper-operator", "-p", json.dumps(patch))
    kubectl("-n", SYSTEM, "rollout", "status", "deployment", "torchkeeper-operator", "--timeout=600s")


def pin_operator():
    """One operator, on the first node."""
    set_operator(1, nodeSelector={"kubernetes.io/hostname": NODE1}, topologySpreadConstraints=None)


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


def train(name, data, namespace, homes=(NODE1, NODE2), torchrun=None, text=None, grace=5, limits=None, tolerations=EVICTED_SOON,
          rounds=ROUND, **policy):
    """A job of our trainer with a pod for each node of homes; torchrun as in trainjobs.train, policy: fields of runPolicy. It ends
    after a multiple of `rounds` steps."""
    text = text or script(name, options=f"--save_steps {SAVE_STEPS}")
    text = text.replace("exec", f"steps=$(( (steps + {rounds - 1}) / {rounds} * {rounds} ))\necho until step $steps\nexec", 1)
    text = text.replace("--timeout 300", f"--timeout {DEADLINE_S}")
    specs, config = [], {}
    if torchrun is not None:
        config = {"torchrunConfig": {"enabled": True, **torchrun}}
    for type_, home in zip(TYPES, homes):
        one = container(text, volumeMounts=[{"name": "data", "mountPath": "/data"}], securityContext={"runAsUser": 0})
        one["resources"]["limits"] = {"memory": "1Gi", **(limits or {})}
        if torchrun is not None:
            one["args"] = one.pop("command")
        volume = {"name": "data", "hostPath": {"path": str(data), "type": "Directory"}}
        pod = likes({"containers": [one], "volumes": [volume], "terminationGracePeriodSeconds": grace,
                     "tolerations": tolerations}, home)
        specs.append({"type": type_, "replicas": 1, "restartPolicy": "ExitCode", "template": {"spec": pod}})
    policy = {k: v for k, v in {"forceDeleteAfterSeconds": 0, **policy}.items() if v is not None}
    apply(job(name, *specs, **config, runPolicy=policy), namespace=namespace)


def part_pid(part):
    """The pid, as this machine counts, of a part of the second node."""
    mark = f"TORCHKEEPER_NODE2={part}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0") and (folder / "comm").read_text().strip() == part:
                return int(folder.name)
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            pass
    return None


def newest(name, data):
    """The step of the job's newest checkpoint; 0 without one."""
    return max(checkpoints(name, data), default=0)


def in_training(name, ns, data, since=0):
    """Wait for the second checkpoint after that step, of a job that must not have ended."""
    def now():
        assert status(name, ns).get("phase") not in ("Succeeded", "Failed"), logs(f"{name}-master-0", ns)
        return newest(name, data) >= since + 2 * SAVE_STEPS

    wait_for(f"two checkpoints of {name} after step {since}", now)


def each(homes=HOMES, ways=WAYS):
    """A job for each place of rank 0 and each way to start it: homes and torchrun by name."""
    return {f"{way}-{rank}": (homes[rank], ways[way]) for rank in homes for way in ways}


def begun(ns, data, jobs=None, **more):
    """Jobs that train, each with two checkpoints and each pod where it belongs. One fault befalls them all."""
    jobs = jobs or {"hurt": (HOMES["rank1"], LAUNCHED)}
    for name, (homes, torchrun) in jobs.items():
        train(name, data, ns, homes=homes, torchrun=torchrun, **more)
    for name, (homes, _) in jobs.items():
        at_home(name, ns, homes)
    for name in jobs:
        in_training(name, ns, data)
    return jobs


def ended(name, ns):
    end = wait_phase(name, ns, "Succeeded", "Failed")
    assert end["phase"] == "Succeeded", end
    return end


def counts(end):
    return {k: end.get(k, 0) for k in UNHURT}


CALM = {}  # weights of undisturbed trainings, by number of ranks and of steps


def calm_weights(ranks, steps, ns, data):
    if (ranks, steps) not in CALM:
        train("calm", data, ns, homes=(NODE1, NODE1)[:ranks], torchrun=LAUNCHED, text=script("calm", first=steps), rounds=1)
        assert counts(ended("calm", ns)) == UNHURT
        CALM[ranks, steps] = (data / "calm.safetensors").read_bytes()
        kubectl("-n", ns, "delete", "ptj", "calm")
    return CALM[ranks, steps]


def as_if_nothing_had_been(name, ns, data, ranks=2):
    """The job has gone on from its newest checkpoint, the step of which is returned, and ends with an undisturbed one's weights."""
    (resumed,) = said(r"resumed from \S+: epoch \d+, batch \d+, step (\d+)", f"{name}-master-0", ns)
    (until,) = said(r"until step (\d+)", f"{name}-master-0", ns)
    steps = max(int(until), int(resumed))  # a predecessor that nobody can stop may have saved more since the script looked
    assert (data / f"{name}.safetensors").read_bytes() == calm_weights(ranks, steps, ns, data)
    return int(resumed)


def was_hurt_once(name, ns, data, reason, ranks=2, **failure):
    """Restarted once because of the second node, and nothing was lost: returns the step of the checkpoint from which it went on."""
    end = ended(name, ns)
    assert counts(end) == {**UNHURT, "attempt": 1, "disruptionCount": 1}, (name, end)
    last = end["lastFailure"]
    assert (last["node"], last["reason"]) == (NODE2, reason), (name, last)
    for key, value in failure.items():
        assert last.get(key) == value, (name, last)
    types = TYPES[:ranks]
    assert sorted(n for n in audit("create", "pods", ns) if n.startswith(f"{name}-")) == sorted(f"{name}-{t}-0" for t in types * 2)
    return as_if_nothing_had_been(name, ns, data, ranks)


def drain(*more):
    return subprocess.run(["kubectl", "drain", NODE2, "--ignore-daemonsets", "--delete-emptydir-data", "--force", *more], text=True,
                          capture_output=True)
