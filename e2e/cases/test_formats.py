"""The trainer's files, read by the programs that define their formats: PyTorch, safetensors, transformers and TensorBoard; and
their program under our torchrun. It needs no cluster."""

import os
import subprocess
import sys

import pytest
from kube import REPO
from trainjobs import DATA

BIN = REPO / "build" / "release"


def run(*command):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True,
                          env={**os.environ, "TK_TEST_PYTHON": sys.executable})
    print(done.stdout, done.stderr)
    return done.returncode


def test_checkpoints_open_in_pytorch_and_safetensors():
    assert run(sys.executable, REPO / "tests/golden/torch/checkpoints.py", BIN / "bin/trainer", DATA) == 0


def test_every_kind_of_event_is_read_by_tensorboard():
    assert run(sys.executable, REPO / "tests/golden/torch/events_read.py", BIN / "bin/trainer", DATA) == 0


def test_python_workers_on_gloo_over_two_of_our_launchers():
    assert run(BIN / "tests/unit_launcher_test_torch", BIN / "bin/torchrun") == 0


@pytest.mark.early
def test_a_rank_that_hangs_on_gloo_is_named_by_our_launcher():
    assert run(BIN / "tests/unit_launcher_test_hang_torch", BIN / "bin/torchrun") == 0


def test_our_torchrun_knows_the_options_of_pytorchs():
    assert run(sys.executable, REPO / "tests/golden/torch/torchrun_options.py") == 0


@pytest.mark.early
def test_transformers_opens_a_checkpoint_as_it_is():
    assert run(BIN / "tests/unit_trainer_state_test_transformers") == 0


def test_weights_of_a_gpt2_go_both_ways_in_every_format():
    assert run(sys.executable, REPO / "tests/golden/torch/gpt2_exports.py", BIN / "bin/trainer") == 0
