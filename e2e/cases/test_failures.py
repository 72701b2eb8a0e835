"""26 ways for a script to fail, under our launcher and PyTorch's: `kubectl ptj why` shows the script's own error line first."""

import subprocess
import sys

import pytest
from kube import REPO


@pytest.mark.long
def test_why_names_the_error():
    subprocess.run([sys.executable, REPO / "e2e/failures/record.py", "--check"], check=True)
