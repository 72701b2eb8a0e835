#!/usr/bin/env python3
"""recovery.py - time from a killed rank or launcher to the next training step, compared with PyTorch. `make bench-recovery`.

A job of two ranks of one host trains mnist-cnn with checkpoints under our torchrun, and a random rank of it is killed
(SIGKILL) at a random moment, again and again; then the same net in PyTorch under its torchrun, with gloo. With --kind
launcher the launcher is killed instead, and this program starts it again as soon as it is gone, as a container's runtime
would. Measured is the time from the kill to the first step that is complete after it. Where the time goes is what can be seen from outside:
ends of processes (pidfd), the launcher's children, lines on stdout and stderr. At the end our job is stopped, and the
checkpoint that it leaves must hold the bits of a job that nobody disturbed. Exit status 1 when it does not, or when a
program fails; never because something was slow. PyTorch's ranks may stand still for ever after a kill (gloo's
waitUntilConnected): that ends its part, is said, and is no failure of this program.
"""
import argparse
import json
import math
import os
import pathlib
import random
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RANKS = 2
SAVE_STEPS = 10
PAUSE_S = 0.3, 1.0  # from the first step after a kill to the next kill, and on until a checkpoint has been due
LIMIT_S = 120  # for one recovery, or one wait
END_S = 30  # for a job to end by itself
GOALS = {"rank": {"p50": 0.1, "p99": 0.3}, "launcher": {}}


def fail(message):
    sys.exit(f"bench-recovery: {message}")


class StoodStill(Exception):
    """No step in LIMIT_S after a kill."""


class Job:
    """A launcher and what it and its ranks do; all times are of the monotonic clock."""

    def __init__(self, command, folder):
        self.command, self.folder, self.buffers, self.errors = command, folder, {}, ""
        self.poll = select.poll()
        self.start()
        self.events = []  # (seconds, event) of rank 0's stdout, a line of stderr, or ("gone", pid)
        self.pidfds = {}
        self.step = self.left = 0  # of the run, and to the end of the epoch (PyTorch's has none)

    def start(self):
        self.process = subprocess.Popen(self.command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True)
        for stream in (self.process.stdout, self.process.stderr):
            os.set_blocking(stream.fileno(), False)
            self.buffers[stream.fileno()] = b""
            self.poll.register(stream, select.POLLIN)

    def kill_launcher(self):
        """What it and its ranks have printed and nobody has read is lost."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream.fileno() in self.buffers:
                self.poll.unregister(stream)
                del self.buffers[stream.fileno()]
            stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """No job outlives this program: its session is its own, so a Ctrl-C does not reach it."""
        if self.process.poll() is None:
            self.stop(END_S)

    def watch(self, pid):
        fd = os.pidfd_open(pid)
        self.pidfds[fd] = pid
        self.poll.register(fd, select.POLLIN)

    def lines(self, fd):
        data = os.read(fd, 1 << 16)
        if not data:
            self.poll.unregister(fd)
            self.buffers.pop(fd)
            return []
        *whole, self.buffers[fd] = (self.buffers[fd] + data).split(b"\n")
        return [line.decode(errors="replace") for line in whole]

    def turn(self, seconds):
        """Waits so long at most; what happened is in self.events."""
        ready = self.poll.poll(max(0, seconds) * 1000)
        now = time.monotonic()
        for fd, _ in ready:
            if fd in self.pidfds:
                self.poll.unregister(fd)
                os.close(fd)
                self.events.append((now, {"event": "gone", "pid": self.pidfds.pop(fd)}))
                continue
            for line in self.lines(fd):
                if fd == self.process.stderr.fileno():
                    self.errors = (self.errors + line + "\n")[-4000:]
                    self.events.append((now, {"event": "stderr", "line": line}))
                elif line.startswith("{"):
                    event = json.loads(line)
                    if event["event"] == "train":
                        self.step = event["global_step"]
                        self.left = event.get("steps", 0) - event.get("step", 0)
                    self.events.append((now, event))
        if self.process.poll() is not None:
            fail(f"{' '.join(self.command)}: ended with {self.process.returncode}\n{self.errors}")

    def until(self, what, seconds=LIMIT_S):
        """Waits for an event of this kind; drops what came before it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for i, (when, event) in enumerate(self.events):
                if event["event"] == what:
                    del self.events[:i + 1]
                    return when, event
            self.turn(end - time.monotonic())
        fail(f"{' '.join(self.command)}: no {what} in {seconds} s\n{self.errors}")

    def train_until(self, done, what):
        """Lets it train until done(); what happened meanwhile is dropped."""
        end = time.monotonic() + LIMIT_S
        while not done():
            if time.monotonic() > end:
                fail(f"{' '.join(self.command)}: no {what} in {LIMIT_S} s\n{self.errors}")
            self.turn(0.05)
            self.events.clear()

    def children(self):
        launcher = self.process.pid
        try:
            return [int(pid) for task in os.listdir(f"/proc/{launcher}/task")
                    for pid in pathlib.Path(f"/proc/{launcher}/task/{task}/children").read_text().split()]
        except FileNotFoundError:
            return []

    def ranks(self):
        """{rank: pid} of the launcher's children that have become ranks"""
        found = {}
        for pid in self.children():
            try:
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            rank = re.search(rb"(?:^|\0)RANK=(\d+)", environment)
            if rank:
                found[int(rank[1])] = pid
        return found

    def stop(self, seconds=LIMIT_S):
        """SIGTERM, and the exit status; SIGKILL to the launcher and its ranks when it takes longer, or is interrupted."""
        self.process.send_signal(signal.SIGTERM)
        try:
            for stream in (self.process.stdout, self.process.stderr):
                os.set_blocking(stream.fileno(), True)
            self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGSTOP)  # it starts no other ranks, and reaps none
                for pid in (*self.children(), self.process.pid):
                    os.kill(pid, signal.SIGKILL)
                self.process.wait()
        return self.process.returncode


