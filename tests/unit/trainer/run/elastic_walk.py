#!/usr/bin/env python3
"""elastic_walk.py - nodes of one rank join and leave a training under our launcher, one at a time, at random.

Each launcher is a node on loopback; node 0 stays, as pod 0 of a job does. A walk begins with one node, and each of its moves changes
the number of nodes to a random one of 1 to 6, the highest ones leaving by SIGTERM, as `kubectl scale` does. A move waits until a
step of the new number of ranks is complete, and as long as --stay says. Then:

- The ledger: rank 0's loss of each step is the mean of the losses of exactly the samples at the next positions of the epoch's order, so
  each sample is trained on once per epoch. The weights do not change (a learning rate of 1e-30), so a sample's loss is the one that a
  run of one rank reported.
- No step is taken twice: every change is at a step's boundary.
- The learning rate of a step is that of the undisturbed run after as many samples.

Exit status 1 and a message when one of them does not hold.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[3]))
import ports  # noqa: E402

NODES, BATCH, BLOCK, LIMIT_S = 6, 4, 16, 1200
MODEL = """name: walk
model:
  gpt2: {vocab: 256, block_size: %d, n_layer: 1, n_head: 2, n_embd: 16}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-30}
schedule: {type: step, per: step, every: 1, gamma: 0.9999}
data: {format: tokens, train: "*.txt"}
defaults: {epochs: 1000000, batch_size: %d, seed: 3, sampler_seed: 5}
""" % (BLOCK, BATCH)
SAMPLES = 602  # no multiple of BATCH nor of most numbers of ranks
STEPS = -(-SAMPLES // BATCH)  # of an epoch of one rank


def fail(message):
    sys.exit(f"elastic_walk: {message}")


def trainer(args, folder, *options):
    return [f"{args.bin}/trainer", f"{folder}/walk.yaml", "--data", folder, "--threads", "1", "--no_cuda", "--log_format",
            "json", "--log_interval", "1", "--save_seconds", "0", "--timeout", str(args.timeout), *options]


class Undisturbed:
    """What one rank reports: the loss of the sample at each position of each epoch, and the learning rate after so many samples."""

    def __init__(self, args, folder):
        self.args, self.folder, self.losses, self.rates = args, folder, [], []

    def run(self, batch, field, event, epochs):
        options = ["--batch_size", str(batch), "--max_steps", str(epochs * -(-SAMPLES // batch)),
                   "--ckpt_dir", f"{self.folder}/reference"]
        done = subprocess.run(trainer(self.args, self.folder, *options), capture_output=True, text=True, cwd=self.folder, check=False)
        if done.returncode:
            fail(f"the undisturbed run ended with {done.returncode}\n{done.stderr}")
        return [e[field] for e in map(json.loads, done.stdout.splitlines()) if e["event"] == event]

    def train(self, epochs):
        if len(self.losses) < epochs * SAMPLES:
            self.losses = self.run(1, "loss", "train", epochs)
            self.rates = self.run(BATCH, "lr", "speed", epochs)

    def loss(self, epoch, positions):
        order = self.losses[(epoch - 1) * SAMPLES:epoch * SAMPLES]
        return sum(order[p % SAMPLES] for p in positions) / len(positions)  # behind the last one it is padded from the first

    def rate(self, epoch, position):
        return self.rates[(epoch - 1) * STEPS + position // BATCH]


class Node:
    def __init__(self, args, folder, port, index):
        conf = f"is_host={'true' if index == 0 else 'false'},join_timeout={LIMIT_S},{args.conf}"
        self.errors = tempfile.TemporaryFile("w+", dir=folder)
        self.process = subprocess.Popen(
            [f"{args.bin}/torchrun", f"--nnodes=1:{NODES}", "--nproc_per_node=1", "--rdzv_backend=c10d", "--rdzv_id=walk",
             f"--rdzv_endpoint=127.0.0.1:{port}", f"--rdzv_conf={conf}", "--max_restarts=100", "--no_python",
             *trainer(args, folder, "--ckpt_dir", f"{folder}/ck")],
            cwd=folder, stdout=subprocess.PIPE if index == 0 else subprocess.DEVNULL, stderr=self.errors, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PTJ_NODE_ORDER": str(index)})

    def said(self):
        self.errors.seek(0)
        return self.errors.read()[-3000:]

    def leave(self):
        self.process.send_signal(signal.SIGTERM)

    def end(self):
        self.leave()
        try:
            return self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Ledger:
    """The steps that count, from the lines of rank 0."""

    def __init__(self, stream):
        self.steps, self.redone, self.world = [], 0, 0
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, args=(stream,), daemon=True)
        self.reader.start()

    def read(self, stream):
        for line in stream:
            if not line.startswith("{"):
                continue
            event = json.loads(line)
            with self.changed:
                self.take(event)
                self.changed.notify_all()

    def take(self, event):
        if event["event"] == "start":
            self.world = event["ranks"]
        elif "resumed from" in event.get("text", ""):
            step = int(event["text"].rpartition(", step ")[2])
            self.redone += len(self.steps) - step
            del self.steps[step:]
        elif event["event"] == "train":
            self.steps.append({"step": event["global_step"], "epoch": event["epoch"], "loss": event["loss"], "world": self.world})
        elif event["event"] == "speed":
            self.steps[-1]["lr"] = event["lr"]

    def wait(self, nodes, world):
        end = time.monotonic() + LIMIT_S
        with self.changed:
            begin = len(self.steps)
            while not (self.world == world and len(self.steps) > begin + 20 and self.steps[-1]["world"] == world):
                if not self.changed.wait(end - time.monotonic()) or nodes[0].process.poll() is not None:
                    fail(f"no step of {world} ranks\n" + "\n".join(node.said() for node in nodes))


def check(ledger, undisturbed):
    """Whether each step has trained on the samples that were next, at the rate of so many samples."""
    position = epoch = 0
    undisturbed.train(ledger.steps[-1]["epoch"])
    for i, step in enumerate(ledger.steps):
        if step["epoch"] != epoch:
            if epoch and position < SAMPLES:
                fail(f"epoch {epoch} ends after {position} of {SAMPLES} samples")
            position, epoch = 0, step["epoch"]
        if step["step"] != i + 1:
            fail(f"step {step['step']} follows step {i}")
        world = step["world"]
        each = min(BATCH, -(-(SAMPLES - position) // world))
        positions = range(position, position + each * world)
        want = undisturbed.loss(epoch, positions)
        if abs(step["loss"] - want) > 2e-5:
            fail(f"step {i + 1}, {world} ranks: loss {step['loss']}, and of the samples {positions} of epoch {epoch}: {want}")
        if position % BATCH == 0 and "lr" in step and abs(step["lr"] / undisturbed.rate(epoch, position) - 1) > 1e-6:
            fail(f"step {i + 1}: rate {step['lr']}, undisturbed {undisturbed.rate(epoch, position)}")
        position += len(positions)


def walk(args, folder, rng, undisturbed):
    port = ports.take()
    nodes = [Node(args, folder, port, 0)]
    ledger = Ledger(nodes[0].process.stdout)
    sizes = [1]
    try:
        ledger.wait(nodes, 1)
        for _ in range(args.moves):
            sizes.append(rng.choice([n for n in range(1, NODES + 1) if n != sizes[-1]]))
            leaving, nodes = nodes[sizes[-1]:], nodes[:sizes[-1]]
            for node in leaving:
                node.leave()
            nodes += [Node(args, folder, port, i) for i in range(len(nodes), sizes[-1])]
            ledger.wait(nodes, sizes[-1])
            for node in leaving:
                node.end()
            time.sleep(args.stay)
            ledger.wait(nodes, sizes[-1])
    finally:
        for node in reversed(nodes):
            node.leave()
        codes = [node.end() for node in nodes]
    ledger.reader.join(LIMIT_S)
    check(ledger, undisturbed)
    print(f"{' '.join(map(str, sizes))} nodes: {len(ledger.steps)} steps, {ledger.steps[-1]['epoch']} epochs, {ledger.redone} redone, "
          f"ended with {codes[0]}", flush=True)
    if ledger.redone:
        fail(f"{ledger.redone} steps were taken twice")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of trainer and torchrun")
    parser.add_argument("--walks", type=int, default=1)
    parser.add_argument("--moves", type=int, default=3)
    parser.add_argument("--stay", type=float, default=0, help="seconds after each move")
    parser.add_argument("--timeout", type=float, default=LIMIT_S, help="the trainer's, seconds")
    parser.add_argument("--conf", default="last_call_timeout=0.2", help="more of --rdzv_conf")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TK_SEED", "0")) or random.randrange(1 << 31))
    args = parser.parse_args()
    args.bin = os.path.abspath(args.bin)
    print(f"seed {args.seed}", flush=True)
    rng = random.Random(args.seed)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="elastic-walk-", dir=memory) as folder:
        pathlib.Path(folder, "walk.yaml").write_text(MODEL)
        pathlib.Path(folder, "text.txt").write_bytes(random.Random(1).randbytes(BLOCK * SAMPLES + 1))
        undisturbed = Undisturbed(args, folder)
        for _ in range(args.walks):
            subprocess.run(["rm", "-rf", f"{folder}/ck"], check=True)
            walk(args, folder, rng, undisturbed)


if __name__ == "__main__":
    main()
