"""gpu_pytorch.py BENCH - what bench/gpu/pytorch.py makes of a size that does not fit the GPU's memory, without PyTorch: a module of
a stand-in of our own, and sizes that fail on purpose."""

import contextlib
import importlib.util
import io
import sys
import types
from unittest import mock


class OutOfMemoryError(RuntimeError):
    pass


def pytorch(path):
    torch = mock.MagicMock(__version__="2")
    torch.cuda.OutOfMemoryError = OutOfMemoryError
    torch.nn = types.SimpleNamespace(Module=object, functional=mock.MagicMock())
    with mock.patch.dict(sys.modules, {"torch": torch, "torch.nn": torch.nn}):
        spec = importlib.util.spec_from_file_location("pytorch", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def run(bench, errors):
    """Its status, what it printed, the sizes that were measured. errors: by size; None is for all others."""
    measured = []

    def measure(name, batch, device, compiled, steps):
        error = errors.get(batch, errors.get(None))
        if error:
            raise error
        measured.append(batch)

    said = io.StringIO()
    with mock.patch.object(bench, "measure", measure), mock.patch.object(sys, "argv", ["pytorch.py", "--nets", "gpt2"]), \
            contextlib.redirect_stdout(said):
        return bench.main(), said.getvalue(), measured


bench = pytorch(sys.argv[1])
NO_ROOM = OutOfMemoryError("CUDA out of memory. Tried to allocate 12.27 GiB.\nMore.")
status, said, measured = run(bench, {64: NO_ROOM})
assert (status, measured) == (0, [32, 32, 4, 4, 8, 8, 16, 16]), (status, measured)
assert said.count("CUDA out of memory") == 2, said
assert run(bench, {None: NO_ROOM})[0] == 1, "no size of a net was measured"
status, said, measured = run(bench, {4: RuntimeError("no compiler")})
assert (status, len(measured)) == (1, 8) and "no compiler" in said
assert run(bench, {})[0] == 0
