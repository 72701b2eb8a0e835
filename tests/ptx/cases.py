"""cases.py - for judge.py: each operation of kernels/ops.h at the edges of its shapes, beside numpy's results in f64.

A case is a function of a Device and of one of its shapes; see README.md for how to add one.
"""

from math import erfc

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


@case([(1, 1, 1, 64, 0), (1, 65, 2, 64, 0), (1, 66, 1, 33, 0), (1, 5, 1, 64, 4)],
      [(2, 63, 1, 64, 0), (1, 64, 3, 64, 0), (2, 127, 2, 64, 0), (1, 129, 1, 64, 0), (1, 257, 1, 64, 0), (2, 70, 2, 70, 0), (1, 3, 1, 1, 0)],
      elements=BOTH)  # fmt: skip
def attention(d, batch, time, heads, each, offset):
    r = rng(batch, time, heads, each)
    qkv, dout = (rounded(d, r.standard_normal((batch, time, *n, heads, each))) for n in ((3,), ()))
    out, lse, dqkv = attention_of(qkv, dout)
    shape = pack("4i", batch, time, heads, each)
    aq, ao, al, adq = d.act(qkv, offset), d.act_room(out.shape), d.room(lse.shape), d.act_room(qkv.shape)
    d.call("attention_forward", shape, ao, al, aq)
    d.close("out", ao, out)
    d.close("lse", al, lse, 1e-4)
    d.call("attention_backward", shape, adq, d.act(dout, offset), ao, al, aq)
    d.close("dqkv", adq, dqkv, 0.04 if d.element == "bf16" else 1e-4)


@case([(1, 0), (7, 0), (2056, 0), (300, 4)], [(8, 0), (9, 0), (100_001, 0)], elements=BOTH)
def add(d, n, offset):
    a, b = (rounded(d, rng(n, k).standard_normal(n)) for k in (1, 2))
    out = d.act_room(n)
    d.call("add", out, d.act(a, offset), d.act(b), size(n))
    d.same("out", out.get(), d.act(a + b).get())
    total = d.put(a.astype(np.float32), offset)
    d.call("queue_accumulate", total, d.put(b.astype(np.float32)), size(n))
    d.same("sum", total.get(), (a + b).astype(np.float32))


@case([(1, 1, True), (65, 33, True), (300, 3, True), (40, 3, False)], [(7, 64, True), (2000, 40, True), (2000, 40, False)])
def batchnorm(d, rows, cols, train):
    r = rng(rows, cols)
    x, dy = r.standard_normal((rows, cols)).astype(np.float32) * 2 + 1, r.standard_normal((rows, cols)).astype(np.float32)
    w, b, rm = (r.standard_normal(cols).astype(np.float32) for _ in range(3))
    rv = np.abs(r.standard_normal(cols)).astype(np.float32) + 0.5
    shape = pack("iidd", rows, cols, 1e-5, 0.1)
    d.reserve(8 * cols)
    ax, aw, out, mean, rstd, arm, arv = d.put(x), d.put(w), d.room(x.shape), d.room(cols), d.room(cols), d.put(rm), d.put(rv)
    d.call("batchnorm_forward", shape, train, out, mean, rstd, arm, arv, ax, aw, d.put(b))
    x64 = x.astype(np.float64)
    m, v = (x64.mean(0), x64.var(0)) if train else (rm, rv)
    s = 1 / np.sqrt(v + 1e-5)
    d.close("out", out, (x64 - m) * s * w + b)
    if train:
        d.close("running mean", arm, 0.9 * rm + 0.1 * m)
        d.close("running variance", arv, 0.9 * rv + 0.1 * v * rows / max(rows - 1, 1))
    din, dw, db = d.room(x.shape), d.room(cols), d.room(cols)
    d.call("batchnorm_backward", shape, train, din, dw, db, d.put(dy), ax, mean, rstd, aw)
    hat = (x64 - m) * s
    d.close("dweight", dw, (dy * hat).sum(0), 1e-4)
    d.close("dbias", db, dy.sum(0, dtype=np.float64))
    back = dy - dy.mean(0, dtype=np.float64) - hat * (dy * hat).mean(0) if train else dy
    if rows > 1:
        d.close("din", din, w * s * back, 1e-4)


