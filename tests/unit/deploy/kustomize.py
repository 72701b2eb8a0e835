"""kustomize.py TREE - deploy/kustomize-names.yaml: every name of another object in a job follows what kustomize makes of it, and
nothing else changes. Skipped (77) where kubectl is not built.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

TREE = Path(sys.argv[1])
KUBECTL = TREE / "build" / "tools" / "kubectl"
NAMES = TREE / "deploy" / "kustomize-names.yaml"
# Each name that is to follow has its kind in it; what is called "kept" names nothing that kustomize knows.
JOB = """
apiVersion: batch.tensorstack.dev/v1beta1
kind: PyTorchTrainingJob
metadata: {name: job}
spec:
  tensorboardSpec: {logDir: {pvc: [{name: claim, subPath: [claim]}, {name: kept}]}}
  replicaSpecs:
  - type: node
    template:
      spec:
        serviceAccountName: account
        priorityClassName: priority
        imagePullSecrets: [{name: secret}, {name: kept}]
        initContainers:
        - &container
          name: settings
          image: secret
          envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: secret}}, {configMapRef: {name: kept}}]
          env:
          - {name: A, valueFrom: {configMapKeyRef: {name: settings, key: settings}}}
          - {name: B, valueFrom: {secretKeyRef: {name: secret, key: secret}}}
          - {name: C, value: secret}
        containers:
        - *container
        volumes:
        - {name: a, configMap: {name: settings}}
        - {name: b, secret: {secretName: secret}}
        - {name: c, persistentVolumeClaim: {claimName: claim}}
        - {name: d, projected: {sources: [{configMap: {name: settings}}, {secret: {name: secret}}]}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaler}
spec: {maxReplicas: 4, scaleTargetRef: {apiVersion: batch.tensorstack.dev/v1beta1, kind: PyTorchTrainingJob, name: job}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: account}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: priority}
value: 1
"""
KUSTOMIZATION = """
resources: [job.yaml]
configurations: [names.yaml]
configMapGenerator: [{name: settings, literals: [a=1]}]
secretGenerator: [{name: secret, literals: [a=1]}]
"""


def built(more):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "job.yaml").write_text(JOB)
        Path(folder, "kustomization.yaml").write_text(KUSTOMIZATION + more)
        shutil.copy(NAMES, Path(folder, "names.yaml"))
        done = subprocess.run([KUBECTL, "kustomize", folder], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return {o["kind"]: o for o in yaml.safe_load_all(done.stdout)}


def renamed(value, names, path=()):
    """The value with each name that is to follow replaced."""
    if isinstance(value, dict):
        return {k: renamed(v, names, (*path, k)) for k, v in value.items()}
    if isinstance(value, list):
        return [renamed(v, names, path) for v in value]
    last = path[-2:]
    refers = (last[-1] in ("secretName", "claimName", "serviceAccountName", "priorityClassName")
              or (last[-1] == "name" and re.search("Ref$|^(configMap|secret|imagePullSecrets|pvc)$", last[0])))
    return names.get(value, value) if refers else value


def check(more):
    got = built(more)
    names = {old: got[kind]["metadata"]["name"] for old, kind in (
        ("job", "PyTorchTrainingJob"), ("claim", "PersistentVolumeClaim"), ("account", "ServiceAccount"),
        ("priority", "PriorityClass"), ("settings", "ConfigMap"), ("secret", "Secret"))}
    for was in list(yaml.safe_load_all(JOB))[:2]:
        assert got[was["kind"]]["spec"] == renamed(was["spec"], names), (was["kind"], names, got[was["kind"]])
    return names


def test_generated_names():
    names = check("")
    assert names["settings"].startswith("settings-") and names["secret"].startswith("secret-") and names["claim"] == "claim"


def test_prefix_and_suffix():
    names = check("namePrefix: my-\nnameSuffix: '-2'\n")
    assert names["job"] == "my-job-2" and names["claim"] == "my-claim-2" and names["account"] == "my-account-2"
    assert names["settings"].startswith("my-settings-2-")


if not KUBECTL.exists():
    print(f"{KUBECTL} is not built")
    sys.exit(77)
for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        test()
        print(f"{name}: ok")
