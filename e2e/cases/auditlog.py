"""auditlog.py - read the operator's requests from the API server's audit log."""

import json

import kube
from kube import kubectl

OPERATOR = "torchkeeper-operator"


def account(namespace):
    return f"system:serviceaccount:{namespace}:{OPERATOR}"


def audited(user):
    """All requests of a user in the audit log."""
    return (entry for entry in kube.audited(user)
            if entry["user"]["username"] == user and entry["stage"] in ("ResponseComplete", "ResponseStarted"))


def right(entry):
    ref = entry["objectRef"]
    sub = f"/{ref['subresource']}" if ref.get("subresource") else ""
    return ref.get("apiGroup", ""), ref["resource"] + sub, entry["verb"]


def used(user):
    return {right(e) for e in audited(user) if e.get("objectRef")}


def lacks(user, entry):
    """Whether the API server refused the request for lack of a permission."""
    verb, ref = entry["verb"], entry.get("objectRef")
    if ref:
        spec = {"resourceAttributes": {"verb": verb, "group": ref.get("apiGroup", ""), "version": ref.get("apiVersion", ""),
                                       **{key: ref[key] for key in ("resource", "subresource", "namespace", "name")
                                          if key in ref}}}
    else:
        spec = {"nonResourceAttributes": {"verb": verb, "path": entry["requestURI"].split("?")[0]}}
    spec |= {"user": user, "groups": entry["user"].get("groups", [])}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return not json.loads(kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(review)))["status"]["allowed"]


def forbidden(user):
    """Requests refused for lack of a permission. A restarted API server answers for a moment before it has read
    all roles and bindings, and refuses everyone: such requests are repeated now."""
    refused = {f"{e['verb']} {e['requestURI']}": e for e in audited(user)
               if e.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"}
    return [what for what, entry in refused.items() if lacks(user, entry)]
