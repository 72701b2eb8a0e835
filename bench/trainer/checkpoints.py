#!/usr/bin/env python3
"""checkpoints.py - the cost of checkpoints for training steps: `make bench-checkpoints`.

Two ranks train a small GPT-2 (10.7 million parameters, 128 MB in a checkpoint), by turns with a checkpoint after every 20th
step and with none. Each run's steps are compared with that run's own median, so that what else the machine does
concerns both alike: the share of steps that took more than 1.2 times the median has to be no larger with checkpoints than
without.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TEXT = "/usr/share/common-licenses"  # Debian's
MODEL = """\
name: small-gpt2
model:
  gpt2: {vocab: 256, block_size: 128, n_layer: 6, n_head: 6, n_embd: 384}
loss: cross_entropy
optimizer: {type: adamw, lr: 0.0005, weight_decay: 0.1, decay: matrices, clip: 1.0}
data: {format: tokens, train: "*-[123]*", val_fraction: 0}
defaults: {epochs: 100, batch_size: 1, log_interval: 1}
"""
EVERY, OVER, WARM_UP = 20, 1.2, 5


def times(args, every):
    """Seconds between the lines of neighbouring steps, and how many checkpoints were written."""
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        path = pathlib.Path(folder)
        (path / "model.yaml").write_text(MODEL)
        command = [args.torchrun or args.bin / "torchrun", "--nproc_per_node", args.ranks, "--no_python", args.bin / "trainer",
                   path / "model.yaml", "--data", TEXT, "--threads", 1, "--no_cuda", "--resume", "never", "--max_steps", args.steps,
                   "--log_format", "json", "--ckpt_dir", path / "ckpt", "--keep", 2, "--save_seconds", 0]
        command += ["--save_steps", every] if every else []
        out = subprocess.run([str(word) for word in command], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in out.stdout.splitlines()]
    at = [datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00")) for line in lines if line["event"] == "train"]
    if len(at) != args.steps:
        raise SystemExit(f"{len(at)} steps, expected {args.steps}")
    steps = [(b - a).total_seconds() for a, b in zip(at, at[1:])]
    return steps[WARM_UP:], [line["global_step"] for line in lines if line["event"] == "checkpoint"]


def over(steps):
    return sum(step > OVER * statistics.median(steps) for step in steps)


def show(name, steps, saved):
    median = statistics.median(steps)
    print(f"{name:12} {len(steps):5} steps, median {1000 * median:6.1f} ms, longest {max(steps) / median:5.2f} of it, "
          f"over {OVER}: {over(steps):4} ({100 * over(steps) / len(steps):.2f} %), {len(saved)} checkpoints", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    p.add_argument("--torchrun", type=pathlib.Path, help="this launcher instead of the one in --bin")
    p.add_argument("--dir", help="where the checkpoints go: a folder on the disk to measure")
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--steps", type=int, default=205)
    p.add_argument("--repeats", type=int, default=3)
    args = p.parse_args()
    total = {0: [0, 0], EVERY: [0, 0]}
    for i in range(args.repeats):
        for every in (0, EVERY) if i % 2 else (EVERY, 0):
            steps, saved = times(args, every)
            show(f"every {every}" if every else "none", steps, saved)
            total[every][0] += over(steps)
            total[every][1] += len(steps)
            if every and len(saved) < args.steps // EVERY - 1:
                print(f"             of {args.steps // EVERY} that were due; the others were put off")
    with_, without = (100 * total[every][0] / total[every][1] for every in (EVERY, 0))
    print(f"steps over {OVER} of the median: {with_:.2f} % with a checkpoint every {EVERY} steps, {without:.2f} % without")
    return 0


if __name__ == "__main__":
    sys.exit(main())
