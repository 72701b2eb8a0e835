"""Record how scripts fail under the real launchers, for tests/golden/why: `record.py [NAME...]`; `record.py --check` writes nothing
there, but makes new records, runs `kubectl ptj why` on them and prints its output.

Each script of FAILURES runs under build/release/bin/torchrun and, those of THEIRS_KEPT and with --check all but the hang, under
PyTorch's torchrun of the environment that runs this. A case has the input of `kubectl ptj why`: exit code, termination message (if the launcher wrote one) and log. Only times,
hosts, process numbers, ports and folders of this machine are replaced.
"""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/why"
OURS = ROOT / "build/release/bin/torchrun"
TEST = ROOT / "build/release/tests/unit_cli_why_test_screen"
THEIRS = pathlib.Path(sys.prefix) / "bin/torchrun"
BOUND_S = 300

RANK = "import os, sys, time\nrank = int(os.environ['RANK'])\n"
OTHERS_WAIT = "if rank != {}:\n    time.sleep(600)\n"
DDP = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(torch.nn.Linear(4, 4))
for step in range(20):
    print(f"step {step} rank {rank}", flush=True)
    if step == 3 and rank == 2:
        raise ValueError("expected 512 tokens, got 384")
    model(torch.ones(2, 4)).sum().backward()
"""
WORKER = """import torch.utils.data


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        raise ValueError(f"row {i} has no label")


if __name__ == "__main__":
    next(iter(torch.utils.data.DataLoader(Rows(), num_workers=1)))
"""
RECORDED = """from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    raise ValueError("no label for class 7")


main()
"""
GROUP = """def fail(text):
    raise ValueError(text)


errors = []
for shard in ("a", "b"):
    try:
        fail(f"shard {shard} is empty")
    except ValueError as e:
        errors.append(e)
raise ExceptionGroup("2 shards", errors)
"""
CHAINED = """def load():
    return {}["lr"]


try:
    load()
except KeyError as e:
    raise RuntimeError("the config is incomplete") from e
"""
BAR = """import sys, time

for i in range(40):
    sys.stderr.write(f"\\r{i * 2:3d}%|{'#' * (i // 4):10s}| {i}/50 [00:0{i // 10}<00:05,  9.98it/s]")
    sys.stderr.flush()
    time.sleep(0.01)
