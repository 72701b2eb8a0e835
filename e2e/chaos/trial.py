"""trial.py - one job of two pods, with faults at random moments, and the check of its end."""

import random
import re
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from faults import PAIRED, TABLE, TWO
from jobs import container, job
from kube import BOUND_S, GROUP, apply, audit, items, kubectl, wait_for
from trainjobs import GPT2, MNIST
from victims import newest_step, processes

# How a job is started, what it trains and how far: seconds of two ranks or four. "again": the launcher restarts ranks.
WAYS = {
    "torchrun": ({"procPerNode": 2}, MNIST, 144),
    "plain": (None, MNIST, 192),
    "again": ({"procPerNode": 1, "maxRestarts": 2}, MNIST, 192),
    "gpt2": ({"procPerNode": 1}, GPT2, 12),
}
# A pod whose launcher is silent may still pull its image: the others wait for it, by default for an hour.
JOIN = {"extraOptions": ["--rdzv_conf=join_timeout=120"]}
PARTS = 12  # checkpoints on the way
# Ranks that wait for a stopped one give up after this long.
DEADLINE_S = 60
DISK_MB = 96


class Failure(Exception):
    """The job's result is not allowed by the table."""


class Late(Exception):
    """The job is over already."""


def draw(seed, number, only=None, way=None):
    """Trial `number` of a seed: its way, its faults and their moments.
    only, way: of this kind, started in this way."""
    fitting = [name for name in TABLE if way is None or way in TABLE[name].ways]
    kinds = [only] if only else [*fitting, TWO, TWO, TWO]
    random.Random(f"{seed}").shuffle(kinds)
    dice = random.Random(f"{seed}/{number}")
    kind = kinds[number % len(kinds)]
    names = dice.sample([n for n in PAIRED if n in fitting], 2) if kind == TWO else [kind]
    way = way or dice.choice([w for w in WAYS if all(w in TABLE[n].ways for n in names)])
    # A fifth strikes while the job starts, the others at a place in the training.
    moments = sorted(0.0 if dice.random() < 0.2 else dice.uniform(0.05, 0.7) for _ in names)
    return Trial(number, kind, way, list(zip(names, moments)), seed)


