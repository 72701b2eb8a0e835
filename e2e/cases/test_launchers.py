"""Our launcher and PyTorch's compared: the claims of launcher_cases.py, and typical use. It needs no cluster:

    build/venv/bin/python -m pytest -c e2e/pytest.ini -n 4 -m "not long" e2e/cases/test_launchers.py"""

import os
import pty
import re
import shlex
import signal
import subprocess
import sys

import ports
import pytest
from kube import BOUND_S
from launcher_cases import CASES
from launchers import (OF_OURS, RANKS, TORCHRUN, Launch, Ours, Theirs, alive, differences, end_all, environment, see,
                       stay)

PROGRAMS = {"ours": [str(TORCHRUN)], "theirs": [sys.executable, "-m", "torch.distributed.run"]}


@pytest.fixture(scope="session")
def theirs():
    launcher = Theirs()
    yield launcher
    launcher.close()


@pytest.fixture(autouse=True)
def nothing_outlives_its_case(tmp_path):
    yield
    end_all(tmp_path)


@pytest.fixture
def both(theirs):
    return Ours(), theirs


def parse(line, folder, port):
    """(program, words, variables) of a case's line."""
    line = line.replace("{folder}", str(folder)).replace("{port}", str(port))
    words = shlex.split(line.replace("PROBE", str(RANKS / "probe.py")).replace("SHELL", str(RANKS / "probe.sh")))
    variables = {"PYTHONPATH": str(RANKS)}
    while words and re.match(r"[A-Z_]+=", words[0]):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    program = words.pop(0) if words[0] == "launch" else "torchrun"
    return program, words, variables


def observe(launcher, line, folder):
    port = ports.take()
    program, words, variables = parse(line, folder, port)
    return see(launcher.start(folder, words, variables, program), (str(port),))


@pytest.mark.parametrize("case", [pytest.param(c, id=c.where, marks=[pytest.mark.long] if c.long else []) for c in CASES])
def test_same(case, both, tmp_path):
    ours, theirs = (observe(launcher, case.line, tmp_path / launcher.name) for launcher in both)
    told = f"--- ours\n{ours.told}--- theirs\n{theirs.told}"
    found = differences(ours, theirs)
    unexpected = {fact: sides for fact, sides in found.items() if not any(re.search(p, fact) for p in case.differs)}
    assert not unexpected, told
    assert all(any(re.search(pattern, fact) for fact in found) for pattern in case.differs), f"no longer differs\n{told}"
    expected = case.code if case.code is not None else 2 if ours.facts["ended"] == "refused" else 0
    assert ours.status == expected, told
    assert theirs.status in ((0,) if theirs.facts["ended"] == "ok" else (1, 2)), told


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", pytest.param("SIGHUP", marks=pytest.mark.long),
                                  pytest.param("SIGQUIT", marks=pytest.mark.long)])
def test_a_signal_reaches_the_ranks_and_nothing_stays(name, both, tmp_path):
    """multiprocessing: no_zombie_process_binary. Ours ends by the signal's own status, PyTorch's with 1."""
    number = getattr(signal, name)
    saved = []
    for launcher in both:
        launch = launcher.start(tmp_path / launcher.name, ["--nproc-per-node=2", str(RANKS / "probe.py"), "save=3"])
        pids = launch.wait_notes("ready", 2).values()
        launch.signal(number)
        assert launch.end() == (128 + number if launcher.name == "ours" else 1), launch.text("err")
        assert not stay(pids)
        saved.append(launch.notes("saved"))
    assert saved[0] == saved[1]
    if name in ("SIGTERM", "SIGINT"):
        assert saved[0] == {"0.0": number, "0.1": number}


def test_a_signal_that_is_not_to_be_handled(both, tmp_path):
    """test_api: start_registers_custom_signals. SIGUSR1 is passed on where it is named."""
    for launcher in both:
        launch = launcher.start(tmp_path / launcher.name, ["--signals-to-handle=SIGUSR1", str(RANKS / "probe.py"), "wait"])
        (pid,) = launch.wait_notes("ready", 1).values()
        launch.signal(signal.SIGUSR1)
        assert launch.end() == (128 + signal.SIGUSR1 if launcher.name == "ours" else 1), launch.text("err")
        assert not stay([pid])


