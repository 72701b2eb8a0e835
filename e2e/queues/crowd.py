#!/usr/bin/env python3
"""crowd.py - 200 jobs of 4 pods, of two priorities, through a queue with room for 10 of them and two pods, while the operator and Kueue
are killed at random: every job ends, no quota is lost, no pod exists without admission, and they are admitted in the same order as
Kueue's own Jobs, which go first. Judged by etcd's whole history. Then, undisturbed: how soon quota goes back after the last pod."""

import json
import os
import random
import statistics
import sys
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from cases import Cases, check
from follow import Follow
from kubelet import FATE, JOB, Kubelet
from plane import ACCOUNT, SYSTEM, job_path, pod_path
from queues import END_S, PRIORITY, QUEUE, RESOURCE, Queues, condition, holds, job, workload_path

JOBS, KILLS, MEASURED = {False: 200, True: 40}, {False: 20, True: 4}, {False: 40, True: 12}
PODS, AT_ONCE, SPARE = 4, 10, 2
RUN_S, CREATE_S, KILL_S = (0.2, 1.5), (0.05, 0.2), (0.5, 3)
BACK_S = 1.0
# Kueue sees a Workload some time after it is made, and after its own start it sees them one by one.
SEEN_S = 5


def batch_job(name, priority, run):
    """Kueue's own kind, of the same size; the label is for the simulated node."""
    template = {"metadata": {"labels": {JOB: name}, "annotations": {FATE: json.dumps({"run": run, "codes": [0]})}},
                "spec": {"restartPolicy": "Never", "containers": [
                    {"name": "pytorch", "image": "none", "resources": {"limits": {RESOURCE: "1"}}}]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": {QUEUE: "queue", PRIORITY: priority}},
            "spec": {"parallelism": PODS, "completions": PODS, "suspend": True, "template": template}}


def draw(dice, n):
    """(name, priority, run) of each job."""
    return [(f"job-{i}", dice.choice(["low", "low", "high"]), round(dice.uniform(*RUN_S), 2)) for i in range(n)]


# --- the past


def seconds(stamp):
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


@dataclass
class Life:
    """Of a Workload: its rank, and [from, to, the second of the admission] in revisions for each time that it waited or was admitted."""
    job: str
    priority: int
    created: float
    waits: list = field(default_factory=list)
    spans: list = field(default_factory=list)
    finished: bool = False
    counts: list = field(default_factory=list)  # the pods of each admission

    def see(self, workload, revision):
        if holds(workload, "Finished") or holds(workload, "QuotaReserved"):
            close(self.waits, revision)
        elif not (self.waits and self.waits[-1][1] is None):
            self.waits.append([revision, None])
        if holds(workload, "Admitted") and not holds(workload, "Finished"):
            if not (self.spans and self.spans[-1][1] is None):
                self.spans.append([revision, None, seconds(condition(workload, "Admitted")["lastTransitionTime"])])
                self.counts += [s["count"] for s in workload["status"]["admission"]["podSetAssignments"]]
        else:
            close(self.spans, revision)
        self.finished = holds(workload, "Finished")

    def waited_at(self, revision):
        return any(begin < revision and (end is None or end > revision) for begin, end in self.waits)


def close(spans, revision):
    if spans and spans[-1][1] is None:
        spans[-1][1] = revision


def lives(plane, ns, until):
    """Of all Workloads that ever were, from all their versions."""
    there, found = {}, []
    for key, revision, value in plane.past(f"/registry/kueue.x-k8s.io/workloads/{ns}/", until):
        if value is None:
            close(there[key].spans, revision)
            close(there.pop(key).waits, revision)
            continue
        workload = json.loads(value)
        meta = workload["metadata"]
        if key not in there:
            there[key] = Life(meta["ownerReferences"][0]["name"], workload["spec"].get("priority", 0), seconds(meta["creationTimestamp"]))
            found.append(there[key])
        there[key].see(workload, revision)
    return found


def births(plane, ns, until):
    """(job, revision) of each pod."""
    there = set()
    for key, revision, value in plane.past(f"/registry/pods/{ns}/", until):
        if value is None:
            there.discard(key)
        elif key not in there:
            there.add(key)
            yield key.rpartition("-node-")[0], revision


def out_of_order(found, starts):
    """Admissions while one of a higher rank waited that Kueue had seen for a while."""
    wrong = []
    for life in found:
        for revision, _, second in life.spans:
            if any(killed - 1 <= second <= ready + SEEN_S for killed, ready in starts):
                continue
            for other in found:
                before = other.priority > life.priority or (other.priority == life.priority and other.created < life.created)
                if before and other.created < second - SEEN_S and other.waited_at(revision):
                    wrong.append(f"{life.job} before {other.job}")
    return wrong


def most_at_once(found):
    steps = sorted(step for life in found for begin, end, _ in life.spans for step in ((begin, 1), (end or sys.maxsize, -1)))
    now = most = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


# --- the runs


class Together(Kubelet):
    """A node whose pods wait for each other, as ranks do: none ends before all of its job run."""

    def __init__(self, plane):
        self.whole = set()  # UIDs
        super().__init__(plane)

    def seen(self, pod, gone):
        super().seen(pod, gone)
        job_of = self.job_of(pod)
        running = [p for p in list(self.pods.values()) if self.job_of(p) == job_of and p["status"].get("phase") == "Running"]
        uids = {p["metadata"]["uid"] for p in running}
        if len(uids) == PODS and not uids <= self.whole:
            self.whole |= uids
            for one in running:
                super().seen(one, False)

    @staticmethod
    def job_of(pod):
        return pod["metadata"]["namespace"], pod["metadata"].get("labels", {}).get(JOB)

    def step_of(self, pod):
        step = super().step_of(pod)
        return None if step == self.end and pod["metadata"]["uid"] not in self.whole else step


class Run:
    def __init__(self, plane, dice):
        self.plane, self.dice, self.api = plane, dice, plane.api
        self.ns = plane.namespace()
        self.starts = []  # of Kueue: when it was killed, and when it was ready again
        plane.queues(self.ns, AT_ONCE * PODS + SPARE, queueingStrategy="StrictFIFO")

    def create(self, path, manifests):
        for manifest in manifests:
            self.api.post(path, manifest)
            time.sleep(self.dice.uniform(*CREATE_S))

    def wait(self, what, true):
        self.plane.wait(what, true, END_S, 0.5)

    def judge(self, n, at_once=None):
        """The past of the Workloads, when the jobs have ended; at_once: no more than so many were admitted together."""
        self.wait("usage 0", lambda: self.plane.usage(self.ns) == 0)
        items = self.api.get(workload_path(self.ns))["items"]
        mark = self.api.patch(workload_path(self.ns, items[0]["metadata"]["name"]), {"metadata": {"annotations": {"mark": "end"}}})
        found = lives(self.plane, self.ns, int(mark["metadata"]["resourceVersion"]))
        ends = sum(life.finished for life in found)
        check(ends == n, f"{ends} of {n} finished")
        check(not any(span[1] is None for life in found for span in life.spans), "quota is held")
        check(at_once is None or most_at_once(found) <= at_once, f"{most_at_once(found)} at once")
        wrong = out_of_order(found, self.starts)
        spans = sum(len(life.spans) for life in found)
        print(f"        {n} jobs, {spans} admissions, at most {most_at_once(found)} at once, {len(wrong)} out of order", flush=True)
        check(not wrong, wrong[:3])
        return found


def own_jobs(plane, dice, n):
    """Kueue's own Jobs, for comparison. Each gives its quota back pod by pod, so that more than AT_ONCE may run."""
    run = Run(plane, dice)
    kubelet = Kubelet(plane)
    path = f"/apis/batch/v1/namespaces/{run.ns}/jobs"
    began = time.monotonic()
    run.create(path, [batch_job(*one) for one in draw(dice, n)])
    run.wait("the Jobs to end", lambda: sum(j["status"].get("succeeded", 0) == PODS for j in run.api.get(path)["items"]) == n)
    print(f"        {time.monotonic() - began:.1f} s", flush=True)
    run.judge(n)
    kubelet.close()


class Maker(threading.Thread):
    """Creates the jobs, while the main thread kills and starts: a child ends with the thread that started it."""

    def __init__(self, run, manifests):
        super().__init__(daemon=True)
        self.run_, self.manifests, self.problem = run, manifests, None

    def run(self):
        try:
            self.run_.create(job_path(self.run_.ns), self.manifests)
        except Exception as e:  # reported to the main thread
            self.problem = e


def strike(run, kills):
    """Kill the operator and Kueue in turn, each at once started again. Returns the last operator."""
    plane = run.plane
    access = plane.flags(plane.token(SYSTEM, ACCOUNT))
    operator = None
    for number in range(kills + 1):
        if number % 2:
            killed = time.time()
            plane.kill_kueue()
            plane.kueue_up()
            run.starts.append((killed, time.time()))
        else:
            if operator:
                plane.processes.remove(operator.process)
                operator.process.popen.kill()
                operator.process.popen.wait()
            operator = plane.operator(access, "--leader-elect=false", name=f"operator-{number}")
        if number < kills:
            time.sleep(run.dice.uniform(*KILL_S))
    return operator


def struck(plane, dice, n, kills):
    run = Run(plane, dice)
    kubelet = Together(plane)
    maker = Maker(run, [job(name, PODS, priority=priority, run=length) for name, priority, length in draw(dice, n)])
    began = time.monotonic()
    maker.start()
    operator = strike(run, kills)
    struck_s = time.monotonic() - began

    def phases():
        kubelet.check()
        check(not maker.problem, maker.problem)
        return Counter(j.get("status", {}).get("phase") for j in run.api.get(job_path(run.ns))["items"])
    early = phases()["Succeeded"]
    run.wait("the jobs to end", lambda: phases()["Succeeded"] + phases()["Failed"] == n)
    check(phases()["Succeeded"] == n, phases())
    print(f"        {time.monotonic() - began:.1f} s, {kills} kills in the first {struck_s:.1f} s, when {early} had ended", flush=True)
    judge_pods(run, run.judge(n, AT_ONCE))
    operator.end()
    kubelet.close()


def judge_pods(run, found):
    """Each in an admission of its job; four in each that led to the job's end."""
    fence = run.api.post(pod_path(run.ns), {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "fence"}, "spec": {
        "containers": [{"name": "fence", "image": "none"}]}})
    by_job = defaultdict(list)
    for name, revision in births(run.plane, run.ns, int(fence["metadata"]["resourceVersion"])):
        by_job[name].append(revision)
    by_job.pop("fence", None)
    for life in found:
        inside = [sum(begin < r <= end for r in by_job[life.job]) for begin, end, _ in life.spans]
        outside = len(by_job[life.job]) - sum(inside)
        others = [other for other in found if other.job == life.job]
        check(len(others) > 1 or outside == 0, f"{life.job}: {outside} pods without admission")
        check(max(inside, default=0) <= PODS, f"{life.job}: pods by admission: {inside}")
        check(set(life.counts) <= {PODS}, f"{life.job}: admitted with {life.counts} pods")
        check(not life.finished or inside[-1] == PODS, f"{life.job}: pods by admission: {inside}")


