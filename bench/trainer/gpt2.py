#!/usr/bin/env python3
"""gpt2.py - the small GPT-2 on bytes compared with PyTorch's, with the same threads and text. `make bench-gpt2`.

Each repeat times the trainer and PyTorch, one right after the other. PyTorch has scaled_dot_product_attention and the fused
AdamW, and its loop does what the trainer's step does: windows, forward, loss, backward, a bound on the norm, the update.
With --learn the trainer then runs the whole preset, and its validation loss is shown beside the time.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TEXT, FILES = pathlib.Path("/usr/share/common-licenses"), "*-[123]*"  # Debian's
LAYERS, HEADS, WIDTH, TIME, VOCAB, BATCH = 4, 4, 128, 256, 256, 8  # the preset gpt2-bytes
STEPS, GOAL = 100, 0.5


def trainer(args, threads, options):
    with tempfile.TemporaryDirectory() as folder:
        command = [args.bin / "trainer", "gpt2-bytes", "--data", TEXT, "--train_files", FILES, "--threads", threads,
                   "--resume", "never", "--save_seconds", 0, "--log_format", "json", "--no_cuda", *options]
        out = subprocess.run([str(word) for word in command], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def trainer_ms(args, threads):
    last = trainer(args, threads, ["--epochs", 1, "--max_steps", STEPS])[-1]
    return 1000 * last["train_s"] / STEPS


def torch_ms(threads):
    """In a process of its own, so that its threads are gone afterwards."""
    out = subprocess.run([sys.executable, __file__, "--torch", str(threads)], check=True, stdout=subprocess.PIPE, text=True)
    return float(out.stdout)


def twin(threads):
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.c_fc, self.c_out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            rows = x.shape[0]
            q, k, v = (part.view(rows, TIME, HEADS, WIDTH // HEADS).transpose(1, 2)
                       for part in self.c_attn(self.ln_1(x)).split(WIDTH, dim=2))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.c_proj(mixed.transpose(1, 2).reshape(rows, TIME, WIDTH))
            return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))

    class Gpt2(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(VOCAB, WIDTH), nn.Embedding(TIME, WIDTH)
            self.h = nn.Sequential(*(Block() for _ in range(LAYERS)))
            self.ln_f = nn.LayerNorm(WIDTH)
            self.lm_head = nn.Linear(WIDTH, VOCAB, bias=False)
            self.wte.weight = self.lm_head.weight

        def forward(self, tokens):
            return self.lm_head(self.ln_f(self.h(self.wte(tokens) + self.wpe(torch.arange(TIME)))))

    torch.set_num_threads(threads)
    model = Gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.99), fused=True)
    text = b"".join(path.read_bytes() for path in sorted(TEXT.glob(FILES)))
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    windows = data[:(len(data) - 1) // TIME * TIME + 1].unfold(0, TIME + 1, TIME)

    def step(places):
        batch = windows[places]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch[:, :-1]).reshape(-1, VOCAB), batch[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    order = torch.randperm(len(windows))
    for i in range(5):
        step(order[:BATCH])
    start = time.perf_counter()
    for i in range(STEPS):
        step(order[i * BATCH:(i + 1) * BATCH])
    return 1000 * (time.perf_counter() - start) / STEPS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--learn", action="store_true", help="train the whole preset, on the most threads")
    parser.add_argument("--torch", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.torch:
        print(twin(args.torch))
        return
    for threads in args.threads:
        pairs = [(trainer_ms(args, threads), torch_ms(threads)) for _ in range(args.repeats)]
        ours, theirs = (statistics.median(p[i] for p in pairs) for i in (0, 1))
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"gpt2-bytes, {threads} thread(s): trainer {ours:.1f} ms, PyTorch {theirs:.1f} ms a step of {BATCH} x {TIME} "
              f"tokens: {ratio:.2f} of its time (goal {GOAL}: {'met' if ratio <= GOAL else 'missed'})", flush=True)
    if args.learn:
        lines = trainer(args, max(args.threads), [])
        val = [line for line in lines if line["event"] == "val"][-1]
        print(f"gpt2-bytes, the whole preset: validation loss {val['loss']:.3f} after {lines[-1]['train_s']:.0f} s of steps")


if __name__ == "__main__":
    main()
