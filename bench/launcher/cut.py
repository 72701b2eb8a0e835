#!/usr/bin/env python3
"""What launchers of two nodes report, and when, after the network between the nodes is cut: no packet passes, and no connection ends.

    bench/launcher/cut.py [--count 1] [--limit 5] [--max-restarts 0] [--python PYTHON] [WAY...]

The nodes are two network namespaces joined by a cable (root, ip, iptables), with two ranks each. Ways: torch-all (PyTorch over gloo; all
packets are lost), torch-ranks (those of the launchers' meeting pass), trainer-all, trainer-ranks. All ranks wait in a collective call
then. Prints for each launcher: its exit code, the seconds from the cut to its first line and to its end, and its last line."""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from trainings import BIN, REPO, trainer, trains

WAYS = ["torch-all", "torch-ranks", "trainer-all", "trainer-ranks"]
LEADER = 29400


def do(command):
    subprocess.run(command.split(), check=True)


class Nodes:
    """Two network namespaces: 10.98.0.1 and 10.98.0.2."""

    def __init__(self):
        self.names = [f"cut-{os.getpid()}-{i}" for i in range(2)]

    def __enter__(self):
        for name in self.names:
            do(f"ip netns add {name}")
        do(f"ip -n {self.names[0]} link add cable type veth peer name cable netns {self.names[1]}")
        for i, name in enumerate(self.names):
            do(f"ip -n {name} addr add 10.98.0.{i + 1}/24 dev cable")
            do(f"ip -n {name} link set lo up")
            do(f"ip -n {name} link set cable up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            do(f"ip netns del {name}")

    def inside(self, i):
        return ["ip", "netns", "exec", self.names[i]]

    def cut(self, all_packets):
        for chain, way in ("INPUT", "-i"), ("OUTPUT", "-o"):
            for port in () if all_packets else ("--sport", "--dport"):
                do(f"ip netns exec {self.names[0]} iptables -A {chain} -p tcp {port} {LEADER} -j ACCEPT")
            do(f"ip netns exec {self.names[0]} iptables -A {chain} {way} cable -j DROP")


class Launcher(threading.Thread):
    """A launcher, and what it says from the cut on."""

    def __init__(self, command, env):
        super().__init__()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)
        self.lines = []
        self.start()

    def run(self):
        for line in self.process.stderr:
            self.lines.append((time.time(), line.rstrip()))
        self.code, self.end = self.process.wait(), time.time()

    def print_since(self, i, cut):
        said = [(t - cut, line) for t, line in self.lines if t >= cut and line.strip(" =-")]
        print(f"  node {i}: exit code {self.code}, first line {said[0][0] if said else -1:.1f} s, end {self.end - cut:.1f} s")
        for t, line in said:
            if line.startswith(("torchrun: ", "  rank ", "  exitcode", "  host", "  error_file", "  traceback", "  message")):
                print(f"    {t:5.1f} {line}")


def run(way, limit, restarts, python):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cut-"))
    env = {**os.environ, "TORCHKEEPER_PROGRESS_TIMEOUT": str(limit), "GLOO_SOCKET_IFNAME": "cable"}
    program = trainer(folder) if way.startswith("trainer") else [
        python, "-u", REPO / "tests/unit/launcher/hang_rank.py", "cut", "-1", folder]
    words = ["--no-python", "--nnodes=2", "--nproc-per-node=2", f"--max-restarts={restarts}", "--rdzv-backend=c10d",
             f"--rdzv-endpoint=10.98.0.1:{LEADER}", "--rdzv-id=cut"]
    with Nodes() as nodes:
        launchers = [Launcher([*nodes.inside(i), BIN / "torchrun", *words, f"--local-addr=10.98.0.{i + 1}", *program], env)
                     for i in range(2)]
        try:
            while not (trains(folder) or (folder / "trains.0").exists()):
                if any(not one.is_alive() for one in launchers):
                    break
                time.sleep(0.05)
            time.sleep(1)
            nodes.cut(way.endswith("-all"))
            cut = time.time()
            (folder / "hangs").touch()
            print(f"{way}, limit {limit} s, --max-restarts={restarts}", flush=True)
            for i, one in enumerate(launchers):
                one.join()
                one.print_since(i, cut)
        finally:
            for one in launchers:
                if one.is_alive():
                    one.process.send_signal(signal.SIGTERM)
                    one.join()
    shutil.rmtree(folder)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("ways", nargs="*", metavar="WAY")
    args.add_argument("--count", type=int, default=1)
    args.add_argument("--limit", type=int, default=5)
    args.add_argument("--max-restarts", type=int, default=0)
    args.add_argument("--python", default=sys.executable)
    a = args.parse_args()
    for way in a.ways or WAYS:
        for _ in range(a.count):
            run(way, a.limit, a.max_restarts, a.python)


main()
