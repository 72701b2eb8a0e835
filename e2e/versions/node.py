"""node.py - a simulated node: pods are bound to it and the cases set their status."""

import json
import subprocess
import threading
import time

from kube import get, kubectl, wait_for

NAME = "paper"
# One line for each change of a pod here: which it is, and when it is to be gone.
DELETION = r'{.metadata.namespace} {.metadata.name} {.metadata.uid} {.metadata.deletionTimestamp}{"\n"}'


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Node:
    """As a kubelet does, it confirms the deletion of its pods; all else is done by the methods below."""

    def __init__(self):
        kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}}))
        ready = {"type": "Ready", "status": "True", "reason": "Paper", "lastHeartbeatTime": now()}
        self.patch("", "node", NAME, {"conditions": [ready], "capacity": {"cpu": "64", "memory": "64Gi", "pods": "200"}})
        self.lock = threading.Lock()
        self.closing, self.watch = False, self.watching()
        self.confirming = threading.Thread(target=self.confirm, daemon=True)
        self.confirming.start()

    @staticmethod
    def watching():
        """All its pods, then each change of one."""
        return subprocess.Popen(["kubectl", "get", "pods", "--all-namespaces", "--watch", f"--field-selector=spec.nodeName={NAME}",
                                 "-o", f"jsonpath={DELETION}"], stdout=subprocess.PIPE, text=True)

    def confirm(self):
        while True:
            for line in self.watch.stdout:
                namespace, name, uid, *deletion = line.split()
                if deletion:  # it may be gone already, and another one of its name there
                    options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
                    kubectl("delete", "--raw", f"/api/v1/namespaces/{namespace}/pods/{name}", "-f", "-",
                            stdin=json.dumps(options), check=False)
            self.watch.wait()
            with self.lock:
                if self.closing:
                    return
                self.watch = self.watching()  # the API server ends each watch after a time

    def close(self):
        with self.lock:
            self.closing = True
            self.watch.terminate()
        self.confirming.join()

    @staticmethod
    def patch(namespace, kind, name, status):
        kubectl(*(["-n", namespace] if namespace else []), "patch", kind, name, "--subresource=status", "--type=merge",
                "-p", json.dumps({"status": status}))

    def bind(self, namespace, name):
        """What a scheduler does; returns the pod's UID."""
        pod = wait_for(f"pod {name}", lambda: get("pod", name, namespace))
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                   "target": {"apiVersion": "v1", "kind": "Node", "name": NAME}}
        kubectl("create", "--raw", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", "-f", "-",
                stdin=json.dumps(binding))
        return pod["metadata"]["uid"]

    def run(self, namespace, name):
        """Binds the pod and lets its container run; returns the pod's UID."""
        uid = self.bind(namespace, name)
        self.tell(namespace, name, "Running", {"running": {"startedAt": now()}})
        return uid

    def end(self, namespace, name, code):
        state = {"exitCode": code, "startedAt": now(), "finishedAt": now(), "reason": "Error" if code else "Completed"}
        self.tell(namespace, name, "Failed" if code else "Succeeded", {"terminated": state})

    def tell(self, namespace, name, phase, state):
        ready = phase == "Running"
        container = {"name": "pytorch", "image": "none", "imageID": "none", "ready": ready, "restartCount": 0,
                     "state": state}
        condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": now()}
        self.patch(namespace, "pod", name, {"phase": phase, "conditions": [condition], "containerStatuses": [container]})
