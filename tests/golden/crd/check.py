#!/usr/bin/env python3
"""check.py - send every manifest of this folder to an API server that has the CRD, and look at what it answers.

  good-*.yaml    must be admitted, and come back with every field they were sent with; so must what `kubectl ptj convert` made of
                 Kubeflow's jobs (../convert/*/out.yaml)
  bad-*.yaml     must be refused with the text behind each "# want:"; one of them names the path of the field
  update-*.yaml  the first document is created and gets the status behind "# status:"; then the second replaces it: the
                 answer must hold the text behind each "# want:", or be an admission when that is "ok"
  scale-*.yaml   the document is created and gets its status in the same way; its scale subresource must show the number
                 behind "# from:", and setting the one behind "# to:" must be answered as above

A file may hold several cases: "# case: NAME" begins each, before its other comments.

The CRD itself: every field has a description, and it is small enough for a plain `kubectl apply`.

Environment: KUBECTL (kubectl), NAMESPACE (default). Prints one line per case; exit 1 when one of them fails. A kubectl for
each request would take most of the time: one reads the manifests, and one lets the requests through with its credentials.
"""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
CRD = "../../../crds/pytorchtrainingjob.yaml"
CRD_BYTES_MAX = 60_000
KUBECTL = os.environ.get("KUBECTL", "kubectl")
NAMESPACE = os.environ.get("NAMESPACE", "default")
JOBS = f"/apis/batch.tensorstack.dev/v1beta1/namespaces/{NAMESPACE}/pytorchtrainingjobs"
STRICT = "fieldValidation=Strict"  # as kubectl asks for
TRIES = 5


class Socket(http.client.HTTPConnection):
    """HTTP over a socket in the file system, which nobody else can reach."""

    def __init__(self, path):
        super().__init__("localhost", timeout=600)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Api:
    def __init__(self, connection):
        self.connection = connection

    def send(self, method, path, body=None, content="application/json"):
        """(code, object); of a refusal (code, what was said)."""
        self.connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": content})
        answer = self.connection.getresponse()
        text = answer.read().decode(errors="replace")
        try:
            found = json.loads(text)
        except json.JSONDecodeError:
            return answer.status, text
        return answer.status, found if answer.status < 300 else found.get("message", text)

    def create(self, job, *options):
        return self.send("POST", f"{JOBS}?{'&'.join((STRICT, *options))}", job)

    def replace(self, job):
        """An operator that runs here writes the job's status too, and a replace in the same moment is a conflict."""
        path = f"{JOBS}/{job['metadata']['name']}"
        for _ in range(TRIES):
            code, answer = self.send("GET", path)
            if code >= 300:
                break
            job["metadata"]["resourceVersion"] = answer["metadata"]["resourceVersion"]
            code, answer = self.send("PUT", f"{path}?{STRICT}", job)
            if code != 409:
                break
        return code, answer

    def scale(self, name, to):
        path = f"{JOBS}/{name}/scale"
        return self.send("PATCH", path, {"spec": {"replicas": to}}, "application/merge-patch+json")

    def remove(self, name):
        code, answer = self.send("DELETE", f"{JOBS}/{name}")
        if code >= 300 and code != 404:
            sys.exit(f"{name} of {NAMESPACE} cannot be deleted: {answer}")


@contextmanager
def served():
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder) / "api"
        proxy = subprocess.Popen([KUBECTL, "proxy", f"--unix-socket={at}"], stdout=subprocess.PIPE, text=True)
        try:
            if not proxy.stdout.readline().startswith("Starting to serve"):
                sys.exit("kubectl proxy: does not start")
            yield Api(Socket(at))
        finally:
            proxy.terminate()
            proxy.wait()


def cases_of(file):
    """{the case's name: its text} for each case of a file."""
    head, *rest = re.split(r"^# case: (.*)\n", (HERE / file).read_text(), flags=re.M)
    return {f"{file}: {name}": text for name, text in zip(rest[::2], rest[1::2])} if rest else {file: head}


def documents_in(text):
    return sum(bool(part.strip()) for part in re.split(r"^---$", text, flags=re.M))


def documents(files):
    """{case: (its text, [(object, bytes of its JSON as `kubectl apply` stores it: without indentation)])}"""
    texts = {case: text for file in files for case, text in cases_of(file).items()}
    counts = {case: 2 if case.startswith("update-") else 1 for case in texts}
    for case, n in counts.items():
        has = documents_in(texts[case])
        if has != n:
            sys.exit(f"{case}: {has} documents, expected {n}")
    done = subprocess.run([KUBECTL, "create", "--dry-run=client", "--validate=false", f"--namespace={NAMESPACE}", "-o", "json",
                           *(word for file in files for word in ("-f", str(HERE / file)))], text=True, capture_output=True)
    if done.returncode:
        sys.exit(done.stderr.strip())
    text, read = done.stdout.lstrip(), []
    while text:
        found, end = json.JSONDecoder().raw_decode(text)
        read.append((found, len(json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode())))
        text = text[end:].lstrip()
    if len(read) != sum(counts.values()):
        sys.exit(f"kubectl read {len(read)} documents, expected {sum(counts.values())}")
    rest = iter(read)
    return {case: (texts[case], [next(rest) for _ in range(n)]) for case, n in counts.items()}


