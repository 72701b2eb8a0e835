"""victims.py - a tenant with small jobs of one pod, each of which must start and succeed whatever others do; and the
operator's memory meanwhile."""

import os
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import measure
from follow import Follow
from jobs import job
from kubelet import Kubelet
from plane import job_path, pod_path, running

WORK_S = 5  # of a processor for the operator, from a victim's job to its first pod: what others wrote must not cost more, on no machine
END_S = 600  # bounds a hang
MEMORY_MIB, GROWTH_MIB = 64, 4
KILL_MIB = 512  # no machine is to go down with the operator
SAMPLE_S = 0.2


@dataclass
class Tally:
    """Of a group of shapes, or of a case."""
    tried: int = 0
    taken: int = 0
    refusals: Counter = field(default_factory=Counter)
    memory: float = 0
    start: float = 0
    end: float = 0
    seconds: float = 0
    problems: list = field(default_factory=list)


def worked_s(pid):
    try:
        return measure.cpu_s(pid)
    except OSError:  # it has ended, which others tell
        return 0


class Victims:
    def __init__(self, plane):
        self.plane, self.api, self.ns = plane, plane.api, plane.namespace()
        self.born, self.phases, self.number, self.news = {}, {}, 0, threading.Condition()
        self.kubelet = Kubelet(plane, self.ns)
        self.follows = [Follow(self.api, pod_path(self.ns), self.seen_pod), Follow(self.api, job_path(self.ns), self.seen_job)]
        for follow in self.follows:
            follow.start()

    def seen_pod(self, pod, gone):
        with self.news:
            if not gone:
                self.born.setdefault(pod["metadata"]["name"], time.monotonic())
            self.news.notify_all()

    def seen_job(self, job, gone):
        with self.news:
            self.phases[job["metadata"]["name"]] = "gone" if gone else job.get("status", {}).get("phase")
            self.news.notify_all()

    def prove(self, pid):
        """A job from its creation to its end under the operator that is this process: (seconds to its first pod, seconds to its
        success, complaint or None)."""
        self.number += 1
        name = f"victim-{self.number}"
        worked, began, pod = worked_s(pid), time.monotonic(), f"{name}-node-0"
        try:
            self.api.post(job_path(self.ns), job(name, run=0))
            if not self.await_news(pid, lambda: pod in self.born):
                return time.monotonic() - began, None, "the victim has no pod"
            worked, self.last = worked_s(pid) - worked, (began, self.born[pod])
            start = self.born[pod] - began
            self.await_news(pid, lambda: self.phases.get(name) in ("Succeeded", "Failed"))
            if self.phases.get(name) != "Succeeded":
                return start, None, f"the victim's job is {self.phases.get(name)} after {time.monotonic() - began:.1f} s"
            return start, time.monotonic() - began, None if worked <= WORK_S else (
                f"the operator worked for {worked:.1f} s before the victim's first pod, {WORK_S} s are allowed")
        finally:
            self.clear(name)

    def await_news(self, pid, true):
        """False when the operator has ended, or nothing happens."""
        end = time.monotonic() + END_S
        with self.news:
            while not self.news.wait_for(true, 1):
                if not running(pid) or time.monotonic() > end:
                    return False
        return True

    def clear(self, name):
        """There is no garbage collector here."""
        self.api.send("DELETE", job_path(self.ns, name))
        self.api.send("DELETE", pod_path(self.ns, f"{name}-node-0") + "?gracePeriodSeconds=0")
        self.api.send("DELETE", f"/api/v1/namespaces/{self.ns}/services/{name}-rdzv")

    def check(self):
        self.kubelet.check()
        for follow in self.follows:
            if follow.problem:
                raise AssertionError(follow.problem)

    def close(self):
        for follow in self.follows:
            follow.end()
        self.kubelet.close()


class Memory(threading.Thread):
    """Ends an operator that takes KILL_MIB, and knows the most that it took since the last look."""

    def __init__(self, operator):
        super().__init__(daemon=True)
        self.operator, self.pid, self.killed = operator, operator.pid, False
        self.start()

    def run(self):
        while self.operator.process.popen.poll() is None:
            if self.now("VmRSS") > KILL_MIB:
                self.killed = True
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(SAMPLE_S)

    def now(self, field="VmRSS"):
        """In MiB; 0 once it has ended."""
        try:
            return measure.memory_kib(self.pid, field) / 1024
        except (OSError, KeyError):
            return 0

    def most(self):
        """The kernel keeps the maximum, and here it begins anew."""
        most = self.now("VmHWM")
        try:
            Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        except OSError:
            pass
        return KILL_MIB if self.killed else most
