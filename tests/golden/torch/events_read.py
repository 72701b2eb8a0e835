#!/usr/bin/env python3
"""Reads what the trainer wrote to --log_dir with TensorBoard's own reader.

    events_read.py TRAINER DATA    with tensorboard 2.21

A run of 12 steps with a checkpoint at 8 is resumed at 8 and goes on to 16: every kind of event must be there, the steps
behind 8 once.
"""
import pathlib
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.util import tensor_util


def main():
    trainer, data = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as scratch:
        for steps in (12, 16):
            subprocess.run(
                [trainer, "mnist-cnn", "--data", data, "--max_steps", str(steps), "--log_dir", "log", "--log_interval", "1",
                 "--log_histograms", "4", "--save_steps", "8"],
                cwd=scratch, check=True, stdout=subprocess.DEVNULL)
        reader = EventMultiplexer(size_guidance=None).AddRunsFromDirectory(scratch + "/log").Reload()
        (run,) = reader.Runs()
        events = reader.GetAccumulator(run)
        content = events.summary_metadata
        kinds = {p: sorted(t for t, m in content.items() if m.plugin_data.plugin_name == p)
                 for p in ("scalars", "histograms")}
        print(kinds)
        steps = [e.step for e in events.Tensors("train/loss")]
        assert steps == list(range(1, 17)), steps
        assert kinds["scalars"] == ["test/accuracy", "test/loss", "train/loss"]
        assert [e.step for e in events.Tensors("test/loss")] == [16]
        assert "weights/conv1.weight" in kinds["histograms"] and len(kinds["histograms"]) == 10
        for e in events.Tensors("weights/conv1.weight"):
            table = tensor_util.make_ndarray(e.tensor_proto)
            assert table.shape == (30, 3) and table[:, 2].sum() == 288
        assert [e.step for e in events.Tensors("weights/conv1.weight")] == [4, 8, 12, 16]
        print("ok")


main()
