"""tenants.py - a tenant of a namespace with the permissions of Kubernetes' edit and deploy/rbac/user-roles.yaml, and its requests."""

import http.client
import json
import time

from jobs import job
from plane import MERGE, job_path, pod_path
from values import NAME, OWNER, OWNER_UID

TENANT, SUBMITTER = "tenant", "submitter"  # the second may write jobs and no pods
EDIT = ("system:aggregate-to-edit", "torchkeeper-edit")  # of which the cluster's role edit is made
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"
HANG_S = 600
NO_ANSWER = 0  # the server closed the connection instead
NAMES_ONLY = "application/json;as=Table;v=v1;g=meta.k8s.io"


def paths(kind, ns, name=""):
    end = f"/{name}" if name else ""
    return {"job": job_path(ns, name), "pod": pod_path(ns, name), "service": f"/api/v1/namespaces/{ns}/services{end}",
            "deployment": f"/apis/apps/v1/namespaces/{ns}/deployments{end}"}[kind]


def rows(api, path):
    """{name: {column: cell}} of a collection, without its objects."""
    code, text = api.send("GET", f"{path}?includeObject=None", Accept=NAMES_ONLY)
    assert code == 200, f"{path}: {code} {text[:300]}"
    table = json.loads(text)
    columns = [column["name"].upper() for column in table["columnDefinitions"]]
    return {row["cells"][0]: dict(zip(columns, row["cells"])) for row in table.get("rows") or []}


class Tenant:
    def __init__(self, plane):
        self.plane, self.api, self.ns = plane, plane.api, plane.namespace()
        for user, roles in ((TENANT, EDIT), (SUBMITTER, EDIT[1:])):
            for role in roles:
                self.api.post(f"{RBAC}/{self.ns}/rolebindings", {
                    "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": f"{user}-{role.replace(':', '-')}"},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]})
        self.number, self.owner = 0, None

    # --- requests

    def send(self, method, path, body, content="application/json", user=TENANT):
        """(code, text); user None is the administrator. A body that is too large may end as a connection that is closed."""
        try:
            return self.api.send(method, path, body, content, **({"Impersonate-User": user} if user else {}))
        except (OSError, http.client.HTTPException) as e:
            return NO_ANSWER, repr(e)

    def named(self, prefix="h"):
        self.number += 1
        return f"{prefix}{self.number}"

    def own_job(self):
        """A job that runs, to which others may say that they belong: its name and UID."""
        if not self.owner:
            name = self.named("owner")
            self.owner = name, self.api.post(job_path(self.ns), job(name, run=3600))["metadata"]["uid"]
        return self.owner

    def write(self, shape):
        """(code, text) of the request that carries the shape."""
        name = self.named()
        owner, uid = self.own_job()
        body = shape.body()
        for mark, word in ((NAME, name), (OWNER_UID, uid), (OWNER, owner)):
            body = body.replace(mark.encode(), word.encode())
        if shape.way == "create":
            return self.send("POST", paths(shape.kind, self.ns), body)
        self.running(name)
        if shape.way == "update":
            return self.update(name, body)
        target = {"job": name, "pod": f"{name}-node-0", "service": f"{name}-rdzv"}[shape.kind]
        if shape.way == "change":
            return self.send("PATCH", paths(shape.kind, self.ns, target), body, MERGE)
        user = TENANT if shape.way == "tenant-status" else None
        return self.send("PATCH", paths(shape.kind, self.ns, target) + "/status", body, MERGE, user)

    def running(self, name):
        """An ordinary job of the tenant, and its pod is there."""
        self.api.post(job_path(self.ns), job(name, run=3600))
        self.await_true(lambda: self.api.send("GET", pod_path(self.ns, f"{name}-node-0"))[0] == 200, f"pod {name}-node-0")

    def update(self, name, body):
        """The operator may write the status in between."""
        for _ in range(10):
            version = self.api.get(job_path(self.ns, name))["metadata"]["resourceVersion"]
            mark = f'"name": "{name}"'.encode()
            answer = self.send("PUT", job_path(self.ns, name), body.replace(mark, mark + f', "resourceVersion": "{version}"'.encode(), 1))
            if answer[0] != 409:
                break
        return answer

    @staticmethod
    def await_true(true, what):
        end = time.monotonic() + HANG_S
        while not true():
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not within {HANG_S} s")
            time.sleep(0.02)

    # --- the end of it

    def purge(self):
        """Remove all of the tenant's objects, and their finalizers."""
        self.owner = None
        self.await_true(self.purged, f"{self.ns} to be empty")

    def delete(self, kind):
        self.send("DELETE", paths(kind, self.ns) + "?gracePeriodSeconds=0", None, user=None)

    def purged(self):
        left = False
        for kind in ("job", "pod", "service", "deployment"):
            self.delete(kind)
            for name in rows(self.api, paths(kind, self.ns)):
                left = True
                self.send("PATCH", paths(kind, self.ns, name), b'{"metadata":{"finalizers":null}}', MERGE, None)
        return not left
