#!/usr/bin/env python3
"""Trains presets over their whole schedule with the trainer and with PyTorch, one process each, over several seeds, and
compares what came out: PyTorch judges both sides' weights over all training data, and over test data where there are some.

    accuracy.py                         whatever is missing, then the table
    accuracy.py --preset fashion-mlp --side torch     a piece: results are kept in a file

The same seed gives both sides the same weights, data and order of samples, so they differ by rounding alone, as far as
training does not blow that up. Noise is the spread between seeds. mnist-cnn, which is chaotic, has a comparison of its own:
scripts/compare-seeds.py. Ours is kept for the trainer that gave it. Exit status 1 when the means of the losses differ by
more than the spread of PyTorch's own, or by a hundredth of it where there is no spread.

Needs a Python with torch, and Debian's dataset-fashion-mnist.
"""
import argparse
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import torch
from torch import nn
from torch.utils.data.distributed import DistributedSampler

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/golden/torch"))
import presets  # noqa: E402
from mnist_cnn import idx  # noqa: E402

BATCH = 32
# epochs as the presets have them, rate, seeds, the network, the data from a seed
CASES = {
    "linear": (5, 1e-3, [0, 1, 2, 3, 4], lambda: nn.Linear(20, 1), lambda args: presets.rows()),
    "convnet": (10, 1e-2, [0, 1, 2], presets.ConvNet, lambda args: presets.teacher((3, 28, 28), 10)),
    "pipeline": (10, 1e-2, [0, 1, 2], presets.Pipeline, lambda args: presets.teacher((1024, 1, 1), 100)),
    "fashion-mlp": (50, 1e-3, [0], presets.Mlp, lambda args: presets.fashion(args.data)),
}


def prepare(args, name, seed):
    """The data and the network as both sides begin with them."""
    presets.SEED = seed  # the teacher's
    torch.manual_seed(seed)
    data = CASES[name][4](args)
    return data, CASES[name][3]()


def criterion_of(name):
    return nn.MSELoss() if name == "linear" else nn.CrossEntropyLoss()


def judge(name, net, tensors):
    """Mean loss, and the share of right answers."""
    inputs, targets = tensors
    loss, right = 0.0, 0
    with torch.no_grad():
        for x, y in zip(inputs.split(1024), targets.split(1024)):
            out = net(x)
            loss += criterion_of(name)(out, y).item() * len(x)
            right += 0 if name == "linear" else (out.argmax(1) == y).sum().item()
    return loss / len(inputs), right / len(inputs)


def result(args, name, net, data):
    loss, accuracy = judge(name, net, data.tensors)
    if name != "fashion-mlp":
        return {"loss": loss, "accuracy": accuracy}
    test = (idx(f"{args.data}/t10k-images-idx3-ubyte.gz").to(torch.float32).div(255).unsqueeze(1),
            idx(f"{args.data}/t10k-labels-idx1-ubyte.gz").long())
    return {"loss": loss, "accuracy": accuracy, "test": judge(name, net, test)[1]}


def run_trainer(args, name, seed):
    data, net = prepare(args, name, seed)
    with tempfile.TemporaryDirectory() as folder:
        command = [f"{args.bin}/trainer", name, "--nprocs", "1", "--seed", str(seed), "--resume", "never",
                   "--save_seconds", "0", "--save_path", f"{folder}/weights.pt", "--threads", str(args.threads)]
        command += ["--data", args.data, "--save_every", str(CASES[name][0] - 1)] if name == "fashion-mlp" else []
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"accuracy: {' '.join(command)}: exit status {done.returncode}\n{done.stdout[-2000:]}")
        net.load_state_dict(torch.load(f"{folder}/weights.pt", weights_only=True))
    return result(args, name, net, data)


def run_torch(args, name, seed):
    data, net = prepare(args, name, seed)
    epochs, rate = CASES[name][:2]
    inputs, targets = data.tensors
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    criterion = criterion_of(name)
    sampler = DistributedSampler(data, num_replicas=1, rank=0)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for batch in torch.tensor(list(sampler)).split(BATCH):
            optimizer.zero_grad()
            criterion(net(inputs[batch]), targets[batch]).backward()
            optimizer.step()
    return result(args, name, net, data)


def key_of(args, side, name, seed):
    key = f"{side} {name} seed {seed}"
    program = pathlib.Path(args.bin, "trainer")
    if side == "trainer" and program.exists():
        key += " build " + hashlib.sha256(program.read_bytes()).hexdigest()[:16]
    return key


def mean(results, what):
    return statistics.fmean(r[what] for r in results)


def row(name, ours, theirs):
    """Prints it; True: within the noise."""
    apart = abs(mean(ours, "loss") - mean(theirs, "loss"))
    spread = statistics.stdev(r["loss"] for r in theirs) if len(theirs) > 1 else 0
    most = max(abs(o["loss"] / t["loss"] - 1) for o, t in zip(ours, theirs))
    shown = []
    for r in (ours, theirs):
        kinds = ["test"] if "test" in r[0] else []
        kinds += ["accuracy"] if name != "linear" else []
        shown.append(", ".join(f"{mean(r, k):.4f}" + (" (test)" if k == "test" else "") for k in kinds) or "-")
    print(f"| {name} | {CASES[name][0]} | {len(ours)} | {mean(ours, 'loss'):.6f} | {mean(theirs, 'loss'):.6f} | {most:.1e} "
          f"| {format(spread / mean(theirs, 'loss'), '.1e') if spread else '-'} | {shown[0]} | {shown[1]} |")
    return apart <= (spread or mean(theirs, "loss") / 100)


def table(args, kept):
    whole = []
    for name in CASES:
        sides = [[kept.get(key_of(args, side, name, s)) for s in CASES[name][2]] for side in ("trainer", "torch")]
        if None not in sides[0] + sides[1]:
            whole.append((name, *sides))
    if not whole:
        return True
    print("| Preset | Epochs | Seeds | Trainer: loss | PyTorch: loss | Largest difference at one seed | Spread between seeds "
          "| Trainer: accuracy | PyTorch: accuracy |")
    print("|---|---|---|---|---|---|---|---|---|")
    good = [row(*r) for r in whole]
    return all(good)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=CASES, nargs="+", default=list(CASES))
    parser.add_argument("--side", choices=["both", "trainer", "torch"], default="both")
    parser.add_argument("--threads", type=int, default=1, help="of either side")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"), help="folder of the trainer")
    parser.add_argument("--results", default=str(ROOT / "build/accuracy.json"), help="where results are kept")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    path = pathlib.Path(args.results)
    kept = json.loads(path.read_text()) if path.exists() else {}
    for name in args.preset:
        for seed in CASES[name][2]:
            for side, run in (("trainer", run_trainer), ("torch", run_torch)):
                key = key_of(args, side, name, seed)
                if args.side in ("both", side) and key not in kept:
                    kept[key] = run(args, name, seed)
                    path.write_text(json.dumps(kept, indent=2) + "\n")
                    print(f"{key}: {kept[key]}", file=sys.stderr)
    return 0 if table(args, kept) else 1


if __name__ == "__main__":
    sys.exit(main())
