"""device.py - a GPU for cases.py: the host's half of kernels/cuda (host/host.cc) queues kernels as it does for a real one, and
every launch goes to the interpreter with nvcc's PTX of that kernel.

    with Device(build, "bf16") as d:
        x, y = d.put(x16), d.room(x16.shape, np.uint16)
        d.call("gelu_forward", GELU_TANH, y, x, size(x.size))
        d.get(y)
"""

import ctypes
import os
import pathlib
import struct
import subprocess
import traceback

import numpy as np

import execute
import memory
import parse
from instructions import from_bf16, to_bf16

PARAMETERS_MAX = 4096
BEHIND_BYTES = 256  # between arrays, so that one byte too far is nobody's


class Launch(ctypes.Structure):
    """struct ptx_launch of host/emulate.h."""

    _fields_ = [("file", ctypes.c_char_p), ("kernel", ctypes.c_void_p), ("grid", ctypes.c_uint * 3), ("threads", ctypes.c_uint * 3),
                ("shared_bytes", ctypes.c_size_t), ("parameter_bytes", ctypes.c_size_t),
                ("parameters", ctypes.c_char * PARAMETERS_MAX)]  # fmt: skip


HOOK = ctypes.CFUNCTYPE(None, ctypes.POINTER(Launch))


def size(n):
    return ctypes.c_size_t(n)


def f32(x):
    return ctypes.c_float(x)


def f64(x):
    return ctypes.c_double(x)


def pack(form, *values):
    """A struct of C by struct.pack's letters, aligned as C does: of parameters that are pointers to one."""
    return struct.pack("@" + form, *(v.address if isinstance(v, Array) else 0 if v is None else v for v in values))


def short(name):
    """A kernel's name as its source has it: layernorm_rows<bf16, 2>."""
    name = name.replace("(anonymous namespace)::", "").removeprefix("void ").replace("> >", ">>")
    depth = 0
    for at, c in enumerate(name):
        depth += (c == "<") - (c == ">")
        if c == "(" and not depth:
            return name[:at]
    return name


def demangled(names):
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    return [short(line) for line in done.stdout.splitlines()]


