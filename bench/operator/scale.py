"""The operator at scale: N jobs of P pods created at once on a real control plane with pretend nodes, where each pod runs
for 5 s and succeeds, compared with a bare client that only creates as many pods. Prints the measurements; exits with 1
if a count is wrong, whatever the speed."""

import argparse
import json
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

import measure
from api import GROUP, Api, ApiError, Watch, head
from rig import OPERATOR_ACCOUNT, REPO, Rig, RigError, ports

IN_FLIGHT = 8  # as many as the operator's own pool
SETTLE_S = 3
JOB_LABEL = "batch.tensorstack.dev/job"


class BenchError(Exception):
    pass


def job_manifest(ns, name, pods):
    container = {"name": "pytorch", "image": "example.org/train:1", "args": ["train.py", "--epochs", "5"],
                 "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                 "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}
    template = {"spec": {"containers": [container], "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}}
    return {"apiVersion": "batch.tensorstack.dev/v1beta1", "kind": "PyTorchTrainingJob",
            "metadata": {"name": name, "namespace": ns},
            "spec": {"torchrunConfig": {"enabled": True, "procPerNode": "1"},
                     "replicaSpecs": [{"type": "worker", "replicas": pods, "restartPolicy": "OnFailure",
                                       "template": template}]}}


def copy(item, kind, ns, keys):
    """An object as its client sent it, in another namespace: without what the API server added."""
    spec = {key: item["spec"][key] for key in keys if key in item["spec"]}
    for part in spec.get("containers", []):
        part["volumeMounts"] = [m for m in part["volumeMounts"] if "serviceaccount" not in m["mountPath"]]
    if "volumes" in spec:
        spec["volumes"] = [v for v in spec["volumes"] if "projected" not in v]
    return {"apiVersion": "v1", "kind": kind, "spec": spec, "metadata": {
        "name": item["metadata"]["name"], "namespace": ns, "labels": item["metadata"]["labels"]}}


class Seen:
    """What the bench's own watches saw of jobs and pods of one namespace, by name, with times."""

    def __init__(self, api, ns):
        self.pods = {}  # name: when it was first seen
        self.first_pod = {}  # job: likewise
        self.pods_deleted = 0
        self.phases = {}
        self.finished_ns = {}
        self.watches = [Watch(api, f"/api/v1/namespaces/{ns}/pods", self.pod),
                        Watch(api, f"{GROUP}/namespaces/{ns}/pytorchtrainingjobs", self.job)]

    def pod(self, line, now):
        kind, name = head(line)
        if kind == "ADDED":
            job = name.rsplit("-", 2)[0]
            self.pods[name] = now
            self.first_pod.setdefault(job, now)
        elif kind == "DELETED":
            self.pods_deleted += 1

    def job(self, line, now):
        event = json.loads(line)
        name, phase = event["object"]["metadata"]["name"], event["object"].get("status", {}).get("phase")
        self.phases[name] = phase
        if phase in ("Succeeded", "Failed"):
            self.finished_ns.setdefault(name, now)


class Bench:
    def __init__(self, args, rig):
        self.args, self.rig = args, rig
        self.watches = []
        self.n_jobs = 0  # of all phases
        self.problems = []
        self.audit = measure.Audit(rig.audit_log)

    # --- parts --------------------------------------------------------------------------------------------

    def check(self, true, message):
        if not true:
            self.problems.append(message)
            print(f"  WRONG: {message}", flush=True)

    def prepare(self):
        rig = self.rig
        rig.up(self.args.version)
        rig.kubectl("apply", "--server-side", "-f", str(REPO / "crds/pytorchtrainingjob.yaml"), "-f", str(REPO / "deploy/manager/namespace.yaml"))
        rig.kubectl("apply", "-k", str(REPO / "deploy/rbac"))
        self.api = Api(rig)
        self.flags = rig.flags(rig.token(*OPERATOR_ACCOUNT))
        rig.kubectl("-n", "default", "create", "serviceaccount", "maker")
        rig.kubectl("create", "clusterrolebinding", "maker", "--clusterrole=cluster-admin", "--serviceaccount=default:maker")
        self.maker = rig.token("default", "maker")
        for i in range(self.args.nodes):
            self.api.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {
                "name": f"node-{i}", "labels": {"kubernetes.io/hostname": f"node-{i}"}}})
        rig.wait("nodes", self.nodes_ready)

    def namespace(self, name):
        """A new one in which pods may be created."""
        self.rig.kubectl("create", "namespace", name)
        self.rig.wait("a service account", lambda: self.api.get(f"/api/v1/namespaces/{name}/serviceaccounts")["items"])
        return name

    def watch(self, ns):
        seen = Seen(self.api, ns)
        self.watches += seen.watches
        return seen

    def nodes_ready(self):
        nodes = self.api.get("/api/v1/nodes")["items"]
        return all(not n["spec"].get("taints") and any(c["type"] == "Ready" and c["status"] == "True" for c in
                   n.get("status", {}).get("conditions", [])) for n in nodes)

    def start_operator(self):
        port = ports.take()
        self.operator = self.rig.start("ptj-operator", [
            *self.args.wrap, self.args.operator, *self.flags,
            f"--metrics-bind-address=127.0.0.1:{port}", "--health-probe-bind-address=0",
            "--leader-elect-namespace=torchkeeper-system"])
        self.metrics = measure.Metrics(port)
        self.rig.wait("the operator", self.operator_synced)

    def operator_synced(self):
        """It lists everything at its start, and again when it has the lease."""
        try:
            lists = self.metrics.read()["reflector_lists_total"].values()
            return self.metrics.value("pytorchtrainingjob_caches_synced") == 1 and min(lists) >= 2
        except OSError:
            return False

    def wait(self, what, true):
        def go_on():
            for watch in self.watches:
                if watch.problem:
                    raise BenchError(watch.problem)
            return true()
        self.rig.wait(what, go_on, self.args.timeout, 0.05)

    def settle(self):
        """Until the operator has done nothing for a while and plans nothing: finished jobs hold no timers."""
        last = [None, 0.0]

        def quiet():
            m = self.metrics.read()
            now = [v for k in ("rest_client_requests_total", "pytorchtrainingjob_passes_total")
                   for labels, v in sorted(m[k].items()) if ("method", "PUT") not in labels]
            if sum(v for k in ("workqueue_depth", "workqueue_delayed") for v in m[k].values()):
                now = None
            if now is None or now != last[0]:
                last[:] = now, time.monotonic()
            return time.monotonic() - last[1] >= SETTLE_S
        self.wait("the operator to settle", quiet)

    def bulk_create(self, objects, every_ms=0):
        """Creates them in this order. Returns when each was sent and answered, by name."""
        done = subprocess.run([str(self.args.bulk_create), self.rig.server(), str(self.rig.authority()), str(self.maker),
                               str(IN_FLIGHT), str(every_ms)], input="".join(json.dumps(o) + "\n" for o in objects),
                              capture_output=True, text=True)
        if done.returncode:
            raise BenchError(done.stderr.strip())
        rows = [line.split() for line in done.stdout.splitlines()]
        if len(rows) != len(objects):
            raise BenchError(f"bulk_create answered {len(rows)} of {len(objects)}")
        return {name: (int(sent), int(answered)) for name, sent, answered in rows}

    def compare_requests(self, before, what):
        """The operator's own count of its writes against the API server's, which may write down a request after its answer."""
        audit, writes, end = Counter(), ("POST", "PATCH", "DELETE"), time.monotonic() + self.args.timeout
        while True:
            own = self.metrics.requests() - before
            audit += self.audit.read()
            theirs = measure.by_method(audit)
            if all(own[method] == theirs[method] for method in writes) or time.monotonic() > end:
                break
            time.sleep(0.2)
        for method in writes:
            self.check(own[method] == theirs[method],
                       f"{what}: the operator counted {own[method]} {method}, the API server {theirs[method]}")
        return audit

    # --- phases -------------------------------------------------------------------------------------------

    def create_burst(self, ns, n, p):
        """N jobs of P pods until all have succeeded. Returns what was seen, when each job was sent and, in seconds, when all jobs
        were created, all pods existed and all jobs had succeeded."""
        seen = self.watch(self.namespace(ns))
        started = time.monotonic_ns()
        created = self.bulk_create([job_manifest(ns, f"job-{i}", p) for i in range(n)])
        jobs_s = (max(t for _, t in created.values()) - started) / 1e9
        self.wait("all pods", lambda: len(seen.pods) >= n * p)
        self.wait("all jobs", lambda: len(seen.finished_ns) >= n)
        self.wait("all pods' end", lambda: self.all_pods_ended(ns, n * p))  # a job ends with its pod 0
        self.n_jobs += n
        self.verify(ns, seen, n, p)
        return (seen, created, jobs_s, (max(seen.pods.values()) - started) / 1e9,
                (max(seen.finished_ns.values()) - started) / 1e9)

    def burst(self, ns, n, p):
        pid = self.operator.pid
        idle_kib = measure.memory_kib(pid, "VmRSS")
        cpu, requests, began = measure.cpu_s(pid), self.metrics.requests(), time.monotonic()
        self.audit.read()
        print(f"{n} jobs x {p} pods at once", flush=True)
        seen, created, jobs_s, pods_s, end_s = self.create_burst(ns, n, p)
        self.settle()
        self.cpu = measure.cpu_s(pid) - cpu
        audit = self.compare_requests(requests, "burst")
        first = [(seen.first_pod[name] - sent) / 1e6 for name, (sent, _) in created.items()]
        self.burst_s = time.monotonic() - began
        self.pod_bytes = self.metrics.value("pytorchtrainingjob_cached_pod_bytes") / (n * p)
        self.requests = audit
        print(f"  jobs created                {jobs_s:9.1f} s")
        print(f"  all pods exist              {pods_s:9.1f} s")
        print(f"  all jobs succeeded          {end_s:9.1f} s")
        print(f"  job to first pod, p50 / p99 {measure.percentile(first, 50) / 1e3:9.2f} / {measure.percentile(first, 99) / 1e3:.2f} s")
        print(f"  operator: RSS idle / peak   {idle_kib / 1024:9.1f} / {measure.memory_kib(pid, 'VmHWM') / 1024:.1f} MiB")
        print(f"  operator: CPU               {self.cpu:9.2f} s")
        print(f"  operator: cache per pod     {self.pod_bytes:9.0f} bytes")
        for (verb, what), count in sorted(audit.items(), key=lambda row: (-row[1], row[0])):
            print(f"  requests: {verb:6} {what:26} {count:6}, {count / n:5.2f} per job")
        return pods_s

    def verify(self, ns, seen, n, p):
        pods = self.api.get(f"/api/v1/namespaces/{ns}/pods")["items"]
        jobs = self.api.get(f"{GROUP}/namespaces/{ns}/pytorchtrainingjobs")["items"]
        phases = Counter(j["status"].get("phase") for j in jobs)
        self.check(len(pods) == n * p, f"{len(pods)} pods, expected {n * p}")
        self.check(len(seen.pods) == n * p, f"{len(seen.pods)} pods were seen, expected {n * p}")
        self.check(seen.pods_deleted == 0, f"{seen.pods_deleted} pods were deleted, expected none")
        self.check(phases == {"Succeeded": n}, f"phases of the jobs: {dict(phases)}, expected {n} Succeeded")
        self.check(all(p["status"]["phase"] == "Succeeded" for p in pods), "not all pods succeeded")
        restarted = sum(j["status"].get("attempt", 0) + j["status"].get("backoffCount", 0) for j in jobs)
        self.check(restarted == 0, f"{restarted} restarts, expected none")

    def idle(self):
        """On a slow machine news of the pods' ends may come late, so all this time is awaited anew after each request."""
        seconds, pid, end = self.args.idle, self.operator.pid, time.monotonic() + self.args.timeout
        while True:
            self.audit.read()
            requests, cpu, started = self.metrics.requests(), measure.cpu_s(pid), time.monotonic()
            time.sleep(seconds)
            cpu = (measure.cpu_s(pid) - cpu) / (time.monotonic() - started)
            own = self.metrics.requests() - requests
            audit = self.audit.read()
            other = {key: n for key, n in audit.items() if key[1] != "leases" and key[0] != "watch"}
            wrote = own["POST"] + own["PATCH"] + own["DELETE"]
            if not other and not wrote or time.monotonic() > end:
                break
        print(f"idle for {seconds} s beside {self.args.jobs} finished jobs")
        print(f"  operator: CPU               {cpu * 100:9.2f} %")
        print(f"  requests: lease             {sum(n for k, n in audit.items() if k[1] == 'leases'):9}")
        print(f"  requests: watches ended     {sum(n for k, n in audit.items() if k[0] == 'watch'):9}")
        print(f"  requests: others            {sum(other.values()):9}", flush=True)
        self.check(not other, f"idle: requests besides watches and the lease: {other}")
        self.check(not wrote, f"idle: the operator counted writes: {dict(own)}")

    def latency(self):
        n, ns = self.args.latency, self.namespace("latency")
        seen = self.watch(ns)
        created = self.bulk_create([job_manifest(ns, f"one-{i}", 1) for i in range(n)], every_ms=100)
        names = set(created)
        self.n_jobs += n
        self.wait("their pods", lambda: names <= seen.first_pod.keys())
        ms = [(seen.first_pod[name] - sent) / 1e6 for name, (sent, _) in created.items()]
        print(f"{n} jobs x 1 pod, one every 100 ms")
        print(f"  job to first pod, p50 / p99 {measure.percentile(ms, 50):9.1f} / {measure.percentile(ms, 99):.1f} ms", flush=True)
        self.wait("their end", lambda: names <= seen.finished_ns.keys())
        failed = [name for name in names if seen.phases[name] != "Succeeded"]
        self.check(not failed, f"failed: {failed[:3]}")
        self.settle()

    def resync(self):
        """A new operator meets finished jobs: it lists, looks at each, and writes nothing."""
        if not self.rig.stop(self.operator):
            self.check(False, "the operator did not end after SIGTERM")
        self.audit.read()
        self.start_operator()
        jobs = self.n_jobs
        self.wait("each job to be looked at", lambda: self.metrics.value("pytorchtrainingjob_passes_total") >= jobs)
        self.settle()
        audit = self.audit.read()
        writes = measure.writes(audit)
        pid = self.operator.pid
        print(f"a new operator beside {jobs} finished jobs")
        print(f"  writes besides the lease    {sum(writes.values()):9}")
        print(f"  lists                       {sum(self.metrics.read()['reflector_lists_total'].values()):9.0f}")
        print(f"  CPU                         {measure.cpu_s(pid):9.2f} s")
        print(f"  RSS now / peak              {measure.memory_kib(pid, 'VmRSS') / 1024:9.1f} / {measure.memory_kib(pid, 'VmHWM') / 1024:.1f} MiB",
              flush=True)
        self.check(not writes, f"resync: writes: {writes}")

    def bare(self, ns, with_services):
        """The bare client: the pods of the first burst again by the same client code, each job's Service before them or not,
        and nothing else. Returns the seconds until all exist."""
        self.namespace(ns)
        objects = [copy(item, "Pod", ns, ("containers", "volumes", "hostname", "subdomain", "restartPolicy")) for item in
                   self.api.get("/api/v1/namespaces/burst-0/pods")["items"]]
        n_pods = len(objects)
        if with_services:
            objects += [copy(item, "Service", ns, ("clusterIP", "ports", "publishNotReadyAddresses", "selector")) for item in
                        self.api.get("/api/v1/namespaces/burst-0/services")["items"]]
        objects.sort(key=lambda o: (o["metadata"]["labels"][JOB_LABEL], o["kind"] == "Pod"))
        rows = self.bulk_create(objects)
        seconds = (max(t for _, t in rows.values()) - min(t for t, _ in rows.values())) / 1e9
        self.wait("the bare pods' end", lambda: self.all_pods_ended(ns, n_pods))
        return seconds

    def all_pods_ended(self, ns, n):
        """Their starts and ends cost the API server as much as their creation; the next phase begins after them."""
        ended = self.api.get(f"/api/v1/namespaces/{ns}/pods?fieldSelector=status.phase%3DSucceeded")["items"]
        return len(ended) == n

    def pairs(self, first_s):
        """Bursts and the bare clients in turn, with the first burst's time: what this machine does changes by the minute."""
        n, p = self.args.jobs, self.args.pods
        both, alone = [], []
        for i in range(self.args.pairs):
            ours = first_s if i == 0 else self.create_burst(f"burst-{i}", n, p)[3]
            self.settle()
            services_s = self.bare(f"bare-both-{i}", True)
            self.settle()
            pods_s = self.bare(f"bare-pods-{i}", False)
            self.settle()
            both.append(ours / services_s)
            alone.append(ours / pods_s)
            print(f"  pair {i + 1}: all pods exist after {ours:5.1f} s; a bare client over {IN_FLIGHT} connections makes the Services and "
                  f"pods in {services_s:.1f} s: {both[-1]:.2f}, the pods alone in {pods_s:.1f} s: {alone[-1]:.2f}", flush=True)
        if both:
            print(f"beside the bare client, median of {len(both)} pairs: {statistics.median(both):.2f} times its time with "
                  f"Services, {statistics.median(alone):.2f} with pods alone", flush=True)

    def many(self):
        n, p, pid = self.args.many, 2, self.operator.pid
        print(f"{n} jobs x {p} pods at once, beside what was before", flush=True)
        _, _, _, pods_s, end_s = self.create_burst("many", n, p)
        print(f"  all pods exist              {pods_s:9.1f} s")
        print(f"  all jobs succeeded          {end_s:9.1f} s")
        print(f"  operator: RSS peak          {measure.memory_kib(pid, 'VmHWM') / 1024:9.1f} MiB", flush=True)
        self.settle()
        self.takeover()

    def takeover(self):
        """A new operator meets a job that nobody has seen: it lists everything again once it has the lease, then works."""
        ns = self.namespace("takeover")
        seen = self.watch(ns)
        self.rig.stop(self.operator)
        self.audit.read()
        self.bulk_create([job_manifest(ns, "one", 1)])
        self.start_operator()
        self.wait("its pod", lambda: seen.pods)
        self.settle()
        self.audit.read()
        lease, write = (datetime.fromisoformat(self.audit.firsts[key]) for key in (("update", "leases"), ("create", "services")))
        print(f"takeover beside {self.n_jobs} finished jobs")
        print(f"  lease to first write        {(write - lease).total_seconds():9.2f} s", flush=True)

    def bounds(self):
        """What does not depend on how fast the machine is."""
        n, p, r = self.args.jobs, self.args.pods, self.requests
        self.check(r["create", "pods"] == n * p, f"{r['create', 'pods']} creates of pods, expected {n * p}")
        self.check(r["create", "services"] == n, f"{r['create', 'services']} creates of Services, expected {n}")
        self.check(self.pod_bytes <= 600, f"{self.pod_bytes:.0f} bytes of cache per pod, expected at most 600")
        # "?": whether Kueue is installed, which is no read of an object
        reads = sum(count for (verb, what), count in r.items() if verb in ("get", "list") and what != "?")
        # Caches that are 5 s behind own writes are listed again, each at most once a minute.
        most = 4 * (1 + self.burst_s // 60)
        self.check(reads <= most, f"{reads} reads during a burst of {self.burst_s:.0f} s, expected at most {most:.0f}")

    def run(self):
        self.prepare()
        self.start_operator()
        first_s = self.burst("burst-0", self.args.jobs, self.args.pods)
        self.bounds()
        self.idle()
        if self.args.latency:
            self.latency()
        self.resync()
        self.pairs(first_s)
        if self.args.many:
            self.many()


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--pods", type=int, default=4, help="per job")
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--idle", type=int, default=60, help="seconds to look at the idle operator")
    parser.add_argument("--latency", type=int, default=100, help="jobs created one after the other")
    parser.add_argument("--pairs", type=int, default=5, help="bursts beside as many runs of the bare client")
    parser.add_argument("--many", type=int, default=5000, help="jobs of 2 pods in the last phase; 0: none")
    parser.add_argument("--timeout", type=int, default=900, help="seconds that a burst may take")
    parser.add_argument("--operator", type=Path, default=REPO / "build/release/bin/ptj-operator")
    parser.add_argument("--bulk-create", type=Path, default=REPO / "build/release/bin/bulk_create")
    parser.add_argument("--version", help="minor version of Kubernetes, one of those that deploy/local/servers knows")
    parser.add_argument("--wrap", default=[], type=str.split, help="run the operator under this command, such as a profiler")
    parser.add_argument("--keep", action="store_true", help="leave the folder with the logs")
    return parser.parse_args()


def interrupted(number, frame):
    raise KeyboardInterrupt


def main():
    args = parse()
    signal.signal(signal.SIGTERM, interrupted)
    rig = Rig()
    code = 1
    try:
        bench = Bench(args, rig)
        bench.run()
        code = 1 if bench.problems else 0
    except (RigError, BenchError, ApiError, OSError) as e:
        print(f"scale.py: {e}", file=sys.stderr)
    except KeyboardInterrupt:
        print("scale.py: interrupted", file=sys.stderr)
        code = 130
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        rig.close(args.keep)
    if args.keep:
        print(f"logs: {rig.folder}")
    return code


if __name__ == "__main__":
    sys.exit(main())
