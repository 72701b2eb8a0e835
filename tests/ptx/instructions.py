"""instructions.py - what each PTX instruction computes: decode(kernel, instruction) gives a function of a Run (execute.py) and of the
lanes that take it.

Operands are read as numpy vectors, one number a lane, and the result is written where a lane takes part. Arithmetic is IEEE's,
rounded to the nearest unless the instruction says otherwise; what a GPU approximates (ex2, rcp) is exact here to the last bit or so.
"""

import operator
import re

import numpy as np

from memory import UNSIGNED, Bad
from parse import bits

np.seterr(all="ignore")

SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
FLOAT = {32: np.float32, 64: np.float64}
# Generic addresses of shared and of local memory begin there; what is below is global.
SHARED_WINDOW, LOCAL_WINDOW = 1 << 60, 1 << 61
NAN_BF16, SMALLEST_NORMAL = 0x7FFF, np.float32(2.0**-126)

table = {}


def instruction(*names):
    def add(make):
        table.update(dict.fromkeys(names, make))
        return make

    return add


def dtype(kind):
    if kind[0] == "f":
        return FLOAT[bits(kind)]
    return SIGNED[bits(kind)] if kind[0] == "s" else UNSIGNED[bits(kind)]


def decode(kernel, i):
    if i.words[0] in ("bra", "ret", "exit", "bar", "barrier"):
        return None
    if i.words[0] not in table:
        raise Bad(f"no such instruction here: {i}")
    return table[i.words[0]](kernel, i)


# ---- operands


def constant(text, kind):
    if m := re.fullmatch(r"0[fFdD]([0-9A-Fa-f]+)", text):
        raw = np.array([int(m[1], 16)], np.uint32 if text[1] in "fF" else np.uint64)
    elif kind == "pred":
        return np.array([int(text) != 0])
    else:
        raw = np.array([int(text.rstrip("U"), 0) & (1 << bits(kind)) - 1], np.uint64).astype(UNSIGNED[bits(kind)])
    return raw.view(dtype(kind))


def register_reader(number, own, kind):
    """Its bits, cut or widened by zeros, as numbers of a type."""
    if own == "pred":
        return lambda run: run.r[number]
    wanted, whole = dtype(kind), UNSIGNED[bits(kind)]
    if bits(own) == bits(kind):
        return lambda run: run.r[number].view(wanted)
    return lambda run: run.r[number].astype(whole).view(wanted)


def reader(kernel, text, kind):
    """A function of the Run: the operand's numbers (one of them, if they are all the same)."""
    if text.startswith("!"):
        inner = reader(kernel, text[1:], "pred")
        return lambda run: ~inner(run)
    if text in kernel.registers:
        return register_reader(*kernel.registers[text], kind)
    if text.startswith("%"):
        return lambda run: run.special[text].astype(dtype(kind))
    for symbols in kernel.shared, kernel.local, kernel.parameters:
        if text in symbols:
            value = np.array([symbols[text]], np.uint64).astype(dtype(kind))
            return lambda run: value
    if text == kernel.dynamic:
        return lambda run: np.array([run.dynamic_at], dtype(kind))
    value = constant(text, kind)
    return lambda run: value


def writer(kernel, text):
    """A function of the Run, the lanes and a value."""
    if text == "_":
        return lambda run, lanes, value: None
    number, own = kernel.registers[text]
    if own == "pred":
        return lambda run, lanes, value: np.copyto(run.r[number], value, where=lanes)
    target = UNSIGNED[bits(own)]
    size = np.dtype(target).itemsize

    def write(run, lanes, value):
        if value.dtype.itemsize == size:
            value = value.view(target)
        elif value.dtype.kind == "i":
            value = value.astype(SIGNED[size * 8]).view(target)
        else:
            value = value.astype(target)
        np.copyto(run.r[number], value, where=lanes)

    return write


def members(text):
    """The registers of {%f1, %f2}."""
    return [part.strip() for part in text.strip("{}").split(",")]


def computes(kernel, i, function, kinds=None):
    """The usual: destination = function(operands). kinds: types of operands, by number, that are not the instruction's."""
    kind = i.kinds()[-1] if i.kinds() else "u32"
    read = [reader(kernel, text, (kinds or {}).get(n, kind)) for n, text in enumerate(i.operands[1:])]
    put = writer(kernel, i.operands[0])
    if len(read) == 2:
        x, y = read
        return lambda run, lanes: put(run, lanes, function(x(run), y(run)))
    return lambda run, lanes: put(run, lanes, function(*[r(run) for r in read]))