def test_a_deaf_rank_is_killed(both, tmp_path):
    """shutdown_timeout: given as an option, and as a variable."""
    for launcher in both:
        launch = launcher.start(tmp_path / launcher.name, [str(RANKS / "probe.py"), "deaf"],
                                {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "1"})
        (pid,) = launch.wait_notes("ready", 1).values()
        launch.signal(signal.SIGTERM)
        assert launch.end() == (143 if launcher.name == "ours" else 1), launch.text("err")
        assert not stay([pid])


def test_a_case_that_fails_leaves_nothing(both, tmp_path):
    """Neither launchers nor ranks, which ignore SIGTERM."""
    pids = []
    for launcher in both:
        launch = launcher.start(tmp_path / launcher.name, ["--nproc-per-node=2", str(RANKS / "probe.py"), "deaf"])
        pids += [launch.pid, *launch.wait_notes("ready", 2).values()]
    end_all(tmp_path)
    assert not [pid for pid in pids if alive(pid)]


NODES = [  # per node its own words; the rest is common
    ("--nnodes=1:2 --rdzv-backend=c10d --rdzv-endpoint=localhost:{port} --rdzv-id=7 "
     "--rdzv-conf=last_call_timeout=600,is_host={host}",
     ["--nproc-per-node=2"] * 2),
    ("--nnodes=3 --master-port={port} --node-rank={node}", ["--nproc-per-node=1", "--nproc-per-node=2", "--nproc-per-node=3"]),
    ("--nnodes=3 --master-port={port} --node-rank={node}", ["--role=b", "--role=a --nproc-per-node=2", "--role=b"]),
]


@pytest.mark.parametrize(("common", "own"), [NODES[0], NODES[1], pytest.param(*NODES[2], marks=pytest.mark.long)],
                         ids=["test_run: elastic_multiple_agents", "local_elastic_agent: heterogeneous", "api: roles"])
def test_several_nodes(common, own, both, tmp_path):
    """Each rank of all nodes is started alike, whichever node it is on."""
    of_ranks = []
    for launcher in both:
        port, launches = ports.take(), []
        for node, more in enumerate(own):
            line = f"{common} {more} {RANKS / 'probe.py'} out=here"
            words = line.format(port=port, node=node, host="true" if node == 0 else "false").split()
            launches.append(launcher.start(tmp_path / f"{launcher.name}{node}", words))
        seen = [see(launch, (str(port),)) for launch in launches]
        assert [s.status for s in seen] == [0] * len(own), "\n".join(s.told for s in seen)
        of_ranks.append({fact: value for s in seen for fact, value in s.facts.items() if fact.startswith("rank ") and
                         not fact.endswith(("USE_AGENT_STORE", "$TORCHELASTIC_ERROR_FILE", *OF_OURS))})
    assert of_ranks[0] == of_ranks[1]
    assert len([fact for fact in of_ranks[0] if fact.endswith("$RANK")]) == sum(
        int((re.findall(r"nproc-per-node=(\d)", more) or ["1"])[0]) for more in own)


def test_two_launches_at_once(both, tmp_path):
    """With default options they never use the same port: several of each run at the same time."""
    for launcher in both:
        launches = [launcher.start(tmp_path / f"{launcher.name}{i}", ["--nproc-per-node=2", str(RANKS / "probe.py"), "wait"])
                    for i in range(3)]
        for launch in launches:
            launch.wait_notes("ready", 2)
        ports = {note["environment"]["MASTER_PORT"] for launch in launches for note in launch.notes("start").values()}
        for launch in launches:
            launch.signal(signal.SIGTERM)
            launch.end()
        assert len(ports) == 3


