"""victims.py - the processes of one job's pods on this machine: their roles, cgroups and networks."""

import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

GONE = (FileNotFoundError, ProcessLookupError)
HIDDEN = (*GONE, PermissionError)
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Process:
    pid: int
    name: str  # trainer, torchrun, pause, ...
    pod: str
    rank: int  # -1: none

    def __str__(self):
        return f"rank {self.rank}" if self.rank >= 0 else f"{self.name} of {self.pod}"

    def send(self, number):
        """False: it is gone."""
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def stands_still(self):
        """Whether each of its threads is stopped, or it is gone."""
        with suppress(*GONE):
            return all(task.joinpath("stat").read_text().rpartition(")")[2].split()[0] in "TZX"
                       for task in Path(f"/proc/{self.pid}/task").iterdir())
        return True

    def kill(self):
        return self.send(signal.SIGKILL)


def look_at(folder, job_uid):
    """The process when it is one of the job's, else None."""
    try:
        words = dict(w.split(b"=", 1) for w in (folder / "environ").read_bytes().split(b"\0") if b"=" in w)
        if words.get(b"PTJ_JOB_UID") != job_uid.encode():
            return None
        name = (folder / "comm").read_text().strip()
    except HIDDEN:
        return None
    rank = int(words.get(b"RANK", b"-1")) if name == "trainer" else -1
    return Process(int(folder.name), name, words.get(b"HOSTNAME", b"").decode(), rank)


def processes(job_uid):
    """All of the job's, ranks in their order first."""
    found = (look_at(p, job_uid) for p in Path("/proc").iterdir() if p.name.isdigit())
    return sorted((p for p in found if p), key=lambda p: (p.rank < 0, p.rank, p.pid))


def cgroup(pid, controller):
    """The folder of the process's container in this controller's tree: version 1, or the only tree of version 2."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return CGROUPS / controller / path.lstrip("/")
        if not controllers and (CGROUPS / "cgroup.controllers").exists():
            return CGROUPS / path.lstrip("/")
    raise ProcessLookupError(f"process {pid} is in no cgroup of {controller}")


def pause_of(process):
    """The process that keeps the pod's namespaces: the init of its sandbox. None: gone."""
    with suppress(*GONE):
        for file in cgroup(process.pid, "memory").parent.glob("*/cgroup.procs"):
            for pid in file.read_text().split():
                if Path(f"/proc/{pid}/comm").read_text() == "pause\n":
                    return Process(int(pid), "pause", process.pod, -1)
    return None


def in_network(process, *command):
    """Run it in the pod's network namespace. False: the pod is gone."""
    done = subprocess.run(["nsenter", "--target", str(process.pid), "--net", *command], capture_output=True, text=True)
    if done.returncode and Path(f"/proc/{process.pid}").exists():
        raise RuntimeError(f"{' '.join(command)} in {process.pod}: {done.stderr.strip()}")
    return done.returncode == 0


def set_cpu_limit(process, share):
    """This share of one CPU for the process's container; None: no limit."""
    folder = cgroup(process.pid, "cpu")
    if (folder / "cpu.max").exists():
        (folder / "cpu.max").write_text(f"{int(share * 100000) if share else 'max'} 100000")
    else:
        (folder / "cpu.cfs_quota_us").write_text(str(int(share * 100000) if share else -1))


def eat_memory(process):
    """Fill the pod's /dev/shm from within the container's cgroup, by a process that the kernel would kill last: so the
    container's memory is full, and the kernel kills one of its processes. Returns the filling process."""
    tasks = cgroup(process.pid, "memory") / "cgroup.procs"
    text = 'echo $$ >"$0" && exec dd if=/dev/zero of="$1" bs=1M'
    return subprocess.Popen(["sh", "-c", text, str(tasks), f"/proc/{process.pid}/root/dev/shm/filler"],
                            stderr=subprocess.DEVNULL)


def newest_step(folder):
    """The step of the newest checkpoint; 0 when there is none."""
    names = (re.fullmatch(r"step-(\d+).*", p.name) for p in folder.glob("*/step-*"))
    return max((int(n[1]) for n in names if n), default=0)
