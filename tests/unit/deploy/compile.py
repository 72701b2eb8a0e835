"""compile.py - deploy/local/lib/compile.sh prints the progress of Go's compiler on a terminal; the test has a Go program of its own.

    compile.py SOURCE-FOLDER
"""

import os
import pty
import sys
import tempfile
from pathlib import Path

GO = """#!/bin/sh
until_() { until [ -e "$1" ]; do sleep 0.05; done; }
case $1 in
list) printf '= big 30\\n= small 10\\n= last 60\\n' ;;
build)
    [ -e bad ] || sleep 1.2 # time for a line that would say nothing
    echo "go: downloading example.org/big v1.0.0" >&2
    until_ loaded
    echo big >&2; echo small >&2
    until_ most
    echo last >&2
    until_ linked
    echo made >"$3"
    [ ! -e bad ] || { echo "# last" >&2; exit 1; }
esac
"""
STEPS = ((b"1 modules downloaded", "loaded"), (b"2 of 3 packages compiled, about ", "most"),
         (b"3 of 3 packages compiled, linking", "linked"))


def run(source, folder, bad):
    (folder / "go").write_text(GO)
    (folder / "go").chmod(0o755)
    if bad:
        for file in ("bad", *(file for _, file in STEPS)):
            (folder / file).touch()
    pid, screen = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        os.execvp("bash", ["bash", "-euc", f". {source}/deploy/local/lib/compile.sh; compile log out -trimpath .", "cluster"])
    seen = b""
    for said, file in () if bad else STEPS:
        while said not in seen:
            seen += os.read(screen, 4096)
        (folder / file).touch()
    try:
        while more := os.read(screen, 4096):
            seen += more
    except OSError:  # the terminal has ended
        pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen


def main():
    source = Path(sys.argv[1]).resolve()
    for bad in False, True:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            code, seen = run(source, folder, bad)
            assert code == bad, (code, seen)
            assert b"\n" not in seen and b" 0 modules" not in seen and seen.endswith(b"\r\x1b[K"), seen
            assert bad or seen.split(b"\r")[1].startswith(b"cluster: "), seen
            log = (folder / "log").read_text().split("\n")
            assert log[:4] == ["go: downloading example.org/big v1.0.0", "big", "small", "last"] and ("# last" in log) == bad, log
            assert (folder / "out").read_text() == "made\n"


main()