def simple(names, function):
    instruction(*names)(lambda kernel, i: computes(kernel, i, function))


# ---- arithmetic


def rounded_down(exact):
    near = exact.astype(np.float32)
    return np.where(near > exact, np.nextafter(near, np.float32(-np.inf)), near)


def wide(words, x, y):
    """The product of two whole numbers: its lower half, its upper, or all of it."""
    if "wide" in words:
        double = (SIGNED if x.dtype.kind == "i" else UNSIGNED)[x.dtype.itemsize * 16]
        return x.astype(double) * y.astype(double)
    if "hi" in words:
        full = np.broadcast_arrays(x, y)
        return np.array([(int(a) * int(b) >> x.dtype.itemsize * 8) & (1 << x.dtype.itemsize * 8) - 1 for a, b in zip(*full)],
                        UNSIGNED[x.dtype.itemsize * 8])  # fmt: skip
    return x * y


def added(i):
    return (lambda x, y: np.clip(x + y, 0, 1)) if "sat" in i.words else operator.add


@instruction("add")
def add(kernel, i):
    return computes(kernel, i, added(i))


@instruction("mul")
def mul(kernel, i):
    return computes(kernel, i, lambda x, y: wide(i.words, x, y))


@instruction("mad")
def mad(kernel, i):
    kind = i.kinds()[-1]
    third = kind[0] + str(bits(kind) * (2 if "wide" in i.words else 1))
    return computes(kernel, i, lambda x, y, z: wide(i.words, x, y).view(dtype(third)) + z, {2: third})


@instruction("fma")
def fma(kernel, i):
    if i.kinds()[-1] == "f64":
        return computes(kernel, i, lambda x, y, z: (x.astype(np.longdouble) * y + z).astype(np.float64))

    def single(x, y, z):
        exact = x.astype(np.float64) * y + z
        value = rounded_down(exact) if "rm" in i.words else exact.astype(np.float32)
        return np.clip(value, 0, 1) if "sat" in i.words else value

    return computes(kernel, i, single)


def quotient(x, y):
    if x.dtype.kind == "f":
        return x / y
    y = np.where(y == 0, np.ones_like(y), y)
    whole = x // y
    return whole + ((whole * y != x) & ((x < 0) != (y < 0))).astype(x.dtype)


def remainder(x, y):
    return np.fmod(x, np.where(y == 0, np.ones_like(y), y))


def highest(x, y):
    return np.fmax(x, y) if x.dtype.kind == "f" else np.maximum(x, y)


def lowest(x, y):
    return np.fmin(x, y) if x.dtype.kind == "f" else np.minimum(x, y)


def quick_exp2(x):
    y = np.exp2(x.astype(np.float64)).astype(np.float32)
    return np.where(np.abs(y) < SMALLEST_NORMAL, np.float32(0), y)


simple(["sub"], operator.sub)
simple(["div"], quotient)
simple(["rem"], remainder)
simple(["min"], lowest)
simple(["max"], highest)
simple(["and"], operator.and_)
simple(["or"], operator.or_)
simple(["xor"], operator.xor)
simple(["not"], operator.invert)
simple(["neg"], operator.neg)
simple(["abs"], np.abs)
simple(["sqrt"], np.sqrt)
simple(["rcp"], lambda x: (1 / x.astype(np.float64)).astype(x.dtype))
simple(["rsqrt"], lambda x: (1 / np.sqrt(x.astype(np.float64))).astype(x.dtype))
simple(["ex2"], quick_exp2)
simple(["lg2"], lambda x: np.log2(x.astype(np.float64)).astype(np.float32))
simple(["tanh"], lambda x: np.tanh(x.astype(np.float64)).astype(np.float32))
simple(["copysign"], lambda sign, x: np.copysign(x, sign))
simple(["popc"], lambda x: np.array([int(v).bit_count() for v in x], np.uint32))


@instruction("shl", "shr")
def shift(kernel, i):
    kind = i.kinds()[-1]
    width = bits(kind)

    def left(x, n):
        return np.where(n >= width, x.dtype.type(0), x << np.minimum(n, width - 1).astype(x.dtype))

    def right(x, n):
        last = np.minimum(n, width - 1).astype(x.dtype)
        return x >> last if kind[0] == "s" else np.where(n >= width, x.dtype.type(0), x >> last)

    return computes(kernel, i, left if i.words[0] == "shl" else right, {1: "u32"})


