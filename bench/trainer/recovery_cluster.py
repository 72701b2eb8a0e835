#!/usr/bin/env python3
"""recovery_cluster.py - time from a killed container, pod or node of a job to its next training step. `make bench-recovery KIND=pod`.

It needs a cluster with the operator whose nodes share this machine's folders: that of deploy/local. A job of two pods trains
mnist-cnn with checkpoints in a folder of this machine, under the torchrun of the trainer's image, and

- container: the launcher of a random pod is killed (SIGKILL), so the container ends with 137; each kill has a job of its own, since the
  operator delays further restarts after failures;
- pod: a random pod is deleted with --grace-period=0 --force, which the operator counts as a disruption;
- node: the second node is taken down (deploy/local/cluster node 2 down, so NODES=2) with a pod on it. How long the API server takes to
  notice is a setting of the cluster, so there is also the time since it marked the pod for deletion.

Measured is the time to the first step of the next attempt that is complete. Phases are the API server's answers to a watch of the pods,
and the ranks' own lines, which they write to files in the folder. At the end the job is deleted, its ranks save, and a run on this
machine that nobody disturbs must have the same bits after as many steps. Exit status 1 when it has not; never because something was slow.
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recovery import LIMIT_S, PAUSE_S, RANKS, ROOT, SAVE_STEPS, differing, newest, percentile, row, statistics

NAME, GROUP, IMAGE = "recovery", "batch.tensorstack.dev", "localhost/torchkeeper/trainer:dev"
NODES = ("torchkeeper", "torchkeeper2")
GOALS = {"container": ("kill", 3), "pod": ("pod marked for deletion", 3), "node": ("pod marked for deletion", 5)}
PHASES = ("pod marked for deletion", "pod failed or gone", "all pods gone", "new pods created", "new pods have nodes",
          "new containers run", "ready to train", "first step")


def fail(message):
    sys.exit(f"bench-recovery: {message}")


def kubectl(*words, stdin=None, check=True):
    done = subprocess.run(["kubectl", *words], input=stdin, capture_output=True, text=True, check=False)
    if check and done.returncode:
        fail(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def until(what, condition, seconds=LIMIT_S, pause=0.02):
    end = time.time() + seconds
    while not (value := condition()):
        if time.time() > end:
            fail(f"no {what} in {seconds} s\n" + kubectl("get", "ptj,pods", "-A", check=False))
        time.sleep(pause)
    return value


class Pods(threading.Thread):
    """What the API server said about the job's pods: (time, kind of event, pod)."""

    def __init__(self, namespace):
        super().__init__(daemon=True)
        self.events, self.namespace, self.process = [], namespace, None

    def run(self):
        self.process = subprocess.Popen(["kubectl", "-n", self.namespace, "get", "pods", "--watch", "--output-watch-events", "-o", "json"],
                                        stdout=subprocess.PIPE, text=True)
        decoder, text = json.JSONDecoder(), ""
        while chunk := os.read(self.process.stdout.fileno(), 1 << 16).decode():
            text, now = text + chunk, time.time()
            while text.strip():
                try:
                    event, end = decoder.raw_decode(text.lstrip())
                except ValueError:
                    break
                text = text.lstrip()[end:]
                self.events.append((now, event["type"], event["object"]))


def attempt_of(pod):
    return int(pod["metadata"]["labels"][f"{GROUP}/attempt"])


def phases(events, attempt):
    """{phase: time} of the end of that attempt and the start of the next."""
    at, pods, fresh = {}, set(), {}
    for when, kind, pod in events:
        uid, state = pod["metadata"]["uid"], pod["status"]
        if attempt_of(pod) <= attempt:
            if pod["metadata"].get("deletionTimestamp"):
                at.setdefault("pod marked for deletion", when)
            if kind == "DELETED" or state.get("phase") == "Failed":
                at.setdefault("pod failed or gone", when)
            if kind == "DELETED":
                pods.add(uid)
                if len(pods) == RANKS:
                    at.setdefault("all pods gone", when)
            continue
        seen = fresh.setdefault(uid, {"new pods created": when})
        if pod["spec"].get("nodeName"):
            seen.setdefault("new pods have nodes", when)
        if any("running" in c["state"] for c in state.get("containerStatuses", [])):
            seen.setdefault("new containers run", when)
    for phase in ("new pods created", "new pods have nodes", "new containers run"):
        times = [seen[phase] for seen in fresh.values() if phase in seen]
        if len(times) == RANKS:
            at[phase] = max(times)
    return at


