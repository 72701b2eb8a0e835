"""launchers.py - run one command line with both launchers, ours and PyTorch's, and observe each: how it ended, how each rank was
started, the files it left, its output. Values that differ from run to run (ids, ports, times) are masked, so that two
observations can be compared. It needs no cluster."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from kube import BOUND_S, REPO

TORCHRUN = REPO / "build/release/bin/torchrun"
RANKS = REPO / "e2e/ranks"
MODULES = {"torchrun": "torch.distributed.run", "launch": "torch.distributed.launch"}


def environment(folder, extra):
    """The environment of a launcher: of the tester's variables only those that a program needs."""
    for name in ("notes", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(folder), "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8", "PROBE_NOTES": str(folder / "notes"), "PYTHONDONTWRITEBYTECODE": "1", **extra}


@dataclass
class Launch:
    """A running launcher in its own folder. `wait` returns its status as waitpid does. `begun` lists all of them for end_all."""
    begun: ClassVar[list] = []
    folder: Path
    environment: dict
    pid: int
    wait: callable
    status: int = None

    def __post_init__(self):
        self.begun.append(self)

    def end(self):
        """Exit status as a shell tells it: 128 + n for signal n."""
        if self.status is None:
            bound = threading.Timer(BOUND_S, os.kill, (self.pid, signal.SIGKILL))
            bound.start()
            try:
                code = os.waitstatus_to_exitcode(self.wait())
            finally:
                bound.cancel()
            self.status = code if code >= 0 else 128 - code
        return self.status

    def text(self, name):
        path = self.folder / name
        return path.read_bytes().decode(errors="replace") if path.exists() else ""

    def notes(self, kind):
        """The ranks' notes so far, by RESTARTS.RANK."""
        return {path.name.split("-", 1)[1]: json.loads(path.read_text())
                for path in sorted((self.folder / "notes").glob(f"{kind}-*")) if path.suffix != ".new"}

    def wait_notes(self, kind, count):
        give_up = time.monotonic() + BOUND_S
        while len(found := self.notes(kind)) < count:
            assert time.monotonic() < give_up, f"{kind}: {found}, {count} wanted\n{self.text('err')}"
            time.sleep(0.02)
        return found

    def signal(self, number):
        os.kill(self.pid, number)


class Ours:
    name = "ours"

    def start(self, folder, words, extra=None, program="torchrun"):
        env = environment(folder, extra or {})
        with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
            # argv[0] says which of the two programs it is
            process = subprocess.Popen([program, *words], executable=TORCHRUN, cwd=folder, env=env, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, start_new_session=True)
        return Launch(folder, env, process.pid, lambda: os.waitpid(process.pid, 0)[1])

    def close(self):
        pass


class Theirs:
    """PyTorch's launcher: one process that has imported torch and forks for each launch (theirs.py)."""
    name = "theirs"

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, Path(__file__).with_name("theirs.py")], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        assert json.loads(self.process.stdout.readline()) == "ready"

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, folder, words, extra=None, program="torchrun"):
        env = environment(folder, extra or {})
        pid = self.ask({"module": MODULES[program], "words": words, "environment": env, "directory": str(folder),
                        "out": str(folder / "out"), "err": str(folder / "err")})
        return Launch(folder, env, pid, lambda: self.ask({"wait": pid}))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- observations of a launch ----

FRESH_ID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{16}"
HOSTS = {socket.gethostname(), socket.getfqdn(socket.gethostname()), "localhost", "127.0.0.1"}
# Memory of our launcher that a rank may open, as PID/NUMBER: decoded data, and /RANK more: where it tells its state.
OF_OURS = {" $TORCHKEEPER_KEPT_DATA": r"\d+/\d+", " $TORCHKEEPER_RANK_STATE": r"\d+/\d+/\d+"}
TESTERS = ("notes", "out", "err", "given", "tmp")


def masked(text, launch):
    """The launch's folder, fresh ids, random endings of log folders, and the folder that stands in for --log-dir: ours makes one
    level, PyTorch's two."""
    text = text.replace(str(launch.folder), "<folder>")
    text = re.sub(rf"(?<![0-9a-f])({FRESH_ID})(?![0-9a-f])", "<fresh>", text)
    text = re.sub(r"<folder>/tmp/torchelastic_\w+/([^/]+_\w+/)?attempt_", "<own>/attempt_", text)
    return re.sub(r"(^|/)([^/]+?)_\w+/attempt_", r"\1\2_<random>/attempt_", text)