@instruction("shf")
def funnel_shift(kernel, i):
    def shifted(low, high, n):
        both = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
        n = (n & np.uint32(31) if "wrap" in i.words else np.minimum(n, 32)).astype(np.uint64)
        return (both >> n if "r" in i.words else both << n >> np.uint64(32)).astype(np.uint32)

    return computes(kernel, i, shifted)


def low_bits(count, kind):
    count = np.minimum(count & np.uint32(255), bits(kind))
    return np.array([(1 << int(n)) - 1 for n in count], UNSIGNED[bits(kind)])


@instruction("bfe")
def extract_bits(kernel, i):
    kind = i.kinds()[-1]
    if kind[0] == "s":
        raise Bad(f"not done: {i}")
    return computes(kernel, i, lambda x, at, n: x >> at.astype(x.dtype) & low_bits(n, kind), {1: "u32", 2: "u32"})


@instruction("bfi")
def insert_bits(kernel, i):
    kind = i.kinds()[-1]

    def inserted(x, into, at, n):
        mask = low_bits(n, kind) << at.astype(x.dtype)
        return into & ~mask | x << at.astype(x.dtype) & mask

    return computes(kernel, i, inserted, {2: "u32", 3: "u32"})


@instruction("prmt")
def permute_bytes(kernel, i):
    def permuted(low, high, choice):
        both = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
        result = np.zeros(np.broadcast(both, choice).shape, np.uint32)
        for k in range(4):
            pick = choice >> np.uint32(4 * k) & np.uint32(15)
            byte = both >> (pick & np.uint32(7)).astype(np.uint64) * np.uint64(8) & np.uint64(255)
            byte = np.where(pick & np.uint32(8), np.where(byte & np.uint64(128), 255, 0), byte)
            result |= byte.astype(np.uint32) << np.uint32(8 * k)
        return result

    return computes(kernel, i, permuted)


# ---- comparisons and conversions

COMPARE = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
           "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}  # fmt: skip
COMBINE = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def comparison(how):
    def unordered(x, y):
        return np.isnan(x) | np.isnan(y)

    if how == "nan":
        return unordered
    if how == "num":
        return lambda x, y: ~unordered(x, y)
    if how not in COMPARE:
        return lambda x, y: COMPARE[how[:-1]](x, y) | unordered(x, y)
    if how == "ne":
        return lambda x, y: (x != y) & ~unordered(x, y) if x.dtype.kind == "f" else x != y
    return COMPARE[how]


@instruction("setp")
def set_predicate(kernel, i):
    kind = i.kinds()[-1]
    x, y = (reader(kernel, text, kind) for text in i.operands[1:3])
    compare, combine = comparison(i.words[1]), next((w for w in i.words if w in COMBINE), None)
    third = reader(kernel, i.operands[3], "pred") if combine else None
    puts = [writer(kernel, text.strip()) for text in i.operands[0].split("|")]

    def run_it(run, lanes):
        result = compare(x(run), y(run))
        if combine:
            result = COMBINE[combine](result, third(run))
        for put, value in zip(puts, (result, ~result)):
            put(run, lanes, value)

    return run_it


@instruction("selp")
def select(kernel, i):
    return computes(kernel, i, lambda x, y, p: np.where(p, x, y), {2: "pred"})


def to_bf16(x):
    """To the nearest, ties to even, as cvt.rn.bf16.f32."""
    raw = np.ascontiguousarray(x, np.float32).view(np.uint32)
    near = (raw.astype(np.uint64) + 0x7FFF + (raw >> np.uint32(16) & np.uint32(1)) >> np.uint64(16)).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(NAN_BF16), near)


def from_bf16(x):
    return (x.astype(np.uint32) << np.uint32(16)).view(np.float32)


TO_WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def converted(x, target, words):
    whole = next((TO_WHOLE[w] for w in words if w in TO_WHOLE), None)
    if x.dtype.kind == "f" and target[0] != "f":
        ends = np.iinfo(dtype(target))
        y = np.nan_to_num(whole(x.astype(np.float64)), nan=0.0)
        inside = np.clip(y, float(ends.min), np.nextafter(float(ends.max), 0) if ends.bits == 64 else float(ends.max))
        return inside.astype(dtype(target))
    y = whole(x) if whole else x
    y = y.astype(dtype(target))
    return np.where(np.isnan(y), dtype(target)(0), np.clip(y, 0, 1)) if "sat" in words else y