class Program:
    """The library and the PTX of a build folder. kernels: {(file, name): (module, mangled name)}."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        library = self.folder / "libptx_host.so"
        self.lib = ctypes.CDLL(str(library))
        for function in "ptx_open", "ptx_close", "ptx_memory", "ptx_reserve", "ptx_sync":
            getattr(self.lib, function).restype = ctypes.c_int
        self.lib.ptx_open.restype = ctypes.c_void_p
        self.symbols = self.read_symbols(library)
        self.kernels = {}
        for unit in (self.folder / "ptx.units").read_text().split():
            module = parse.Module((self.folder / f"{unit}.ptx").read_text(), unit)
            for mangled, name in zip(module.parts, demangled(module.parts)):
                self.kernels[unit, name] = (module, mangled)

    def read_symbols(self, library):
        lines = subprocess.run(["nm", str(library)], capture_output=True, text=True, check=True).stdout.splitlines()
        found = {int(at, 16): name for at, _, name in (line.split() for line in lines if len(line.split()) == 3)}
        base = next(at for at, name in found.items() if name == "ptx_sync") - ctypes.cast(self.lib.ptx_sync, ctypes.c_void_p).value
        return {at - base: name for at, name in zip(found, demangled(found.values()))}

    def kernel(self, file, address):
        key = (pathlib.PurePath(file).stem, self.symbols[address])
        module, mangled = self.kernels[key]
        return key, module.kernel(mangled)


class Array:
    def __init__(self, values, offset, name):
        self.shape, self.dtype = values.shape, values.dtype
        self.room = np.full(values.nbytes + 512 + BEHIND_BYTES, 0xFF, np.uint8)
        first = -self.room.ctypes.data % 256 + offset
        self.address, self.bytes = self.room.ctypes.data + first, self.room[first : first + values.nbytes]
        self.bytes[:] = np.frombuffer(values.tobytes(), np.uint8)
        self.name, self.offset = name, offset

    def get(self):
        return np.frombuffer(self.bytes.tobytes(), self.dtype).reshape(self.shape)


class Device:
    def __init__(self, program, element="f32", cublas="off", sms=4):
        self.program, self.element, self.lib = program, element, program.lib
        self.global_memory, self.arrays = memory.Global(), []
        self.launched, self.found, self.steps = [], [], 0
        self.hook = HOOK(self.launch)
        os.environ["TK_CUBLAS"] = cublas
        self.context = self.lib.ptx_open(int(element == "bf16"), sms, self.hook)
        if not self.context:
            raise SystemExit("no context")
        self.own = []
        self.reserve(0)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.lib.ptx_close(ctypes.c_void_p(self.context))

    def reserve(self, scratch):
        """Scratch memory, as layers ask for it when they are made."""
        self.lib.ptx_reserve(ctypes.c_void_p(self.context), size(scratch))
        for address in self.own:
            self.global_memory.remove(address)
        pointers, sizes = (ctypes.c_void_p * 3)(), (ctypes.c_size_t * 3)()
        self.lib.ptx_memory(ctypes.c_void_p(self.context), pointers, sizes)
        pieces = [(p, n, name) for p, n, name in zip(pointers, sizes, ("parts", "parts of the second stream", "scratch")) if p]
        self.own = [p for p, _, _ in pieces]
        for p, n, name in pieces:
            self.global_memory.add(p, n, name)

    def launch(self, pointer):
        now = pointer.contents
        try:
            key, kernel = self.program.kernel(now.file.decode(), now.kernel)
            parameters = ctypes.string_at(ctypes.addressof(now) + Launch.parameters.offset, now.parameter_bytes).ljust(kernel.parameter_bytes, b"\0")
            report = execute.launch(kernel, self.global_memory, parameters, tuple(now.grid), tuple(now.threads), now.shared_bytes)
            self.launched.append(key)
            self.steps += report.steps
            self.found += [f"{key[1]}: {line}" for line in report.lines()]
        except Exception:  # ctypes would print it and continue
            self.found.append(f"{now.file.decode()}: {traceback.format_exc()}")

    # ---- what cases use

    def put(self, values, offset=0, name="an input"):
        """An array in the GPU's memory, `offset` bytes behind a multiple of 256."""
        array = Array(np.asarray(values), offset, f"{name} {np.shape(values)}")
        self.arrays.append(array)
        self.global_memory.add(array.address, array.bytes.size, array.name)
        return array

    def room(self, shape, dtype=np.float32, offset=0):
        """Of NaN, or of ones all over."""
        dtype = np.dtype(dtype)
        count = int(np.prod(shape)) * dtype.itemsize
        return self.put(np.frombuffer(b"\xff" * count, dtype).reshape(shape), offset, "an output")

    def act(self, values, offset=0):
        """Activations, of the context's elements; .get() of them goes through d.numbers."""
        values = np.asarray(values, np.float32)
        return self.put(to_bf16(values) if self.element == "bf16" else values, offset)

    def act_room(self, shape, offset=0):
        return self.room(shape, np.uint16 if self.element == "bf16" else np.float32, offset)

    def numbers(self, array):
        """Its values in f64."""
        got = array.get()
        return (from_bf16(got) if got.dtype == np.uint16 else got).astype(np.float64)

    def call(self, operation, *arguments):
        """An operation of kernels/ops.h. Arrays, None and pack() are pointers, int is int, bool is bool."""
        kept = []

        def argument(a):
            if isinstance(a, Array):
                return ctypes.c_void_p(a.address)
            if isinstance(a, bytes):
                kept.append(ctypes.create_string_buffer(a, len(a)))
                return kept[-1]
            if a is None:
                return ctypes.c_void_p(0)
            return ctypes.c_bool(a) if isinstance(a, bool) else a

        getattr(self.lib, "cuda_" + operation)(ctypes.c_void_p(self.context), *(argument(a) for a in arguments))
        if self.lib.ptx_sync(ctypes.c_void_p(self.context)):
            self.found.append(f"{operation}: the context reports a failure")

    def note(self, what):
        self.found.append(what)

    def same(self, what, got, want):
        """Bit for bit."""
        got, want = np.asarray(got), np.asarray(want)
        wrong = np.ascontiguousarray(got).view(np.uint8) != np.ascontiguousarray(want.astype(got.dtype)).view(np.uint8)
        if wrong.any():
            at = int(np.nonzero(wrong.reshape(got.size, -1).any(1))[0][0])
            self.note(f"{what}: other bits, first at {at}: {got.reshape(-1)[at]} instead of {want.reshape(-1)[at]}")

    def close(self, what, got, want, bound=None):
        """Within `bound` of the value, or of the root of the mean square of all: what is rounded to bf16, or summed in f32."""
        got = self.numbers(got) if isinstance(got, Array) else np.asarray(got, np.float64)
        want = np.asarray(want, np.float64).reshape(got.shape)
        bound = bound or (2.0**-6 if self.element == "bf16" else 2e-5)
        most = bound * (np.abs(want) + np.sqrt(np.mean(want**2)))
        wrong = ~(np.abs(got - want) <= most)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            self.note(f"{what}: {int(wrong.sum())} of {wrong.size} wrong, first at {at}: {got[at]} instead of {want[at]}")

    def done(self):
        """Forget the arrays of a case."""
        for array in self.arrays:
            self.global_memory.remove(array.address)
        self.arrays = []