class Watched:
    """When each job's last pod had ended, and when its Workload gave the quota back."""

    def __init__(self, run):
        self.alive, self.last, self.back, self.jobs = defaultdict(set), {}, {}, {}
        self.held = set()
        self.follows = [Follow(run.api, pod_path(run.ns), self.seen_pod), Follow(run.api, workload_path(run.ns), self.seen_workload)]
        for follow in self.follows:
            follow.start()

    def seen_pod(self, pod, gone):
        name, job_name = pod["metadata"]["name"], pod["metadata"]["labels"].get(JOB)
        if gone or pod["status"].get("phase") in ("Succeeded", "Failed"):
            if name in self.alive[job_name]:
                self.alive[job_name].discard(name)
                if not self.alive[job_name]:
                    self.last[job_name] = time.monotonic()
        else:
            self.alive[job_name].add(name)

    def seen_workload(self, workload, gone):
        name = workload["metadata"]["ownerReferences"][0]["name"]
        if holds(workload, "QuotaReserved") and not holds(workload, "Finished"):
            self.held.add(name)
        elif name in self.held:
            self.held.discard(name)
            self.back.setdefault(name, []).append(time.monotonic() - self.last.get(name, time.monotonic() - 1e6))

    def close(self):
        for follow in self.follows:
            follow.end()


