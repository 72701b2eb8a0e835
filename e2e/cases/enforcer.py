"""enforcer.py - NetworkPolicies that hold: kube-router's controller for them (deploy/local/kube-router) as a process of this machine,
beside the local cluster, whose network enforces none."""

import re
import subprocess
from contextlib import contextmanager

from kube import REPO, STATE

PROGRAM = REPO / "build" / "tools" / "kube-router"
LOG = STATE / "logs" / "kube-router.log"
OURS = re.compile("KUBE-(ROUTER|NWPLCY|POD-FW)-")


def undo():
    """Remove kube-router's chains and sets, which it does not remove itself."""
    rules = subprocess.run(["iptables-save", "-t", "filter"], text=True, capture_output=True, check=True).stdout.splitlines()
    chains = [line[1:].split()[0] for line in rules if line.startswith(":") and OURS.match(line[1:])]
    jumps = ["-D" + line[2:] for line in rules
             if line.startswith("-A") and not OURS.match(line[3:]) and any(OURS.match(word) for word in line.split())]
    text = ["*filter", *jumps, *(f"-F {c}" for c in chains), *(f"-X {c}" for c in chains), "COMMIT", ""]
    subprocess.run(["iptables-restore", "--wait", "10", "--noflush"], input="\n".join(text), text=True, check=True)
    sets = subprocess.run(["ipset", "list", "-n"], text=True, capture_output=True, check=True).stdout.split()
    for name in (s for s in sets if re.match("KUBE-(SRC|DST)-|kube-router-", s)):
        subprocess.run(["ipset", "destroy", name], check=True)


@contextmanager
def enforcing():
    """A context in which kube-router runs; afterwards its rules are removed."""
    with LOG.open("w") as log:
        process = subprocess.Popen(
            [PROGRAM, "--run-firewall", "--run-router=false", "--run-service-proxy=false", "--enable-cni=false", "--health-port=0",
             f"--kubeconfig={STATE}/admin.conf", "--hostname-override=torchkeeper", "--service-cluster-ip-range=10.32.0.0/16"],
            stdout=log, stderr=log)
    try:
        yield process
        assert process.poll() is None, LOG.read_text()[-2000:]
    finally:
        process.kill()
        process.wait()
        undo()
