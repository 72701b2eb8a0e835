"""shapes.py - objects that hostile tenants write. TABLE has a row for each group: the ways to write it, the fields of the object,
and the values, from values.py. A new shape is a line in one of the tables."""

import json
from dataclasses import dataclass

from jobs import job
from plane import GROUP
from values import (EDITS, ESCAPED, KEY_WITH_NUL, KEYS, LABELS, LARGE, LIMITS, MANY, MANY_TYPED, MAPS, MINE, MOST, NAME, NAMES, NESTED, NUMBERS,
                    OWNER, OWNERS, RAW, REFUSED, REPLICAS, SMALL, TEXTS, WIDE, many)

SHAPES_PER_GROUP_IN_SHORT = 3
LONG = ("replicas",)  # groups of thousands of pods

T = ("spec", "replicaSpecs", 0, "template")
P = (*T, "spec")
C = (*P, "containers", 0)
# Of a job: name: (path, what must stand beside it).
JOB = {
    "annotation": (("metadata", "annotations", "a"), {}), "name": (("metadata", "name"), {}), "type": (("spec", "replicaSpecs", 0, "type"), {}),
    "template": ((*T, "x"), {}), "template-key": ((*T, RAW), {}), "pod-spec": ((*P, "x"), {}), "pod-spec-key": ((*P, RAW), {}),
    "pod-annotation": ((*T, "metadata", "annotations", "a"), {}), "pod-label": ((*T, "metadata", "labels", "a"), {}),
    "env": ((*C, "env"), {}), "env-name": ((*C, "env", 0, "name"), {}), "env-value": ((*C, "env", 0, "value"), {(*C, "env", 0, "name"): "A"}),
    "args": ((*C, "args"), {}), "argument": ((*C, "args", 0), {}), "image": ((*C, "image"), {}), "ports": ((*C, "ports"), {}),
    "limits": ((*C, "resources", "limits"), {}), "requests": ((*C, "resources", "requests"), {}),
    "init-image": ((*P, "initContainers", 0, "image"), {(*P, "initContainers", 0, "name"): "i"}),
    "volumes": ((*P, "volumes"), {}), "tolerations": ((*P, "tolerations"), {}), "pull-secrets": ((*P, "imagePullSecrets"), {}),
    "node-selector": ((*P, "nodeSelector"), {}), "gates": ((*P, "schedulingGates"), {}),
    "finalizers": (("metadata", "finalizers"), {}), "labels": (("metadata", "labels"), {}), "annotations": (("metadata", "annotations"), {}),
    "pod-labels": ((*T, "metadata", "labels"), {}), "pod-annotations": ((*T, "metadata", "annotations"), {}),
    "owners": (("metadata", "ownerReferences"), {}), "managed-fields": (("metadata", "managedFields"), {}),
    "replicas": (("spec", "replicaSpecs", 0, "replicas"), {}), "port": ((*C, "ports", 0, "containerPort"), {}),
    "grace": ((*P, "terminationGracePeriodSeconds"), {}), "deadline": (("spec", "runPolicy", "activeDeadlineSeconds"), {}),
    "manager": (("spec", "runPolicy", "managedBy"), {}), "options": (("spec", "torchrunConfig", "extraOptions", 0), {("spec", "torchrunConfig", "enabled"): True}),
    "tensorboard-image": (("spec", "tensorboardSpec", "image"), {("spec", "tensorboardSpec", "logDir"): {"pvc": [{"name": "logs"}]}}),
}
# Of a pod, a service, a deployment.
CHILD = {
    "annotation": (("metadata", "annotations", "a"), {}), "name": (("metadata", "name"), {}), "owners": (("metadata", "ownerReferences"), {}),
    "labels": (("metadata", "labels"), {}), "finalizers": (("metadata", "finalizers"), {}), "managed-fields": (("metadata", "managedFields"), {}),
    "env-name": (("spec", "containers", 0, "env", 0, "name"), {}), "image": (("spec", "containers", 0, "image"), {}),
    "env-value": (("spec", "containers", 0, "env", 0, "value"), {("spec", "containers", 0, "env", 0, "name"): "A"}),
    "env": (("spec", "containers", 0, "env"), {}), "args": (("spec", "containers", 0, "args"), {}),
    "grace": (("spec", "terminationGracePeriodSeconds"), {}), "volumes": (("spec", "volumes"), {}),
    "ports": (("spec", "ports"), {}), "external-name": (("spec", "externalName"), {("spec", "type"): "ExternalName"}),
    "pod-image": (("spec", "template", "spec", "containers", 0, "image"), {}), "pod-annotation": (("spec", "template", "metadata", "annotations", "a"), {}),
}
# Of a status, of a job and of a pod.
STATUS = {path[-1] if path[-1] != 0 else path[-2]: (("status", *path), {}) for path in (
    ("attempt",), ("backoffCount",), ("observedGeneration",), ("reason",), ("lastExit",), ("selector",), ("tasks",), ("failures",), ("unknown",))}
