"""cases.py - for judge.py: each operation of kernels/ops.h at the edges of its shapes, beside numpy's results in f64.

A case is a function of a Device and of one of its shapes; see README.md for how to add one.
"""

import numpy as np

from device import f32, f64, pack, size
from instructions import from_bf16, to_bf16

cases = []


class Case:
    def __init__(self, run, elements, quick, full, context):
        self.run, self.name, self.elements, self.quick, self.full, self.context = run, run.__name__, elements, quick, full, context


def case(quick, full=(), elements=("f32",), **context):
    """quick: shapes for `make test`, full: those besides for `make test-long`. context: more of Device's arguments."""

    def add(run):
        cases.append(Case(run, elements, list(quick), list(full), context))
        return run

    return add


BOTH = ("f32", "bf16")


def rng(*shape):
    return np.random.default_rng([abs(int(s)) for s in shape])


def rounded(d, x):
    """As activations of the device hold it, in f64."""
    x = np.asarray(x, np.float32)
    return (from_bf16(to_bf16(x)) if d.element == "bf16" else x).astype(np.float64)


@case([(1, 1, 0), (5, 34, 0), (9, 65, 0), (70, 64, 0)], [(3, 1, 0), (4, 768, 0), (5, 768, 4), (100, 264, 0), (37, 10, 4)], elements=BOTH)
def layernorm(d, rows, cols, offset):
    r = rng(rows, cols)
    x, dy, more = (rounded(d, r.standard_normal((rows, cols)) * 2 + 0.5) for _ in range(3))
    w, b = (r.standard_normal(cols).astype(np.float32) for _ in range(2))
    shape = pack("iid", rows, cols, 1e-5)
    ax, aw, out, mean, rstd = d.act(x, offset), d.put(w), d.act_room(x.shape, offset), d.room(rows), d.room(rows)
    d.call("layernorm_forward", shape, out, mean, rstd, ax, aw, d.put(b))
    m, s = x.mean(1, keepdims=True), 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    hat = (x - m) * s
    d.close("out", out, hat * w + b)
    din, dw, db = d.act_room(x.shape, offset), d.room(cols), d.room(cols)
    d.call("layernorm_backward", shape, din, dw, db, d.act(dy, offset), d.act(more, offset), ax, mean, rstd, aw)
    g = dy * w
    d.close("din", din, s * (g - g.mean(1, keepdims=True) - hat * (g * hat).mean(1, keepdims=True)) + more)
    d.close("dweight", dw, (dy * hat).sum(0))
    d.close("dbias", db, dy.sum(0))


def attention_of(qkv, dout):
    """Causal attention and its gradients: out, lse, dqkv."""
    q, k, v = (qkv[:, :, i] for i in range(3))
    time, scale = qkv.shape[1], 1 / np.sqrt(qkv.shape[-1])
    s = np.where(np.tril(np.ones((time, time), bool)), np.einsum("bthd,bshd->bhts", q, k) * scale, -np.inf)
    lse = np.log(np.exp(s - s.max(-1, keepdims=True)).sum(-1)) + s.max(-1)
    p = np.exp(s - lse[..., None])
    out = np.einsum("bhts,bshd->bthd", p, v)
    dot = (dout * out).sum(-1).transpose(0, 2, 1)
    ds = p * (np.einsum("bthd,bshd->bhts", dout, v) - dot[..., None]) * scale
    dq, dk, dv = np.einsum("bhts,bshd->bthd", ds, k), np.einsum("bhts,bthd->bshd", ds, q), np.einsum("bhts,bthd->bshd", p, dout)
    return out, lse, np.stack([dq, dk, dv], 2)


@case([(1, 1, 1, 64), (1, 65, 2, 64), (1, 66, 1, 33)],
      [(2, 63, 1, 64), (1, 64, 3, 64), (2, 127, 2, 64), (1, 129, 1, 64), (1, 257, 1, 64), (2, 70, 2, 70), (1, 3, 1, 1)], elements=BOTH)  # fmt: skip
def attention(d, batch, time, heads, each):
    r = rng(batch, time, heads, each)
    qkv, dout = (rounded(d, r.standard_normal((batch, time, *n, heads, each))) for n in ((3,), ()))
    out, lse, dqkv = attention_of(qkv, dout)
    shape = pack("4i", batch, time, heads, each)
    aq, ao, al, adq = d.act(qkv), d.act_room(out.shape), d.room(lse.shape), d.act_room(qkv.shape)
    d.call("attention_forward", shape, ao, al, aq)
    d.close("out", ao, out)
    d.close("lse", al, lse, 1e-4)
    d.call("attention_backward", shape, adq, d.act(dout), ao, al, aq)
    d.close("dqkv", adq, dqkv, 0.04 if d.element == "bf16" else 1e-4)