@instruction("cvt")
def convert(kernel, i):
    target, source = i.kinds()[:2]
    if target == "bf16x2":
        return computes(kernel, i, lambda high, low: to_bf16(high).astype(np.uint32) << np.uint32(16) | to_bf16(low), {0: "f32", 1: "f32"})
    if target == "bf16":
        return computes(kernel, i, to_bf16, {0: "f32"})
    if source == "bf16":
        return computes(kernel, i, from_bf16, {0: "u16"})
    return computes(kernel, i, lambda x: converted(x, target, i.words), {0: source})


# ---- moves, loads and stores


@instruction("mov")
def move(kernel, i):
    kind = i.kinds()[-1]
    to, of = i.operands
    if to.startswith("{"):
        return unpack(kernel, members(to), reader(kernel, of, f"u{bits(kind)}"), bits(kind))
    if of.startswith("{"):
        return pack(kernel, to, members(of), bits(kind))
    return computes(kernel, i, lambda x: x)


def unpack(kernel, to, read, width):
    each = width // len(to)
    puts = [writer(kernel, text) for text in to]

    def run_it(run, lanes):
        whole = read(run)
        for k, put in enumerate(puts):
            put(run, lanes, (whole >> whole.dtype.type(k * each)).astype(UNSIGNED[each]))

    return run_it


def pack(kernel, to, of, width):
    each = width // len(of)
    reads = [reader(kernel, text, f"u{each}") for text in of]
    put, whole = writer(kernel, to), UNSIGNED[width]

    def run_it(run, lanes):
        value = np.zeros(run.lanes, whole)
        for k, read in enumerate(reads):
            value |= read(run).astype(whole) << whole(k * each)
        put(run, lanes, value)

    return run_it


@instruction("cvta")
def convert_address(kernel, i):
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(i.space(), 0)
    if "to" in i.words:
        return computes(kernel, i, lambda x: x - np.uint64(window), {0: "u64"})
    return computes(kernel, i, lambda x: x + np.uint64(window), {0: "u64"})


def address(kernel, text):
    """Of [register+offset], for these lanes."""
    base, offset = re.fullmatch(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\w+))?\s*\]", text).groups()
    read, offset = reader(kernel, base, "u64"), int(offset or "0", 0)
    return lambda run, taken: np.broadcast_to(read(run).view(np.int64) + offset, (run.lanes,))[taken]


