"""torchjobs.py - jobs of real PyTorch: the scripts of e2e/pods under its own torchrun, under ours, or
under plain python.

No image contains PyTorch (6 GB). A pod mounts this machine's, read-only and each part at its own path: /usr, the Python of
the cases, and its environment. A ConfigMap has the scripts."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from api import log as logs
from jobs import IMAGE, job
from kube import REPO, apply, get, kubectl, wait_for

ENVIRONMENT = str(Path(sys.prefix).resolve())
PYTHON = str(Path(sys.base_prefix).resolve())
SCRIPTS = REPO / "e2e" / "pods"
MOUNTED_AT = "/scripts"
# In torchrunConfig: our torchrun, which the image need not have.
OURS = {"launcher": "Torchkeeper"}
# A new member is awaited for 30 s unless all places are taken; in here they know that none comes.
HASTE = {"extraOptions": ["--rdzv_conf=last_call_timeout=3"]}


def borrowed():
    """The mounts of this machine that a pod needs to run the environment's programs."""
    return ["/usr", *([] if PYTHON.startswith("/usr") else [PYTHON]), ENVIRONMENT]


def scripts():
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scripts"},
            "data": {f.name: f.read_text() for f in sorted(SCRIPTS.glob("*.py"))}}


def template(args, command=None, env=None, data=None, grace=5, **pod):
    """The args follow torchrun's own; command is for a job without torchrun."""
    volumes = [{"name": f"borrowed-{i}", "hostPath": {"path": path, "type": "Directory"}}
               for i, path in enumerate(borrowed())]
    mounts = [{"name": v["name"], "mountPath": v["hostPath"]["path"], "readOnly": True} for v in volumes]
    volumes.append({"name": "scripts", "configMap": {"name": "scripts"}})
    mounts.append({"name": "scripts", "mountPath": MOUNTED_AT})
    if data:
        volumes.append({"name": "data", "hostPath": {"path": str(data), "type": "Directory"}})
        mounts.append({"name": "data", "mountPath": "/data"})
    own = {"PATH": f"{ENVIRONMENT}/bin:/usr/bin:/bin", "OMP_NUM_THREADS": "1", **(env or {})}
    container = {
        "name": "pytorch", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "args": args,
        **({"command": command} if command else {}),
        "env": [{"name": k, "value": v} for k, v in own.items()], "volumeMounts": mounts,
        # The environment may lie where only root looks.
        "securityContext": {"runAsUser": 0},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}},
    }
    return {"spec": {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": grace, **pod}}


def replica(script, *args, type_="node", replicas=1, policy="ExitCode", **more):
    return {"type": type_, "replicas": replicas, "restartPolicy": policy,
            "template": template([f"{MOUNTED_AT}/{script}", *args], **more)}


def torch_job(name, *replicas, torchrun=None, namespace, **spec):
    """Apply it; torchrun: fields of torchrunConfig beside `enabled`."""
    config = {"torchrunConfig": {"enabled": True, **torchrun}} if torchrun is not None else {}
    apply(scripts(), job(name, *replicas, **config, **spec), namespace=namespace)


def said(pattern, pod, namespace):
    """Every match in the pod's log so far, in order."""
    return re.findall(pattern, logs(pod, namespace))


def uid(pod, namespace):
    found = get("pod", pod, namespace)
    return found and found["metadata"]["uid"]


def await_world(size, pod, ns):
    """Until the ranks of this pod (of steps.py) say that so many share the work now."""
    def now():
        return said(r"of world (\d+)\n", pod, ns)[-1:]

    wait_for(lambda: f"world {size} in {pod}: {now()}", lambda: now() == [str(size)])


def stop(data):
    (data / "stop").touch()


def elastic(most, expected):
    return {"elastic": {"enabled": True, "minReplicas": 1, "maxReplicas": most, "expectedReplicas": expected}}


def kill_torchrun(job_uid, pod=None):
    """SIGKILL to the torchrun of this pod, or of every one but pod 0, in their first attempt."""
    pattern = f"rdzv_id={job_uid}-0 --rdzv_conf=is_host=false"
    for pid in subprocess.run(["pgrep", "-f", "--", pattern], text=True, capture_output=True, check=True).stdout.split():
        if not pod or f"HOSTNAME={pod}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            os.kill(int(pid), signal.SIGKILL)


def evict(pod, namespace):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
    kubectl("create", "--raw", f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", "-f", "-", stdin=json.dumps(body))