def softmax_of(x):
    p = np.exp(x - x.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


def loss_of(array):
    """sum, correct, bad_row of a queued_loss."""
    raw = array.get().tobytes()
    return np.frombuffer(raw, np.float64)[0], *np.frombuffer(raw, np.int32)[2:4]


@case([(1, 3, 7, 0), (9, 20, 65, 5), (3, 8, 1000, 0), (70, 16, 67, 40)], [(70, 64, 64, 0), (2, 8, 50257, 0), (33, 17, 129, 8), (300, 8, 10, 0)], elements=BOTH)
def classifier(d, rows, width, classes, together):
    """together: rows whose products scratch memory holds at a time; 0: all."""
    r = rng(rows, width, classes)
    x, w = rounded(d, r.standard_normal((rows, width))), rounded(d, r.standard_normal((classes, width)) * 0.3)
    labels = r.integers(0, classes, rows).astype(np.int32)
    scratch = (together or rows) * (-(-classes // 64) * 64) * (2 if d.element == "bf16" else 4)
    d.reserve(scratch)
    share = np.float32(1 / rows)
    result, mean, din, dw = d.room(16, np.uint8), d.room(1), d.act_room(x.shape), d.room(w.shape)
    ax, aw, al, shape = d.act(x), d.act(w), d.put(labels), pack("3i", rows, width, classes)
    d.call("queue_classifier", shape, result, mean, din, dw, ax, aw, al, f32(share), False)
    logits = rounded(d, x @ w.T)
    p = softmax_of(logits)
    loss = -np.log(p[np.arange(rows), labels]).sum()
    total, correct, bad = loss_of(result)
    tolerance = 2e-3 if d.element == "bf16" else 1e-5
    d.close("loss", total, loss, tolerance)
    d.close("mean", mean, loss * share, tolerance)
    if bad != -1 or (d.element == "f32" and correct != (logits.argmax(1) == labels).sum()):
        d.note(f"correct {correct}, bad row {bad}")
    p[np.arange(rows), labels] -= 1
    d.close("dweight", dw, (p * share).T @ x, 0.05 if d.element == "bf16" else 1e-4)
    d.close("din", din, (p * share) @ w, 0.05 if d.element == "bf16" else 1e-4)
    al = d.put(np.where(np.arange(rows) == rows - 1, classes, labels).astype(np.int32))
    d.call("queue_classifier", shape, result, mean, None, None, ax, aw, al, f32(share), False)
    if loss_of(result)[2] != rows - 1:
        d.note(f"bad row {loss_of(result)[2]} instead of {rows - 1}")


def windows_of(x, kernel, stride, pad, dilation):
    """(images, rows, cols, kernel rows, kernel cols, channels) of padded images, and where each came from."""
    (kh, kw), (b, h, w, c) = kernel, x.shape
    oh, ow = ((n + 2 * pad - (k - 1) * dilation - 1) // stride + 1 for n, k in ((h, kh), (w, kw)))
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    out = np.zeros((b, oh, ow, kh, kw, c))
    for i in range(kh):
        for j in range(kw):
            out[:, :, :, i, j] = padded[:, i * dilation :, j * dilation :][:, : (oh - 1) * stride + 1 : stride, : (ow - 1) * stride + 1 : stride]
    return out


def windows_back(dw, shape, stride, pad, dilation):
    """The gradient of what windows_of took apart."""
    b, h, w, c = shape
    _, oh, ow, kh, kw, _ = dw.shape
    padded = np.zeros((b, h + 2 * pad, w + 2 * pad, c))
    for i in range(kh):
        for j in range(kw):
            part = padded[:, i * dilation :, j * dilation :][:, : (oh - 1) * stride + 1 : stride, : (ow - 1) * stride + 1 : stride]
            part += dw[:, :, :, i, j]
    return padded[:, pad : pad + h, pad : pad + w]


@case([(1, 1, 1, 1, 1, (1, 1), 1, 0, 1), (2, 9, 8, 3, 5, (3, 3), 1, 0, 1), (3, 7, 9, 5, 66, (3, 2), 2, 1, 1), (2, 9, 9, 8, 12, (3, 3), 1, 1, 1)],
      [(9, 17, 15, 4, 36, (3, 3), 1, 0, 1), (3, 15, 14, 36, 8, (3, 2), 1, 1, 1), (1, 9, 8, 2, 3, (3, 3), 3, 2, 2), (2, 28, 28, 1, 32, (3, 3), 1, 0, 1),
       (1, 13, 13, 32, 64, (3, 3), 1, 0, 1), (2, 28, 28, 3, 32, (5, 5), 1, 0, 1), (1, 8, 8, 64, 64, (1, 1), 1, 0, 1)])  # fmt: skip
def conv2d(d, batch, h, w, c, out_c, kernel, stride, pad, dilation):
    r = rng(batch, h, w, c, out_c)
    x = r.standard_normal((batch, h, w, c)).astype(np.float32)
    weight, bias = r.standard_normal((out_c, c, *kernel)).astype(np.float32), r.standard_normal(out_c).astype(np.float32)
    windows = windows_of(x, kernel, stride, pad, dilation)
    before = np.einsum("byxijc,ocij->byxo", windows, weight.astype(np.float64))
    shape = pack("10i", batch, h, w, c, out_c, *kernel, stride, pad, dilation)
    ax, aw, out = d.put(x), d.put(weight), d.room(before.shape)
    d.call("conv2d_forward", shape, out, ax, aw, None, False)
    d.close("out, no bias", out, before)
    d.call("conv2d_forward", shape, out, ax, aw, d.put(bias), True)
    d.close("out", out, np.maximum(before + bias, 0))
    dy = r.standard_normal(before.shape).astype(np.float32)
    for behind in (out, None):
        g = np.where(out.get() > 0, dy, 0) if behind else dy
        din, dw, db = d.room(x.shape), d.room(weight.shape), d.room(out_c)
        d.call("conv2d_backward", shape, din, dw, db, d.put(dy), behind, ax, aw)
        d.close("dbias", db, g.sum((0, 1, 2), dtype=np.float64), 1e-4)
        d.close("dweight", dw, np.einsum("byxo,byxijc->ocij", g, windows), 1e-4)
        d.close("din", din, windows_back(np.einsum("byxo,ocij->byxijc", g, weight.astype(np.float64)), x.shape, stride, pad, dilation), 1e-4)


@case([(2, 12, 11, 3, 5, (3, 3), 1, 1, 1), (2, 8, 8, 16, 16, (3, 3), 1, 0, 1)], [(4, 14, 13, 8, 36, (3, 3), 2, 1, 1), (4, 28, 28, 1, 32, (3, 3), 1, 0, 1)], sms=132)
def conv2d_on_many_multiprocessors(d, *shape):
    conv2d(d, *shape)


@case([(2, 9, 9, 4, 8, (3, 3), 1, 1, 1), (4, 9, 9, 36, 36, (2, 1), 1, 0, 1)], sms=1)
def conv2d_on_one_multiprocessor(d, *shape):
    """Which few tiles fill."""
    conv2d(d, *shape)


@case([(1, 1, 0.0), (32, 10, 0.1), (33, 7, 0.0)], [(7, 100, 0.0), (64, 33, 0.2), (1, 1000, 0.0), (31, 32, 0.0)])
def cross_entropy(d, rows, classes, smoothing):
    r = rng(rows, classes)
    x, labels = r.standard_normal((rows, classes)).astype(np.float32) * 3, r.integers(0, classes, rows).astype(np.int32)
    result, mean, dx = d.put(np.zeros(16, np.uint8)), d.room(1), d.room(x.shape)
    share = np.float32(0.5)
    arguments = (d.put(x), d.put(labels), rows, classes, f64(smoothing), f32(share))
    d.call("queue_cross_entropy", result, mean, dx, *arguments, False)
    p = softmax_of(x.astype(np.float64))
    target = np.full((rows, classes), smoothing / classes)
    target[np.arange(rows), labels] += 1 - smoothing
    loss = -(target * np.log(p)).sum()
    total, correct, bad = loss_of(result)
    d.close("loss", total, loss)
    d.close("mean", mean, loss / rows * share)
    d.close("dlogits", dx, (p - target) / rows * share)
    if (correct, bad) != ((x.argmax(1) == labels).sum(), -1):
        d.note(f"correct {correct}, bad row {bad}")
    d.call("queue_cross_entropy", result, None, None, *arguments, True)
    d.close("twice the loss", loss_of(result)[0], 2 * loss)
    wrong = d.put(np.where(np.arange(rows) == rows // 2, -1, labels).astype(np.int32))
    d.call("queue_cross_entropy", result, None, None, arguments[0], wrong, *arguments[2:], False)
    if loss_of(result)[2] != rows // 2:
        d.note(f"bad row {loss_of(result)[2]} instead of {rows // 2}")


def spread(x):
    """SplitMix64's finaliser (dropout.cu)."""
    x = np.asarray(x, np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def scramble(x):
    x = x ^ x >> np.uint32(16)
    x = x * np.uint32(0x7FEB352D)
    x = x ^ x >> np.uint32(15)
    x = x * np.uint32(0x846CA68B)
    return x ^ x >> np.uint32(16)


def chance_at(key, place):
    key = np.asarray(key, np.uint64)
    return scramble(scramble(place.astype(np.uint32) + key.astype(np.uint32)) ^ (key >> np.uint64(32)).astype(np.uint32))


@case([(1, 1), (3, 257)], [(2, 4000)], elements=BOTH)
def dropout(d, batch, length):
    x, dy = (rounded(d, rng(batch, length, k).standard_normal((batch, length))) for k in (1, 2))
    samples = np.arange(batch, dtype=np.uint32) * 7 + 3
    shape = pack("iNd", batch, length, 0.3)
    key = spread(spread(spread(spread(11) ^ np.uint64(5)) ^ np.uint64(2)) ^ samples.astype(np.uint64))
    kept = chance_at(key[:, None], np.arange(length)[None]) >> np.uint32(8) >= int(0.3 * (1 << 24))
    scale = float(np.float32(1 / 0.7))
    draws = pack("QQPIP", 11, 5, None, 2, d.put(samples)), pack("QQPIP", 11, 0, d.put(np.array([5], np.int64)), 2, d.put(samples))
    for draw in draws:
        out, keep = d.act_room(x.shape), d.room(x.shape, np.uint8)
        d.call("dropout_forward", shape, draw, out, keep, d.act(x))
        d.same("keep", keep.get(), kept.astype(np.uint8))
        d.close("out", out, np.where(kept, x * scale, 0))
    din = d.act_room(x.shape)
    d.call("dropout_backward", shape, din, d.act(dy), keep)
    d.close("din", din, np.where(kept, dy * scale, 0))


@case([(1, 1, 3, 5, 0), (1, 300, 700, 8, 0), (2, 20, 9, 16, 4)], [(2, 700, 300, 130, 0), (2, 1024, 70_000, 8, 0), (3, 341, 10, 264, 0)], elements=BOTH)
def embedding(d, batch, time, vocab, channels, offset):
    r = rng(batch, time, vocab, channels)
    often = r.random((batch, time)) < 0.5
    tokens = np.where(often, r.integers(0, min(3, vocab), (batch, time)), r.integers(0, vocab, (batch, time)))
    table, places = rounded(d, r.standard_normal((vocab, channels))), rounded(d, r.standard_normal((time, channels)))
    shape, at = pack("4i", batch, time, vocab, channels), d.put(tokens.astype(np.float32))
    out = d.act_room((batch, time, channels))
    d.call("embedding_forward", shape, out, at, d.act(table, offset), d.act(places))
    d.same("out", out.get(), d.act(table[tokens] + places).get())
    dy = rounded(d, r.standard_normal((batch, time, channels)))
    dtable, dplaces, ady = d.room(table.shape), d.room(places.shape), d.act(dy)
    want, place = np.zeros((vocab, channels), np.float32), np.zeros((time, channels), np.float32)
    for sample in dy.astype(np.float32):
        place += sample
    for more in (False, True):
        np.add.at(want, tokens.ravel(), dy.reshape(-1, channels).astype(np.float32))  # in the order of the tokens, as the sort leaves them
        d.call("embedding_backward", shape, more, dtable, dplaces, ady, at)
        d.same("dtable", dtable.get(), want)
        d.same("dpositions", dplaces.get(), place)


@case([(1, 1, 1, 1), (3, 5, 4, 7)], [(2, 12, 12, 32)])
def flatten(d, batch, h, w, c):
    x = rng(batch, h, w, c).standard_normal((batch, h, w, c)).astype(np.float32)
    out, back, shape = d.room((batch, c, h, w)), d.room(x.shape), pack("4i", batch, h, w, c)
    d.call("flatten_forward", shape, out, d.put(x))
    d.same("out", out.get(), x.transpose(0, 3, 1, 2))
    d.call("flatten_backward", shape, back, out)
    d.same("din", back.get(), x)


def scalars(rule, r):
    """struct update_scalars."""
    if rule == SGD:
        return pack("i4f?3x12x", SGD, -0.1, 0.9, 0.8, 0.01, True)
    return pack("i8f", ADAM, 0.1, 0.95, 0.05, 0.3, 1e-8, -1e-2, r, 0.02)


ADAM, SGD = 0, 1
ORDER_BYTES, STATE_BYTES, RECORD_BYTES = 96, 128, 20


def order(first, step, flags, update=b"\0" * 72):
    return pack("qqI", first, step, flags) + update + b"\0" * 4


def state(now, steps, halted=0, sums=(0.0, 0.0)):
    return now + pack("qi4xdd", steps, halted, *sums)


def raw(d, data):
    return d.put(np.frombuffer(data, np.uint8))


@case([(1, 1, "bytes"), (8, 100, "bytes"), (5, 70, "floats"), (400, 100, "bytes")], [(64, 784, "bytes"), (3, 257, "floats")])
def gather(d, rows, length, kind):
    r = rng(rows, length)
    items, ring = 500, 2
    data = r.integers(0, 256, (items, length)).astype(np.uint8)
    floats, labels = r.standard_normal((items, length)).astype(np.float32), r.integers(0, 10, items).astype(np.int32)
    values, table = r.standard_normal((items, 3)).astype(np.float32), r.standard_normal((2, 256)).astype(np.float32)
    places, chosen = r.permutation(items).astype(np.uint32), r.permutation(items).astype(np.uint32)
    orders = order(0, 0, 0) + order(7, 9, 5, scalars(ADAM, 1) * 2)
    x, al, av, samples = d.room((rows, length)), d.room(rows, np.int32), d.room((rows, 3)), d.room(rows, np.uint32)
    as_bytes = kind == "bytes"
    g = pack("PPNPiPPi4x", d.put(data) if as_bytes else None, None if as_bytes else d.put(floats), length, d.put(table), 2,
             d.put(labels) if as_bytes else None, None if as_bytes else d.put(values), 0 if as_bytes else 3)  # fmt: skip
    to = pack("PPPP", x, al, None if as_bytes else av, samples)
    now, own, flags = raw(d, state(order(0, 0, 0), 3)), d.put(np.full(16, 7, np.uint8)), d.room(16)
    begin = pack("PPi4xPP", now, raw(d, orders), ring, own, flags)
    d.call("queue_gather", g, to, d.put(chosen), d.put(places), None, begin, rows)
    taken = chosen[places[7 : 7 + rows]]
    decoded = table[np.arange(length) % 2, data[taken]] if as_bytes else floats[taken]
    d.same("x", x.get(), decoded)
    d.same("samples", samples.get(), places[7 : 7 + rows])
    d.same("targets", (al if as_bytes else av).get(), (labels if as_bytes else values)[taken])
    d.same("order", now.get()[:ORDER_BYTES], np.frombuffer(orders[ORDER_BYTES:], np.uint8))
    d.same("flags", flags.get(), np.array([5 >> i & 1 for i in range(16)], np.float32))
    d.call("queue_gather", g, to, None, None, d.put(np.array([11], np.int64)), None, rows)
    d.same("x in order", x.get(), table[np.arange(length) % 2, data[11 : 11 + rows]] if as_bytes else floats[11 : 11 + rows])


@case([(1, 1), (3, 130)], [(8, 256)])
def windows(d, rows, time):
    r = rng(rows, time)
    all_rows, ring = rows + 2, 3
    x, labels = r.standard_normal((ring, all_rows, time)).astype(np.float32), r.integers(0, 9, (ring, all_rows, time)).astype(np.int32)
    samples = r.integers(0, 99, (ring, all_rows)).astype(np.uint32)
    ax, al, asm = d.room((rows, time)), d.room((rows, time), np.int32), d.room(rows, np.uint32)
    whence = pack("PPPqii", d.put(x), d.put(labels), d.put(samples), all_rows, time, ring)
    d.call("queue_windows", whence, pack("PPPP", ax, al, None, asm), raw(d, state(order(2, 0, 0), 4)), rows)
    for what, got, want in ("x", ax, x), ("labels", al, labels), ("samples", asm, samples):
        d.same(what, got.get(), want[1, 2 : 2 + rows])


def gelu_of(form, x):
    """Its value and its slope."""
    if form == 0:
        normal = np.array([0.5 * erfc(-v / np.sqrt(2)) for v in x.ravel()]).reshape(x.shape)
        return x * normal, normal + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    c = np.sqrt(2 / np.pi)
    t = np.tanh(c * (x + 0.044715 * x**3))
    return x * (1 + t) / 2, (1 + t) / 2 + x / 2 * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x)


@case([(1, 0, 0), (300, 1, 0), (2051, 0, 0), (19, 1, 4)], [(8, 1, 0), (9, 0, 0), (5000, 1, 4)], elements=BOTH)
def gelu(d, n, form, offset):
    x, dy = rounded(d, rng(n).standard_normal(n) * 3), rounded(d, rng(n, 1).standard_normal(n))
    value, slope = gelu_of(form, x)
    out, din, ax = d.act_room(n), d.act_room(n), d.act(x, offset)
    d.call("gelu_forward", form, out, ax, size(n))
    d.close("out", out, value)
    d.call("gelu_backward", form, din, d.act(dy), ax, size(n))
    d.close("din", din, dy * slope)


def linear_rounds(d):
    """Of products: sums of bf16 are rounded once or twice."""
    return 2.0**-5 if d.element == "bf16" else 1e-4


@case([(1, 1, 1, 0), (65, 33, 70, 0), (40, 16, 64, 0), (3, 8, 10, 4)], [(32, 784, 10, 0), (64, 64, 64, 0), (130, 20, 129, 0), (300, 5, 8, 0)], elements=BOTH)
def linear(d, rows, width, outs, offset):
    r = rng(rows, width, outs)
    x, w, b, dy = (rounded(d, r.standard_normal(shape)) for shape in ((rows, width), (outs, width), (outs,), (rows, outs)))
    shape, ax, aw, ab, ady = pack("3i", rows, width, outs), d.act(x, offset), d.act(w, offset), d.act(b, offset), d.act(dy, offset)
    d.reserve(rows * outs * 4)
    for relu, bias in ((False, None), (True, ab)):
        out = d.act_room((rows, outs), offset)
        d.call("linear_forward", shape, out, ax, aw, bias, relu)
        y = x @ w.T + (b if bias else 0)
        d.close(f"out {relu}", out, np.maximum(y, 0) if relu else y, linear_rounds(d))
        din, dw, db = d.act_room(x.shape), d.room(w.shape), d.room(outs)
        d.call("linear_backward", shape, din, dw, db, ady, out if relu else None, ax, aw)
        g = np.where(d.numbers(out) > 0, dy, 0) if relu else dy
        for what, got, want in ("din", din, g @ w), ("dweight", dw, g.T @ x), ("dbias", db, g.sum(0)):
            d.close(f"{what} {relu}", got, want, linear_rounds(d))
    gelu_behind_and_before(d, shape, x, w, b, dy)


def gelu_behind_and_before(d, shape, x, w, b, dy):
    out, before, ax, aw = d.act_room(dy.shape), d.act_room(dy.shape), d.act(x), d.act(w)
    d.call("linear_gelu_forward", shape, out, before, ax, aw, d.act(b))
    d.close("before the GELU", before, x @ w.T + b, linear_rounds(d))
    d.close("GELU", out, gelu_of(1, d.numbers(before))[0])
    din, dw, db, inner = d.act_room(x.shape), d.room(w.shape), d.room(b.shape), rounded(d, x * 0.7 + 0.1)
    d.call("gelu_linear_backward", shape, din, d.act_room(x.shape), dw, db, d.act(dy), ax, d.act(inner), aw)
    d.close("din through the GELU", din, rounded(d, dy @ w) * gelu_of(1, inner)[1], 2.0**-5 if d.element == "bf16" else 1e-4)
    d.close("dweight", dw, dy.T @ x, linear_rounds(d))


@case([(33, 64, 130, 4)], [(5, 12, 9, 4), (33, 64, 130, 0)], elements=BOTH, cublas="on", sms=1)
def linear_beside_cublas(d, *shape):
    """What is left to kernels of ours where cuBLAS has the product and nothing else."""
    for epilogue in EPILOGUES:
        d.lib.fake_cublas_lacks(epilogue)
        linear(d, *shape)
    d.lib.fake_cublas_lacks(0)


EPILOGUES = 2, 6, 164, 192, 512  # cublasLt.h: RELU, RELU_BIAS, GELU_AUX_BIAS, DGELU, BGRADB


@case([(1, 1), (40, 13)], [(5000, 3), (1100, 300)])
def mse(d, rows, cols):
    x, target = (rng(rows, cols, k).standard_normal((rows, cols)).astype(np.float32) for k in (1, 2))
    result, mean, dx, share = d.put(np.zeros(16, np.uint8)), d.room(1), d.room(x.shape), np.float32(0.5)
    d.call("queue_mse", result, mean, dx, d.put(x), d.put(target), rows, cols, f32(share), True)
    squares = ((x.astype(np.float64) - target) ** 2).sum()
    d.close("loss", loss_of(result)[0], squares / cols)
    d.close("mean", mean, squares / cols / rows * share)
    d.close("dout", dx, (x.astype(np.float64) - target) * 2 / x.size * share)


def fma(x, y, z):
    return (np.float64(x) * np.float64(y) + np.float64(z)).astype(np.float32)


def updated(rule, s, p, m, v, g):
    """As optim.cu rounds: p, m, v behind a step. s: the scalars behind the rule, in their order."""
    if rule == SGD:
        minus_lr, momentum, rest, l2 = s[:4]
        step = fma(l2, p, g)
        m = fma(rest, step, momentum * m)
        return fma(minus_lr, fma(momentum, m, step), p), m, v
    one_minus_beta1, beta2, one_minus_beta2, root, eps, minus_step, decay, l2 = s
    w = p * decay
    g = fma(l2, w, g)
    m = fma(one_minus_beta1, g - m, m)
    v = fma(one_minus_beta2 * g, g, v * beta2)
    return w + minus_step * m / (np.sqrt(v) / root + eps), m, v


@case([(1, ADAM, 0), (1000, ADAM, 0), (1001, SGD, 0), (260, SGD, 0), (260, ADAM, 4), (260, SGD, 4)], [(4096, ADAM, 0), (4097, ADAM, 0), (4096, SGD, 0)])
def optim(d, n, rule, offset):
    r = rng(n, rule)
    p, m, g = (r.standard_normal(n).astype(np.float32) for _ in range(3))
    v, by = np.abs(r.standard_normal(n)).astype(np.float32), np.float32(0.5)
    two = [scalars(rule, decay) for decay in (1.0, 0.999)]
    s = [np.frombuffer(one[4:], np.float32) for one in two]
    now = raw(d, state(order(0, 7, 0, b"".join(two)), 3))
    spans = raw(d, pack("qi4x", n // 3, 1) + pack("qi4x", n, 0) if n > 2 else pack("qi4x", n, 0))
    ap, am, av, ag, copy = d.put(p, offset), d.put(m), d.put(v), d.put(g), d.room(n, np.uint16)
    params = pack("PPN", ap, copy, n)
    arguments = (now, d.put(np.array([1.5], np.float32)), d.put(by.reshape(1)), spans, 2 if n > 2 else 1, params, am, av, ag)
    d.call("queue_update", rule, *arguments)
    parts = [updated(rule, s[k], p, m, v, g * by) for k in (0, 1)]
    where = np.arange(n) < (n // 3 if n > 2 else 0)
    for what, got, k in ("p", ap, 0), ("m", am, 1), ("v", av, 2):
        d.same(what, got.get(), np.where(where, parts[1][k], parts[0][k]))
    d.same("copies", copy.get(), to_bf16(ap.get()))
    before = ap.get()
    d.call("queue_update", rule, now, d.put(np.array([np.inf], np.float32)), *arguments[2:])
    d.same("p behind a loss that is infinite", ap.get(), before)
    again = d.room(n, np.uint16)
    d.call("queue_round", pack("PPN", ap, again, n))
    d.same("rounded", again.get(), to_bf16(before))


@case([(1, 1, 1, 1, 1, 1, 0, False), (2, 9, 8, 3, 2, 2, 0, False), (1, 7, 9, 5, 3, 2, 1, True)],
      [(2, 26, 26, 32, 2, 2, 0, False), (1, 11, 5, 4, 3, 1, 1, False), (1, 10, 10, 2, 4, 3, 2, True)])  # fmt: skip
def pool2d(d, batch, h, w, c, window, stride, pad, inside):
    x = rng(batch, h, w, c, window).standard_normal((batch, h, w, c)).astype(np.float32)
    taps = windows_of(np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)), constant_values=-np.inf), (window, window), stride, 0, 1)
    b, oh, ow = taps.shape[:3]
    flat = taps.reshape(b, oh, ow, window * window, c)
    shape, ax, out, at = pack("7i?3x", batch, h, w, c, window, stride, pad, inside), d.put(x), d.room((b, oh, ow, c)), d.room((b, oh, ow, c), np.uint8)
    d.call("maxpool2d_forward", shape, out, at, ax)
    d.same("largest", out.get(), flat.max(3).astype(np.float32))
    d.same("place", at.get(), flat.argmax(3).astype(np.uint8))
    dy = rng(b, oh, ow).standard_normal((b, oh, ow, c)).astype(np.float32)
    for behind in (None, out):
        g = np.where(out.get() > 0, dy, 0) if behind else dy
        chosen = (np.arange(window * window)[:, None] == flat.argmax(3)[..., None, :]) * g[..., None, :]
        din = d.room(x.shape)
        d.call("maxpool2d_backward", shape, din, d.put(dy), at, behind)
        d.close("din of the largest", din, windows_back(chosen.reshape(taps.shape), x.shape, stride, pad, 1))
    areas = np.isfinite(taps).sum((3, 4)) if inside else np.full(out.shape, window * window)
    d.call("avgpool2d_forward", shape, out, ax)
    d.close("mean", out, np.where(np.isfinite(flat), flat, 0).sum(3) / areas)
    each = np.broadcast_to((dy / areas)[..., None, None, :], taps.shape)
    d.call("avgpool2d_backward", shape, din, d.put(dy))
    d.close("din of the mean", din, windows_back(each, x.shape, stride, pad, 1))


@case([(1,), (4097,), (10_002,)], [(4096,), (1_100_000,)])
def reduce(d, n):
    x = rng(n).standard_normal(n).astype(np.float32)
    ax, norm = d.put(x), d.room(16, np.uint8)
    squares = (x.astype(np.float64) ** 2).sum()
    for bound in (0.5, 1e6):
        d.call("queue_squares", norm, ax, size(n))
        d.call("queue_bound", norm, f64(bound))
        got = norm.get().tobytes()
        d.close("squares", np.frombuffer(got, np.float64)[:1], [squares], 1e-12)
        d.close("norm", np.frombuffer(got, np.float32)[2:], [np.sqrt(squares), min(bound / (np.sqrt(squares) + 1e-6), 1)], 1e-6)


@case([(1,), (1000,)], [(100_000,)])
def relu(d, n):
    x, dy = (rng(n, k).standard_normal(n).astype(np.float32) for k in (1, 2))
    x[n // 2] = np.nan
    out, din = d.room(n), d.room(n)
    d.call("relu_forward", out, d.put(x), size(n))
    d.same("out", out.get(), np.where(x < 0, np.float32(0), x))
    d.call("relu_backward", din, d.put(dy), out, size(n))
    d.same("din", din.get(), np.where(out.get() > 0, dy, np.float32(0)))


@case([(1, 1), (5, 31), (9, 33)], [(4, 32), (130, 10), (2, 1000)])
def softmax(d, rows, classes):
    x, dy = (rng(rows, classes, k).standard_normal((rows, classes)).astype(np.float32) * 4 for k in (1, 2))
    out, din = d.room(x.shape), d.room(x.shape)
    d.call("softmax_forward", out, d.put(x), rows, classes)
    p = softmax_of(x.astype(np.float64))
    d.close("out", out, p)
    d.call("softmax_backward", din, d.put(dy), out, rows, classes)
    d.close("din", din, p * (dy - (p * dy).sum(1, keepdims=True)), 1e-4)


@case([(1.5, 0), (np.nan, 0), (1.5, 1)])
def step(d, loss, halted):
    ring, orders = 2, order(1, 2, 3) + order(4, 5, 6, scalars(ADAM, 1) * 2)
    now, own, flags = raw(d, state(order(0, 0, 0), 5, halted, (1.0, 2.0))), d.room(16, np.uint8), d.room(16)
    d.call("queue_step_begin", pack("PPi4xPP", now, raw(d, orders), ring, own, flags))
    d.same("order", now.get()[:ORDER_BYTES], np.frombuffer(orders[ORDER_BYTES:], np.uint8))
    d.same("flags", flags.get(), np.array([6 >> i & 1 for i in range(16)], np.float32))
    d.call("queue_step_advance", now, 32)
    own, records = raw(d, pack("dii", 6.0, 1, -1)), d.room(ring * RECORD_BYTES, np.uint8)
    norm, mean = raw(d, pack("dff", 9.0, 3.0, 1.0)), d.put(np.array([loss], np.float32))
    d.call("queue_step_end", now, own, 4, mean, norm, flags, records, ring)
    stops = int(halted or not np.isfinite(loss))
    want = state(order(36, 5, 6, scalars(ADAM, 1) * 2), 6, stops, (1.0, 2.0) if stops else (2.5, 3.5))
    d.same("state", now.get(), np.frombuffer(want, np.uint8))
    record = pack("fffiI", loss, 1.5, 3.0, stops, 6)
    d.same("record", records.get()[RECORD_BYTES:], np.frombuffer(record, np.uint8))
    d.call("queue_count", d.put(np.array([41], np.int64)))
    d.same("count", d.arrays[-1].get(), np.array([42]))