class Trial:
    def __init__(self, number, kind, way, plan, seed=0):
        self.number, self.kind, self.way, self.plan, self.seed = number, kind, way, plan, seed
        self.name = f"t{number}" if number is not None else f"calm-{way}"
        self.steps = WAYS[way][2]
        self.over = threading.Event()
        self.told, self.seen, self.end = [], "", {}
        self.frozen = set()  # processes that a fault has stopped for ever
        self.data = self.board = self.uid = self.dice = None

    # --- used by faults

    def wait(self, what, condition):
        """Wait for the condition; raises Late if the job ends first."""
        deadline = time.monotonic() + BOUND_S
        while True:
            value = condition()
            if value:
                return value
            if self.board.ended(self.name):
                raise Late(f"the job was over before there was {what}")
            if time.monotonic() > deadline:
                raise Failure(f"not within {BOUND_S} s: {what}")
            time.sleep(0.02)

    def in_time(self):
        if (self.data / "weights.safetensors").exists():
            raise Late("all was saved before")

    @staticmethod
    def strike_at(process, number):
        if not process.send(number):
            raise Late(f"{process} had ended")

    def processes(self):
        return processes(self.uid)

    def one(self, what, chosen):
        return self.wait(what, lambda: [p for p in self.processes() if chosen(p)])[0]

    def rank(self, number):
        return self.one(f"rank {number}", lambda p: p.rank == number)

    def a_rank(self):
        pods = 2 if WAYS[self.way][0] is None else 2 * WAYS[self.way][0]["procPerNode"]
        return self.rank(self.dice.randrange(pods))

    def a_launcher(self):
        pod = f"{self.name}-node-{self.dice.randrange(2)}"
        return self.one(f"a launcher in {pod}", lambda p: p.name == "torchrun" and p.pod == pod)

    def anyone(self):
        pod = f"{self.name}-node-{self.dice.randrange(2)}"
        return self.one(f"a process in {pod}", lambda p: p.pod == pod)

    def dead(self, process):
        return not Path(f"/proc/{process.pid}").exists()

    # --- its course

    def run(self, board):
        """Raises Failure; in any case removes everything."""
        self.board = board
        with volume() as self.data:
            self.checkpoints = self.data / "checkpoints"
            try:
                self.uid = self.begin()
                self.strike()
                self.end = board.end(self.name)
                self.over.set()
                self.judge(self.end)
            except Exception:
                self.seen = self.look()
                raise
            finally:
                self.over.set()
                kubectl("-n", board.namespace, "delete", "ptj", self.name, "--cascade=foreground", "--ignore-not-found")
                self.nothing_left()

    def begin(self):
        torchrun, what, _ = WAYS[self.way]
        text = (f"exec trainer {what} --epochs 100000 --max_steps {self.steps} --threads 1 --timeout {DEADLINE_S} "
                f"--ckpt_dir /data/checkpoints --save_seconds 0 --save_steps {self.steps // PARTS} --log_dir /tmp/log "
                f"--save_path /data/weights.safetensors")
        mounts = [{"name": "data", "mountPath": "/data"}, {"name": "shm", "mountPath": "/dev/shm"}]
        one = container(text, volumeMounts=mounts, securityContext={"runAsUser": 0})
        one["resources"] = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "384Mi"}}
        config = {}
        if torchrun is not None:
            one["args"] = one.pop("command")
            config = {"torchrunConfig": {"enabled": True, **JOIN, **torchrun}}
        for name, _ in self.plan:
            one.update(TABLE[name].job)
        volumes = [{"name": "data", "hostPath": {"path": str(self.data), "type": "Directory"}},
                   {"name": "shm", "emptyDir": {"medium": "Memory"}}]
        pod = {"containers": [one], "volumes": volumes, "terminationGracePeriodSeconds": 5}
        spec = {"type": "node", "replicas": 2, "restartPolicy": "ExitCode", "template": {"spec": pod}}
        apply(job(self.name, spec, **config), namespace=self.board.namespace)
        return self.board.uid(self.name)

    def strike(self):
        """A fault that came too late is dropped from the plan; the job is checked by the rest."""
        struck = []
        for name, moment in self.plan:
            # Of its own: what one fault draws may depend on what it finds, and the next one shall not depend on that.
            self.dice = random.Random(f"{self.seed}/{self.number}/{len(struck)}/{name}")
            try:
                if TABLE[name].strike:
                    self.strike_once(TABLE[name].strike, int(moment * self.steps))
                struck.append((name, moment))
            except Late:
                self.told.append(f"{name}: too late")
        self.plan = struck

    def strike_once(self, strike, step):
        self.anyone()
        self.wait(f"step {step}", lambda: newest_step(self.checkpoints) >= step)
        time.sleep(self.dice.uniform(0, 0.1))
        at = newest_step(self.checkpoints)
        self.told.append(f"step {at}: {strike(self)}")

    # --- the check

    def judge(self, end):
        faults = [TABLE[name] for name, _ in self.plan]
        ends = faults[0].ends if faults else ("Succeeded",)
        expect(end["phase"] in ends, f"phase {end['phase']}, expected {' or '.join(ends)}")
        self.judge_restarts(end, faults)
        if end["phase"] == "Succeeded":
            weights = self.data / "weights.safetensors"
            expect(weights.exists(), "no weights were saved")
            trained = weights.read_bytes()
            expect(trained == self.board.weights.setdefault(self.way, trained), "not the undisturbed run's weights")
        else:
            says = faults[0].says
            expect(re.search(says, str(end)), f"the status does not say {says!r}")
        wait_for(f"no pod of {self.name} that still runs", lambda: not self.unfinished())
        made = audit("create", "pods", self.board.namespace)
        expect(sum(n.startswith(f"{self.name}-node-") for n in made) == 2 * (end["attempt"] + 1),
               f"{made} were created in {end['attempt'] + 1} attempts")
        for fault in faults:
            if fault.logs and self.way != "again":
                text = kubectl("-n", self.board.namespace, "logs", f"{self.name}-node-0")
                expect(re.search(fault.logs, text), f"pod 0 does not say {fault.logs!r}")

    def judge_restarts(self, end, faults):
        allowed = [f.allowed(self.way) for f in faults]
        fewest, most = max((a[0] for a in allowed), default=0), sum(a[1] for a in allowed)
        expect(fewest <= end["attempt"] <= most, f"{end['attempt']} restarts, expected {fewest} to {most}")
        counted = sum(end.get(c, 0) for c in ("backoffCount", "disruptionCount", "admissionCount"))
        expect(counted == end["attempt"], f"{end['attempt']} restarts, {counted} of them counted")
        failures = end.get("failures", [])
        expect(len(failures) == end["attempt"] + (end["phase"] == "Failed"), f"{len(failures)} failures recorded")
        for failure in failures:
            what = f"{failure.get('exitCode')} {failure['reason']}"
            expect(any(f.because and re.fullmatch(f.because, what) for f in faults),
                   f"failed by {what!r}, which no fault here explains")

    def pods(self):
        return items("pods", self.board.namespace, f"{GROUP}/job={self.name}")

    def look(self):
        """For the report of a trial that failed."""
        def ask(*args):
            return kubectl("-n", self.board.namespace, *args, check=False)

        events = ask("get", "events", "--sort-by=.lastTimestamp").splitlines()
        mine = [line for line in events if re.search(rf"/{self.name}(-|\s)", line)]
        logs = [f"--- {self.name}-node-{i}\n" + ask("logs", f"{self.name}-node-{i}", "--tail=80") for i in range(2)]
        left = [f"{p.pid} {p} {p.pod}" for p in self.processes()] if self.uid else []
        return "\n".join([ask("get", "ptj", self.name, "-o", "yaml"), *mine[-60:], *logs, *left])

    def unfinished(self):
        return [p for p in self.pods() if p["status"]["phase"] not in ("Succeeded", "Failed")]

    def nothing_left(self):
        wait_for(f"no pod of {self.name}", lambda: not self.pods())
        if self.uid:
            wait_for(f"no process of {self.name}", lambda: not self.processes())


def expect(holds, otherwise):
    if not holds:
        raise Failure(otherwise)


@contextmanager
def volume():
    """A small file system of its own."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0777", "chaos", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)
