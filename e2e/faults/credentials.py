#!/usr/bin/env python3
"""F8: tokens and authorities change under a running operator, against a real API server. It is never restarted.
Each operator has its own namespace and credentials; a job of many pods there makes it open new connections too."""

import json
import math
import re
import sys
import time
from collections import defaultdict
from datetime import datetime

from cases import Cases, check
from jobs import job
from keys import Keys, put
from plane import Plane, job_path, pod_path

PODS = 12  # more than it keeps connections
REREAD_S = 61  # files are read again after a minute
RECOVER_S = 600  # bounds a hang
BACKOFF_MS = 5  # at first, and twice as long after each failure
LATE = re.compile("timed out|[Tt]imeout")  # of a busy server, whatever the credentials


def check_patience(name, complaints):
    """Retries of each job and each watch become rarer. A job may log a failed create and a failed status update about it."""
    subjects = defaultdict(list)
    for line in complaints:
        subjects[line.get("job") or line.get("resource") or line["msg"]].append(datetime.fromisoformat(line["ts"]).timestamp() * 1000)
    for subject, times in subjects.items():
        most = 4 + 1.5 * math.log2(1 + (max(times) - min(times)) / BACKOFF_MS)
        check(len(times) <= most, f"{name}: {len(times)} complaints of {subject} in {max(times) - min(times):.0f} ms, expected at most {most:.0f}")


class Change:
    """One operator and what happens to its credentials. Sub-classes: `begin` writes the token's file, `change` replaces, `outdate`
    ends the old ones; silent: there was always a valid one, so it may log no error."""

    silent, waits = True, False

    def __init__(self, plane, keys):
        self.plane, self.keys, self.jobs = plane, keys, 0
        self.name = type(self).__name__.lower()
        self.folder = plane.folder / self.name
        self.folder.mkdir()
        self.ca, self.file = self.folder / "ca.crt", self.folder / "token"
        self.ca.write_text(plane.serving_ca.read_text())
        self.ns = plane.namespace()

    def start(self):
        self.begin()
        access = (f"--server={self.plane.server()}", f"--ca-file={self.ca}", f"--token-file={self.file}")
        self.operator = self.plane.operator(access, f"--namespace={self.ns}", "--leader-elect=false", name=f"operator-{self.name}")

    def prove(self):
        """A new job gets all its pods."""
        self.jobs += 1
        name = f"j{self.jobs}"
        self.plane.api.post(job_path(self.ns), job(name, PODS))
        want = {f"{name}-node-{i}" for i in range(PODS)}
        have = lambda: {p["metadata"]["name"] for p in self.plane.api.get(pod_path(self.ns))["items"]}
        self.plane.wait(f"{self.name}: the pods of {name}", lambda: want <= have(), RECOVER_S, 0.2)

    def judge(self):
        complaints = self.operator.complaints()
        if self.silent:
            wrong = [c for c in complaints if not LATE.search(c.get("error", ""))]
            check(not wrong, f"{self.name}: {wrong[:3]}")
        check_patience(self.name, complaints)
        said = json.dumps(self.operator.said())
        check(not any(secret in said for secret in self.keys.secrets), f"{self.name}: a credential is in the log")
        check(self.operator.process.popen.poll() is None, f"{self.name}: the operator ended")
        self.operator.end()


class TokenFile(Change):
    """Replaced, and the old one is revoked at once: the first 401 leads to the new one."""

    def begin(self):
        self.old = self.keys.bound(f"{self.name}-old")
        put(self.file, self.old)

    def change(self):
        put(self.file, self.keys.bound(f"{self.name}-new"))

    def outdate(self):
        self.keys.revoke(f"{self.name}-old")
        self.keys.await_refused(self.old)


class TokenFileInTime(TokenFile):
    """Replaced a minute before the old one is revoked."""

    waits = True


class TokenExpired(Change):
    """The old token expires before the new one exists, as when a kubelet is late."""

    silent = False

    def begin(self):
        self.old = self.keys.token(40)
        put(self.file, self.old)

    def change(self):
        self.keys.await_refused(self.old)
        self.plane.api.post(job_path(self.ns), job("while-refused"))
        self.plane.wait("it to be refused", self.operator.complaints)
        put(self.file, self.keys.token(3600))

    def outdate(self):
        pass


