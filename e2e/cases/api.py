"""api.py - objects of the API server over one connection per thread. Cases look at objects several times a second: a kubectl for
each look would take more of the machine than what is tested.

The server and the credentials are those of kubectl's configuration."""

import base64
import http.client
import json
import ssl
import subprocess
import tempfile
import threading
import time
from functools import cache
from urllib.parse import urlencode, urlsplit

GROUP = "batch.tensorstack.dev"
BOUND_S = 900  # limit of every wait, not a measure of speed: a busy machine may be ten times slower
BUSY = (429, 500, 503, 504)  # a server's answers when it or etcd is late
# Where each kind is served, by the names that cases use. Kinds that have no namespace are below CLUSTER.
KINDS = {
    "ptj": f"apis/{GROUP}/v1beta1 pytorchtrainingjobs",
    "pod": "api/v1 pods", "service": "api/v1 services", "event": "api/v1 events", "secret": "api/v1 secrets",
    "resourcequota": "api/v1 resourcequotas",
    "deployment": "apis/apps/v1 deployments", "replicaset": "apis/apps/v1 replicasets",
    "networkpolicy": "apis/networking.k8s.io/v1 networkpolicies", "lease": "apis/coordination.k8s.io/v1 leases",
    "podmonitor": "apis/monitoring.coreos.com/v1 podmonitors",
    "podgroups.v1alpha2.scheduling.k8s.io": "apis/scheduling.k8s.io/v1alpha2 podgroups",
    "podgroups.scheduling.x-k8s.io": "apis/scheduling.x-k8s.io/v1alpha1 podgroups",
}
CLUSTER = {
    "pv": "api/v1/persistentvolumes", "node": "api/v1/nodes", "clusterrole": "apis/rbac.authorization.k8s.io/v1/clusterroles",
    "crd": "apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}
PLURALS = {place.split()[1]: kind for kind, place in KINDS.items()}
OF_THREAD = threading.local()


class ApiError(Exception):
    pass


@cache
def server():
    """(host, port, the TLS that knows the server and shows who asks)"""
    text = subprocess.run(["kubectl", "config", "view", "--minify", "--raw", "--flatten", "-o", "json"], check=True, text=True,
                          capture_output=True).stdout
    found = json.loads(text)
    cluster, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
    tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(base64.b64decode(user[f"client-{name}-data"]) for name in ("certificate", "key")))
        file.flush()
        tls.load_cert_chain(file.name)
    url = urlsplit(cluster["server"])
    return url.hostname, url.port, tls


def ask(path, busy=BUSY):
    """(code, text). A server that is late, that does not run for a moment, or that has closed a silent connection is asked again."""
    end = time.monotonic() + BOUND_S
    while True:
        if not getattr(OF_THREAD, "connection", None):
            host, port, tls = server()
            OF_THREAD.connection = http.client.HTTPSConnection(host, port, timeout=BOUND_S, context=tls)
        try:
            OF_THREAD.connection.request("GET", path)
            answer = OF_THREAD.connection.getresponse()
            text = answer.read().decode(errors="replace")
            if answer.status not in busy or time.monotonic() > end:
                return answer.status, text
        except (OSError, http.client.HTTPException):
            OF_THREAD.connection.close()
            OF_THREAD.connection = None
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


def found_at(path):
    """The object, or None where there is none."""
    code, text = ask(path)
    if code == 404:
        return None
    if code != 200:
        raise ApiError(f"GET {path}: {code} {text.strip()}")
    return json.loads(text)


def path_of(kind, namespace):
    if kind in CLUSTER:
        return f"/{CLUSTER[kind]}"
    served, plural = KINDS[PLURALS.get(kind, kind)].split()
    return f"/{served}/namespaces/{namespace}/{plural}"


def get(kind, name, namespace):
    """The object as a dict, or None if it does not exist."""
    return found_at(f"{path_of(kind, namespace)}/{name}")


def items(kind, namespace, selector=""):
    return found_at(f"{path_of(kind, namespace)}?{urlencode({'labelSelector': selector})}")["items"]


def log(pod, namespace):
    """What the only container of the pod has printed so far; nothing while there is none."""
    code, text = ask(f"{path_of('pod', namespace)}/{pod}/log", busy=())  # the kubelet's own words for a log that is not there
    return text if code == 200 else ""