STATUS["message"] = (("status", "lastFailure", "message"), {})
STATUS["condition"] = (("status", "conditions", 0, "message"), {("status", "conditions", 0, "type"): "Running", ("status", "conditions", 0, "status"): "True"})
POD_STATUS = {
    "message": (("status", "message"), {}), "reason": (("status", "reason"), {}), "phase": (("status", "phase"), {}), "exit": (
        ("status", "containerStatuses", 0, "state", "terminated", "exitCode"), {("status", "containerStatuses", 0, "name"): "pytorch"}),
    "last-words": (("status", "containerStatuses", 0, "state", "terminated", "message"), {
        ("status", "containerStatuses", 0, "name"): "pytorch", ("status", "containerStatuses", 0, "state", "terminated", "exitCode"): 1}),
    "waiting": (("status", "containerStatuses", 0, "state", "waiting", "message"), {("status", "containerStatuses", 0, "name"): "pytorch"}),
    "statuses": (("status", "containerStatuses"), {}), "conditions": (("status", "conditions"), {}),
}
TASKS = {
    "tasks": {"many": many(b'{"type":"node","replicas":[]}'), "long-uid": b'[{"type":"node","replicas":[{"name":"a","uid":"' + b"u" * LARGE + b'"}]}]',
              "many-replicas": lambda n: b'[{"type":"node","replicas":' + many(b'{"name":"p%d","uid":"u","phase":"Running"}')(n) + b"}]",
              "no-type": b'[{"replicas":[{}]}]'},
    "failures": {"ten": b"[" + b",".join([b'{"message":"' + b"<" * 90_000 + b'"}'] * 10) + b"]", "eleven": b"[" + b",".join([b"{}"] * 11) + b"]"},
}

# group, way, kind, places, values, size. Ways: create; update (of a job that runs); status (of a job or pod that runs, by others);
# tenant-status (the same by the tenant); change (of a child that the operator made, by the tenant).
TABLE = [
    ("text", "create", "job", "template env-value", TEXTS, SMALL),
    ("text", "create", "job", "annotation pod-annotation pod-spec env-name argument init-image manager options tensorboard-image", WIDE, SMALL),
    ("text", "update", "job", "template", TEXTS, SMALL),
    ("text", "create", "pod", "annotation", TEXTS, SMALL),
    ("text", "create", "service", "annotation external-name", WIDE, SMALL),
    ("text", "create", "deployment", "pod-annotation pod-image", WIDE, SMALL),
    ("text", "change", "pod", "annotation", ESCAPED, SMALL),
    ("text", "change", "service", "annotation", WIDE, SMALL),
    ("key", "create", "job", "template-key pod-spec-key", KEYS, SMALL),
    ("key", "update", "job", "pod-spec-key", KEYS, SMALL),
    ("nul", "create", "job", "template-key pod-spec-key", KEY_WITH_NUL, 0),
    ("nul", "update", "job", "pod-spec-key", KEY_WITH_NUL, 0),
    ("size", "create", "job", "env-name argument init-image", ESCAPED, 100_000),
    ("size", "create", "job", "template env-value pod-spec-key", WIDE, LARGE),
    ("size", "create", "job", "template", WIDE, MOST),
    ("size", "update", "job", "template", WIDE, MOST),
    ("size", "create", "pod", "env-value image", ESCAPED, MOST),
    ("size", "change", "pod", "annotation", ESCAPED, 240_000),
    ("size", "create", "deployment", "pod-image", WIDE, MOST),
    ("depth", "create", "job", "template", NESTED, 0),
    ("depth", "create", "job", "pod-spec", MAPS, 0),
    ("depth", "update", "job", "template", MAPS, 0),
    ("number", "create", "job", "template replicas", NUMBERS, 0),
    ("number", "create", "job", "port grace deadline", LIMITS, 0),
    ("number", "create", "pod", "grace", LIMITS, 0),
    ("number", "status", "job", "attempt observedGeneration", LIMITS, 0),
    ("number", "status", "pod", "exit", LIMITS, 0),
    ("many", "create", "job", "template", MANY, MOST),
    ("many", "create", "job", "template pod-spec", MANY, SMALL),
    ("many", "update", "job", "template", MANY, MOST),
    *(("many", "create", "job", place, {"small": value}, SMALL) for place, value in MANY_TYPED.items()),
    *(("many", "create", "job", place, {"most-of-a-spec": MANY_TYPED[place]}, 250_000) for place in ("limits", "requests", "node-selector", "pod-labels")),
    *(("many", "create", "job", place, {"large": value}, MOST) for place, value in MANY_TYPED.items()),
    *(("many", "create", "pod", place, {"large": value}, LARGE) for place, value in MANY_TYPED.items() if place in CHILD),
    ("edit", "create", "job", "", EDITS, 0),
    ("name", "create", "job", "name type", NAMES, 0),
    ("name", "create", "pod", "name", NAMES, 0),
    ("owner", "create", "pod", "owners", OWNERS, 0),
    ("owner", "create", "service", "owners", OWNERS, 0),
    ("owner", "create", "deployment", "owners", OWNERS, 0),
    ("owner", "change", "pod", "owners", OWNERS, 0),
    ("label", "create", "pod", "labels", LABELS, 0),
    ("label", "change", "pod", "labels", LABELS, 0),
    ("refused", "create", "job", "", REFUSED, SMALL),
    ("replicas", "create", "job", "", REPLICAS, 0),
    ("status", "status", "job", "reason lastExit selector message condition unknown", WIDE, LARGE),
    *(("status", "status", "job", place, values, LARGE) for place, values in TASKS.items()),
    ("status", "tenant-status", "job", "reason attempt", {"written": b'"x"', "number": b"7"}, 0),
    ("status", "status", "pod", "message reason last-words waiting", WIDE, LARGE),
    ("status", "status", "pod", "statuses conditions", {"numbers": many(b"1"), "objects": many(b"{}"), "null": b"null", "empty": b"[]"}, SMALL),
    ("status", "status", "pod", "phase", {"odd": b'"Odd"', "empty": b'""', "number": b"7", "long": TEXTS["plain"]}, SMALL),
]


