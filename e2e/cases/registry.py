"""registry.py - a real registry server on loopback, and a release of the working tree in it."""

import os
import shutil
import subprocess
import time
import urllib.request

import ports
from kube import BOUND_S, REPO

FIRST_EDITION = "e057a9bc"  # the last commit of 0.1.0

CONFIG = """version: 0.1
log: {{accesslog: {{disabled: false}}, level: warn}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "{address}"}}
"""


def run(*args, **more):
    """Run it and return its standard output; on failure, show both streams."""
    done = subprocess.run([str(a) for a in args], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    assert done.returncode == 0, f"{' '.join(map(str, args))}: {done.stdout[-3000:]}"
    return done.stdout


def git(*args, **more):
    name = {f"GIT_{who}_{what}": "e2e@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return run("git", *args, env={**os.environ, **name}, **more)


def answers(address):
    try:
        with urllib.request.urlopen(f"http://{address}/v2/", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


class Registry:
    """A process with a folder of its own, on a free port of loopback: container runtimes speak plain http there."""

    def __init__(self, folder):
        self.address = f"127.0.0.1:{ports.take()}"
        self.prefix, self.log = f"{self.address}/torchkeeper", folder / "registry.log"
        (folder / "registry.yml").write_text(CONFIG.format(folder=folder / "blobs", address=self.address))
        with self.log.open("w") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", folder / "registry.yml"], stdout=log, stderr=log)
        deadline = time.monotonic() + BOUND_S
        while not answers(self.address):
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()[-2000:]
            time.sleep(0.1)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def pulled(self, name):
        """Whether a node has fetched this image's manifest from here."""
        return any(f"GET /v2/torchkeeper/{name}/manifests/" in line and "containerd" in line
                   for line in self.log.read_text().splitlines())


def checkout(folder, commit):
    """The tree at a commit, or as it is now, as a clean checkout."""
    git("clone", "--quiet", "--shared", "--no-checkout", REPO, folder)
    if commit:
        git("-C", folder, "checkout", "--quiet", commit)
        return
    git("--git-dir", folder / ".git", "--work-tree", REPO, "add", "--all", cwd=REPO)
    git("-C", folder, "commit", "--quiet", "--allow-empty", "-m", "the tree as it is")
    git("-C", folder, "reset", "--quiet", "--hard")


def release(folder, registry):
    """The folder of a release of the tree as it is; its images come from those that are built already."""
    checkout(folder, None)
    (folder / "build").mkdir()
    (folder / "build" / "images").symlink_to(REPO / "build" / "images")
    version = "v" + run("sed", "-n", r"s/^project(torchkeeper VERSION \([0-9.]*\).*/\1/p", folder / "CMakeLists.txt").strip()
    run(folder / "scripts" / "release.sh", version, registry.prefix, env={"COSIGN_KEY": "none", **os.environ})
    return folder / "build" / f"release-{version}"


def first_edition(folder, registry):
    """install.yaml of 0.1.0, its operator built from the history, in a store of its own, and pushed."""
    checkout(folder, FIRST_EDITION)
    run(folder / "deploy" / "images" / "build.sh", "operator", env={**os.environ, "ENGINE": "buildah", "TAG": "v0.1.0"})
    store = folder / "build" / "images" / "store"
    run("buildah", "--root", store, "--runroot", f"{store}.run", "--storage-driver", "vfs", "push", "--quiet", "--tls-verify=false",
        "localhost/torchkeeper/operator:v0.1.0", f"docker://{registry.prefix}/operator:v0.1.0")
    text = (folder / "deploy" / "install.yaml").read_text()
    shutil.rmtree(folder)
    return text.replace("localhost/torchkeeper/operator:dev", f"{registry.prefix}/operator:v0.1.0")
