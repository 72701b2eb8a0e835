"""A few trials of `make chaos`, always the same ones: training jobs with faults."""

import pytest
from chaos import run
from trial import draw

pytestmark = pytest.mark.serial

SEED = 20261121
AT_ONCE = 3  # four ranks each: on two cores more of them would miss deadlines for want of a turn
FAULTS = ("rank-killed", "launcher-paused", "torn-newest", "network-lost", "clock-step", "disk-full-for-ever")


def test_jobs_on_bad_days_end_as_if_nothing_had_been_or_say_why():
    rows = run([draw(SEED, k, fault, "torchrun") for k, fault in enumerate(FAULTS)], AT_ONCE)
    assert len(rows) == len(FAULTS)
    assert [f"{r['kind']}: {r['wrong']} ({r['told']})" for r in rows if r["wrong"]] == []
