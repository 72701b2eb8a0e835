"""trainjobs.py - jobs of our own trainer, with a folder of this machine that their pods share as /data."""

import os
import signal
from pathlib import Path

from jobs import container, job
from kube import apply

# Long enough for every wait in here to end before the training does, however slow the machine.
ENDLESS = 1_000_000
# The first attempt trains until something ends it; the others take so many steps more than they find saved.
MORE = """set -e
steps=%(first)d
if [ "$ATTEMPT" != 0 ]; then
    last=$(ls -d %(folder)s/*/step-* | sort | tail -n 1)
    steps=$(( $(echo "${last##*/step-}" | sed 's/^0*//') + %(more)d ))
fi
exec trainer %(what)s --epochs 100000 --max_steps "$steps" --timeout 300 --log_interval 5 \\
    --ckpt_dir %(folder)s --save_path %(folder)s.safetensors --save_seconds 0 %(options)s
"""

DATA = "/usr/share/datasets/fashion-mnist"
MNIST = f"mnist-cnn --data {DATA}"
# On the bytes of the licenses that every Debian has.
GPT2 = "gpt2-bytes --data /usr/share/common-licenses --train_files '*-[123]*' --val_every 7 --val_steps 1"


def script(name, first=ENDLESS, more=20, options="", what=MNIST):
    return MORE % {"folder": f"/data/{name}", "first": first, "more": more, "options": options, "what": what}


def train(name, text, data, namespace, replicas=2, torchrun=None):
    """Apply it; torchrun: fields of torchrunConfig besides `enabled`, or None for a job without torchrun."""
    one = container(text, volumeMounts=[{"name": "data", "mountPath": "/data"}], securityContext={"runAsUser": 0})
    one["resources"]["limits"]["memory"] = "1Gi"
    config = {}
    if torchrun is not None:
        one["args"] = one.pop("command")
        config = {"torchrunConfig": {"enabled": True, **torchrun}}
    volume = {"name": "data", "hostPath": {"path": str(data), "type": "Directory"}}
    pod = {"containers": [one], "volumes": [volume], "terminationGracePeriodSeconds": 300}
    spec = {"type": "node", "replicas": replicas, "restartPolicy": "ExitCode", "template": {"spec": pod}}
    apply(job(name, spec, **config), namespace=namespace)


def checkpoints(name, data):
    """The steps after which the job has saved, in order."""
    return sorted(int(p.name.split("-")[1]) for p in (data / name).glob("*/step-*"))


def kill_rank(job_uid, rank):
    (pid,) = [p for p in Path("/proc").glob("[0-9]*") if is_rank(p, job_uid, rank)]
    os.kill(int(pid.name), signal.SIGKILL)


def is_rank(process, job_uid, rank):
    try:
        if (process / "comm").read_text() != "trainer\n":
            return False
        own = (process / "environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return f"PTJ_JOB_UID={job_uid}".encode() in own and f"RANK={rank}".encode() in own
