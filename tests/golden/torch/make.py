#!/usr/bin/env python3
"""Makes the golden numbers and files of the trainer's byte modules from PyTorch and TensorBoard.

Run it with their Python (torch 2.15, tensorboard 2.21) in this folder; it rewrites golden.h, state.pt,
scalars.tfevents and kinds.tfevents. Tests need only the results.
"""
import io
import struct
import zipfile
import zlib
from collections import OrderedDict

import torch
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto import types_pb2
from tensorboard.plugins.histogram.summary_v2 import histogram_pb
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util import tensor_util
from torch import nn
from torch.utils.data import DistributedSampler, random_split


def crc(tensor):
    return zlib.crc32(tensor.detach().contiguous().numpy().tobytes())


def bits(tensor):
    return [struct.unpack("<I", struct.pack("<f", float(v)))[0] for v in tensor.detach()]


class Out:
    def __init__(self):
        self.lines = []

    def define(self, name, value):
        self.lines.append(f"#define GOLDEN_{name} {value:#010x}U")

    def table(self, name, values, kind="uint32_t", form="{:#x}U"):
        body = ", ".join(form.format(v) for v in values)
        self.lines.append(f"static const {kind} golden_{name}[{len(values)}] = {{{body}}};")


class MnistCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.conv3 = nn.Conv2d(64, 64, 3)
        self.dense1 = nn.Linear(576, 64)
        self.dense2 = nn.Linear(64, 10)


def generator(out):
    torch.manual_seed(1)
    out.table("uniform_seed1", bits(torch.empty(8).uniform_(-0.25, 0.75)))
    for n in (15, 16, 17, 100003):
        torch.manual_seed(7)
        out.define(f"NORMAL_{n}", crc(torch.empty(n).normal_(0.1, 0.02)))
    torch.manual_seed(1)
    out.table("randperm_10", torch.randperm(10).tolist(), form="{}U")
    for n in (1, 1000, 60000):
        torch.manual_seed(5)
        out.define(f"RANDPERM_{n}", crc(torch.randperm(n).to(torch.uint32)))


def weights(out):
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        net = MnistCnn()
        flat = torch.cat([p.detach().flatten() for p in net.parameters()])
        out.define(f"MNIST_CNN_SEED{seed}", crc(flat))
        first, second = random_split(range(60000), [48000, 12000])
        out.define(f"SPLIT_FIRST_SEED{seed}", crc(torch.tensor(first.indices).to(torch.uint32)))
        out.define(f"SPLIT_SECOND_SEED{seed}", crc(torch.tensor(second.indices).to(torch.uint32)))
    torch.manual_seed(1)
    out.table("linear_3_2_seed1", bits(torch.cat([p.flatten() for p in nn.Linear(3, 2).parameters()])))
    torch.manual_seed(1)
    nobias = nn.Linear(3, 2, bias=False)
    grouped = nn.Conv2d(4, 6, (3, 5), groups=2)
    flat = torch.cat([p.detach().flatten() for m in (nobias, grouped) for p in m.parameters()])
    out.define("NOBIAS_THEN_GROUPED", crc(flat))


def sampler(out):
    rows = []
    cases = [(10, 1), (10, 3), (10, 4), (7, 16), (1, 5), (12, 4), (48000, 4), (60000, 7)]
    for items, world in cases:
        for shuffle in (False, True):
            for epoch in (0, 2):
                every = []
                for rank in range(world):
                    s = DistributedSampler(range(items), world, rank, shuffle=shuffle, seed=3)
                    s.set_epoch(epoch)
                    every += list(s)
                rows.append((items, world, int(shuffle), epoch, len(s), crc(torch.tensor(every).to(torch.uint32))))
    out.lines.append("static const struct golden_sampler {\n    int items, world, shuffle, epoch, len;\n"
                     "    uint32_t crc; /* of all ranks' items, one rank after the other */\n} golden_samplers[] = {")
    out.lines += ["    {%d, %d, %d, %d, %d, %#010xU}," % r for r in rows]
    out.lines.append("};")


def small_state():
    return OrderedDict([
        ("conv1.weight", torch.arange(6.0).reshape(1, 2, 3)),
        ("conv1.bias", torch.tensor(3.0)),
        ("head.weight", torch.arange(24.0).reshape(2, 3, 2, 2) / 8),
    ])


def batches(n):
    """A state_dict of so many tensors, around the pickler's batch size."""
    return OrderedDict((f"key{i}", torch.tensor(float(i))) for i in range(n))


def archives(out):
    torch.save(small_state(), "state.pt")
    rows = []
    for n in (0, 1, 2, 999, 1000, 1001, 2000, 2001):
        file = io.BytesIO()
        torch.save(batches(n), file)
        with zipfile.ZipFile(file) as z:
            pickle = z.read("archive/data.pkl")
        rows.append((n, len(pickle), zlib.crc32(pickle)))
    out.lines.append("static const struct golden_pickle {\n    int tensors, len;\n    uint32_t crc;\n} golden_pickles[] = {")
    out.lines += ["    {%d, %d, %#010xU}," % r for r in rows]
    out.lines.append("};")


def events():
    with open("scalars.tfevents", "wb") as f:
        w = RecordWriter(f)
        w.write(Event(wall_time=1700000000.25, file_version="brain.Event:2").SerializeToString())
        for i, (tag, step, value) in enumerate([("train/loss", 0, 2.5), ("train/loss", 500, 1.25),
                                                ("val/accuracy", 500, 0.875), ("train/loss", 1 << 40, float("nan"))]):
            meta = None
            if i in (0, 2):
                meta = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"), data_class=1)
            tensor = TensorProto(dtype=types_pb2.DT_FLOAT, tensor_shape=TensorShapeProto(), float_val=[value])
            summary = Summary(value=[Summary.Value(tag=tag, tensor=tensor, metadata=meta)])
            w.write(Event(wall_time=1700000001.5 + i, step=step, summary=summary).SerializeToString())


def kinds():
    """A histogram and a restart, from TensorBoard's own makers where they take fixed times."""
    writer = open("kinds.tfevents", "wb")
    w = RecordWriter(writer)

    def put(wall_time, **fields):
        w.write(Event(wall_time=wall_time, **fields).SerializeToString(deterministic=True))

    counted = histogram_pb("weights/a", [-3.0, 0.0, 4.5, 27.0, 27.0]).value[0]
    plugin = SummaryMetadata.PluginData(plugin_name="histograms")
    counted.metadata.CopyFrom(SummaryMetadata(plugin_data=plugin, data_class=2))
    counted.tensor.tensor_content = struct.pack("<90d", *tensor_util.make_ndarray(counted.tensor).flatten())
    counted.tensor.ClearField("double_val")
    put(1.5, step=7, summary=Summary(value=[counted]))
    put(7.5, step=11, session_log=SessionLog(status=SessionLog.START))
    writer.close()


def main():
    out = Out()
    generator(out)
    weights(out)
    sampler(out)
    archives(out)
    events()
    kinds()
    with open("golden.h", "w", encoding="utf-8") as f:
        version = torch.__version__.split("+")[0]
        f.write(f"/* golden.h - numbers of PyTorch {version}, written by make.py. CRCs are CRC-32 of little-endian values. */\n"
                "#ifndef TK_GOLDEN_TORCH_H\n#define TK_GOLDEN_TORCH_H\n\n#include <stdint.h>\n\n")
        f.write("\n".join(out.lines) + "\n\n#endif\n")


main()
