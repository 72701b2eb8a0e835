"""faults.py - the faults of trials, and their allowed results.
Each fault is a function that acts once and returns a short description; it takes a trial (`trial.py`) and uses only the
trial's random generator. TABLE has the allowed results of each, which trials check."""

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field

from kube import REPO, kill_operator
from victims import GONE, eat_memory, in_network, newest_step, pause_of, set_cpu_limit
from wallclock import step as step_clock

FOR_EVER = None
SUCCEEDED, FAILED, EITHER = ("Succeeded",), ("Failed",), ("Succeeded", "Failed")


@dataclass(frozen=True)
class Fault:
    strike: object  # None: it is in how the job is made
    restarts: tuple = (1, 1)  # the fewest and the most attempts that may follow
    # What each recorded failure has to look like: "exit code, reason".
    because: str = ""
    ends: tuple = SUCCEEDED
    says: str = ""  # text in the status of a job that fails because of it
    ways: tuple = ("torchrun", "plain", "again", "gpt2")
    job: dict = field(default_factory=dict)  # members of the container
    logs: str = ""  # stands in the log of pod 0 at the end
    whole_pod: bool = False  # no process remains in the pod that could start its ranks again

    def allowed(self, way):
        fewest, most = self.restarts
        return (fewest if self.whole_pod or self.ends == FAILED else 0) if way == "again" else fewest, most


def killed_rank(t):
    rank = t.a_rank()
    t.strike_at(rank, signal.SIGKILL)
    return f"killed {rank}"


def killed_launcher(t):
    launcher = t.a_launcher()
    launcher.kill()
    return f"killed {launcher}"


def killed_init(t):
    pause = t.wait("a pod's init", lambda: pause_of(t.anyone()))
    pause.kill()
    return f"killed {pause}"


def go_on(process, t):
    """Continue it, unless another fault has stopped it permanently."""
    if process.pid not in t.frozen:
        process.send(signal.SIGCONT)


def stopped(process, seconds, t):
    process.send(signal.SIGSTOP)
    if seconds is FOR_EVER:
        t.frozen.add(process.pid)
        return f"stopped {process}"
    time.sleep(seconds)
    go_on(process, t)
    return f"stopped {process} for {seconds:.1f} s"


def stopped_rank(t):
    return stopped(t.a_rank(), FOR_EVER, t)


def paused_rank(t):
    return stopped(t.a_rank(), t.dice.uniform(0.2, 2.5), t)


def stopped_launcher(t):
    return stopped(t.a_launcher(), FOR_EVER, t)


def paused_launcher(t):
    return stopped(t.a_launcher(), t.dice.uniform(0.5, 6), t)


def slow_rank(t):
    rank, until, turns = t.a_rank(), time.monotonic() + t.dice.uniform(2, 6), 0
    while time.monotonic() < until and rank.send(signal.SIGSTOP):
        time.sleep(t.dice.uniform(0.05, 0.4))
        go_on(rank, t)
        time.sleep(t.dice.uniform(0.01, 0.1))
        turns += 1
    return f"stopped and continued {rank} {turns} times"


def little_cpu(t):
    rank, share, seconds = t.a_rank(), t.dice.uniform(0.05, 0.2), t.dice.uniform(2, 6)
    try:
        set_cpu_limit(rank, share)
        time.sleep(seconds)
        set_cpu_limit(rank, None)
    except GONE:
        pass
    return f"{share:.2f} of a CPU for {rank.pod} for {seconds:.1f} s"


def used_up_memory(t):
    rank = t.a_rank()
    filler = eat_memory(rank)
    t.wait("a process of the container to be killed", lambda: filler.poll() is not None or t.dead(rank))
    filler.kill()
    filler.wait()
    return f"used up the memory of {rank.pod}"


def fill(t, until):
    """Whatever becomes free is taken too."""
    with open(t.data / "filler", "ab", buffering=0) as filler:
        while not until():
            try:
                filler.write(b"x" * 65536)
            except OSError:
                time.sleep(0.002)


def full_disk(t):
    seconds = t.dice.uniform(0.5, 3)
    over = time.monotonic() + seconds
    fill(t, lambda: time.monotonic() > over)
    (t.data / "filler").unlink()
    return f"no room on the volume for {seconds:.1f} s"


def full_disk_for_ever(t):
    threading.Thread(target=fill, args=(t, t.over.is_set), daemon=True).start()
    t.wait("a full volume", lambda: os.statvfs(t.data).f_bfree == 0)
    t.in_time()
    return "no room on the volume any more"


def remount(t, how):
    # Refused as long as a file is open for writing.
    command = ["mount", "-o", f"remount,{how}", str(t.data)]
    t.wait(f"a volume mounted {how}", lambda: subprocess.run(command, capture_output=True).returncode == 0)


def read_only(t):
    seconds = t.dice.uniform(0.5, 3)
    remount(t, "ro")
    time.sleep(seconds)
    remount(t, "rw")
    return f"the volume read-only for {seconds:.1f} s"


def read_only_for_ever(t):
    remount(t, "ro")
    t.in_time()
    return "the volume read-only"


def damage(t, file):
    """Cut off somewhere, a bit turned round somewhere, or gone."""
    size = file.stat().st_size
    how = t.dice.choice(("cut", "flip", "flip", "remove"))
    place = t.dice.randrange(max(size, 1))
    if how == "cut":
        os.truncate(file, place)
    elif how == "remove":
        file.unlink()
    else:
        with open(file, "r+b") as f:
            f.seek(place)
            byte = f.read(1)[0]
            f.seek(place)
            f.write(bytes([byte ^ 1 << t.dice.randrange(8)]))
    return f"{how} {file.name} at {place} of {size}"