def undisturbed(plane, dice, n):
    run = Run(plane, dice)
    kubelet, watched = Together(plane), Watched(run)
    operator = plane.operator(None, "--leader-elect=false")
    run.create(job_path(run.ns), [job(name, PODS, priority=priority, run=length) for name, priority, length in draw(dice, n)])
    run.wait("the jobs to end", lambda: sum(j.get("status", {}).get("phase") == "Succeeded" for j in run.api.get(job_path(run.ns))["items"]) == n)
    run.wait("the quota to go back", lambda: len(watched.back) == n and not watched.held)
    times = sorted(t for each in watched.back.values() for t in each)
    print(f"        quota back after {statistics.median(times):.3f} s, at most {times[-1]:.3f} s, {len(times)} times", flush=True)
    check(times[-1] <= BACK_S, f"quota back after {times[-3:]} s")
    watched.close()
    operator.end()
    kubelet.close()


def main():
    cases = Cases("crowd", __doc__)
    cases.parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    args = cases.parse()
    print(f"seed {args.seed}", flush=True)
    with cases.up(Queues(args.operator, history=True)) as plane:
        plane.install()
        plane.kueue_up()
        plane.priorities(low=1, high=10)
        for name, play in (("Kueue's own Jobs", lambda dice: own_jobs(plane, dice, JOBS[args.short])),
                           ("undisturbed", lambda dice: undisturbed(plane, dice, MEASURED[args.short])),
                           ("operator and Kueue killed", lambda dice: struck(plane, dice, JOBS[args.short], KILLS[args.short]))):
            if cases.wanted(name):
                with cases(name):
                    play(random.Random(args.seed))
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
