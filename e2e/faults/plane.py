"""plane.py - the cases' own control plane (deploy/local/servers), in which any part can be stopped, killed, wiped and restarted,
and operators as processes with the permissions of deploy/install.yaml."""

import http.client
import json
import os
import shutil
import signal
import ssl
import threading
import time
from pathlib import Path

from rig import OPERATOR_ACCOUNT, READY_S, REPO, Rig, RigError, ports

GROUP = "batch.tensorstack.dev"
JOBS = f"/apis/{GROUP}/v1beta1"
SYSTEM, ACCOUNT = OPERATOR_ACCOUNT
OPERATOR_USER = f"system:serviceaccount:{SYSTEM}:{ACCOUNT}"
GRACE_S = 5
MERGE = "application/merge-patch+json"
# What the operators did, and who deleted what: the checks read it.
AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:apiserver", "system:kube-controller-manager"]
- level: Metadata
  omitStages: [RequestReceived, ResponseStarted]
  users: ["%s", "operator-by-certificate"]
- level: None
""" % OPERATOR_USER


class Refused(Exception):
    """The API server's answer, when it is no success."""

    def __init__(self, method, path, code, text):
        super().__init__(f"{method} {path}: {code} {text[:400]}")
        self.code, self.text = code, text


class Client:
    """Requests of the administrator over one kept connection for each thread."""

    def __init__(self, plane):
        self.port, self.plane, self.kept = plane.port(), plane, threading.local()

    def connect(self, certificate=True):
        pki = self.plane.state / "pki"
        context = ssl.create_default_context(cafile=str(self.plane.serving_ca))
        if certificate:
            context.load_cert_chain(str(pki / "admin.crt"), str(pki / "admin.key"))
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=READY_S)

    def send(self, method, path, body=None, content="application/json", **headers):
        """(code, text). A connection that was closed meanwhile is opened again, once."""
        data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        for again in (True, False):
            connection = getattr(self.kept, "connection", None)
            fresh = connection is None
            try:
                if fresh:
                    connection = self.kept.connection = self.connect()
                connection.request(method, path, data, {"Content-Type": content, **headers})
                answer = connection.getresponse()
                return answer.status, answer.read().decode(errors="replace")
            except (OSError, http.client.HTTPException):
                self.kept.connection = None
                if fresh or not again:
                    raise
        raise AssertionError("not reached")

    def request(self, method, path, body=None, content="application/json"):
        code, text = self.send(method, path, body, content)
        if code >= 300:
            raise Refused(method, path, code, text)
        return json.loads(text)

    def get(self, path):
        return self.request("GET", path)

    def find(self, path):
        """The object, or None."""
        try:
            return self.get(path)
        except Refused as e:
            if e.code != 404:
                raise
            return None

    def post(self, path, body):
        return self.request("POST", path, body)

    def patch(self, path, body):
        return self.request("PATCH", path, body, MERGE)

    def delete(self, path, **options):
        return self.request("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", **options})


def job_path(namespace, name=""):
    return f"{JOBS}/namespaces/{namespace}/pytorchtrainingjobs" + (f"/{name}" if name else "")


def pod_path(namespace, name=""):
    return f"/api/v1/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


class Operator:
    """A running ptj-operator: its process and its log."""

    def __init__(self, plane, process, port):
        self.plane, self.process, self.port = plane, process, port

    @property
    def pid(self):
        return self.process.pid

    def said(self, *levels):
        """Its log records, of these levels or of all. A line that is no record, such as a sanitizer's, counts as an error."""
        records = []
        for line in Path(self.process.log).read_text(errors="replace").splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                record = {"level": "error", "msg": line}
            if not levels or record["level"] in levels:
                records.append(record)
        return records

    def complaints(self):
        return [r for r in self.said("warn", "error")]

    def told(self, message):
        return sum(r["msg"] == message for r in self.said())

    def end(self):
        """Stop it by SIGTERM; it must exit with 0."""
        if not self.plane.stop(self.process):
            raise RigError(f"{self.process.name} did not end when it was asked to")
        if self.process.popen.returncode != 0:
            raise RigError(f"{self.process.name} ended with {self.process.popen.returncode}: {self.complaints()[-3:]}")


