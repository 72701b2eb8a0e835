#!/usr/bin/env python3
"""Records what small networks of every kind of layer do in PyTorch, for the trainer's layers to be held against.

Run it with torch 2.15 in this folder: layers.py > layers.h. Each network is a text in the trainer's language beside
the module it means. Inputs are fractions that both sides compute exactly, laid out (batch, rows, cols, channels).
"""
import textwrap
import zlib

import torch
from torch import nn

BATCH = 3

CASES = [
    ("{rows: 9, cols: 8, channels: 2}", """
    - {type: conv2d, name: conv, out: 5, kernel: 3, stride: 2, padding: 1}
    - {type: batchnorm2d, name: bn}
    - relu
    - flatten
    - {type: linear, name: fc, out: 4}
""", (2, 9, 8), lambda: {"conv": nn.Conv2d(2, 5, 3, stride=2, padding=1), "bn": nn.BatchNorm2d(5), "_relu": nn.ReLU(),
                         "_flat": nn.Flatten(), "fc": nn.Linear(100, 4)}),
    ("{rows: 10, cols: 9, channels: 3}", """
    - {type: conv2d, name: conv, out: 4, kernel: 3, dilation: 2, bias: false}
    - gelu
    - {type: avgpool2d, size: 3, stride: 2, padding: 1}
    - flatten
    - {type: linear, name: fc, out: 5}
    - softmax
""", (3, 10, 9), lambda: {"conv": nn.Conv2d(3, 4, 3, dilation=2, bias=False), "_gelu": nn.GELU(),
                          "_pool": nn.AvgPool2d(3, stride=2, padding=1), "_flat": nn.Flatten(),
                          "fc": nn.Linear(36, 5), "_soft": nn.Softmax(dim=1)}),
    ("{rows: 7, cols: 7, channels: 1}", """
    - {type: conv2d, name: conv, out: 3, kernel: 3, padding: 2}
    - {type: maxpool2d, size: 3, stride: 2, padding: 1}
    - relu
    - flatten
    - {type: layernorm, name: norm}
    - {type: linear, name: a, out: 6, bias: false}
    - {type: gelu, approximate: tanh}
    - {type: linear, name: b, out: 3}
""", (1, 7, 7), lambda: {"conv": nn.Conv2d(1, 3, 3, padding=2), "_pool": nn.MaxPool2d(3, stride=2, padding=1),
                         "_relu": nn.ReLU(), "_flat": nn.Flatten(), "norm": nn.LayerNorm(75),
                         "a": nn.Linear(75, 6, bias=False), "_gelu": nn.GELU(approximate="tanh"),
                         "b": nn.Linear(6, 3)}),
    ("{rows: 4, cols: 5, channels: 1}", """
    - flatten
    - {type: linear, name: stack.0, out: 7}
    - {type: batchnorm1d, name: stack.1, eps: 0.001, momentum: 0.3}
    - relu
    - {type: linear, name: stack.3, out: 6}
    - {type: layernorm, name: stack.4, eps: 0.01, bias: false}
    - {type: linear, name: stack.5, out: 3}
""", (1, 4, 5), lambda: {"_flat": nn.Flatten(),
                         "stack": nn.Sequential(nn.Linear(20, 7), nn.BatchNorm1d(7, eps=0.001, momentum=0.3),
                                                nn.ReLU(), nn.Linear(7, 6), nn.LayerNorm(6, eps=0.01, bias=False),
                                                nn.Linear(6, 3))}),
    ("{rows: 6, cols: 5, channels: 2}", """
    - {type: conv2d, name: conv, out: 3, kernel: 3, padding: 1}
    - {type: layernorm, name: norm}
    - relu
    - {type: avgpool2d, size: 3, stride: 2, padding: 1, count_include_pad: false}
    - {type: layernorm, name: small, eps: 0.001, bias: false}
    - {type: dropout, p: 0}
    - flatten
    - {type: linear, name: fc, out: 4}
""", (2, 6, 5), lambda: {"conv": nn.Conv2d(2, 3, 3, padding=1), "norm": nn.LayerNorm([3, 6, 5]), "_relu": nn.ReLU(),
                         "_pool": nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False),
                         "small": nn.LayerNorm([3, 3, 3], eps=0.001, bias=False), "_drop": nn.Dropout(0),
                         "_flat": nn.Flatten(), "fc": nn.Linear(27, 4)}),
]