class Job:
    """A job, its watch and the folder that its pods share."""

    def __init__(self, kind, args, namespace, folder):
        self.kind, self.args, self.namespace, self.folder = kind, args, namespace, pathlib.Path(folder)
        self.attempt = 0
        # Processes of the pods may run as another user.
        self.folder.chmod(0o777)
        kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(self.manifest()))
        self.uid = kubectl("-n", namespace, "get", "ptj", NAME, "-o", "jsonpath={.metadata.uid}")
        self.pods = Pods(namespace)
        self.pods.start()

    def manifest(self):
        program = "trainer"
        if self.args.own:
            program = "/data/trainer"
            shutil.copy(f"{self.args.bin}/trainer", self.folder)
        text = f"exec {program} {shlex.join(options('/data', self.args.data))} > /data/out.$ATTEMPT.$RANK 2> /data/err.$ATTEMPT.$RANK"
        label = {"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{GROUP}/attempt']"}}}
        container = {"name": "pytorch", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "args": ["sh", "-c", text],
                     "env": [label, {"name": "OMP_NUM_THREADS", "value": "1"}], "securityContext": {"runAsUser": 0},
                     "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
        volume = {"name": "data", "hostPath": {"path": str(self.folder), "type": "Directory"}}
        specs = []
        for i, type_ in enumerate(("master", "worker")):
            wish = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODES[i]]}]}
            pod = {"containers": [container], "volumes": [volume], "terminationGracePeriodSeconds": 20 if self.kind != "node" else 1}
            if self.kind == "node":
                likes = [{"weight": 100, "preference": wish}]
                pod["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": likes}}
                pod["tolerations"] = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute",
                                       "tolerationSeconds": 0} for key in ("unreachable", "not-ready")]
            specs.append({"type": type_, "replicas": 1, "restartPolicy": "ExitCode", "template": {"spec": pod}})
        return {"apiVersion": f"{GROUP}/v1beta1", "kind": "PyTorchTrainingJob", "metadata": {"name": NAME},
                "spec": {"replicaSpecs": specs, "torchrunConfig": {"enabled": True, "procPerNode": 1, "maxRestarts": 0},
                         "runPolicy": {"backoffLimit": 1000, "forceDeleteAfterSeconds": 0, "avoidNodes": False}}}

    def lines(self, attempt):
        """Rank 0's events in that attempt: (seconds, event)."""
        try:
            text = (self.folder / f"out.{attempt}.0").read_text()
        except FileNotFoundError:
            return []
        found = []
        for line in text.splitlines():
            if line.startswith("{") and line.endswith("}"):
                event = json.loads(line)
                found.append((datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp(), event))
        return found

    def steps(self, attempt):
        return [(when, event["global_step"]) for when, event in self.lines(attempt) if event["event"] == "train"]

    def train_on(self, rng):
        begin = until("step", lambda: self.steps(self.attempt))[-1][1]
        step, end = begin + SAVE_STEPS + rng.randrange(SAVE_STEPS), time.time() + rng.uniform(*PAUSE_S)
        until(f"step {step}", lambda: time.time() > end and self.steps(self.attempt)[-1][1] >= step)

    def kill(self, rng):
        pod = f"{NAME}-{rng.choice(('master', 'worker'))}-0"
        if self.kind == "pod":
            now = time.time()
            kubectl("-n", self.namespace, "delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")
        elif self.kind == "node":
            now = time.time()
            subprocess.run([self.args.cluster, "node", "2", "down"], check=True, capture_output=True)
        else:
            pid = rng.choice(launchers(self.uid))
            now = time.time()
            os.kill(pid, signal.SIGKILL)
        return now

    def recover(self, rng):
        """Kills something. {phase: seconds since the kill}, and the steps that were lost."""
        self.pods.events.clear()
        attempt, kill = self.attempt, self.kill(rng)
        self.attempt += 1
        first = until("step of the next attempt", lambda: self.steps(self.attempt), LIMIT_S if self.kind != "node" else 5 * LIMIT_S)[0]
        time.sleep(0.2)  # the watch may be behind the ranks' files
        at = phases(list(self.pods.events), attempt)
        at["ready to train"] = next(when for when, event in self.lines(self.attempt) if event["event"] == "start")
        at["first step"] = first[0]
        last = max(step for _, step in self.steps(attempt))
        return {phase: when - kill for phase, when in at.items()}, last - first[1] + 1

    def end(self):
        """Delete it: the ranks save the step at which they stop."""
        kubectl("-n", self.namespace, "delete", "ptj", NAME, "--wait=false")
        until("end of the pods", lambda: not kubectl("-n", self.namespace, "get", "pods", "-o", "name"))
        self.pods.process.terminate()
        self.pods.join(LIMIT_S)


