#!/usr/bin/env python3
"""chaos.py - random trials of real training jobs: each gets one or two faults at random moments, and must end with
the weights of an undisturbed run, bit for bit, or report why not. Needs the local cluster with the operator in it
(`make chaos`); README.md says what the faults are."""

import argparse
import contextlib
import json
import random
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cases")]

from board import Board  # noqa: E402
from faults import TABLE, TWO  # noqa: E402
from kube import REPO, kubectl  # noqa: E402
from trial import WAYS, Trial, draw  # noqa: E402

REPORTS = REPO / "build" / "chaos"
PRINTING = threading.Lock()


def say(text):
    with PRINTING:
        print(text, flush=True)


@contextlib.contextmanager
def board():
    """In a namespace that goes with it."""
    name = f"chaos-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    here = Board(name)
    here.start()
    try:
        yield here
    finally:
        here.stopped.set()
        kubectl("delete", "namespace", name, "--wait=false")


def calm(way, here):
    """Store the weights that every trial of this way must end with."""
    Trial(None, "calm", way, []).run(here)


def attempt(trial, here):
    """The trial's line: the faults, and None or the failure."""
    begun, wrong = time.monotonic(), None
    try:
        trial.run(here)
    except Exception as e:  # noqa: BLE001 - whatever it was, it is this trial's end and the others go on
        wrong = f"{type(e).__name__}: {e}"
        REPORTS.mkdir(parents=True, exist_ok=True)
        (REPORTS / f"{trial.name}.log").write_text(f"{trial.told}\n{wrong}\n{trial.seen}\n")
    end = trial.end
    row = {"trial": trial.number, "kind": trial.kind, "way": trial.way, "told": trial.told, "wrong": wrong,
           "struck": bool(trial.plan),
           "phase": end.get("phase"), "restarts": end.get("attempt", 0), "reason": end.get("reason"),
           "failures": [f"{f.get('exitCode')} {f['reason']} {f['pod']}" for f in end.get("failures", [])],
           "seconds": round(time.monotonic() - begun, 1)}
    say(f"{'FAILED' if wrong else 'ok    '} {trial.number:4} {trial.way:9} {trial.kind:20} {row['seconds']:6.1f} s  "
        f"{row['phase']}, {row['restarts']} restarts {row['failures']}; {'; '.join(trial.told)}"
        + (f"\n       {wrong}" if wrong else ""))
    return row


def table(rows):
    print("\n| Fault | Trials | As the table says | The same weights | Failed, cause named | Restarts | Longest |")
    print("|---|---|---|---|---|---|---|")
    for kind in [*TABLE, TWO, "all"]:
        of = [r for r in rows if kind in ("all", r["kind"]) and (r["struck"] or r["wrong"])]
        if of:
            good = [r for r in of if not r["wrong"]]
            ended = [sum(r["phase"] == phase for r in good) for phase in ("Succeeded", "Failed")]
            print(f"| {kind} | {len(of)} | {len(good)} | {ended[0]} | {ended[1]} | {sum(r['restarts'] for r in of)} | "
                  f"{max(r['seconds'] for r in of):.0f} s |")


def run(trials, jobs):
    """All of them, so many at once; the rows."""
    with board() as here, ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda way: calm(way, here), sorted({t.way for t in trials})))
        rows = list(pool.map(lambda t: attempt(t, here), trials))
    return rows


def options():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--trials", type=int, default=100, metavar="N", help="how many (%(default)s)")
    p.add_argument("--seed", type=int, help="what they are drawn from; default: another one each time, printed")
    p.add_argument("--trial", type=int, action="append", metavar="K", help="this one alone; may be repeated")
    p.add_argument("--fault", choices=[*TABLE, TWO], help="this kind alone (a draw of its own)")
    p.add_argument("--way", choices=[*WAYS], help="start all of them in this way (a draw of its own)")
    p.add_argument("--jobs", type=int, default=3, metavar="N", help="how many at once (%(default)s)")
    o = p.parse_args()
    if o.way and o.fault in TABLE and o.way not in TABLE[o.fault].ways:
        p.error(f"--way {o.way}: {o.fault} needs one of {', '.join(TABLE[o.fault].ways)}")
    return o


def main():
    o = options()
    seed = o.seed if o.seed is not None else random.randrange(1 << 31)
    trials = [draw(seed, k, o.fault, o.way) for k in (o.trial or range(o.trials))]
    say(f"seed {seed}, {len(trials)} trials, {o.jobs} at once")
    rows = run(trials, o.jobs)
    table(rows)
    wrong = [r["trial"] for r in rows if r["wrong"]]
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / "trials.json").write_text(json.dumps({"seed": seed, "rows": rows}, indent=1))
    late = [r["trial"] for r in rows if not r["struck"]]
    print(f"\nnot in the table, since the job was over before it was struck: {late}" if late else "")
    print(f"seed {seed}: {len(rows) - len(wrong)} of {len(rows)} as they should" + (
        f"; not so: {wrong} (build/chaos/t<K>.log; again: make chaos SEED={seed} TRIAL=K)" if wrong else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