@pytest.mark.parametrize("how", ["env://", pytest.param("tcp", marks=pytest.mark.long)])
def test_a_stock_ddp_script(how, both, tmp_path):
    """test_run: init_method_env and init_method_tcp_with_torchelastic. Both train the same."""
    said = []
    for launcher in both:
        seen = see(launcher.start(tmp_path / launcher.name, ["--nproc-per-node=2", f"--master-port={ports.take()}",
                                                             str(RANKS / "ddp.py"), how]))
        assert seen.status == 0, seen.told
        said.append(seen.facts["out"])
    assert said[0] == said[1]
    assert len(said[0]) == 4


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_rank_held_in_its_shutdown(nodes, tmp_path):
    """The peer that gloo aborted ends first; the rank that raised is to blame, with its own status and words."""
    port = ports.take()
    words = [f"--nnodes={nodes}", f"--nproc-per-node={2 // nodes}", f"--master-port={port}", str(RANKS / "held.py"), "1"]
    launches = [Ours().start(tmp_path / str(node), [f"--node-rank={node}", *words]) for node in range(nodes)]
    assert [launch.end() for launch in launches] == [140, 1][-nodes:], launches[-1].text("err")
    for launch in launches:
        _, _, root = launch.text("err").rpartition("Root Cause")
        assert re.search(r"rank      : 1 .*\n  exitcode  : 1 ", root), root
        assert "ValueError: no such table" in root


def test_in_a_notebook(tmp_path):
    """A program of its own, as `!torchrun` starts it: all three streams are pipes, and there is no terminal."""
    told = []
    for name, program in PROGRAMS.items():
        words = ["--nproc-per-node=2", str(RANKS / "probe.py"), "out=here", "err=there"]
        done = subprocess.run([*program, *words], env=environment(tmp_path / name, {"OMP_NUM_THREADS": "1"}), input="",
                              text=True, capture_output=True, start_new_session=True, timeout=BOUND_S)
        told.append((done.returncode, sorted(done.stdout.splitlines()), sorted(done.stderr.splitlines())))
    assert told[0] == told[1] == (0, ["rank 0 here", "rank 1 here"], ["rank 0 there", "rank 1 there"])


def at_a_terminal(name, folder, words):
    """(launch, descriptor of the terminal): the launcher leads a session with a terminal, as a shell's foreground job."""
    env = environment(folder, {"OMP_NUM_THREADS": "1"})
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(PROGRAMS[name][0], [*PROGRAMS[name], *words], env)
    return Launch(folder, env, pid, lambda: os.waitpid(pid, 0)[1]), terminal


def read_all(terminal):
    text = b""
    try:
        while part := os.read(terminal, 65536):
            text += part
    except OSError:  # nobody has it open any more
        pass
    os.close(terminal)
    return text.decode()


@pytest.mark.parametrize("name", PROGRAMS)
def test_ctrl_c(name, tmp_path):
    """The launcher signals the ranks once, since they have their own sessions. They can save, and no process remains."""
    launch, terminal = at_a_terminal(name, tmp_path, ["--nproc-per-node=2", str(RANKS / "probe.py"), "save=3"])
    pids = launch.wait_notes("ready", 2).values()
    os.write(terminal, b"\x03")
    told = read_all(terminal)
    assert launch.end() == (130 if name == "ours" else 1), told
    assert launch.notes("saved") == {"0.0": signal.SIGINT, "0.1": signal.SIGINT}
    assert not stay(pids)
    assert not os.listdir(tmp_path / "tmp") or name == "theirs"


def test_ctrl_c_twice(tmp_path):
    """The second one does not wait for ranks that ignore the first, as PyTorch's does for half a minute."""
    launch, terminal = at_a_terminal("ours", tmp_path, ["--nproc-per-node=2", "--shutdown-timeout=1000", str(RANKS / "probe.py"),
                                                        "deaf"])
    pids = launch.wait_notes("ready", 2).values()
    os.write(terminal, b"\x03")
    launch.wait_notes("heard", 2)
    os.write(terminal, b"\x03")
    told = read_all(terminal)
    assert launch.end() == 130, told
    assert not stay(pids)