class HalfWritten(Change):
    """A volume as the kubelet makes it, but written by someone careless: half a token, an empty one, none; at last whole."""

    silent = False

    def begin(self):
        self.old = self.keys.bound(f"{self.name}-old")
        self.version("one", self.old)
        self.file.symlink_to("..data/token")

    def version(self, name, token):
        (self.folder / name).mkdir()
        (self.folder / name / "token").write_text(token)
        fresh = self.folder / "..data_tmp"
        fresh.symlink_to(name)
        fresh.rename(self.folder / "..data")

    def change(self):
        self.keys.revoke(f"{self.name}-old")
        self.keys.await_refused(self.old)
        token = self.keys.bound(f"{self.name}-new")
        for number, broken in enumerate((token[:len(token) // 2], "", "\n", token[:-1] + "\u00e9")):
            (self.folder / "one" / "token").write_text(broken)
            before = len(self.operator.complaints())
            self.plane.api.post(job_path(self.ns), job(f"while-broken-{number}"))
            self.plane.wait("it to be refused", lambda b=before: len(self.operator.complaints()) > b)
        (self.folder / "one" / "token").unlink()
        (self.folder / "one").rmdir()
        time.sleep(1)
        self.version("two", token)

    def outdate(self):
        pass


class Authority(Change):
    """The file holds both authorities a minute before the server shows a certificate of the new one."""

    waits = True

    def begin(self):
        put(self.ca, self.plane.old_ca)
        put(self.file, self.keys.bound(self.name))

    def change(self):
        put(self.ca, self.plane.old_ca + self.plane.new_ca)

    def outdate(self):
        self.plane.switch()


class AuthorityLate(Authority):
    """The server changes first: the operator trusts no server until the file is replaced."""

    silent = False

    def change(self):
        pass

    def outdate(self):
        self.plane.switch()
        self.plane.api.post(job_path(self.ns), job("while-unknown", PODS))
        self.plane.wait("it to refuse the server", self.operator.complaints)
        put(self.ca, self.plane.new_ca)


AT_ONCE = [TokenFile, TokenExpired, HalfWritten]
SHORT = [TokenFile, HalfWritten]
IN_TIME = [TokenFileInTime, Authority, AuthorityLate]


class TlsPlane(Plane):
    """Its API server can change to a certificate of another authority."""

    switched = False

    def prepare(self, keys):
        self.old_ca = (self.state / "pki/ca.crt").read_text()
        self.new_ca, self.certificate, self.key = keys.new_authority()
        both = self.folder / "both.crt"
        both.write_text(self.old_ca + self.new_ca)
        self.serving_ca = both

    def shown(self):
        connection = self.api.connect()
        connection.connect()
        try:
            return dict(pair for part in connection.sock.getpeercert()["issuer"] for pair in part)["commonName"]
        finally:
            connection.close()

    def switch(self):
        """It notices by itself."""
        if not self.switched:
            put(self.state / "pki/kube-apiserver.key", self.key)
            put(self.state / "pki/kube-apiserver.crt", self.certificate)
            self.switched = True
        self.wait("the API server to show its new certificate", lambda: self.shown() == "new-authority", every=0.5)


def at_once(cases, changes):
    for change in changes:
        with cases(type(change).__doc__.splitlines()[0].rstrip(".")):
            change.start()
            change.prove()
            change.change()
            change.outdate()
            change.prove()
            change.judge()


def in_time(cases, changes, started):
    """Their minute has passed while the others were busy, or nearly."""
    time.sleep(max(0, started + REREAD_S - time.monotonic()))
    for change in changes:
        with cases(type(change).__doc__.splitlines()[0].rstrip(".")):
            change.outdate()
            change.prove()
            change.judge()


def main():
    cases = Cases("F8", __doc__)
    args = cases.parse()
    wanted = lambda kinds: [kind for kind in kinds if cases.wanted(kind.__name__)]
    with cases.up(TlsPlane(args.operator, controller_manager=False)) as plane:
        plane.install()
        keys = Keys(plane)
        plane.prepare(keys)
        slow = [kind(plane, keys) for kind in wanted(IN_TIME)] if not args.short else []
        for change in slow:
            change.start()
        for change in slow:
            change.prove()
            change.change()
        started = time.monotonic()
        at_once(cases, [kind(plane, keys) for kind in wanted(SHORT if args.short else AT_ONCE)])
        if slow:
            in_time(cases, slow, started)
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
