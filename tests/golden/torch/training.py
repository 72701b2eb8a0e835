#!/usr/bin/env python3
"""Records torch.optim's updates and torch.optim.lr_scheduler's rates, for the trainer to be held against.

Run it with torch 2.15 in this folder: training.py > training.h. Parameters and gradients are small fractions that
both sides compute exactly.
"""
import struct

import torch
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, MultiStepLR, SequentialLR, StepLR

LEN, MATRIX, STEPS, TIMES = 37, 24, 12, 16


def bits(values):
    return ", ".join("0x%08xU" % struct.unpack("<I", struct.pack("<f", float(v)))[0] for v in values)


def start():
    return torch.tensor([((i * 37) % 101 - 50) / 64 for i in range(LEN)])


def gradient(step):
    return torch.tensor([((i * 53 + step * 29) % 97 - 48) / 32 for i in range(LEN)])


OPTIMIZERS = [
    ("sgd", "", {}, SGD),
    ("sgd", "momentum", {"momentum": 0.9}, SGD),
    ("sgd", "decay", {"momentum": 0.9, "dampening": 0.25, "weight_decay": 0.01}, SGD),
    ("sgd", "nesterov", {"momentum": 0.9, "weight_decay": 0.01, "nesterov": True}, SGD),
    ("adam", "", {}, Adam),
    ("adam", "decay", {"weight_decay": 0.1, "betas": (0.8, 0.95), "eps": 1e-6}, Adam),
    ("adamw", "", {}, AdamW),
    ("adamw", "decay", {"weight_decay": 0.1}, AdamW),
]


def optimize(make, options, matrices_only):
    values = start()
    matrix = values[:MATRIX].clone().reshape(4, 6).requires_grad_()
    vector = values[MATRIX:].clone().requires_grad_()
    groups = [{"params": [matrix]}, {"params": [vector]}]
    if matrices_only:
        groups[1]["weight_decay"] = 0
    optimizer = make(groups, lr=0.05, **options)
    for step in range(STEPS):
        grad = gradient(step)
        matrix.grad = grad[:MATRIX].reshape(4, 6)
        vector.grad = grad[MATRIX:]
        optimizer.step()
    return torch.cat([matrix.detach().flatten(), vector.detach()])


def optimizers():
    print("static const struct golden_optimizer {")
    print("    const char *type;")
    print("    double momentum, dampening, weight_decay, beta1, beta2, eps;")
    print("    int nesterov, matrices_only;")
    print("    uint32_t values[GOLDEN_OPTIM_LEN]; /* f32 bits after GOLDEN_OPTIM_STEPS steps at 0.05 */")
    print("} golden_optimizers[] = {")
    for name, _, o, make in OPTIMIZERS:
        default = 0.01 if name == "adamw" else 0
        betas = o.get("betas", (0.9, 0.999))
        for only in ([0, 1] if o.get("weight_decay") else [0]):
            print("    {\"%s\", %r, %r, %r, %r, %r, %r, %d, %d," % (
                name, o.get("momentum", 0.0), o.get("dampening", 0.0), o.get("weight_decay", default), betas[0],
                betas[1], o.get("eps", 1e-8), o.get("nesterov", False), only))
            print("     {%s}}," % bits(optimize(make, o, only)))
    print("};\n")


def rates(make):
    optimizer = SGD([torch.zeros(1)], lr=0.1)
    scheduler = make(optimizer)
    out = []
    for _ in range(TIMES):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return out


def schedules():
    step = ("STEP", "every = 3", lambda o: StepLR(o, 3, 0.7))
    multi = ("MULTI_STEP", "milestones = 3, .milestone = {2, 5, 6}", lambda o: MultiStepLR(o, [2, 5, 6], 0.7))
    cosine = ("COSINE", "total = 11, .min_lr = 0.003", lambda o: CosineAnnealingLR(o, 11, eta_min=0.003))
    constant = ("CONSTANT", "every = 1", lambda o: StepLR(o, 1, 1.0))
    print("static const struct golden_schedule {")
    print("    struct schedule_spec spec;")
    print("    double rate[GOLDEN_SCHEDULE_TIMES]; /* from 0.1 */")
    print("} golden_schedules[] = {")
    for name, fields, make in (constant, step, multi, cosine):
        for warmup, full in ((0, False), (4, False), (4, True)):
            def both(o):
                if full:
                    warm = LambdaLR(o, lambda t: (t + 1) / warmup)
                else:
                    warm = LinearLR(o, start_factor=0.25, total_iters=warmup)
                return SequentialLR(o, [warm, make(o)], [warmup])
            rule = ".warmup_last_full = true" if full else ".warmup_from = 0.25"
            print("    {{.type = SCHEDULE_%s, .gamma = 0.7, .warmup = %d, %s, .%s}," % (name, warmup, rule, fields))
            print("     {%s}}," % ", ".join(repr(r) for r in rates(both if warmup else make)))
    print("};")


print("/* training.h - numbers of PyTorch %s, written by training.py. */" % torch.__version__.split("+")[0])
print("#ifndef TK_GOLDEN_TORCH_TRAINING_H\n#define TK_GOLDEN_TORCH_TRAINING_H\n")
print('#include "trainer/model/spec.h"\n')
print("#include <stdint.h>\n")
print("enum { GOLDEN_OPTIM_LEN = %d, GOLDEN_OPTIM_MATRIX = %d, GOLDEN_OPTIM_STEPS = %d, GOLDEN_SCHEDULE_TIMES = %d };\n" % (
    LEN, MATRIX, STEPS, TIMES))
torch.set_num_threads(1)
optimizers()
schedules()
print("\n#endif")