def header(text, name):
    return re.findall(rf"^# {name}: (.*?)\s*$", text, re.M)


def lost(sent, back, path):
    if isinstance(sent, dict) and isinstance(back, dict):
        for key, value in sent.items():
            if key in back:
                yield from lost(value, back[key], f"{path}.{key}")
            elif value is not None:
                yield f"{path}.{key}"
    elif isinstance(sent, list) and isinstance(back, list) and len(sent) == len(back):
        for i, (a, b) in enumerate(zip(sent, back)):
            yield from lost(a, b, f"{path}[{i}]")
    elif sent != back:
        yield path


def silent(schema, path):
    for name, field in schema.get("properties", {}).items():
        # The API server describes metadata itself and forbids us to.
        if not field.get("description") and path + [name] not in (["metadata"], ["metadata", "name"]):
            yield ".".join(path + [name])
        yield from silent(field, path + [name])
    if "items" in schema:
        yield from silent(schema["items"], path[:-1] + [path[-1] + "[]"])


# Each of these says what is wrong, or nothing.


def check_crd(crd, size):
    fields = [f for v in crd["spec"]["versions"] for f in silent(v["schema"]["openAPIV3Schema"], [])]
    if fields:
        return "no description: " + ", ".join(fields)
    return f"{size} bytes; expected at most {CRD_BYTES_MAX}" if size > CRD_BYTES_MAX else ""


def check_good(api, job):
    """A field that the schema does not know would be gone without a word."""
    code, answer = api.create(job, "dryRun=All")
    if code >= 300:
        return answer
    paths = list(lost(job["spec"], answer["spec"], "spec"))
    return "changed on the way: " + ", ".join(paths) if paths else ""


def check_refused(wants, code, answer):
    wanted = "\n".join(wants)
    if code < 300:
        return f"was admitted; expected: {wanted}"
    return "" if wants and all(text in answer for text in wants) else f"expected: {wanted}; got: {answer}"


def check_bad(api, job, wants):
    return check_refused(wants, *api.create(job, "dryRun=All"))


def check_answer(wants, code, answer):
    if wants != ["ok"]:
        return check_refused(wants, code, answer)
    return f"expected: ok; got: {answer}" if code >= 300 else ""


def check_change(api, job, status, change):
    """What `change` says of the job, once it stands there with that status."""
    name = job["metadata"]["name"]
    api.remove(name)
    code, answer = api.create(job)
    if code < 300:
        code, answer = api.send("PATCH", f"{JOBS}/{name}/status", {"status": status}, "application/merge-patch+json")
    problem = f"the first document: {answer}" if code >= 300 else change()
    api.remove(name)
    return problem


def check_update(api, first, second, wants, status):
    return check_change(api, first, status, lambda: check_answer(wants, *api.replace(second)))


def check_scale(api, job, wants, status, numbers):
    def change():
        name = job["metadata"]["name"]
        code, answer = api.send("GET", f"{JOBS}/{name}/scale")
        if code >= 300 or answer["spec"].get("replicas", 0) != numbers[0]:
            return f"expected spec.replicas {numbers[0]} of the scale subresource; got: {answer}"
        return check_answer(wants, *api.scale(name, numbers[1]))

    return check_change(api, job, status, change)


def check(api, case, text, first, second=(None, 0)):
    kind, wants = case.split("-")[0], header(text, "want")
    if case == CRD:
        return check_crd(*first)
    if kind == "bad":
        return check_bad(api, first[0], wants)
    if kind == "update":
        return check_update(api, first[0], second[0], wants, json.loads(header(text, "status")[0]))
    if kind == "scale":
        numbers = [int(header(text, name)[0]) for name in ("from", "to")]
        return check_scale(api, first[0], wants, json.loads(header(text, "status")[0]), numbers)
    return check_good(api, first[0])


def main():
    names = {kind: sorted(path.name for path in HERE.glob(f"{kind}-*.yaml")) for kind in ("good", "bad", "update", "scale")}
    names["good"].append("../tutorial/job.yaml")
    names["good"] += [f"../convert/{path.parent.name}/out.yaml" for path in sorted(HERE.glob("../convert/*/out.yaml"))
                      if path.read_text().count("apiVersion: batch") == 1]
    bad = 0

    def report(case, problem):
        nonlocal bad
        bad += bool(problem)
        print(f"not ok  {case}: {problem}" if problem else f"ok      {case}", flush=True)

    with served() as api:
        for case, (text, found) in documents([CRD, *(file for files in names.values() for file in files)]).items():
            report(case, check(api, case, text, *found))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
