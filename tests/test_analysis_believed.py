# SPDX-License-Identifier: GPL-2.0-or-later
"""What the judge must look at before it believes it: each of these once turned into a verdict it did not deserve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings import Plan, latencies, recording

from fastenough.analysis import Assessment, judge
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording

LIMIT = Requirement(200_000)
VALUES = latencies(1)


def _run(tmp_path: Path, **change: Any) -> Recording:
    return recording(tmp_path, replace(Plan(VALUES, load="cpu"), **change))


def _text(assessment: Assessment) -> str:
    return " | ".join(assessment.reasons)


def test_the_same_run_given_twice_counts_once(tmp_path: Path) -> None:
    few = _run(tmp_path, values=[cpu[:7] for cpu in VALUES])
    alone, twice = judge([few], LIMIT), judge([few, few, few], LIMIT)
    assert alone.verdict is twice.verdict is Verdict.INCONCLUSIVE
    assert twice.reasons == alone.reasons
    assert "Run run-1 was given more than once and counts once" in twice.cautions


def test_a_copy_under_another_id_is_not_believed(tmp_path: Path) -> None:
    few = _run(tmp_path, values=[cpu[:7] for cpu in VALUES])
    copy = replace(few, head=replace(few.head, run_id="copy"))
    assessment = judge([few, copy], LIMIT)
    assert assessment.verdict is Verdict.BROKEN
    assert "run copy: it is not believed: it holds the data of run run-1" in _text(assessment)


def test_two_runs_with_one_id_are_not_believed(tmp_path: Path) -> None:
    one, other = _run(tmp_path), _run(tmp_path, values=latencies(2))
    assessment = judge([one, other], LIMIT)
    assert assessment.verdict is Verdict.BROKEN
    assert "another recording with other data has its id" in _text(assessment)


def test_a_corrected_series_hides_no_cpu_that_has_only_a_plain_one(tmp_path: Path) -> None:
    late = [VALUES[0], [np.append(interval, 900_000) for interval in VALUES[1]]]
    run = _run(tmp_path, values=late)
    kept = tuple(series for series in run.series if (series.name, series.cpu) != ("wakeup_corrected", 1))
    bare = replace(run, head=replace(run.head, series=kept))
    assert judge([bare], LIMIT).verdict is Verdict.FAIL


def test_missed_periods_without_a_corrected_series_reach_no_limit(tmp_path: Path) -> None:
    assert judge([_run(tmp_path, views=("wakeup",), missed=3)], LIMIT).verdict is Verdict.FAIL


def test_twice_as_many_values_as_periods_are_not_believed(tmp_path: Path) -> None:
    assessment = judge([_run(tmp_path, interval_ns=10**9)], LIMIT)
    assert assessment.verdict is Verdict.BROKEN
    assert "has 60,000 values for about 30,000 due periods: more than there can be" in _text(assessment)


@pytest.mark.parametrize(("relative", "expected"), [(True, Verdict.PASS), (False, Verdict.BROKEN)])
def test_a_relative_sleep_lasts_its_interval_and_the_latency(tmp_path: Path, relative: bool, expected: Verdict) -> None:
    """At a period of 200 us and a latency of 60 us an act comes every 260 us: none of them is absent."""
    values = [[np.full(4000, 60_000)] * 16]
    run = _run(tmp_path, values=values, period_ns=200_000, interval_ns=4000 * 260_000)
    told = replace(run, head=replace(run.head, series=tuple(
        replace(series, relative=relative and not series.corrected) for series in run.series)))
    assert judge([told], LIMIT).verdict is expected
