# SPDX-License-Identifier: GPL-2.0-or-later
"""What is judged says so itself: roles, tails and corrections are read, never guessed from a name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis import judge
from fastenough.analysis.excluded_runs import Selection
from fastenough.analysis.merged import judged_series
from fastenough.model import Requirement, Role, Series, Verdict
from fastenough.pack.question import PackedQuestion, judged_alone
from fastenough.recording import Recording
from fastenough.report.context import make_context
from tests.support.recordings import Plan, latencies, recording

LIMIT = Requirement(200_000)
VALUES = latencies(1)
LATE = [[interval + 400_000 for interval in cpu] for cpu in VALUES]


def _with_series(run: Recording, series: tuple[Series, ...]) -> Recording:
    return replace(run, head=replace(run.head, series=series))


def _with_another(tmp_path: Path, name: str, role: Role, values: Any = LATE, **change: Any) -> Recording:
    """A good run in which a further series was taken on each CPU."""
    run = recording(tmp_path, Plan(VALUES, views=("wakeup",), head={"probe": "made-up"}))
    more = recording(tmp_path, Plan(values, views=(name,), run_id="more"))
    shift = 100
    intervals = [
        replace(
            one,
            **{
                name: getattr(one, name) | {key + shift: value for key, value in getattr(other, name).items()}
                for name in ("histograms", "lost", "missed")
            },
        )
        for one, other in zip(run.intervals, more.intervals, strict=True)
    ]
    for series in more.series:
        run.aggregate.totals[series.id + shift] = more.totals[series.id]
        run.aggregate.covered_ns[series.id + shift] = more.covered_ns(series.id)
    added = tuple(replace(series, id=series.id + shift, role=role, **change) for series in more.series)
    return _with_series(replace(run, intervals=intervals), run.series + added)


@pytest.mark.check
@pytest.mark.parametrize("name", ["irq-to-runnable", "wakeup-in-kernel", "wakeup_latency", "response", "jitter"])
@pytest.mark.parametrize(
    ("role", "expected"),
    [(Role.DIAGNOSTIC, Verdict.PASS), (Role.VERDICT, Verdict.FAIL), (Role.THROUGHPUT, Verdict.PASS)],
)
def test_a_series_is_judged_for_its_role_and_not_for_its_name(
    tmp_path: Path, name: str, role: Role, expected: Verdict
) -> None:
    run = _with_another(tmp_path, name, role)
    assert judge([run], LIMIT).verdict is expected
    kinds = make_context([run], judge([run], LIMIT)).groups[0].kinds
    assert [kind.judged for kind in kinds] == [True, role is Role.VERDICT]


def test_a_pack_requires_no_latency_of_a_load_with_throughput_only(tmp_path: Path) -> None:
    timer = recording(tmp_path, Plan(VALUES, load="none"))
    network = recording(tmp_path, Plan(latencies(2), run_id="network", load="net"))
    of_throughput = _with_series(network, tuple(replace(one, role=Role.THROUGHPUT) for one in network.series))
    question = PackedQuestion(LIMIT, 0.95, None, ("none", "net"), (), Selection.CHOSEN.name, ())
    assert judged_alone([timer, of_throughput], question).verdict is Verdict.PASS


@pytest.mark.parametrize(("two_sided", "expected"), [(True, Verdict.FAIL), (False, Verdict.PASS)])
def test_a_two_sided_series_is_judged_by_magnitude(tmp_path: Path, two_sided: bool, expected: Verdict) -> None:
    early = [[np.full(2000, -300_000)] * 30]
    run = _with_another(tmp_path, "deviation", Role.VERDICT, early, two_sided=two_sided)
    assessment = judge([run], LIMIT)
    assert assessment.verdict is expected
    assert (assessment.judgments[0].maximum_ns == 300_000) == two_sided


def _names(run: Recording) -> list[tuple[str, int | None]]:
    return [(series.name, series.cpu) for series in judged_series(run)]


def test_the_corrected_series_is_judged_where_a_cpu_has_both(tmp_path: Path) -> None:
    run = recording(tmp_path, Plan(VALUES))
    both = _with_series(run, tuple(replace(series, role=Role.VERDICT) for series in run.series))
    assert _names(both) == _names(run) == [("wakeup_corrected", 0), ("wakeup_corrected", 1)]


@pytest.mark.parametrize("role", [Role.VERDICT, Role.DIAGNOSTIC])
def test_a_cpu_that_has_only_a_plain_series_is_judged_by_it(tmp_path: Path, role: Role) -> None:
    run = recording(tmp_path, Plan([VALUES[0], LATE[1]]))
    kept = tuple(
        series if series.corrected else replace(series, role=role)
        for series in run.series
        if not (series.corrected and series.cpu == 1)
    )
    bare = _with_series(run, kept)
    assert _names(bare) == [("wakeup_corrected", 0), ("wakeup", 1)]
    assert judge([bare], LIMIT).verdict is Verdict.FAIL


def test_plain_series_of_another_act_stay_what_they_are(tmp_path: Path) -> None:
    run = recording(tmp_path, Plan(VALUES, views=("wakeup", "wakeup_corrected", "irq")))
    told = _with_series(
        run, tuple(replace(series, role=Role.DIAGNOSTIC) if series.name == "irq" else series for series in run.series)
    )
    assert {name for name, _ in _names(told)} == {"wakeup_corrected"}


@pytest.mark.parametrize("declared", [{"role": "diagnostic"}, {"refused": "not supported"}])
def test_a_run_of_latencies_declared_as_something_else_is_broken(tmp_path: Path, declared: dict[str, str]) -> None:
    """Beside a sound run of another load; the latency of an unknown probe is only not measured."""
    quiet = recording(tmp_path, Plan(VALUES, run_id="quiet"))
    plan = Plan(LATE, run_id="hidden", load="cpu", series=declared)
    assert judge([quiet], LIMIT).verdict is Verdict.PASS
    assert judge([quiet, recording(tmp_path, plan)], LIMIT).verdict is Verdict.BROKEN
    unknown = recording(tmp_path, replace(plan, run_id="unknown", head={"probe": "made-up"}))
    assert judge([quiet, unknown], LIMIT, loads=("none", "cpu")).verdict is Verdict.INCONCLUSIVE
    assert judge([quiet, unknown], LIMIT, loads=("none",)).verdict is Verdict.PASS
