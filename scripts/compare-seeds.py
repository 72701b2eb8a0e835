#!/usr/bin/env python3
"""Train mnist-cnn on Fashion-MNIST with our trainer (4 ranks) and with PyTorch, over several seeds, and compare.

PyTorch runs as one process with two threads, a global batch of 128 and the learning rate of 4 ranks, on the same
initial weights, the same split and the same order of samples. Each result is kept in a file and not measured again,
so the two halves can run at different times. Our results belong to one build of the trainer: another build is measured
again.

    compare-seeds.py --side trainer          # ours alone
    compare-seeds.py --side torch            # PyTorch's alone: minutes per seed
    compare-seeds.py                         # whatever is missing, then the table

Needs a Python with torch. Prints a Markdown table; exit status 1 when our mean accuracy is lower than PyTorch's
less --margin.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RANKS, BATCH = 4, 32


def run_trainer(args, seed):
    command = [f"{args.bin}/torchrun", f"--nproc_per_node={RANKS}", "--no_python", f"{args.bin}/trainer", "mnist-cnn",
               "--data", args.data, "--epochs", str(args.epochs), "--seed", str(seed), "--batch_size", str(BATCH),
               "--resume", "never"]
    start = time.monotonic()
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True)
    wall = time.monotonic() - start
    if done.returncode:
        sys.exit(f"compare-seeds: {' '.join(command)}: exit status {done.returncode}")
    accuracy = re.search(r"test accuracy: ([0-9.]+)", done.stdout)
    train = re.search(r"training time: ([0-9.]+) s", done.stdout)
    if not accuracy or not train:
        sys.exit(f"compare-seeds: no result in what the trainer printed:\n{done.stdout}")
    return {"accuracy": float(accuracy[1]), "train_s": float(train[1]), "wall_s": wall}


def evaluate(net, data, torch):
    with torch.no_grad():
        images, labels = data
        right = sum((net(x).argmax(1) == y).sum().item() for x, y in zip(images.split(1000), labels.split(1000)))
    return right / len(labels)


def run_torch(args, seed):
    import torch
    from torch.utils.data import random_split
    from torch.utils.data.distributed import DistributedSampler
    sys.path.insert(0, str(ROOT / "tests/golden/torch"))
    import mnist_cnn

    torch.set_num_threads(2)
    begun = time.monotonic()
    train = mnist_cnn.load(args.data, "train")
    test = mnist_cnn.load(args.data, "t10k")
    torch.manual_seed(seed)
    net = mnist_cnn.Net()
    part, rest = random_split(train, [48000, 12000])
    images, labels = train.tensors
    items = torch.tensor(part.indices)
    val = (images[rest.indices], labels[rest.indices])
    # 48000 divides by 4: what 4 ranks take together in a step is a run of 128 places of the one-rank order.
    sampler = DistributedSampler(part, num_replicas=1, rank=0, shuffle=True, seed=0)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001 * RANKS)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    criterion = torch.nn.CrossEntropyLoss()
    start = time.monotonic()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for batch in items[torch.tensor(list(sampler))].split(BATCH * RANKS):
            optimizer.zero_grad()
            criterion(net(images[batch]), labels[batch]).backward()
            optimizer.step()
        schedule.step()
        print(f"torch seed {seed}: epoch {epoch + 1}, val accuracy {evaluate(net, val, torch):.4f}", file=sys.stderr)
    train_s = time.monotonic() - start
    return {"accuracy": evaluate(net, test.tensors, torch), "train_s": train_s, "wall_s": time.monotonic() - begun}


def key_of(args, side, seed):
    key = f"{side} seed {seed} epochs {args.epochs}"
    program = pathlib.Path(args.bin, "trainer")
    if side == "trainer" and program.exists():  # --side torch needs none
        key += " build " + hashlib.sha256(program.read_bytes()).hexdigest()[:16]
    return key


def mean(results, key):
    return sum(r[key] for r in results) / len(results)


def table(seeds, ours, theirs, args):
    print(f"Fashion-MNIST, {args.epochs} epochs. Trainer: {RANKS} ranks x 1 thread, batch {BATCH} each. PyTorch: one "
          f"process, 2 threads, batch {RANKS * BATCH}. Times are training with validation.\n")
    print("| Seed | Trainer: test accuracy | PyTorch: test accuracy | Difference | Trainer: time | PyTorch: time |")
    print("|---|---|---|---|---|---|")
    rows = [(str(s), o, t) for s, o, t in zip(seeds, ours, theirs)]
    rows.append(("mean", *({k: mean(r, k) for k in ("accuracy", "train_s")} for r in (ours, theirs))))
    for name, o, t in rows:
        print(f"| {name} | {o['accuracy']:.4f} | {t['accuracy']:.4f} | {o['accuracy'] - t['accuracy']:+.4f} "
              f"| {o['train_s']:.1f} s | {t['train_s']:.1f} s |")
    lowest = mean(theirs, "accuracy") - args.margin
    good = mean(ours, "accuracy") >= lowest
    print(f"\nMean {mean(ours, 'accuracy'):.4f}, to reach: {lowest:.4f} (PyTorch's mean less {args.margin}): "
          f"{'reached' if good else 'NOT reached'}.")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", choices=["both", "trainer", "torch"], default="both")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--margin", type=float, default=0.007)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"), help="folder of trainer and torchrun")
    parser.add_argument("--results", default=str(ROOT / "out/compare-seeds.json"), help="where results are kept")
    args = parser.parse_args()

    path = pathlib.Path(args.results)
    kept = json.loads(path.read_text()) if path.exists() else {}
    for side, run in (("trainer", run_trainer), ("torch", run_torch)):
        for seed in args.seeds:
            key = key_of(args, side, seed)
            if args.side in ("both", side) and key not in kept:
                kept[key] = run(args, seed)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(kept, indent=2) + "\n")
                print(f"{key}: accuracy {kept[key]['accuracy']:.4f}, {kept[key]['train_s']:.1f} s", file=sys.stderr)
    ours, theirs = ([kept.get(key_of(args, side, s)) for s in args.seeds]
                    for side in ("trainer", "torch"))
    if None in ours or None in theirs:
        print("compare-seeds: only one side has been measured: no table yet", file=sys.stderr)
        return 0
    return 0 if table(args.seeds, ours, theirs, args) else 1


if __name__ == "__main__":
    sys.exit(main())
