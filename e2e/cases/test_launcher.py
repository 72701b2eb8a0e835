"""Our launcher in images without it (torchrunConfig.launcher: Torchkeeper): a Debian with Python, and an image with one static
program only. Under restricted Pod Security, with a read-only root and a user that is in no image."""

import io
import json
import subprocess
import tarfile
from hashlib import sha256

import jobs
import pytest
from kube import REPO, STATE, apply, get, kubectl, wait_for, wait_phase

UID = 12345
DEBIAN = "localhost/torchkeeper/tensorboard:dev"
SCRATCH = "localhost/torchkeeper/e2e-scratch:1"
# Rank 1 ends badly; the others wait to be stopped.
PYTHON = 'import os, signal, sys\nif os.environ["RANK"] == "1": sys.exit("told to fail")\nsignal.pause()\n'
C = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    if (strcmp(getenv("RANK"), "1") == 0) {
        fprintf(stderr, "told to fail\\n");
        return 7;
    }
    pause();
}
"""


def archive(members):
    """A tar of {name: (bytes, mode)}."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, (data, mode) in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """An image of one static program, which the node has."""
    folder = tmp_path_factory.mktemp("scratch")
    (folder / "fails.c").write_text(C)
    subprocess.run(["gcc", "-static", "-s", "-o", folder / "fails", folder / "fails.c"], check=True)
    layer = archive({"fails": ((folder / "fails").read_bytes(), 0o555)})
    machine = subprocess.run(["dpkg", "--print-architecture"], text=True, capture_output=True, check=True).stdout.strip()
    config = {"architecture": machine, "os": "linux", "config": {},
              "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(layer).hexdigest()}"]}}
    manifest = [{"Config": "config.json", "RepoTags": [SCRATCH], "Layers": ["layer.tar"]}]
    image = folder / "image.tar"
    image.write_bytes(archive({"manifest.json": (json.dumps(manifest).encode(), 0o644),
                               "config.json": (json.dumps(config).encode(), 0o644), "layer.tar": (layer, 0o644)}))
    subprocess.run([REPO / "deploy" / "local" / "cluster", "load", image], check=True, capture_output=True)


def replica(image, args, replicas=1, **pod):
    one = jobs.container("", image=image, args=args, env=[], securityContext={
        "runAsUser": UID, "runAsNonRoot": True, "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}})
    del one["command"]
    return {"type": "node", "replicas": replicas, "restartPolicy": "Never",
            "template": {"spec": {"containers": [one], "terminationGracePeriodSeconds": 5, **pod}}}


def run(name, ns, *args, **more):
    config = {"enabled": True, "launcher": "Torchkeeper"}
    apply(jobs.job(name, replica(*args, **more), torchrunConfig=config), namespace=ns)


def exit_code(pod, ns):
    def terminated():
        (container,) = (get("pod", pod, ns) or {}).get("status", {}).get("containerStatuses") or [{}]
        return container.get("state", {}).get("terminated")

    return wait_for(f"the end of {pod}", terminated)["exitCode"]


@pytest.mark.parametrize(("image", "args", "code"), [(DEBIAN, ["--no_python", "python3", "-c", PYTHON], 1),
                                                     (SCRATCH, ["/fails"], 7)], ids=["debian", "scratch"])
def test_a_rank_is_named_in_any_image(ns, scratch, image, args, code):
    """Two pods connect by name; the one at fault ends with its rank's code, the other reports a lost peer."""
    kubectl("label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")
    run("any", ns, image, args, replicas=2)
    end = wait_phase("any", ns, "Succeeded", "Failed")
    failed = end["lastFailure"]
    assert (end["phase"], failed["exitCode"], failed["rank"]) == ("Failed", code, 1), end
    assert "told to fail" in failed["message"]
    other = {"any-node-0": "any-node-1", "any-node-1": "any-node-0"}[failed["pod"]]
    assert (exit_code(failed["pod"], ns), exit_code(other, ns)) == (code, 140)
    (init,) = get("pod", failed["pod"], ns)["spec"]["initContainers"]
    assert (init["name"], init["securityContext"]["runAsUser"]) == ("torchkeeper-launcher", UID)


def test_a_launcher_that_is_not_executed_is_named(ns, scratch, data):
    """The file loses its mode while another init container of the pod holds the training container back: what the runtime is
    told is what a mount with noexec or a security module tells it."""
    data.chmod(0o777)
    hold = jobs.container('until [ -e /data/go ]; do sleep 0.2; done', env=[], name="hold",
                          volumeMounts=[{"name": "data", "mountPath": "/data"}])
    run("refused", ns, SCRATCH, ["/fails"], initContainers=[hold],
        volumes=[{"name": "data", "hostPath": {"path": str(data), "type": "Directory"}}])

    def held():
        pod = get("pod", "refused-node-0", ns) or {}
        states = [c["state"] for c in pod.get("status", {}).get("initContainerStatuses", [])]
        return len(states) == 2 and "running" in states[1] and pod

    uid = wait_for("the second init container", held)["metadata"]["uid"]
    (program,) = STATE.glob(f"kubelet/pods/{uid}/volumes/kubernetes.io~empty-dir/torchkeeper-launcher/torchrun")
    assert program.stat().st_mode & 0o7777 == 0o555
    program.chmod(0o444)
    (data / "go").touch()
    end = wait_phase("refused", ns, "Succeeded", "Failed")
    assert (end["phase"], end["lastFailure"]["reason"]) == ("Failed", "LauncherNotExecutable"), end
    assert "noexec" in end["lastFailure"]["message"]
