"""slow.py - an admission webhook on loopback that admits every pod after a delay, in the namespaces with its label."""

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from keys import openssl

LABEL = "faults/slow"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class SlowAdmission:
    def __init__(self, plane, seconds):
        self.api, self.seconds, self.folder = plane.api, seconds, plane.folder / "webhook"
        self.folder.mkdir(exist_ok=True)
        self.lock, self.waiting, self.most, self.released = threading.Lock(), 0, 0, threading.Event()
        self.answered = []  # when
        self.certify()
        self.serve()

    def certify(self):
        base = self.folder / "server"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{base}.key", "-subj",
                "/CN=slow-admission", "-days", "2", "-addext", "subjectAltName=IP:127.0.0.1", "-out", f"{base}.crt")

    def serve(self):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        slow = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                slow.answer(self)

            def log_message(self, *words):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler):
        review = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self.lock:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            released = self.released
        released.wait(self.seconds)
        with self.lock:
            self.waiting -= released is self.released
            self.answered.append(time.monotonic())
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
            "uid": review["request"]["uid"], "allowed": True}}).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def install(self):
        self.api.post(CONFIGURATIONS, {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                                       "metadata": {"name": "slow"}, "webhooks": [{
            "name": "slow.faults.example", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
            "failurePolicy": "Fail", "namespaceSelector": {"matchLabels": {LABEL: "yes"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "clientConfig": {"url": f"https://127.0.0.1:{self.server.server_port}/",
                             "caBundle": base64.b64encode((self.folder / "server.crt").read_bytes()).decode()}}]})

    def mark(self, namespace):
        self.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {LABEL: "yes"}}})

    def release(self):
        """Whoever waits is let in at once."""
        with self.lock:
            self.released, self.waiting, released = threading.Event(), 0, self.released
        released.set()

    def close(self):
        self.api.delete(f"{CONFIGURATIONS}/slow")
        self.seconds = 0
        self.release()
        self.server.shutdown()
