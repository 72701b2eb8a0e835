"""mutants.py - kernels with a fault put in, each of which the judge has to find: a barrier or a wait taken out, a bound moved, an
index swapped, a guard passed over. For judge.py.

An edit is of the source; nvcc compiles it as the kernels themselves. Where a source no longer has the text, the mutant fails: give
it the new one.
"""

import copy
import dataclasses
import pathlib
import shutil
import subprocess
import tempfile

import parse
from cases import ADAM, cases
from device import Device, demangled

BARRIER = "__syncthreads();"


@dataclasses.dataclass
class Mutant:
    what: str
    unit: str  # the .cu file that is compiled
    file: str  # where the edit is
    old: str
    new: str
    case: str
    element: str
    shape: tuple
    nth: int = 1
    quick: bool = False
    instead: tuple = ()  # no edit: this kernel is launched in place of that one


def barrier(what, unit, file, nth, case, element, shape, quick=False):
    return Mutant(what, unit, file, BARRIER, "", case, element, shape, nth, quick)


FAST, PLAIN, SPLIT = (1, 193, 1, 64, 0), (1, 66, 1, 33, 0), (2, 12, 11, 3, 5, (3, 3), 1, 1, 1)
MANY = "conv2d_on_many_multiprocessors"  # so that products are cut into parts

mutants = [
    barrier("tile_add: before the products", "attention", "tile.cuh", 1, "attention", "f32", PLAIN),
    barrier("tile_add: behind them", "attention", "tile.cuh", 2, "attention", "f32", PLAIN),
    barrier("attention_plain_sums: the weights are there", "attention", "attention_plain.cuh", 1, "attention", "f32", PLAIN),
    barrier("met_tiles: the other set's readers are done", "attention_fast", "attention_fast.cuh", 1, "attention", "bf16", FAST),
    barrier("met_tiles: others' copies are there", "attention_fast", "attention_fast.cuh", 2, "attention", "bf16", FAST),
    barrier("split_product: before the products", "conv2d", "split.cuh", 3, MANY, "f32", SPLIT),
    barrier("sum_parts: before the block has arrived", "conv2d", "split.cuh", 1, MANY, "f32", SPLIT),
    barrier("sum_parts: who was there before", "conv2d", "split.cuh", 2, MANY, "f32", SPLIT),
    Mutant("sum_parts: no fence before arriving", "conv2d", "split.cuh", "__threadfence();", "", MANY, "f32", SPLIT, quick=True),
    Mutant("sum_parts: no fence behind", "conv2d", "split.cuh", "__threadfence();", "", MANY, "f32", SPLIT, nth=2),
    Mutant("sum_parts: the first one adds", "conv2d", "split.cuh", "*before != (unsigned)children - 1", "*before != 0", MANY, "f32", SPLIT),
    barrier("columns_finish", "batchnorm", "columns.cuh", 1, "batchnorm", "f32", (300, 3, True)),
    barrier("columns_part", "layernorm", "columns.cuh", 2, "layernorm", "bf16", (70, 64, 0)),
    barrier("block_reduce: everyone's own", "mse", "grid.h", 1, "mse", "f32", (40, 13)),
    barrier("block_reduce: a half", "classifier", "grid.h", 2, "classifier", "bf16", (1, 3, 7, 0)),
    barrier("cross_entropy_few_rows", "cross_entropy", "cross_entropy.cu", 1, "cross_entropy", "f32", (32, 10, 0.1)),
    barrier("sort_count", "embedding", "sort.cuh", 1, "embedding", "f32", (1, 300, 700, 8, 0)),
    barrier("sort_places: read", "embedding", "sort.cuh", 3, "embedding", "f32", (1, 300, 700, 8, 0), quick=True),
    barrier("sort_move", "embedding", "sort.cuh", 5, "embedding", "f32", (1, 300, 700, 8, 0)),
    barrier("gather_samples", "gather", "gather.cu", 1, "gather", "f32", (8, 100, "bytes")),
    Mutant("copy_wait: one group too few", "attention_fast", "attention_fast.cuh", "copy_wait<1>", "copy_wait<2>", "attention", "bf16", FAST, quick=True),
    Mutant("write_products: no bound", "attention_fast", "attention_fast.cuh", "if (t < time)", "if (true)", "attention", "bf16", (1, 65, 1, 64, 0)),
    Mutant("load_tile: no bound", "attention_fast", "attention_fast.cuh", "first + r < time", "true", "attention", "bf16", (1, 65, 1, 64, 0)),
    Mutant("products: rows swapped", "attention_fast", "attention_fast.cuh", "i < 2 ? 0 : 8", "i % 2 ? 8 : 0", "attention", "bf16", (1, 65, 1, 64, 0)),
    Mutant("mma: matrices not turned", "attention_fast", "mma.cuh", "x4.trans.shared", "x4.shared", "attention", "bf16", (1, 65, 1, 64, 0)),
    Mutant("add: a pack too many", "add", "vector.cuh", "i >= walk.packs", "i > walk.packs", "add", "bf16", (9, 0)),
    Mutant("gelu: the rest's place", "gelu", "vector.cuh", "walk.packs * (N - 1) + i", "walk.packs * N + i", "gelu", "f32", (9, 1, 0)),
    Mutant("span_at: a parameter too far", "optim", "optim.cu", "i + k >= u.span", "i + k > u.span", "optim", "f32", (1000, ADAM, 0)),
    Mutant("maxpool2d: a row too far", "pool2d", "pool2d.cu", "y >= g.h ||", "y > g.h ||", "pool2d", "f32", (1, 7, 9, 5, 3, 2, 1, True)),
    Mutant("columns: parts on one place", "layernorm", "columns.cuh", "blockIdx.y * cols + col + k", "0 * cols + col + k", "layernorm", "bf16", (70, 64, 0),
           quick=True),  # fmt: skip
    Mutant("embedding: every row adds", "embedding", "embedding.cu", "tokens[order[at - 1]] == token", "false", "embedding", "f32", (1, 300, 700, 8, 0)),
    Mutant("reduce: half the shared memory", "reduce", "reduce.cu", "mine, REDUCE_THREADS)", "mine, REDUCE_THREADS / 2)", "reduce", "f32", (4097,)),
    Mutant("block_reduce: a barrier for half the threads", "mse", "grid.h", "mine[t] = op(mine[t], mine[t + half]);",
           "{ mine[t] = op(mine[t], mine[t + half]); __syncthreads(); }", "mse", "f32", (40, 13)),  # fmt: skip
    Mutant("gather_samples: every thread writes", "gather", "gather.cu", "if (threadIdx.x == 0)", "", "gather", "f32", (8, 100, "bytes")),
    Mutant("multiply_rows: without its last lane", "attention_fast", "attention_fast.cuh", "multiply_m16n8k16(c[u].v[j], x[u], y);",
           "if (lane != 31) multiply_m16n8k16(c[u].v[j], x[u], y);", "attention", "bf16", (1, 65, 1, 64, 0)),  # fmt: skip
    Mutant("softmax: the first lanes' maximum", "softmax", "rows.cuh", "int d = WARP / 2; d > 0", "int d = WARP / 2; d > 1", "softmax", "f32", (9, 33)),
    Mutant("layernorm: packs of what is not aligned", "layernorm", "", "", "", "layernorm", "bf16", (4, 768, 2), quick=True,
           instead=("layernorm_rows<bf16, 1>", "layernorm_rows<bf16, 2>")),  # fmt: skip
]


