"""history.py - all pods that ever existed, from etcd's history: what an API server stored just before it was killed is in no audit log,
and perhaps in no response."""

import base64
import json
import ssl
import urllib.request

from cases import check
from plane import pod_path

READ_S = 600  # bounds a hang
MARK = "history-mark-"


def encoded(text):
    return base64.b64encode(text.encode()).decode()


class History:
    """Of a plane that keeps it (Plane(history=True)). A pod of nobody's, made and removed at once, tells where the end is."""

    def __init__(self, plane):
        self.plane, self.marks, self.since = plane, 0, 1

    def mark(self, ns):
        """Pods are counted from here on."""
        self.since = self.read(ns)[1] + 1

    def born(self, ns):
        """Names of all pods that were created in the namespace since the mark."""
        return self.read(ns)[0]

    def read(self, ns):
        self.marks += 1
        last = f"{MARK}{self.marks}"
        self.plane.api.post(pod_path(ns), {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": last}, "spec": {
            "containers": [{"name": "mark", "image": "none"}]}})
        self.plane.api.delete(pod_path(ns, last), gracePeriodSeconds=0)
        names = []
        for name, revision in self.creations(f"/registry/pods/{ns}/"):
            if name == last:
                return names, revision
            if not name.startswith(MARK):
                names.append(name)
        raise AssertionError(f"etcd's history of {ns} ends before {last}")

    def creations(self, prefix):
        """(name, revision) of each, in order; nothing is said when there are no more."""
        request = urllib.request.Request(f"https://127.0.0.1:{self.plane.etcd_port()}/v3/watch", json.dumps({"create_request": {
            "key": encoded(prefix), "range_end": encoded(prefix[:-1] + "0"), "start_revision": str(self.since),
            "filters": ["NODELETE"]}}).encode())
        pki = self.plane.state / "pki"
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(str(pki / "etcd.crt"), str(pki / "etcd.key"))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        with opener.open(request, timeout=READ_S) as answer:
            for line in answer:
                result = json.loads(line)["result"]
                check(not result.get("canceled"), f"etcd has forgotten: {result}")
                for event in result.get("events", []):
                    pair = event["kv"]
                    if pair["create_revision"] == pair["mod_revision"]:
                        yield base64.b64decode(pair["key"]).decode().rpartition("/")[2], int(pair["mod_revision"])
