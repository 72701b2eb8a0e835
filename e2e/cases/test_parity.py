"""The trainer against real PyTorch: 100 steps of mnist-cnn, each from PyTorch's own weights and moments."""

import subprocess
import sys

from kube import REPO

RECORDER = REPO / "tests" / "golden" / "torch" / "mnist_cnn_steps.py"
COMPARER = REPO / "build" / "release" / "tests" / "unit_trainer_run_test_parity_steps"


def test_hundred_steps_from_recorded_weights():
    done = subprocess.run([sys.executable, RECORDER, COMPARER], text=True, capture_output=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0