def started(launch, ports):
    """How each rank was started: words, Python's flags, and what the launcher added to the environment or changed there."""
    for key, note in launch.notes("start").items():
        for name, value in note.pop("environment").items():
            if launch.environment.get(name) == value or name == "TORCHINDUCTOR_CACHE_DIR":
                continue  # the latter is set by whatever imports torch._inductor, for itself
            if name == "MASTER_PORT":
                value = "<given>" if value in ports else "<free>"
            if name == "MASTER_ADDR" and value in HOSTS:
                value = "<this host>"
            yield f"rank {key} ${name}", masked(value, launch)
        for name, value in note.items():
            yield f"rank {key} {name}", masked(str(value), launch)


def left(launch):
    """The remaining files with their content, except the tester's own."""
    for path in sorted(launch.folder.rglob("*")):
        name = masked("/" + str(path.relative_to(launch.folder)), launch)[1:]
        if path.is_dir() or name.split("/")[0] in TESTERS:
            continue
        text = path.read_text(errors="replace")
        yield f"file {name}", json.loads(text) if path.suffix == ".json" else sorted(text.splitlines())


def said(text):
    """The ranks' lines, each of which names a rank; of the launchers' own output only the report is compared."""
    return sorted(re.findall(r"^.*\brank \d .*$", re.sub(r"^(torchrun: |[EWI]\d{4} ).*$", "", text, flags=re.M), flags=re.M))


def reported(text, launch):
    """The root cause in the report on stderr: rank, exit code, error file, and what it says of the cause."""
    found = re.search(r"Root Cause .*\n(?:.*\n)+?  rank      : (.*)\n  exitcode  : (.*) \(pid: \d+\) ?\n  error_file: (.*)\n"
                      r"  traceback : ((?:.*\n)*?)===", text)
    if not found:
        return ()
    rank, code, file, cause = (re.sub(r"\d{4,}", "<number>", masked(value.strip(), launch)) for value in found.groups())
    return (("report rank", rank), ("report exit code", code), ("report error file", file), ("report cause", cause))


@dataclass
class Seen:
    status: int
    facts: dict
    told: str


def see(launch, ports=()):
    """`ended` is ok; refused: no rank was started; or failed."""
    status = launch.end()
    out, err = launch.text("out"), launch.text("err")
    ranks = dict(started(launch, ports))
    began = ranks or said(out)
    facts = {"ended": "ok" if status == 0 else "failed" if began else "refused", **ranks, **dict(left(launch)), "out": said(out),
             "err": said(err.split(" FAILED\n")[0]), "OMP_NUM_THREADS is told of": "OMP_NUM_THREADS" in err,
             **dict(reported(err, launch)), **{f"rank {k} was told to save by": v for k, v in launch.notes("saved").items()}}
    return Seen(status, facts, out + err)


def differences(ours, theirs):
    """The differences: {fact: (ours, theirs)}, None for a missing one. Three differences all cases share: under our launcher worker
    rank 0 serves the store, ranks get memory's variables (OF_OURS), and an error file's path is absolute."""
    return {fact: (ours.facts.get(fact), theirs.facts.get(fact)) for fact in {**ours.facts, **theirs.facts}
            if ours.facts.get(fact) != theirs.facts.get(fact)
            and not (fact.endswith(" $TORCHELASTIC_USE_AGENT_STORE") and ours.facts.get(fact) == "False")
            and not (fact.endswith((" $TORCHELASTIC_ERROR_FILE", " error file"))
                     and ours.facts.get(fact) == f"<folder>/{theirs.facts.get(fact)}")
            and not any(fact.endswith(name) and re.fullmatch(form, ours.facts.get(fact) or "") for name, form in OF_OURS.items())}


def alive(pid):
    """False also for a zombie that another process will reap."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def stay(pids):
    """Wait until they have ended; returns those that have not."""
    give_up = time.monotonic() + BOUND_S
    while (left_over := [pid for pid in pids if alive(pid)]) and time.monotonic() < give_up:
        time.sleep(0.02)
    return left_over


def noting_in(folder):
    """Processes that were given a place under `folder` for their notes: launchers, ranks, and what these start."""
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if f"\0PROBE_NOTES={folder}/".encode() in b"\0" + environ.read_bytes():
                yield int(environ.parent.name)


def end_all(folder):
    """Kill and reap the launchers that still run, then whatever was started under `folder`: ranks have sessions of their own, and
    PyTorch's outlive their launcher."""
    while Launch.begun:
        launch = Launch.begun.pop()
        if launch.status is None:
            launch.signal(signal.SIGKILL)
            launch.end()
    give_up = time.monotonic() + BOUND_S
    while pids := list(noting_in(folder)):
        assert time.monotonic() < give_up, f"{pids} are not to be killed"
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