def spaces(space, addresses):
    """(space, which addresses, what to take off) of addresses that may be generic."""
    if space != "generic":
        yield space, np.ones(len(addresses), bool), 0
        return
    kinds = np.where(addresses >= LOCAL_WINDOW, 2, np.where(addresses >= SHARED_WINDOW, 1, 0))
    for kind, (name, window) in enumerate((("global", 0), ("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW))):
        if (kinds == kind).any():
            yield name, kinds == kind, window


def local_places(run, addresses, size, i):
    if (addresses < 0).any() or (addresses + size > run.kernel.local_bytes).any():
        raise Bad(f"local memory out of bounds: {i}")
    return addresses[:, None] + np.arange(size)


def load_from(run, space, lanes, addresses, item, count, i):
    out = np.zeros((len(lanes), count), UNSIGNED[item * 8])
    for where, mine, window in spaces(space, addresses):
        if where == "local":
            raw = run.local[lanes[mine][:, None], local_places(run, addresses[mine] - window, item * count, i)]
            out[mine] = np.ascontiguousarray(raw).view(out.dtype)
        else:
            memory = run.shared if where == "shared" else run.memory
            out[mine] = memory.load(run, lanes[mine], addresses[mine] - window, item, count, i)
    return out


def store_to(run, space, lanes, addresses, values, i):
    for where, mine, window in spaces(space, addresses):
        if where == "local":
            raw = np.ascontiguousarray(values[mine]).view(np.uint8)
            run.local[lanes[mine][:, None], local_places(run, addresses[mine] - window, raw.shape[1], i)] = raw
        else:
            memory = run.shared if where == "shared" else run.memory
            memory.store(run, lanes[mine], addresses[mine] - window, values[mine], i)


@instruction("ld")
def load(kernel, i):
    item, to = bits(i.kinds()[-1]) // 8, members(i.operands[0])
    kind = dtype(i.kinds()[-1])
    puts = [writer(kernel, text) for text in to]
    at, space = address(kernel, i.operands[1]), i.space()

    def run_it(run, taken):
        lanes, addresses = np.nonzero(taken)[0], at(run, taken)
        if space == "param":
            raw = np.frombuffer(run.parameters, np.uint8)[addresses[:, None] + np.arange(item * len(to))]
            values = np.ascontiguousarray(raw).view(UNSIGNED[item * 8])
        else:
            values = load_from(run, space, lanes, addresses, item, len(to), i)
            if i.asks and run.order.used:
                for lane, where in zip(lanes, addresses):
                    run.order.hear(run.block[lane], int(where))
        for k, put in enumerate(puts):
            whole = np.zeros(run.lanes, values.dtype)
            whole[lanes] = values[:, k]
            put(run, taken, whole.view(kind))

    return run_it


@instruction("st")
def store(kernel, i):
    kind = f"u{bits(i.kinds()[-1])}"
    reads = [reader(kernel, text, kind) for text in members(i.operands[1])]
    at, space = address(kernel, i.operands[0]), i.space()

    def run_it(run, taken):
        values = np.stack([np.broadcast_to(read(run), (run.lanes,))[taken] for read in reads], 1)
        lanes, addresses = np.nonzero(taken)[0], at(run, taken)
        store_to(run, space, lanes, addresses, values, i)
        if i.asks and run.order.used:
            for lane, where in zip(lanes, addresses):
                run.order.tell(run.block[lane], int(where))

    return run_it


@instruction("prefetch", "nanosleep")
def nothing(kernel, i):
    return lambda run, lanes: None


@instruction("membar", "fence")
def fence(kernel, i):
    def run_it(run, lanes):
        run.unfenced[lanes] = False
        if run.order.used:
            for block in np.unique(run.block[lanes]):
                run.order.fence(block, int(run.barriers[lanes & (run.block == block)][0]))

    return run_it


ATOMIC = {
    "add": lambda old, x: old + x,
    "exch": lambda old, x: x,
    "inc": lambda old, x: old.dtype.type(0) if old >= x else old + old.dtype.type(1),
    "dec": lambda old, x: x if old == 0 or old > x else old - old.dtype.type(1),
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


@instruction("atom", "red")
def atomic(kernel, i):
    operands = i.operands if i.words[0] == "atom" else ["_", *i.operands]
    kind, how = i.kinds()[-1], next((w for w in i.words if w in ATOMIC or w == "cas"), None)
    if how is None or i.space() not in ("global", "generic"):
        raise Bad(f"not done: {i}")
    put, at = writer(kernel, operands[0]), address(kernel, operands[1])
    reads = [reader(kernel, text, kind) for text in operands[2:]]

    def run_it(run, taken):
        lanes, addresses = np.nonzero(taken)[0], at(run, taken)
        x = [np.broadcast_to(read(run), (run.lanes,))[taken] for read in reads]

        def change(raw, lane):
            old = raw.view(dtype(kind))
            new = (x[1][lane] if old == x[0][lane] else old) if how == "cas" else ATOMIC[how](old, x[0][lane])
            return np.array(new, dtype(kind)).view(UNSIGNED[bits(kind)])

        for lane, where in zip(lanes, addresses):
            if run.order.used:
                run.order.hear(run.block[lane], int(where))
                run.order.tell(run.block[lane], int(where))
        whole = np.zeros(run.lanes, UNSIGNED[bits(kind)])
        whole[lanes] = run.memory.atomic(run, addresses, bits(kind) // 8, change, i)
        put(run, taken, whole)

    return run_it


# ---- what a warp does together


@instruction("shfl")
def shuffle(kernel, i):
    how = next(w for w in i.words if w in ("bfly", "up", "down", "idx"))
    read, by = reader(kernel, i.operands[1], "u32"), reader(kernel, i.operands[2], "s32")
    puts = [writer(kernel, text.strip()) for text in i.operands[0].split("|")]

    def run_it(run, lanes):
        n, own = by(run), run.lane
        of = {"bfly": own ^ n, "up": own - n, "down": own + n, "idx": n & 31 | 0 * own}[how]
        inside = (of >= 0) & (of < 32)
        of = np.where(inside, of, own) + (np.arange(run.lanes) - own)
        if (lanes & ~lanes[of]).any():
            run.report.note("a shuffle from a lane that is not there", i)
        puts[0](run, lanes, np.broadcast_to(read(run), (run.lanes,))[of])
        for put in puts[1:]:
            put(run, lanes, inside)

    return run_it


@instruction("cp")
def copy(kernel, i):
    if "commit_group" in i.words:
        return lambda run, lanes: np.add(run.groups, 1, out=run.groups, where=lanes)
    if "wait_group" in i.words:
        return lambda run, lanes: run.shared.wait(run, lanes, int(i.operands[0]))
    if i.operands[2] != "16":
        raise Bad(f"not done: {i}")
    to, of = address(kernel, i.operands[0]), address(kernel, i.operands[1])
    size = reader(kernel, i.operands[3] if len(i.operands) > 3 else "16", "u32")

    def run_it(run, taken):
        lanes, data = np.nonzero(taken)[0], np.zeros((int(taken.sum()), 2), np.uint64)
        n = np.broadcast_to(size(run), (run.lanes,))[taken]
        if not np.isin(n, (0, 16)).all():
            raise Bad(f"not done: a part of 16 bytes: {i}")
        if (n > 0).any():
            data[n > 0] = run.memory.load(run, lanes[n > 0], of(run, taken)[n > 0], 8, 2, i)
        run.shared.copy(run, lanes, to(run, taken), data, i)

    return run_it


@instruction("ldmatrix")
def load_matrices(kernel, i):
    count = next(int(w[1]) for w in i.words if re.fullmatch("x[124]", w))
    if count != 4:
        raise Bad(f"not done: {i}")
    puts, at = [writer(kernel, text) for text in members(i.operands[0])], address(kernel, i.operands[1])
    lane = np.arange(32)
    row, column = (lane // 4, 2 * (lane % 4))

    def run_it(run, taken):
        rows = np.zeros((run.lanes, 8), np.uint16)
        rows[taken] = run.shared.load(run, np.nonzero(taken)[0], at(run, taken), 2, 8, i)
        matrices = rows.reshape(-1, 4, 8, 8)
        if "trans" in i.words:
            matrices = matrices.transpose(0, 1, 3, 2)
        for k, put in enumerate(puts):
            low, high = (matrices[:, k, row, column + j].astype(np.uint32) for j in (0, 1))
            put(run, taken, (low | high << np.uint32(16)).reshape(-1))

    return run_it


def halves(pair):
    """The two bf16 of each register, as f32."""
    return np.stack([pair << np.uint32(16), pair & np.uint32(0xFFFF0000)], -1).view(np.float32)


@instruction("mma")
def multiply_matrices(kernel, i):
    """m16n8k16 of bf16: PTX ISA, "Matrix Fragments for mma.m16n8k16"."""
    if "m16n8k16" not in i.words or i.words.count("bf16") != 2:
        raise Bad(f"not done: {i}")
    puts = [writer(kernel, text) for text in members(i.operands[0])]
    a, b, c = ([reader(kernel, text, kind) for text in members(group)] for group, kind in zip(i.operands[1:], ("u32", "u32", "f32")))
    lane = np.arange(32)
    g, t = lane // 4, lane % 4

    def run_it(run, lanes):
        warps = run.lanes // 32
        left, right, sums = (np.zeros((warps, *shape), np.float64) for shape in ((16, 16), (16, 8), (16, 8)))
        for k, read in enumerate(a):
            pair = halves(read(run).reshape(warps, 32))
            for j in (0, 1):
                left[:, g + 8 * (k % 2), 2 * t + j + 8 * (k // 2)] = pair[:, :, j]
        for k, read in enumerate(b):
            pair = halves(read(run).reshape(warps, 32))
            for j in (0, 1):
                right[:, 2 * t + j + 8 * k, g] = pair[:, :, j]
        for k, read in enumerate(c):
            sums[:, g + 8 * (k // 2), 2 * t + k % 2] = np.broadcast_to(read(run), (run.lanes,)).reshape(warps, 32)
        product = (left @ right + sums).astype(np.float32)
        for k, put in enumerate(puts):
            put(run, lanes, np.ascontiguousarray(product[:, g + 8 * (k // 2), 2 * t + k % 2]).reshape(-1))

    return run_it
