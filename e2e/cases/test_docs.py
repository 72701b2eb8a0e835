"""The commands in README and docs work: the blocks marked `tried: cluster`, after the demo."""

import os
import subprocess

import pytest
from kube import REPO, get

pytestmark = pytest.mark.serial
RUNNER = REPO / "tests" / "docs" / "blocks.py"


def test_blocks_of_the_readme():
    assert get("ptj", "mnist", "default"), "test_demo.py comes first: it leaves its job"
    done = subprocess.run([RUNNER, "run", "cluster", REPO / "README.md"], cwd=REPO, text=True, capture_output=True,
                          env={k: v for k, v in os.environ.items() if k != "KUBECONFIG"})
    print(done.stdout[-4000:], done.stderr[-4000:])
    assert done.returncode == 0