@dataclass
class Shape:
    group: str
    way: str
    kind: str
    place: str
    value_name: str
    value: object
    size: int

    @property
    def name(self):
        size = {SMALL: "", 0: ""}.get(self.size, f"-{self.size // 1000}k")
        return "/".join(filter(None, (self.group, self.way, self.kind, self.place, self.value_name))) + size

    def places(self):
        if "status" in self.way:
            return STATUS if self.kind == "job" else POD_STATUS
        return JOB if self.kind == "job" else CHILD

    def body(self):
        """What is sent; NAME, OWNER and OWNER_UID are still to be put in."""
        value = self.value(self.size) if callable(self.value) else self.value
        if self.place:
            path, beside = self.places()[self.place]
            tree = base(self.kind) if self.way in ("create", "update") else {}
            for at, what in {**beside, path: "x" if path[-1] == RAW else RAW}.items():
                put(tree, at, what)
            return encode(tree).replace(f'"{RAW}"'.encode(), value)
        if self.group == "edit":
            old, new = value
            return encode(base("job")).replace(old, new, 1)
        tree = base("job")
        if self.group == "refused":
            put(tree, (*P, value[0]), value[1])
            put(tree, (*T, "metadata", "annotations", "ballast"), "b" * self.size)
        else:
            spread(tree, **value)
        return encode(tree)


def encode(tree):
    return json.dumps(tree).encode()


def put(tree, path, value):
    """Puts the value at the path; what is missing on the way is made."""
    for step, after in zip(path, path[1:]):
        if isinstance(step, int) and len(tree) <= step:
            tree.append({})
        elif not isinstance(step, int):
            tree.setdefault(step, [] if isinstance(after, int) else {})
        tree = tree[step]
    if isinstance(path[-1], int) and len(tree) <= path[-1]:
        tree.append(value)
    else:
        tree[path[-1]] = value


def spread(tree, replicas, types=1, ballast=0, suspend=False):
    one = tree["spec"]["replicaSpecs"][0]
    tree["spec"] = {"suspend": suspend, "replicaSpecs": [{**one, "type": f"t{i}", "replicas": replicas} for i in range(types)]}
    put(tree, (*T, "metadata", "annotations", "ballast"), "b" * ballast)


def base(kind):
    """A good object of the kind, as the operator would make it for the tenant's job."""
    if kind == "job":
        return job(NAME, run=3600)
    labels = {f"{GROUP}/job": OWNER, f"{GROUP}/replica-type": "node", f"{GROUP}/replica-index": "0", f"{GROUP}/attempt": "0"}
    meta = {"name": NAME, "labels": labels, "ownerReferences": [MINE]}
    pod = {"containers": [{"name": "pytorch", "image": "none"}]}
    template = {"metadata": {"labels": {"app": NAME}}, "spec": pod}
    return {"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod},
            "service": {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"clusterIP": "None", "ports": [{"port": 1}]}},
            "deployment": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {
                "replicas": 0, "selector": {"matchLabels": {"app": NAME}}, "template": template}}}[kind]


def every():
    for group, way, kind, places, values, size in TABLE:
        for place in places.split() or [""]:
            for name, value in values.items():
                yield Shape(group, way, kind, place, name, value, size)


def short():
    """A few of each group, evenly over all of it."""
    groups = {}
    for shape in every():
        groups.setdefault(shape.group, []).append(shape)
    for group, shapes in groups.items():
        if group not in LONG:
            yield from shapes[::max(1, len(shapes) // SHAPES_PER_GROUP_IN_SHORT)][:SHAPES_PER_GROUP_IN_SHORT]
