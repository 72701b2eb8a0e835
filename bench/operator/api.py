"""A minimal Kubernetes client for the bench: requests, and watches with little overhead."""

import http.client
import json
import re
import ssl
import threading
import time

GROUP = "/apis/batch.tensorstack.dev/v1beta1"
# The head of a built-in kind's watch event: the name comes first in its metadata.
HEAD = re.compile(rb'^\{"type":"([A-Z]+)","object":\{"kind":"[^"]*","apiVersion":"[^"]*","metadata":\{"name":"([^"]+)"')
# The first one is that of the object.
VERSION = re.compile(rb'"resourceVersion":"([0-9]+)"')
ERROR = b'{"type":"ERROR"'


class ApiError(Exception):
    pass


class Api:
    def __init__(self, rig):
        pki = rig.state / "pki"
        self.port = int((rig.state / "config/port").read_text())
        self.context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self.context.load_cert_chain(str(pki / "admin.crt"), str(pki / "admin.key"))

    def connect(self, silence_s=600):
        """silence_s: how long a read may take; None: as long as it likes."""
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=silence_s)

    def request(self, method, path, body=None):
        connection = self.connect()
        try:
            connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise ApiError(f"{method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text)

    def get(self, path):
        return self.request("GET", path)


def head(line):
    """(type, name) of a watch event, without the price of parsing all of it."""
    match = HEAD.match(line)
    if not match:
        raise ApiError(f"expected a watch event, got {line[:200]!r}")
    return match[1].decode(), match[2].decode()


class Watch(threading.Thread):
    """Calls seen(line, time in ns) for every event of a collection, in a thread of its own. The API server ends the watch of
    a reader that falls behind; then it goes on from where it was."""

    def __init__(self, api, path, seen):
        super().__init__(daemon=True)
        self.api, self.path, self.seen = api, path, seen
        self.version = api.get(path + "?limit=1")["metadata"]["resourceVersion"]
        self.problem = None
        self.begin()
        self.start()

    def begin(self):
        self.connection = self.api.connect(silence_s=None)  # that of an earlier phase has nothing to tell any more
        self.connection.request("GET", f"{self.path}?watch=1&timeoutSeconds=3600&resourceVersion={self.version}")
        self.answer = self.connection.getresponse()
        if self.answer.status != 200:
            raise ApiError(f"watch {self.path}: {self.answer.status}")

    def read(self):
        rest = b""
        while piece := self.answer.read1(1 << 18):
            now = time.monotonic_ns()
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.startswith(ERROR):
                    raise ApiError(f"watch {self.path}: {line[:300]!r}")
                self.seen(line, now)
                self.version = VERSION.search(line)[1].decode()

    def run(self):
        try:
            while True:
                try:
                    self.read()
                except http.client.IncompleteRead:
                    pass
                self.connection.close()
                self.begin()
        except Exception as e:  # told to the main thread, which ends the bench
            self.problem = f"watch: {e!r}"
