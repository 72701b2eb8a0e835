"""conftest.py - the operator as a process of this machine, with the account and permissions of install.yaml."""

import json
import os
import signal
import subprocess
import uuid

import node as fake
import pytest
from auditlog import OPERATOR, account
from kube import BOUND_S, GROUP, REPO, STATE, SYSTEM, field, kubectl, wait_for

PROGRAM = REPO / "build" / "release" / "bin" / "ptj-operator"
LOG = STATE / "logs" / "operator.log"


@pytest.fixture(scope="session")
def release():
    return os.environ["RELEASE"]


def established(crd):
    conditions = field("crd", crd, "default", "status.conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def takes_children():
    """OwnerReferencesPermissionEnforcement refuses children of a kind that it does not know yet, and looks for new kinds only now
    and then: an operator that is installed with its CRD tries again. Asked as the operator, which the audit log tells apart."""
    owner = {"apiVersion": f"{GROUP}/v1beta1", "kind": "PyTorchTrainingJob", "name": "none", "uid": str(uuid.uuid4()),
             "controller": True, "blockOwnerDeletion": True}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "none", "ownerReferences": [owner]},
               "spec": {"clusterIP": "None"}}
    done = subprocess.run(["kubectl", f"--as={account(SYSTEM)}", "--namespace=default", "create", "--dry-run=server", "-f", "-"],
                          input=json.dumps(service), text=True, capture_output=True)
    return done.returncode == 0


@pytest.fixture(scope="session")
def installed():
    """What a plain kubectl apply of the manifest printed, warnings included."""
    done = subprocess.run(["kubectl", "apply", "-f", str(REPO / "deploy" / "install.yaml")], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    # Not `kubectl wait`: it fails while the conditions are null, as they are at first.
    crd = f"pytorchtrainingjobs.{GROUP}"
    wait_for("the CRD", lambda: established(crd))
    wait_for("children of jobs to be admitted", takes_children)
    return done.stdout, done.stderr


def access(account):
    """The flags with which an operator reaches the servers as this account."""
    token = STATE / "operator.token"
    token.touch(0o600)
    token.write_text(kubectl("-n", SYSTEM, "create", "token", account))
    server = kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
    return [f"--server={server}", f"--ca-file={STATE}/pki/ca.crt", f"--token-file={token}"]


def leads():
    return any(json.loads(line)["msg"] == "leading" for line in LOG.read_text().splitlines())


@pytest.fixture(scope="session")
def operator(installed):
    """The running operator; it must end well when it is asked to."""
    with LOG.open("w") as log:
        process = subprocess.Popen(
            [PROGRAM, *access(OPERATOR), f"--leader-elect-namespace={SYSTEM}", "--metrics-bind-address=0",
             "--health-probe-bind-address=0"], stderr=log)
    try:
        wait_for(lambda: f"the operator to lead: {LOG.read_text()}", lambda: leads() or process.poll() is not None)
        assert process.poll() is None, LOG.read_text()
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=BOUND_S) == 0, LOG.read_text()
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def node():
    made = fake.Node()
    yield made
    made.close()


@pytest.fixture
def quiet_ns(installed):
    """A namespace for a case that comes before the operator."""
    return namespace()


@pytest.fixture
def ns(operator):
    """A namespace of the case's own; after the case the operator is still the process that was started. It stays until
    the servers go: while it is being deleted every create in it is refused, which is no news of a version."""
    yield namespace()
    assert operator.poll() is None, LOG.read_text()


def namespace():
    name = f"versions-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    wait_for("the service account of its pods", lambda: kubectl(
        "-n", name, "get", "serviceaccount", "default", "--ignore-not-found", "-o", "name"))
    return name
