#!/usr/bin/env python3
"""Runs the shell blocks of README and docs, so that commands that people paste from them work.

usage: blocks.py check FILE...          every ```sh block says where it is tried
       blocks.py run PLACE FILE...      the blocks that are tried there, in order, in one shell each file

A block says so in a comment in front of it, which Markdown does not show: `<!-- tried: trainer -->`. The places:
    trainer  by ctest (unit/docs), without a cluster: PATH has the programs, the folder is empty but for tests/golden; in the place
             of port 29402, which may have another owner, is a free one
    servers  by e2e/versions/test_gangs.py, on an API server without nodes, in a folder with this tree's deploy/ and tests/golden/
    kueue    by e2e/queues/admission.py, with Kueue, on an API server without nodes
    multikueue  by e2e/queues/remote.py: KUBECONFIG is the manager's, WORKER the worker's
    cluster  by e2e/cases/test_docs.py, on the local cluster after the demo
    gate     the block is a part of `make test`, or calls it
    by hand  it needs what a test has not (another cluster, a GPU); the comment goes on with the reason, behind a colon
"""

import re
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
import ports  # noqa: E402

PLACES = ("trainer", "servers", "kueue", "multikueue", "cluster", "gate", "by hand")
BLOCK = re.compile(r"(?:<!-- tried: (.*?) -->\n)?^```sh\n(.*?)^```$", re.M | re.S)


def blocks(path):
    """Place and text of each block."""
    for found in BLOCK.finditer(Path(path).read_text()):
        yield (found.group(1) or "").split(":")[0], found.group(2)


def check(files):
    bad = [f"{file}: the block that begins with \"{text.splitlines()[0]}\": expected <!-- tried: {' | '.join(PLACES)} -->, got \"{place}\""
           for file in files for place, text in blocks(file) if place not in PLACES]
    print("\n".join(bad))
    return 1 if bad else 0


def run(place, files):
    for file in files:
        script = "".join(text for where, text in blocks(file) if where == place)
        if place == "trainer":
            script = script.replace("29402", str(ports.take()))
        print(f"{file}:\n{script}", flush=True)
        if not script:
            print(f"{file}: no block is tried here: expected <!-- tried: {place} -->")
            return 1
        done = subprocess.run(["bash", "-euxo", "pipefail", "-c", script])
        if done.returncode:
            print(f"{file}: a command ended with {done.returncode}")
            return 1
    return 0


def main():
    if sys.argv[1] == "check":
        return check(sys.argv[2:])
    return run(sys.argv[2], sys.argv[3:])


sys.exit(main())