def options(folder, data):
    return ["mnist-cnn", "--threads", "1", "--batch_size", "32", "--no_cuda", "--log_format", "json", "--log_interval", "1",
            "--epochs", "1000000", "--data", data, "--no_download", "--ckpt_dir", f"{folder}/ck", "--save_seconds", "0",
            "--save_steps", str(SAVE_STEPS), "--timeout", "15"]


def launchers(uid):
    """The pids of the job's launchers, as this machine counts."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text() != "torchrun\n":
                continue
            if f"PTJ_JOB_UID={uid}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            pass
    return found


def same_bits(args, folder):
    """The step at which the job was stopped, and the files of its checkpoint that differ from an undisturbed run's."""
    step, left = newest(f"{folder}/ck")
    calm = f"{folder}/calm"
    pathlib.Path(calm).mkdir()
    done = subprocess.run([f"{args.bin}/torchrun", f"--nproc_per_node={RANKS}", "--no_python", f"{args.bin}/trainer",
                           *options(calm, args.data), "--max_steps", str(step), "--save_steps", str(step)], capture_output=True,
                          text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        fail(f"the undisturbed run ended with {done.returncode}\n{done.stderr[-2000:]}")
    _, right = newest(f"{calm}/ck")
    return step, differing(left, right)


def show(kind, found):
    since, goal = GOALS[kind]
    times = [at["first step"] - (at[since] if since != "kill" else 0) for at, _ in found]
    lost = [steps for _, steps in found]
    print(f"\nFrom the {'kill' if since == 'kill' else since} to the next training step\n")
    row("", "Kills", "p50", "p99", "Lowest", "Steps redone, median (highest)", "Goal")
    row(*["---"] * 7)
    row(kind, str(len(times)), f"{percentile(times, 50):.3f} s", f"{percentile(times, 99):.3f} s", f"{min(times):.3f} s",
        f"{statistics.median(lost):.0f} ({max(lost)})", f"p50 <= {goal} s, p99 <= {3 * goal} s")
    print("\nWhere the time goes: medians of the time since the kill, ms (in brackets: the highest)\n")
    row("", kind)
    row("---", "---")
    for phase in PHASES:
        values = [at[phase] * 1000 for at, _ in found if phase in at]
        row(phase, f"{statistics.median(values):.0f} ({max(values):.0f})" if values else "not seen")


def disturb(kind, args, namespace, rng, folders):
    """[(phases, steps lost)], and the folder of the last job."""
    found, job = [], None
    for i in range(args.kills):
        if job is None:
            folders.append(tempfile.mkdtemp(prefix="bench-recovery-"))
            job = Job(kind, args, namespace, folders[-1])
        job.train_on(rng)
        print(f"{kind}: kill {i + 1} of {args.kills}", file=sys.stderr, flush=True)
        found.append(job.recover(rng))
        job.train_on(rng)
        if kind == "node":
            subprocess.run([args.cluster, "node", "2", "up"], check=True, capture_output=True)
            until("second node that takes pods", lambda: not kubectl("get", "node", NODES[1], "-o", "jsonpath={.spec.taints}"), pause=0.2)
        if kind != "pod" or i + 1 == args.kills:
            job.end()
            job = None
    return found, folders[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=GOALS)
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"), help="folder of trainer and torchrun, for the undisturbed run")
    parser.add_argument("--own", action="store_true", help="the pods run the trainer of --bin, not their image's")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="here and in the image; default: %(default)s")
    parser.add_argument("--cluster", default=str(ROOT / "deploy/local/cluster"),
                        help="takes the second node down and up; default: %(default)s")
    parser.add_argument("--kills", type=int, default=50, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="of pods and moments")
    args = parser.parse_args()
    if args.kills < 1:
        parser.error("expected --kills of 1 or more")
    signal.signal(signal.SIGTERM, lambda *_: fail("ended by SIGTERM"))
    rng, before, namespace, folders = random.Random(args.seed), os.getloadavg()[0], f"recovery-{os.getpid()}", []
    kubectl("create", "namespace", namespace)
    try:
        found, folder = disturb(args.kind, args, namespace, rng, folders)
        step, differ = same_bits(args, folder)
        show(args.kind, found)
        print(f"\nstep {step}: weights and optimizer " + ("DIFFER: " + ", ".join(differ) if differ else
                                                          "have the bits of a run that nobody disturbed"))
        print(f"{os.cpu_count()} CPUs; load {before:.1f} before, {os.getloadavg()[0]:.1f} after; --seed {args.seed}")
    finally:
        kubectl("delete", "namespace", namespace, "--wait=false", check=False)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