class Plane(Rig):
    def __init__(self, program, controller_manager=True, version=None, wrap=(), history=False, scheduler=False):
        """history: etcd forgets nothing, as long as it is small."""
        super().__init__()
        self.always = ["--etcd-compaction-interval=0"] if history else []
        self.program, self.version, self.wrap = Path(program).resolve(), version, list(wrap)
        self.options = ["--controller-manager"] if controller_manager else []
        self.more = ["--scheduler"] if scheduler else []
        self.serving_ca = self.state / "pki" / "ca.crt"
        self.namespaces = 0

    # --- the servers

    def up(self, *more):
        """Starts what does not run; `more` are arguments of the API server."""
        (self.folder / "audit.yaml").write_text(AUDIT_POLICY)
        self.servers_begun = True
        arguments = (f"--audit-policy-file={self.folder}/audit.yaml", f"--audit-log-path={self.audit_log}",
                     "--audit-log-maxsize=100000", *self.always, *more)
        self.servers("up", str(self.state), *self.options, *self.more, *(["--version", self.version] if self.version else []),
                     *(word for argument in arguments for word in ("--apiserver-arg", argument)))
        self.api = Client(self)

    def port(self):
        return int((self.state / "config/port").read_text())

    def etcd_port(self):
        return self.port() + 1  # deploy/local/lib/servers.sh

    def part_pid(self, part):
        return int((self.state / "run" / f"{part}.pid").read_text().split()[0])

    def end_part(self, part, number=signal.SIGKILL):
        """As a kubelet ends a container: what is asked to end is killed when it has not done so in time."""
        pid = self.part_pid(part)
        os.kill(pid, number)
        if not gone_within(pid, GRACE_S):
            os.kill(pid, signal.SIGKILL)
            if not gone_within(pid, READY_S):
                raise RigError(f"{part} lives {READY_S} s after SIGKILL")

    def end_store(self, for_another=False):
        """for_another: what comes back is not what went. Kubernetes' own controllers would not notice, and have to start anew."""
        if for_another:
            self.end_part("kube-controller-manager")
        self.end_part("kube-apiserver")
        self.end_part("etcd")

    def keep_store(self):
        """A copy of etcd's data, which must not run."""
        shutil.copytree(self.state / "etcd", self.folder / "kept")

    def restore_store(self):
        shutil.rmtree(self.state / "etcd")
        (self.folder / "kept").rename(self.state / "etcd")

    def wipe_store(self):
        shutil.rmtree(self.state / "etcd")

    # --- what is in it

    def install(self, crd=True):
        """deploy/install.yaml, perhaps without its CRD."""
        text = (REPO / "deploy/install.yaml").read_text()
        if not crd:
            text = "---\n".join(part for part in text.split("---\n") if "kind: CustomResourceDefinition" not in part)
        self.kubectl("apply", "-f", "-", text=text)
        if crd:
            self.await_crd()

    def install_crd(self):
        self.kubectl("apply", "-f", str(REPO / "crds/pytorchtrainingjob.yaml"))
        self.await_crd()

    def await_crd(self):
        self.wait("the jobs' API to answer", lambda: self.api.send("GET", f"{JOBS}/pytorchtrainingjobs?limit=1")[0] == 200)

    def namespace(self):
        self.namespaces += 1
        name = f"case-{self.namespaces}"
        self.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts"
        if not self.options:  # nobody else makes it
            self.api.post(account, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        self.wait("the service account of its pods", lambda: self.api.find(f"{account}/default"))
        return name

    # --- operators

    def operator(self, access=None, *flags, name="ptj-operator", env=None):
        """Started; `access` are the flags that say where the API server is and who asks, otherwise those of a fresh token of its account."""
        port = ports.take()
        access = access or self.flags(self.token(SYSTEM, ACCOUNT))
        process = self.start(name, [*self.wrap, self.program, *access, f"--metrics-bind-address=127.0.0.1:{port}",
                                    "--health-probe-bind-address=0", f"--leader-elect-namespace={SYSTEM}", *flags],
                             env=env and {**os.environ, **env})
        return Operator(self, process, port)

    def await_leading(self, operator):
        self.wait("the operator to lead", lambda: operator.told("leading"))


def gone_within(pid, seconds):
    end = time.monotonic() + seconds
    while running(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not running(pid)


def running(pid):
    """Also what SIGKILL makes of a process for a moment: its first thread has ended, others have its files and ports."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0] != "Z" or int(fields[17]) > 1
    except OSError:
        return False