def recover(job, rng, kind):
    """Kills a rank of a job that trains, or its launcher. {phase: seconds since the kill} and the steps that were lost."""
    job.events.clear()
    ranks = job.ranks()
    if sorted(ranks) != list(range(RANKS)):
        fail(f"ranks {sorted(ranks)}, expected {RANKS} of them")
    for pid in ranks.values():
        job.watch(pid)
    victim = rng.randrange(RANKS)
    before, kill = job.step, time.monotonic()
    at, gone, fresh, started = {}, 0, {}, None
    if kind == "launcher":
        victim = None
        job.kill_launcher()
        at["launcher gone"] = time.monotonic() - kill
        job.start()
    else:
        os.kill(ranks[victim], signal.SIGKILL)
    while "first step" not in at:
        if time.monotonic() - kill > LIMIT_S:
            raise StoodStill(f"{' '.join(job.command)}: no step in {LIMIT_S} s after a kill\n{job.errors}")
        looks = gone == RANKS and len(fresh) < RANKS
        job.turn(0.001 if looks else 1)
        if looks:
            fresh = {rank: pid for rank, pid in job.ranks().items() if pid not in ranks.values()}
            if len(fresh) == RANKS:
                at["ranks started"] = time.monotonic() - kill
        for when, event in job.events:
            since, what = when - kill, event["event"]
            if what == "gone":
                gone += 1
                at["killed rank gone" if event["pid"] == ranks.get(victim) else "others gone"] = since
            elif what == "stderr" and "went away" in event["line"]:
                at.setdefault("noticed by another", since)
            elif what == "start":
                started = since, event
            elif what == "train" and started:
                at["first step"], after = since, event["global_step"]
                break
        job.events.clear()
    at["ready to train"] = started[0]
    if "ranks started" in at:  # the program's own clock starts there, or a moment later
        at["ranks met"] = at["ranks started"] + started[1]["met_s"]
        at["data there"] = at["ranks started"] + started[1]["data_s"]
    return at, before - after + 1


def train_on(job, rng):
    end, step = time.monotonic() + rng.uniform(*PAUSE_S), job.step + SAVE_STEPS + rng.randrange(SAVE_STEPS)
    job.train_until(lambda: time.monotonic() >= end and job.step >= step, f"step {step}")


def disturb(name, job, kills, rng, kind="rank"):
    """What so many kills of a new job cost: [(phases, steps lost)], and why it stood still after one ("": it did not)."""
    found = []
    job.until("train")
    for i in range(kills):
        print(f"{name}: kill {i + 1} of {kills}, step {job.step}", file=sys.stderr, flush=True)
        train_on(job, rng)
        try:
            found.append(recover(job, rng, kind))
        except StoodStill as why:
            return found, str(why)
    train_on(job, rng)
    return found, ""


def our_trainer(args, folder, options):
    return [f"{args.bin}/trainer", "mnist-cnn", "--threads", "1", "--batch_size", "32", "--no_cuda", "--log_format", "json",
            "--epochs", "1000000", "--data", args.data, "--no_download", "--ckpt_dir", folder, "--save_seconds", "0",
            *options]


def newest(folder):
    steps = {int(path.name.split("-")[1]): path for path in pathlib.Path(folder).glob("*/step-*") if path.is_dir()}
    if not steps:
        fail(f"no checkpoint in {folder}")
    return max(steps), steps[max(steps)]


