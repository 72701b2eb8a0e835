"""crowds.py - hostile tenants with many objects at once, or with one of a kind that once did damage: the named cases of F14."""

import time
from functools import partial

from cases import check
from jobs import job
from plane import REPO, job_path, pod_path
from shapes import P, T, Shape, base, encode, put
from slow import SlowAdmission
from tenants import SUBMITTER, Tenant, paths, rows
from values import KEY_WITH_NUL, MOST, OWNERS, RAW, TEXTS, many
from victims import Tally

SLOW_S, TRIES = 25, 3  # the first is less than the API server waits for an admission
TOLD_S = 600  # bounds a hang
CROWD_PODS, BALLAST = 16, 240_000  # 4 MiB of bodies for each job
VICTIMS = 5
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
NESTED = b'{"a":' * 70 + b"1" + b"}" * 70
BY_NAME = "powerful"  # a service account
# What an operator finds when it is started: (way, kind, place, value, size).
AMONG = [
    ("create", "job", "template", NESTED, 0),
    ("create", "job", "template", TEXTS["less-than"], 200_000),
    ("create", "job", "template", many(b"1"), MOST),
    ("create", "job", "pod-spec-key", KEY_WITH_NUL["service-account"], 0),
    ("create", "job", "env-value", TEXTS["controls"], 30_000),
    ("create", "pod", "env-value", TEXTS["less-than"], MOST),
    ("change", "pod", "annotation", TEXTS["less-than"], 200_000),
    ("create", "deployment", "pod-image", TEXTS["line-separator"], MOST),
    ("status", "job", "reason", TEXTS["less-than"], 200_000),
]


def crowd(world, tally, jobs, labels, why, change):
    """Jobs whose pods the API server refuses: each reports that, and victims' jobs continue meanwhile."""
    tenant = Tenant(world.plane)
    if labels:
        world.api.patch(f"/api/v1/namespaces/{tenant.ns}", {"metadata": {"labels": labels}})
    manifest = job("x", CROWD_PODS)
    put(manifest, (*T, "metadata", "annotations", "ballast"), "b" * BALLAST)
    change(manifest)
    try:
        for _ in range(jobs):
            post(tenant, tally, {**manifest, "metadata": {"name": tenant.named()}})
        for _ in range(TOLD_S):
            world.hold(tally)
            told = [row["REASON"] for row in rows(world.api, job_path(tenant.ns)).values()]
            if told.count(why) == jobs:
                break
        check(told.count(why) == jobs, f"{told.count(why)} of {jobs} jobs say {why}, the others: {set(told) - {why}}")
        world.begin_anew()
        for _ in range(VICTIMS):
            world.hold(tally)
    finally:
        tenant.purge()


def post(tenant, tally, manifest, kind="job", user=None):
    tally.tried += 1
    code, text = tenant.send("POST", paths(kind, tenant.ns), encode(manifest), user=user)
    check(code == 201, f"{code} {text[:300]}")
    tally.taken += 1


def unreadable_image(manifest):
    put(manifest, (*P, "containers", 0, "image"), " x")  # 422


def owners(world, tally, pods):
    """Pods with our label and such owners, of which the API server bounds nothing."""
    for _ in range(pods):
        write(world, tally, Shape("owners", "create", "pod", "owners", "uid-of-650-kb", OWNERS["uid-of-650-kb"], 0))
        world.hold(tally)
    world.begin_anew()
    world.hold(tally)


def nested(world, tally):
    """It is listed again when the operator starts."""
    write(world, tally, Shape("nested", "create", "job", "template", "maps-70", NESTED, 0))
    world.hold(tally)
    world.begin_anew()
    world.hold(tally)


def write(world, tally, shape):
    tally.tried += 1
    code, text = world.tenant.write(shape)
    check(200 <= code < 300, f"{shape.name}: {code} {text[:300]}")
    tally.taken += 1


def among(world, tally):
    for way, kind, place, value, size in AMONG:
        write(world, tally, Shape("among", way, kind, place, "x", value, size))
        world.hold(tally)
    world.begin_anew()
    for _ in range(VICTIMS):
        world.hold(tally)


