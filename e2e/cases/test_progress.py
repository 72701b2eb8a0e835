"""Progress and hangs: unmodified real PyTorch under our launcher, in two pods."""

import json

import pytest
import yaml
from kube import REPO, apply, kubectl, status, wait_for, wait_phase
from torchjobs import OURS, logs, replica, template, torch_job


def column(name, ns):
    """What `kubectl get ptj` shows under PROGRESS."""
    head, row = kubectl("-n", ns, "get", "ptj", name).splitlines()
    at = head.index("PROGRESS")
    return row[at:].split("  ")[0].strip()


@pytest.mark.early
def test_percent_moves_and_ends_at_100(ns):
    torch_job("moves", replica("progress.py", "600", replicas=2), torchrun={"procPerNode": 2, **OURS}, namespace=ns)

    def seen():
        found = status("moves", ns).get("progress", {})
        return 0 < found.get("percent", 0) < 100 and found

    first = wait_for("a percent", seen)
    assert (first["totalSteps"], first["percent"]) == (600, first["step"] * 100 // 600), first
    assert first["loss"] == pytest.approx(1 / first["step"], abs=1e-4)
    second = wait_for("another percent", lambda: status("moves", ns)["progress"]["step"] > first["step"]
                      and status("moves", ns)["progress"])
    assert second["percent"] >= first["percent"]
    assert column("moves", ns).endswith("%")
    end = wait_phase("moves", ns, "Succeeded", "Failed")
    assert (end["phase"], end["progress"]["percent"]) == ("Succeeded", 100), logs("moves-node-0", ns)
    assert "etaSeconds" not in end["progress"]


@pytest.mark.early
@pytest.mark.parametrize("how", ["loop", "stopped"])
def test_the_rank_that_hangs_is_named_and_the_job_goes_on(ns, data, how):
    """Rank 3 hangs in pod 1. Its pod ends with 138; the job counts a restart and completes."""
    data.chmod(0o777)
    torch_job("hangs", replica("progress.py", "40", replicas=2, data=data, env={"HANG": f"3:20:{how}", "DATA": "/data"}),
              torchrun={"procPerNode": 2, **OURS}, runPolicy={"progressTimeoutSeconds": 30}, namespace=ns)
    end = wait_phase("hangs", ns, "Succeeded", "Failed")
    assert (end["phase"], end["backoffCount"], end["attempt"]) == ("Succeeded", 1, 1), json.dumps(end)
    failed = end["lastFailure"]
    assert (failed["pod"], failed["exitCode"], failed["rank"]) == ("hangs-node-1", 138, 3), failed
    assert "no progress for 30 s: rank 3" in failed["message"], failed
    assert failed["reason"] == "NoProgress", failed


@pytest.mark.early
def test_the_sample_with_a_stock_script(ns):
    """deploy/samples/pytorch.yaml as it is, but for the image, in whose place this machine's PyTorch is borrowed."""
    script, job = yaml.safe_load_all((REPO / "deploy" / "samples" / "pytorch.yaml").read_text())
    pod = job["spec"]["replicaSpecs"][0]["template"]["spec"]
    theirs, ours = pod["containers"][0], template([])["spec"]
    theirs.update(image=ours["containers"][0]["image"], env=ours["containers"][0]["env"],
                  securityContext=ours["containers"][0]["securityContext"])
    kept = [v for v in ours["volumes"] if "hostPath" in v]
    theirs["volumeMounts"] += [m for m in ours["containers"][0]["volumeMounts"] if m["name"] in {v["name"] for v in kept}]
    pod["volumes"] += kept
    apply(script, job, namespace=ns)
    end = wait_phase("pytorch", ns, "Succeeded", "Failed")
    assert (end["phase"], end["restarts"], end["progress"]["percent"]) == ("Succeeded", 0, 100), logs("pytorch-node-0", ns)
    assert (end["progress"]["epoch"], end["progress"]["totalEpochs"]) == (10, 10)