SOURCES = pathlib.Path(__file__).parents[2] / "kernels" / "cuda"


def parts_of(mutant):
    """Its file's text, cut where the text that it changes stands."""
    parts = (SOURCES / mutant.file).read_text().split(mutant.old)
    if len(parts) <= mutant.nth:
        raise SystemExit(f'mutants.py: "{mutant.what}": {mutant.file} has "{mutant.old}" {len(parts) - 1} times, expected {mutant.nth} or more')
    return parts


def check():
    """Each mutant's text stands in its file, also of those that only --full compiles."""
    for mutant in mutants:
        if not mutant.instead:
            parts_of(mutant)


def edited(mutant, folder):
    """kernels/cuda with the fault, below folder."""
    shutil.copytree(SOURCES, folder / "kernels" / "cuda", ignore=shutil.ignore_patterns("*.c", "*.txt"))
    parts = parts_of(mutant)
    path = folder / "kernels" / "cuda" / mutant.file
    path.write_text(mutant.old.join(parts[: mutant.nth]) + mutant.new + mutant.old.join(parts[mutant.nth :]))


def compiled(mutant, program):
    """The unit's module with the fault."""
    compiler, *flags = (program.folder / "nvcc.words").read_text().splitlines()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        edited(mutant, folder)
        command = [compiler, f"-I{folder}", *flags, "-ptx", str(folder / "kernels" / "cuda" / f"{mutant.unit}.cu"), "-o", f"{name}/out.ptx"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f'mutants.py: "{mutant.what}" does not compile:\n{done.stderr}')
        return parse.Module((folder / "out.ptx").read_text(), mutant.unit)


def with_fault(mutant, program):
    changed = copy.copy(program)
    changed.kernels = dict(program.kernels)
    if mutant.instead:
        old, new = mutant.instead
        changed.kernels[mutant.unit, old] = program.kernels[mutant.unit, new]
        return changed
    module = compiled(mutant, program)
    for mangled, name in zip(module.parts, demangled(module.parts)):
        changed.kernels[mutant.unit, name] = (module, mangled)
    return changed


def found(mutant, program):
    """What the judge says of it: lines, none if it passes."""
    case = next(c for c in cases if c.name == mutant.case)
    with Device(with_fault(mutant, program), mutant.element, **case.context) as d:
        case.run(d, *mutant.shape)
        d.done()
        return d.found
