"""The tutorial's own manifest, as its users have it: admitted, and giving exactly the children of the golden table."""

import json

import yaml
from kube import GROUP, REPO, get, items, kubectl, wait_for

MANIFEST = REPO / "tests" / "golden" / "tutorial" / "job.yaml"
GOLDEN = REPO / "tests" / "golden" / "plan" / "tutorial.yaml"
JOB = "torch-mnist-trainingjob"


def differences(want, have, path):
    """Where what we sent is not what the API server holds; what it adds (defaults) does not count."""
    if isinstance(want, dict) and isinstance(have, dict):
        for key, value in want.items():
            yield from differences(value, have.get(key), f"{path}.{key}")
    elif isinstance(want, list) and isinstance(have, list) and len(want) <= len(have):
        for i, value in enumerate(want):
            yield from differences(value, have[i], f"{path}[{i}]")
    elif str(want) != str(have):  # quantities: 8 comes back as "8"
        yield f"{path}: sent {want!r}, found {have!r}"


def wanted(uid, namespace):
    """The golden bodies, with this job's UID and namespace in place of the table's."""
    text = json.dumps(yaml.safe_load(GOLDEN.read_text()))
    text = text.replace("job-uid", uid).replace('"namespace": "ns"', f'"namespace": "{namespace}"')
    for action in json.loads(text)["want"]:
        if "create" in action:
            # TensorBoard's spec hash covers the owner's UID, which the table cannot know.
            action["body"]["metadata"].get("annotations", {}).pop(f"{GROUP}/spec-hash", None)
            yield (*action["create"].split(), action["body"])


def test_tutorial_job_gives_the_expected_children(ns):
    kubectl("-n", ns, "apply", "-f", str(MANIFEST))
    uid = get("ptj", JOB, ns)["metadata"]["uid"]
    for kind, name, body in wanted(uid, ns):
        have = wait_for(f"{kind} {name}", lambda k=kind, n=name: get(k, n, ns))
        if kind == "pod":
            assert len(have["spec"]["containers"]) == 1
            # The API server mounts a service-account token into every pod; everything else is ours or the user's.
            assert have["spec"]["containers"][0]["args"] == body["spec"]["containers"][0]["args"]
            assert [e["name"] for e in have["spec"]["containers"][0]["env"]] == [
                e["name"] for e in body["spec"]["containers"][0]["env"]]
        assert list(differences(body, have, f"{kind}/{name}")) == []
    assert [p["metadata"]["name"] for p in items("pods", ns, f"{GROUP}/job={JOB}")] == [f"{JOB}-node-0"]