class Net(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.order = list(parts)
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        for name in self.order:
            x = getattr(self, name)(x)
        return x


def floats(name, values):
    numbers = ", ".join("%.9gF" % v if "." in "%.9g" % v or "e" in "%.9g" % v else "%.9g.0F" % v for v in values)
    rows = textwrap.wrap(numbers, 106, initial_indent="    ", subsequent_indent="    ")
    print("static const float %s[] = {\n%s};" % (name, "\n".join(rows)))


def images(shape, step):
    channels, rows, cols = shape
    n = BATCH * rows * cols * channels
    flat = torch.tensor([((i * 37 + step * 11) % 101 - 50) / 32 for i in range(n)])
    return flat.reshape(BATCH, rows, cols, channels).permute(0, 3, 1, 2)


def flat_of(tensors):
    return [float(v) for t in tensors for v in t.detach().flatten()]


print("/* layers.h - numbers of PyTorch %s, written by layers.py. CRCs are CRC-32 of little-endian values. */" %
      torch.__version__.split("+")[0])
print("#ifndef TK_GOLDEN_TORCH_LAYERS_H\n#define TK_GOLDEN_TORCH_LAYERS_H\n\n#include <stddef.h>\n#include <stdint.h>\n")
print("enum { GOLDEN_LAYERS_BATCH = %d, GOLDEN_LAYERS_SEED = 7 };\n\n/* clang-format off */" % BATCH)
torch.set_num_threads(1)
rows = []
for number, (size, layers, shape, make) in enumerate(CASES):
    torch.manual_seed(7)
    net = Net(make())
    start = zlib.crc32(b"".join(p.detach().numpy().tobytes() for p in net.parameters()))
    with torch.no_grad():  # norms begin at 1 and 0: nothing must be so special
        for p in net.parameters():
            p += torch.tensor([((i * 29) % 23 - 11) / 64 for i in range(p.numel())]).reshape(p.shape)
    net.train()
    net(images(shape, 0))
    out = net(images(shape, 1))
    pull = torch.tensor([((i * 53) % 97 - 48) / 64 for i in range(out.numel())]).reshape(out.shape)
    (out * pull).sum().backward()
    floats("golden_out_%d" % number, flat_of([out]))
    floats("golden_grad_%d" % number, flat_of(p.grad for p in net.parameters()))
    state = net.state_dict()
    buffers = [k for k, _ in net.named_buffers()]
    floats("golden_buffers_%d" % number, flat_of(state[k] for k in state if k in buffers) or [0])
    net.eval()
    floats("golden_eval_%d" % number, flat_of([net(images(shape, 2))]))
    text = "input: %s\n  layers:%s" % (size, layers.rstrip())
    lines = " ".join('"%s\\n"' % line for line in text.split("\n"))
    rows.append('{%s, "%s", 0x%08xU, golden_out_%d, golden_grad_%d, golden_buffers_%d, golden_eval_%d}' % (
        lines, " ".join(state), start, number, number, number, number))
print("/* clang-format on */\n\nstatic const struct golden_layers {")
print("    const char *model; /* YAML, indented by two */")
print("    const char *keys;  /* of state_dict() */")
print("    uint32_t start;    /* CRC of all parameters */")
print("    const float *out, *grad, *buffers, *eval;")
print("} golden_layers[] = {%s};\n\n#endif" % ", ".join(rows))
