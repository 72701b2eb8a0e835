"""auditlog.py - what the API server wrote down about the operator's requests."""

import json

from kube import STATE

OPERATOR = "torchkeeper-operator"


def account(namespace):
    return f"system:serviceaccount:{namespace}:{OPERATOR}"


def audited(user):
    """All requests of a user in the audit log, rotated files included."""
    for path in sorted((STATE / "logs").glob("audit*.log")):
        with path.open(errors="replace") as lines:
            for line in lines:
                if f'"{user}"' not in line:
                    continue
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:
                    continue  # the API server is writing it
                if entry["user"]["username"] == user and entry["stage"] in ("ResponseComplete", "ResponseStarted"):
                    yield entry


def right(entry):
    ref = entry["objectRef"]
    sub = f"/{ref['subresource']}" if ref.get("subresource") else ""
    return ref.get("apiGroup", ""), ref["resource"] + sub, entry["verb"]


def used(user):
    return {right(e) for e in audited(user) if e.get("objectRef")}


def forbidden(user):
    return [f"{e['verb']} {e['requestURI']}" for e in audited(user)
            if e.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"]