def account(world, tally):
    """A user without permission to create pods cannot use a service account by name, in any spelling."""
    plane, tenant = world.plane, Tenant(world.plane)
    plane.kubectl("apply", "-f", str(REPO / "deploy/admission/service-accounts.yaml"))
    world.api.post(f"/api/v1/namespaces/{tenant.ns}/serviceaccounts", {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": BY_NAME}})

    def submit(spelling):
        body = base("job")
        put(body, (*P, RAW), BY_NAME)
        text = encode(body).replace(f'"{RAW}"'.encode(), spelling).replace(b"@name@", tenant.named().encode())
        return tenant.send("POST", job_path(tenant.ns), text, user=SUBMITTER)[0]

    try:
        plane.wait("the policy to hold", lambda: submit(b'"serviceAccountName"') in (403, 422))
        tenant.purge()
        for spelling in (b'"serviceAccountName\\u0000"', b'"serviceAccountName\\u0000x"', b'"serviceAccount\\u0000"', b'"serviceAccount\\u004eame"',
                         b'"ServiceAccountName"', b'"serviceaccountname"', b'"serviceAccountName","serviceAccountName"'):
            tally.tried += 1
            tally.taken += submit(spelling.replace(b',', b':"default",')) == 201
            world.hold(tally)
        pods = world.api.get(pod_path(tenant.ns))["items"]
        check(all(pod["spec"].get("serviceAccountName") != BY_NAME for pod in pods), f"a pod runs as {BY_NAME}")
    finally:
        plane.kubectl("delete", "-f", str(REPO / "deploy/admission/service-accounts.yaml"))
        tenant.purge()


def first_of_all(world, tally, admission):
    """Whether a victim had its first pod before any of the requests that wait was answered, when no more of them came."""
    while True:
        before = admission.waiting
        world.hold(tally)
        posted, born = world.victims.last
        if any(posted < answered < born for answered in admission.answered):
            return False
        if admission.waiting == before:
            return True


def slow(world, tally, namespaces, jobs):
    """Fairness: another namespace's job gets its first pod while all requests of these wait for their admission."""
    admission, least = SlowAdmission(world.plane, SLOW_S), min(6, jobs)
    tenants = []
    try:
        admission.install()
        for _ in range(namespaces):
            tenants.append(Tenant(world.plane))
            admission.mark(tenants[-1].ns)
        for _ in range(jobs):
            for tenant in tenants:
                post(tenant, tally, job(tenant.named()))
        for _ in range(TRIES):  # a slow machine may not create a victim's pod in SLOW_S
            world.plane.wait("the requests to wait", lambda: admission.waiting >= least or len(admission.answered) + least > namespaces * jobs)
            if admission.waiting >= least and first_of_all(world, tally, admission):
                break
            admission.release()
        else:
            check(False, f"{TRIES} victims' first pods came only after one of the requests that waited had been answered")
        print(f"        {admission.most} requests waited at once", flush=True)
    finally:
        for tenant in tenants:  # nobody asks for more pods
            tenant.delete("job")
        admission.close()
        for tenant in tenants:
            tenant.purge()


CASES = {  # name: (in the short form, what)
    "a job of 70 nested maps, and the operator starts again": (True, nested),
    "5 pods whose owners have UIDs of 650 kB": (True, partial(owners, pods=5)),
    "40 pods whose owners have UIDs of 650 kB": (False, partial(owners, pods=40)),
    "the operator starts among objects that it cannot read": (True, among),
    "a service account behind a NUL": (True, account),
    "20 jobs of 4 MiB whose pods are refused by Pod Security (403)": (True, partial(
        crowd, jobs=20, labels=RESTRICTED, why="PodRefused", change=lambda manifest: None)),
    "110 jobs of 4 MiB whose pods are refused by Pod Security (403)": (False, partial(
        crowd, jobs=110, labels=RESTRICTED, why="PodRefused", change=lambda manifest: None)),
    "110 jobs of 4 MiB whose pods are refused as invalid (422)": (False, partial(
        crowd, jobs=110, labels={}, why="InvalidSpec", change=unreadable_image)),
    "2 namespaces of 20 jobs whose admission takes long": (True, partial(slow, namespaces=2, jobs=20)),
    "2 namespaces of 200 jobs whose admission takes long": (False, partial(slow, namespaces=2, jobs=200)),
    "8 namespaces of 200 jobs whose admission takes long": (False, partial(slow, namespaces=8, jobs=200)),
}


def run(world, short):
    for name, (also_short, what) in CASES.items():
        if world.cases.wanted(name) and (also_short or not short):
            tally = world.tallies[name] = Tally()
            with world.cases(name):
                try:
                    what(world, tally)
                except Exception:
                    world.recover()
                    raise
            world.tenant.purge()
