"""A throwaway control plane (deploy/local/servers: etcd, kube-apiserver, kube-controller-manager) on loopback, with a scheduler
that is not slowed down and kwok for the nodes. Everything lies in one temporary folder; `close` ends and removes all."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent
sys.path.append(str(REPO / "tests"))
import ports  # noqa: E402, F401 - for those who start a program of their own beside this

OPERATOR_ACCOUNT = ("torchkeeper-system", "torchkeeper-operator")
# Only what the operator asks for is written down: the log must not cost what is measured.
AUDIT_POLICY = f"""apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {{level: Metadata, users: ["system:serviceaccount:{':'.join(OPERATOR_ACCOUNT)}"]}}
- {{level: None}}
"""
PR_SET_PDEATHSIG = 1
READY_S = 600  # bounds a hang


class RigError(Exception):
    pass


def _end_with_parent():
    """In the child: also a driver that is killed outright leaves nobody behind."""
    os.setsid()  # Ctrl-C is for the driver, which ends the others in order
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    def __init__(self, name, command, log, env=None):
        self.name, self.log = name, log
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                          preexec_fn=_end_with_parent, env=env)

    @property
    def pid(self):
        return self.popen.pid

    def check(self):
        if self.popen.poll() is not None:
            tail = "\n    ".join(Path(self.log).read_text(errors="replace").splitlines()[-8:])
            raise RigError(f"{self.name} ended with {self.popen.returncode}; its last lines:\n    {tail}")

    def stop(self):
        """True when it ended by itself after SIGTERM."""
        if self.popen.poll() is None:
            self.popen.terminate()
        try:
            self.popen.wait(READY_S)
            return True
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            return False


class Rig:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="operator-bench-"))
        self.state = self.folder / "servers"
        self.audit_log = self.folder / "audit.log"
        self.admin = self.state / "admin.conf"
        self.processes = []
        self.servers_begun = False

    # --- processes ----------------------------------------------------------------------------------------

    def start(self, name, command, env=None):
        process = Process(name, [str(word) for word in command], self.folder / f"{name}.log", env)
        self.processes.append(process)
        return process

    def wait(self, what, true, seconds=READY_S, every=0.1):
        end = time.monotonic() + seconds
        while not true():
            for process in self.processes:
                process.check()
            if time.monotonic() > end:
                raise RigError(f"{what}: not within {seconds} s")
            time.sleep(every)

    def servers(self, *args):
        done = subprocess.run([str(REPO / "deploy/local/servers"), *args], capture_output=True, text=True,
                              start_new_session=True)  # Ctrl-C is for the driver
        if done.returncode:
            raise RigError(f"servers {args[0]}: {done.stderr.strip()}")

    def up(self, version):
        (self.folder / "audit.yaml").write_text(AUDIT_POLICY)
        self.servers_begun = True
        arguments = (f"--audit-policy-file={self.folder}/audit.yaml", f"--audit-log-path={self.audit_log}",
                     "--audit-log-maxsize=0")
        self.servers("up", str(self.state), "--controller-manager", *(["--version", version] if version else []),
                     *(word for argument in arguments for word in ("--apiserver-arg", argument)))
        self.start_nodes()

    def start_nodes(self, stages=HERE / "kwok.yaml"):
        """A scheduler, and kwok for the nodes that somebody registers. Returns the scheduler."""
        scheduler = self.start("kube-scheduler", [
            self.tool("kube-scheduler"), f"--kubeconfig={self.state}/config/kube-scheduler.conf", "--secure-port=0",
            "--leader-elect=false", "--profiling=false", "--kube-api-qps=1000", "--kube-api-burst=1000"])
        # Without leases the node controller calls the nodes lost after 50 s and patches every pod on them.
        self.start("kwok", [self.tool("kwok"), f"--kubeconfig={self.admin}", "--manage-all-nodes=true",
                            "--node-lease-duration-seconds=40", f"--config={stages}"])
        return scheduler

    def tool(self, name):
        return REPO / "build/tools" / name

    def server(self):
        return self.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}").stdout

    def authority(self):
        return self.state / "pki/ca.crt"

    def token(self, ns, name, file=None):
        """A file with a token of this account."""
        path = self.folder / (file or f"{name}.token")
        path.touch(0o600)
        path.write_text(self.kubectl("-n", ns, "create", "token", name, "--duration=24h").stdout)
        return path

    def flags(self, token):
        """With which an operator is who the token says it is; with its account's, what deploy/rbac grants it."""
        return (f"--server={self.server()}", f"--ca-file={self.authority()}", f"--token-file={token}")

    def kubectl(self, *args, check=True, text=None):
        done = subprocess.run([str(self.tool("kubectl")), "--kubeconfig", str(self.admin), *args], input=text, capture_output=True, text=True)
        if check and done.returncode:
            raise RigError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done

    def stop(self, process):
        self.processes.remove(process)
        return process.stop()

    def close(self, keep):
        """End everything, the youngest first; with `keep` the logs stay."""
        for process in reversed(self.processes):
            process.stop()
        self.processes = []
        logs = self.state / "logs"
        if keep and logs.is_dir():
            shutil.copytree(logs, self.folder / "server-logs")
        if self.servers_begun:
            self.servers("down", str(self.state))
        if not keep:
            shutil.rmtree(self.folder)