raise RuntimeError("batch 40 is torn")
"""

# name: (script, processes, the line that `why` has to show in its first three lines)
FAILURES = {
    "rank-0": (RANK + OTHERS_WAIT.format(0) + "raise ValueError('no label 0')\n", 3, "ValueError: no label 0"),
    "rank-1": (RANK + OTHERS_WAIT.format(1) + "raise ValueError('no label 1')\n", 3, "ValueError: no label 1"),
    "rank-2": (RANK + OTHERS_WAIT.format(2) + "raise ValueError('no label 2')\n", 3, "ValueError: no label 2"),
    "missing-file": ("open('/data/train.tar')\n", 2,
                     "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.tar'"),
    "missing-module": ("import transformerz\n", 2, "ModuleNotFoundError: No module named 'transformerz'"),
    "missing-script": (None, 2, "can't open file '/app/train.py': [Errno 2]"),
    "syntax": ("def train(:\n    pass\n", 2, "SyntaxError: invalid syntax"),
    "no-cuda": ("import torch\n\ntorch.ones(1).cuda()\n", 1, "RuntimeError: Found no NVIDIA driver on your system."),
    "ddp": (DDP, 3, "ValueError: expected 512 tokens, got 384"),
    "sys-exit": (RANK + OTHERS_WAIT.format(1) + "sys.exit('no licence for 8 GPUs')\n", 2, "no licence for 8 GPUs"),
    "usage": ("import argparse\n\nargparse.ArgumentParser().parse_args(['--lr=1'])\n", 1,
              "train.py: error: unrecognized arguments: --lr=1"),
    "segfault": ("import ctypes\n\nprint('step 1', flush=True)\nctypes.string_at(0)\n", 2, "(signal 11)"),
    "abort": ("import os\n\nos.abort()\n", 2, "(signal 6)"),
    "killed": (RANK + "print('step 1', flush=True)\nif rank == 1:\n    os.kill(os.getpid(), 9)\ntime.sleep(600)\n", 8,
               "(signal 9)"),
    "hang": (RANK + "print('step 1', flush=True)\nwhile rank == 1:\n    pass\ntime.sleep(600)\n", 3,
             "no progress for 2 s: rank 1 loops in train.py:4 <module>()"),
    "worker": (WORKER, 1, "ValueError: row 0 has no label"),
    "chained": (CHAINED, 2, "RuntimeError: the config is incomplete"),
    "group": (GROUP, 1, "ValueError: shard b is empty"),
    "lines": ("raise ValueError('shapes differ:\\nwant [8, 512]\\ngot [8, 384]')\n", 2, "ValueError: shapes differ:"),
    "unicode": ("raise ValueError('Größe 大きさ fehlt: \\u20ac')\n", 2, "ValueError: Größe 大きさ fehlt: €"),
    "bar": (BAR, 1, "RuntimeError: batch 40 is torn"),
    "record": (RECORDED, 2, "ValueError: no label for class 7"),
    "assert": ("def step(loss):\n    assert loss < 10, f'loss is {loss}'\n\n\nstep(42)\n", 2,
               "AssertionError: loss is 42"),
    "interrupt": (RANK + OTHERS_WAIT.format(1) + "raise KeyboardInterrupt\n", 2, "KeyboardInterrupt"),
    "printed": ("import sys\n\nprint('Error: no licence', file=sys.stderr)\nsys.exit(3)\n", 1, "Error: no licence"),
    "logged": ("import logging, sys\n\nlogging.error('loss is nan at step 40')\nsys.exit(1)\n", 2, "ERROR:root:loss is nan at step 40"),
}

# Only --check runs the others under PyTorch's launcher: these show each form of its output.
THEIRS_KEPT = {"rank-1", "ddp", "missing-script", "syntax", "bar", "group", "record", "killed", "lines"}


def replaced(text, folder):
    for path, name in ((folder, "/app"), (sys.prefix, "/venv"), (sys.base_prefix, "/python"), (str(ROOT), "/src")):
        text = text.replace(path, name)
    text = text.replace(socket.gethostname(), "bert-node-0")
    for pattern, by in (
        (r"\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d", "2026-01-01_09:57:00"),
        (r"(?m)^([WEI])\d{4} \d\d:\d\d:\d\d\.\d+ \d+ ", r"\g<1>0101 09:57:00.000000 40 "),
        (r"((?:pid:?|PID|Sending process) )\d+", r"\g<1>42"),
        (r"(host +: )\S+", r"\g<1>bert-node-0"),
        (r"\[127\.0\.0\.1\]:\d+", "[127.0.0.1]:40000"),
        (r"/tmp/[^/\s]+/[^\s]*?/attempt", "/tmp/ranks/attempt"),
        (r"0x[0-9a-f]{12,16}", "0x00007f0000000000"),
    ):
        text = re.sub(pattern, by, text)
    return text


def run(launcher, name, script, processes):
    with tempfile.TemporaryDirectory() as folder:
        term = pathlib.Path(folder) / "termination-log"
        term.touch()
        if script is not None:
            (pathlib.Path(folder) / "train.py").write_text(script)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PET_", "TORCH"))} | {
            "PTJ_TERMINATION_LOG": str(term), "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1",
            "TORCHKEEPER_PROGRESS_TIMEOUT": "2" if name == "hang" else "",
            "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"}
        done = subprocess.run([launcher, "--nnodes=1", f"--nproc-per-node={processes}", f"{folder}/train.py"], env=env,
                              cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BOUND_S)
        log = replaced(done.stdout.decode(errors="replace"), folder)
        message = replaced(term.read_text(), folder)
    return done.returncode, message, log


def literal(text):
    if any(ord(c) < 0x20 and c != "\n" for c in text) or not text.endswith("\n"):
        return json.dumps(text, ensure_ascii=False)
    lines = (f"  {line}" if line.strip() else line for line in text.splitlines(keepends=True))
    return "|2\n" + "".join(lines).rstrip("\n")


def write(golden, name, line, launcher, result):
    code, message, log = result
    case = golden / f"run-{name}.yaml"
    head = f"# recorded by e2e/failures/record.py under {launcher}\ncause: {json.dumps(line, ensure_ascii=False)}\n"
    case.write_text(
        f"{head}exitCode: {code}\n{f'message: {literal(message)}' + chr(10) if message else ''}log: {literal(log)}\n")
    print(f"{case.stem}: exit code {code}, {len(log.splitlines())} lines", flush=True)


def record(golden, names, theirs):
    for name, (script, processes, line) in FAILURES.items():
        if names and name not in names:
            continue
        write(golden, name, line, "our torchrun", run(OURS, name, script, processes))
        if name in theirs:
            write(golden, f"{name}-image", line, "PyTorch's torchrun", run(THEIRS, name, script, processes))


def judged(golden):
    """The screens that `kubectl ptj why` shows of the records become their wants."""
    return subprocess.run([TEST], env=os.environ | {"WHY_GOLDEN": str(golden), "GOLDEN_UPDATE": "1"},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def check():
    with tempfile.TemporaryDirectory() as folder:
        golden = pathlib.Path(folder)
        for name in ("_base", "_recorded", "_sentences", "queued"):
            shutil.copy(GOLDEN / f"{name}.yaml", golden)
        record(golden, [], FAILURES.keys() - {"hang"})
        done = judged(golden)
        cases = sorted(golden.glob("run-*.yaml"))
        failed = set(re.findall(r"FAILED  \] (run-\S+)", done.stdout))
        for case in cases:
            line = json.loads(re.search(r"(?m)^cause: (.*)$", case.read_text())[1])
            print(f"{case.stem:24} {'no ' if case.stem in failed else 'yes'} {line}")
        print(f"the line is in the first three lines, and no failure block anywhere: {len(cases) - len(failed)} of {len(cases)}")
        if done.returncode:
            sys.exit(done.stdout)


def main():
    for program in (OURS, THEIRS):
        if not shutil.which(program):
            sys.exit(f"{program}: not there; build the target torchrun, and run this by a Python with PyTorch")
    if sys.argv[1:] == ["--check"]:
        check()
        return
    record(GOLDEN, sys.argv[1:], THEIRS_KEPT)
    done = judged(GOLDEN)
    if done.returncode:
        sys.exit(done.stdout)


if __name__ == "__main__":
    main()
