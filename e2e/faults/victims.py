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
from plane import job_path, pod_path

START_S = 5  # capabilities.md: the first pod is created within it
REQUESTS = 3  # and of the operator's own until then: status, Service, Pod. What they take is the API server's, as slow as it is now
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

    def prove(self, limit=START_S):
        """A job from its creation to its end: (seconds to its first pod, seconds to its success, complaint or None)."""
        self.number += 1
        name, asked = f"victim-{self.number}", time.monotonic()
        self.api.post(job_path(self.ns), job(name, run=0))
        began, pod = time.monotonic(), f"{name}-node-0"
        limit += REQUESTS * (began - asked)
        try:
            if not self.await_news(lambda: pod in self.born, began + max(limit, START_S)):
                return limit, None, f"the victim's first pod was not created within {max(limit, START_S):.1f} s"
            start = self.born[pod] - began
            ended = self.await_news(lambda: self.phases.get(name) in ("Succeeded", "Failed"), began + END_S)
            end = time.monotonic() - began
            if not ended or self.phases[name] != "Succeeded":
                return start, None, f"the victim's job is {self.phases.get(name)} after {end:.1f} s"
            return start, end, None if start <= limit else f"the victim's first pod came after {start:.1f} s, {limit:.1f} s are allowed"
        finally:
            self.clear(name)

    def await_news(self, true, until):
        with self.news:
            return self.news.wait_for(true, max(0, until - time.monotonic()))

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
            follow.ending = True
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
