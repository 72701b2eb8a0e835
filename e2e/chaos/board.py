"""board.py - all jobs of a run in one view of the API server, and the weights of the undisturbed ones."""

import json
import threading
import time

from kube import kubectl


class Board(threading.Thread):
    """Asks for all jobs of a namespace twice a second; trials look here instead of asking themselves."""

    def __init__(self, namespace):
        super().__init__(daemon=True)
        self.namespace, self.weights, self.jobs, self.stopped = namespace, {}, {}, threading.Event()

    def run(self):
        while not self.stopped.wait(0.5):
            # The API server may be away for a moment.
            text = kubectl("-n", self.namespace, "get", "ptj", "-o", "json", check=False)
            if text:
                self.jobs = {j["metadata"]["name"]: j for j in json.loads(text)["items"]}

    def status(self, name):
        return self.jobs.get(name, {}).get("status", {})

    def ended(self, name):
        return self.status(name).get("phase") in ("Succeeded", "Failed")

    def wait(self, what, condition, timeout=120):
        deadline = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {timeout} s: {what() if callable(what) else what}")
            time.sleep(0.2)

    def uid(self, name):
        return self.wait(f"job {name}", lambda: self.jobs.get(name, {}).get("metadata", {}).get("uid"))

    def end(self, name, timeout):
        self.wait(lambda: f"an end of {name}: {json.dumps(self.status(name))}", lambda: self.ended(name), timeout)
        return self.status(name)
