"""keys.py - credentials made with a plane's temporary keys: tokens with a chosen lifetime, and certificate authorities."""

import base64
import json
import subprocess
import time
from pathlib import Path

from plane import ACCOUNT, SYSTEM, RigError

LEEWAY_S = 60  # the API server takes a token so much longer than it says


def openssl(*args, text=None):
    done = subprocess.run(["openssl", *map(str, args)], input=text, capture_output=True)
    if done.returncode:
        raise RigError(f"openssl {args[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def put(path, text):
    """Whole or not at all, as everyone should."""
    fresh = Path(f"{path}.new")
    fresh.touch(0o600)
    fresh.write_text(text)
    fresh.rename(path)


class Keys:
    def __init__(self, plane):
        self.plane, self.pki = plane, plane.state / "pki"
        self.folder = plane.folder / "keys"
        self.folder.mkdir()
        self.secrets = []  # none of these may ever be logged

    def token(self, seconds):
        """One of the operator's account that the API server refuses after so many seconds, and a little later at the most."""
        account = self.plane.api.get(f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{ACCOUNT}")
        issuer = "https://kubernetes.default.svc.cluster.local"
        now = int(time.time())
        claims = {"iss": issuer, "aud": [issuer], "sub": f"system:serviceaccount:{SYSTEM}:{ACCOUNT}", "iat": now - 3600, "nbf": now - 3600,
                  "exp": now + seconds - LEEWAY_S, "jti": f"{now}-{len(self.secrets)}", "kubernetes.io": {
                      "namespace": SYSTEM, "serviceaccount": {"name": ACCOUNT, "uid": account["metadata"]["uid"]}}}
        text = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "RS256", "typ": "JWT"}, claims))
        signature = base64.urlsafe_b64encode(openssl("dgst", "-sha256", "-sign", self.pki / "sa.key", text=text)).rstrip(b"=")
        return self.secret((text + b"." + signature).decode())

    def bound(self, name):
        """A token that lives as long as the Secret of this name; `revoke` ends it."""
        self.plane.api.post(f"/api/v1/namespaces/{SYSTEM}/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
        return self.secret(self.plane.kubectl("-n", SYSTEM, "create", "token", ACCOUNT, "--bound-object-kind=Secret",
                                              f"--bound-object-name={name}").stdout.strip())

    def revoke(self, name):
        self.plane.api.delete(f"/api/v1/namespaces/{SYSTEM}/secrets/{name}")

    def secret(self, text):
        self.secrets.append(text.rpartition(".")[2])
        return text

    def new_authority(self):
        """Another authority and a certificate of it for the API server: (authority, certificate, key) as texts."""
        ca, server = self.folder / "authority", self.folder / "server"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{ca}.key", "-subj",
                "/CN=new-authority", "-days", "2", "-addext", "keyUsage=critical,keyCertSign", "-out", f"{ca}.crt")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{server}.key", "-subj",
                "/CN=kube-apiserver", "-out", f"{server}.csr")
        Path(f"{server}.ext").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
        openssl("x509", "-req", "-in", f"{server}.csr", "-CA", f"{ca}.crt", "-CAkey", f"{ca}.key", "-CAcreateserial", "-days", "2",
                "-extfile", f"{server}.ext", "-out", f"{server}.crt")
        return tuple(Path(p).read_text() for p in (f"{ca}.crt", f"{server}.crt", f"{server}.key"))

    def is_refused(self, token):
        """Whether the API server answers 401 to it now."""
        connection = self.plane.api.connect(certificate=False)
        try:
            connection.request("GET", "/api/v1/namespaces/default/pods?limit=1", headers={"Authorization": f"Bearer {token}"})
            return connection.getresponse().status == 401
        finally:
            connection.close()

    def await_refused(self, token):
        self.plane.wait("a token to be refused", lambda: self.is_refused(token), every=0.3)
