"""board.py - poll all jobs of a run with one request, and keep the weights of the undisturbed ones."""

import json
import threading
from contextlib import suppress
from http.client import HTTPException

from api import ApiError
from kube import items, wait_for


class Board(threading.Thread):
    """Polls all jobs of a namespace twice a second; trials read this instead of polling themselves."""

    def __init__(self, namespace):
        super().__init__(daemon=True)
        self.namespace, self.weights, self.jobs, self.stopped = namespace, {}, {}, threading.Event()

    def run(self):
        while not self.stopped.wait(0.5):
            with suppress(OSError, HTTPException, ApiError):  # the API server may be away for a moment
                self.jobs = {j["metadata"]["name"]: j for j in items("ptj", self.namespace)}

    def status(self, name):
        return self.jobs.get(name, {}).get("status", {})

    def ended(self, name):
        return self.status(name).get("phase") in ("Succeeded", "Failed")

    def uid(self, name):
        return wait_for(f"job {name}", lambda: self.jobs.get(name, {}).get("metadata", {}).get("uid"))

    def end(self, name):
        wait_for(lambda: f"an end of {name}: {json.dumps(self.status(name))}", lambda: self.ended(name))
        return self.status(name)