def torn(t, choose, file=None):
    """While rank 0, the writer, is stopped; then kill it."""
    t.wait("a checkpoint", lambda: newest_step(t.checkpoints) > 0)
    rank = t.rank(0)
    t.strike_at(rank, signal.SIGSTOP)
    t.wait("the writer to stand still", rank.stands_still)
    told = []
    for folder in choose(sorted(t.checkpoints.glob("*/step-*"))):
        told.append(f"{folder.name}: " + damage(t, folder / (file or t.dice.choice(sorted(os.listdir(folder))))))
    rank.kill()
    return "; ".join(told)


def torn_newest(t):
    return torn(t, lambda all_: all_[-1:])


def torn_all(t):
    return torn(t, lambda all_: all_, file="optim.safetensors")


def lost_network(t):
    process = t.a_rank()
    in_network(process, "ip", "link", "set", "eth0", "down")
    return f"no network for {process.pod}"


def network_gone_for_a_while(t):
    process, seconds = t.a_rank(), t.dice.uniform(0.3, 3)
    in_network(process, "ip", "link", "set", "eth0", "down")
    time.sleep(seconds)
    in_network(process, "ip", "link", "set", "eth0", "up")
    return f"no network for {process.pod} for {seconds:.1f} s"


def one_way(t):
    process, chain = t.a_rank(), t.dice.choice(("INPUT", "OUTPUT"))
    in_network(process, "iptables", "--wait", "-A", chain, "-i" if chain == "INPUT" else "-o", "eth0", "-j", "DROP")
    return f"{chain} of {process.pod} drops everything"


def wall_clock(t):
    process = t.a_rank()
    seconds = t.dice.choice((-1, 1)) * int(10 ** t.dice.uniform(0, 8.5))
    struck = [p for p in t.processes() if p.pod == process.pod]
    for one in struck:
        try:
            step_clock(one.pid, seconds, go_on=one.pid not in t.frozen)
        except GONE:
            pass
    return f"wall clock of {process.pod} stepped by {seconds} s"


def killed_operator(t):
    kill_operator()
    return "killed the operator"


KUBELET = threading.Lock()


def killed_kubelet(t):
    with KUBELET:
        os.kill(int(open("/run/torchkeeper/kubelet.pid").read().split()[0]), signal.SIGKILL)
        time.sleep(t.dice.uniform(0, 3))
        subprocess.run([REPO / "deploy" / "local" / "cluster", "up"], check=True, capture_output=True)
    return "killed the kubelet"


LAUNCHED = ("torchrun", "again", "gpt2")
KILLED = r"137 \w+"
# 2: of a rank that the launcher starts again when it could not save.
UNSAVED = r"[12] PermanentExitCode"
NO_ROOM, NO_WRITING = "No space left on device", "Read-only file system"
LOST = r"13[78] \w+|140 PeerLost"

TABLE = {
    "rank-killed": Fault(killed_rank, because=KILLED),
    "launcher-killed": Fault(killed_launcher, because=KILLED, ways=LAUNCHED, whole_pod=True),
    # The kubelet needs a moment to see it, in which the training may end.
    "init-killed": Fault(killed_init, (0, 1), because=r"(137|143) \w+", whole_pod=True),
    "rank-stopped": Fault(stopped_rank, because=r"138 \w+"),
    "rank-paused": Fault(paused_rank, (0, 0)),
    "rank-slow": Fault(slow_rank, (0, 0)),
    "cpu-limit": Fault(little_cpu, (0, 0)),
    "launcher-stopped": Fault(stopped_launcher, (0, 1), because=r"140 PeerLost|138 \w+", ways=LAUNCHED),
    "launcher-paused": Fault(paused_launcher, (0, 0), ways=LAUNCHED),
    # It takes a second to fill, in which the training may end.
    "oom": Fault(used_up_memory, (0, 1), because=r"\d+ OOMKilled"),
    "oom-always": Fault(None, (1, 3), because=r"\d+ OOMKilled", ends=FAILED, says=r"OOMKilled",
                        job={"resources": {"limits": {"memory": "24Mi"}}}),
    # Without space for checkpoints a job continues, and fails at the end if there is no space for the weights either.
    "disk-full": Fault(full_disk, (0, 0), because=UNSAVED, ends=EITHER, says=NO_ROOM),
    "disk-full-for-ever": Fault(full_disk_for_ever, (0, 0), because=UNSAVED, ends=FAILED, says=NO_ROOM),
    "read-only": Fault(read_only, (0, 0), because=UNSAVED, ends=EITHER, says=NO_WRITING),
    "read-only-for-ever": Fault(read_only_for_ever, (0, 0), because=UNSAVED, ends=FAILED, says=NO_WRITING),
    "torn-newest": Fault(torn_newest, because=KILLED),
    "torn-all": Fault(torn_all, because=KILLED, logs="damaged checkpoint skipped"),
    "network-blip": Fault(network_gone_for_a_while, (0, 1), because=LOST),
    "network-lost": Fault(lost_network, because=LOST),
    "network-one-way": Fault(one_way, because=LOST),
    "clock-step": Fault(wall_clock, (0, 0)),
    "operator-killed": Fault(killed_operator, (0, 0)),
    "kubelet-killed": Fault(killed_kubelet, (0, 0)),
}
# Two at once: drawn from those after which the job has to succeed and whose marks do not hide each other's.
PAIRED = [name for name, f in TABLE.items() if f.ends == SUCCEEDED and not f.logs]
TWO = "two-at-once"
