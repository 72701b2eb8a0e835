"""deploy/local/servers itself: several at once, repaired after a part was killed, and completely removed."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import ports
import pytest
from kube import REPO, wait_for

SERVERS = REPO / "deploy" / "local" / "servers"
KUBECTL = REPO / "build" / "tools" / "kubectl"


def servers(*args):
    done = subprocess.run([SERVERS, *map(str, args)], text=True, capture_output=True)
    print(done.stderr)
    return done


def kubectl(folder, *args):
    return subprocess.run([KUBECTL, f"--kubeconfig={folder}/admin.conf", *args], text=True, capture_output=True)


def processes(folder):
    mark = f"TORCHKEEPER_SERVERS={folder}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            pass  # it ended, or is somebody else's
    return found


def pid_of(folder, part):
    return int((folder / "run" / f"{part}.pid").read_text().split()[0])


@contextmanager
def running(folder, *args):
    try:
        assert servers("up", folder, *args).returncode == 0
        yield folder
    finally:
        assert servers("down", folder).returncode == 0
    assert not folder.exists()
    assert processes(folder) == []


def test_two_at_once_know_nothing_of_each_other(tmp_path):
    with running(tmp_path / "one") as one, running(tmp_path / "two") as two:
        assert kubectl(one, "create", "namespace", "here").returncode == 0
        assert kubectl(one, "get", "namespace", "here").returncode == 0
        assert "NotFound" in kubectl(two, "get", "namespace", "here").stderr


def test_up_again_changes_nothing_and_mends_what_was_killed(tmp_path):
    with running(tmp_path / "a", "--controller-manager") as folder:
        kubectl(folder, "create", "namespace", "kept")
        before = {part: pid_of(folder, part) for part in ("etcd", "kube-apiserver", "kube-controller-manager")}
        assert servers("up", folder, "--controller-manager").returncode == 0
        assert {part: pid_of(folder, part) for part in before} == before
        os.kill(before["etcd"], signal.SIGKILL)
        os.kill(before["kube-apiserver"], signal.SIGKILL)
        assert servers("up", folder).returncode == 0
        assert kubectl(folder, "get", "namespace", "kept").returncode == 0
        assert len(processes(folder)) == 2, "a part that is not asked for any more is stopped"


# One program plays all parts, and what CoreDNS adds to the process's flags is there in each of them.
def test_no_part_takes_a_flag_of_another():
    def flags(part):
        shown = subprocess.run([KUBECTL.with_name(part), "--help"], text=True, capture_output=True)
        return set(re.findall(r"^ *(--?[a-z.-]+)", shown.stdout + shown.stderr, re.MULTILINE))

    assert {"-conf", "-plugins"} <= flags("coredns")
    assert "--proxy-mode" in flags("kube-proxy")
    assert not {"--conf", "--plugins", "--dns.port", "--pidfile", "--quiet"} & flags("kube-proxy")


# The first thread has ended, another one still listens: what SIGKILL makes of a process for a moment.
HALF_GONE = """
import ctypes, platform, socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
threading.Thread(target=time.sleep, args=(600,)).start()
print("listens", flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


def seems_to_run(pid):
    check = f'. "{SERVERS.parent}/lib/part.sh"; process_start {pid}'
    return subprocess.run(["bash", "-c", check], capture_output=True).returncode == 0


def test_a_process_is_gone_when_its_last_thread_is():
    port = ports.take()
    process = subprocess.Popen([sys.executable, "-c", HALF_GONE, str(port)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "listens\n"
    wait_for("the first thread's end", lambda: ") Z " in Path(f"/proc/{process.pid}/stat").read_text())
    with pytest.raises(OSError), socket.create_server(("127.0.0.1", port)):
        pass
    assert seems_to_run(process.pid)
    process.kill()
    wait_for("the last thread's end", lambda: not seems_to_run(process.pid))
    assert Path(f"/proc/{process.pid}").exists(), "nobody has waited for it"
    with socket.create_server(("127.0.0.1", port)):
        pass
    process.wait()


def test_requests_are_audited(tmp_path):
    with running(tmp_path / "a") as folder:
        kubectl(folder, "create", "namespace", "seen")
        wait_for("the request's line", lambda: '"name":"seen"' in (folder / "logs" / "audit.log").read_text())


def test_a_start_that_fails_says_why_and_leaves_nothing_running(tmp_path):
    done = servers("up", tmp_path / "a", "--apiserver-arg", "--no-such-flag")
    assert done.returncode == 1
    assert "unknown flag: --no-such-flag" in done.stderr
    assert processes(tmp_path / "a") == []
    assert servers("down", tmp_path / "a").returncode == 0
    assert not (tmp_path / "a").exists()


def test_a_port_that_is_taken_is_told(tmp_path):
    """Any port of the block: here the second one, which etcd would have."""
    with socket.socket() as taken:
        port = ports.take()
        taken.bind(("127.0.0.1", port + 1))
        taken.listen()
        done = servers("up", tmp_path / "a", "--port", port)
    assert done.returncode == 1
    assert f"port {port + 1}, which etcd needs, is taken" in done.stderr
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("args, word", [
    (["--version", "1.1"], "expected one of 1.32"), (["--port", "80"], "expected a number from 1024"),
    (["--port"], "expects a value"), (["--nonsense"], "unknown option")])
def test_bad_options_are_named(tmp_path, args, word):
    done = servers("up", tmp_path / "a", *args)
    assert done.returncode in (1, 2)
    assert word in done.stderr
    assert not (tmp_path / "a").exists()


def test_files_of_others_are_safe(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    for verb in ("up", "down"):
        done = servers(verb, tmp_path)
        assert done.returncode == 1
        assert "somebody else" in done.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