def tensors(path):
    """What a safetensors file says of each tensor, and its bytes. Left out is whether the step's epoch had been validated, which
    changes no weight: a stop may come before that."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    left_out = ("__metadata__", "trainer.validated")
    return {name: (t["dtype"], t["shape"], data[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]])
            for name, t in header.items() if name not in left_out}


def differing(left, right):
    """The files of two checkpoints whose tensors differ."""
    return [name for name in ("model.safetensors", "optim.safetensors") if tensors(left / name) != tensors(right / name)]


def same_bits(args, folder, disturbed):
    """The step at which the job was stopped, and the files of its checkpoint that differ from an undisturbed job's."""
    step, left = newest(disturbed)
    print(f"the same {step} steps without a kill", file=sys.stderr, flush=True)
    options = ["--max_steps", str(step), "--save_steps", str(step), "--log_interval", "1000000"]
    done = subprocess.run([f"{args.bin}/torchrun", f"--nproc_per_node={RANKS}", "--no_python",
                           *our_trainer(args, f"{folder}/undisturbed", options)], cwd=folder, capture_output=True,
                          text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
    if done.returncode:
        fail(f"the undisturbed job ended with {done.returncode}\n{done.stderr[-2000:]}")
    other, right = newest(f"{folder}/undisturbed")
    if other != step:
        fail(f"the undisturbed job's last checkpoint is of step {other}, expected {step}")
    return step, differing(left, right)


def percentile(values, p):
    """The nearest rank: of 50 values the 99th percentile is the highest."""
    return sorted(values)[math.ceil(p / 100 * len(values)) - 1]


PHASES = ("launcher gone", "killed rank gone", "noticed by another", "others gone", "ranks started", "ranks met", "data there",
          "ready to train", "first step")


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def show(found):
    print("\nFrom the kill to the next training step\n")
    row("", "Kills", "p50", "p99", "Lowest", "Steps redone, median (highest)")
    row(*["---"] * 6)
    for name, kills in found.items():
        times, lost = [at["first step"] for at, _ in kills], [steps for _, steps in kills]
        row(name, str(len(kills)), *(f"{value:.3f} s" for value in (percentile(times, 50), percentile(times, 99),
                                                                    min(times))),
            f"{statistics.median(lost):.0f} ({max(lost)})")
    print("\nWhere the time goes: medians of the time since the kill, ms (in brackets: the highest)\n")
    row("", *found)
    row(*["---"] * (len(found) + 1))
    for phase in PHASES:
        cells = []
        for kills in found.values():
            times = [at[phase] * 1000 for at, _ in kills if phase in at]
            cells.append(f"{statistics.median(times):.1f} ({max(times):.1f})" if times else "not seen")
        row(phase, *cells)


def verdict(found, kind):
    for name, goal in GOALS[kind].items():
        value = percentile([at["first step"] for at, _ in found], int(name[1:]))
        print(f"{name} <= {goal} s: {'reached' if value <= goal else 'MISSED'} ({value:.3f} s)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=GOALS, default="rank", help="what is killed; default: %(default)s")
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"), help="folder of trainer and torchrun")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch; default: this one")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist",
                        help="folder of Fashion-MNIST's four .gz files; default: %(default)s")
    parser.add_argument("--kills", type=int, default=50, help="of our job; default: %(default)s")
    parser.add_argument("--torch-kills", type=int, default=5, help="of PyTorch's, 0: none; default: %(default)s")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="of ranks and moments")
    args = parser.parse_args()
    if args.kills < 1 or args.torch_kills < 0:
        parser.error("expected --kills of 1 or more, --torch-kills of 0 or more")
    args.bin, args.data = os.path.abspath(args.bin), os.path.abspath(args.data)
    if os.sep in args.python:  # programs run in another folder
        args.python = os.path.abspath(args.python)
    signal.signal(signal.SIGTERM, lambda *_: fail("ended by SIGTERM"))
    rng, before, found = random.Random(args.seed), os.getloadavg()[0], {}
    with tempfile.TemporaryDirectory(prefix="bench-recovery-") as folder:
        options = ["--save_steps", str(SAVE_STEPS), "--log_interval", "1"]
        command = [f"{args.bin}/torchrun", f"--nproc_per_node={RANKS}", f"--max-restarts={args.kills}",
                       "--rdzv_id=bench-recovery", "--no_python",
                   *our_trainer(args, f"{folder}/disturbed", options)]
        with Job(command, folder) as job:
            found["torchrun and trainer"], still = disturb("ours", job, args.kills, rng, args.kind)
            if still:
                fail(still)
            # Not at the end of an epoch: a checkpoint also says whether the epoch has been validated.
            job.train_until(lambda: job.left >= 2 * SAVE_STEPS, f"step that {2 * SAVE_STEPS} of its epoch follow")
            status = job.stop()
        if status != 128 + signal.SIGTERM:
            fail(f"exit status {status} after SIGTERM, expected {128 + signal.SIGTERM}\n{job.errors}")
        step, differ = same_bits(args, folder, f"{folder}/disturbed")
        if args.torch_kills and args.kind == "rank":
            command = [args.python, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={RANKS}",
                       "--max-restarts=1000", str(HERE / "torch_recovery.py"), folder, args.data,
                       str(SAVE_STEPS)]
            with Job(command, folder) as job:
                found["PyTorch"], still = disturb("PyTorch", job, args.torch_kills, rng)
    show({name: kills for name, kills in found.items() if kills})
    if still:
        print(f"\nPyTorch after its kill {len(found['PyTorch']) + 1}: {still.splitlines()[0]}")
    print()
    verdict(found["torchrun and trainer"], args.kind)
    print(f"step {step}: weights and optimizer " + ("DIFFER: " + ", ".join(differ) if differ else
                                                    "have the bits of a job that nobody disturbed"))
    print(f"{os.cpu_count()} CPUs; load {before:.1f} before, {os.getloadavg()[0]:.1f} after; --seed {args.seed}")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
