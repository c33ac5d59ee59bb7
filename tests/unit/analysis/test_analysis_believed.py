# SPDX-License-Identifier: GPL-2.0-or-later
"""What the judge must look at before it believes it: each of these once turned into a verdict it did not deserve."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis import Assessment, judge
from fastenough.analysis.checks import findings_of
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording, read_recording
from tests.support.recordings import COUNTERS, PROFILE, RAN, SETTINGS, Plan, latencies, recording, write

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
    assert "run copy: integrity check failed: its data is a copy of run run-1" in _text(assessment)


def test_a_copy_whose_clock_was_changed_is_not_believed(tmp_path: Path) -> None:
    few = _run(tmp_path, values=[cpu[:7] for cpu in VALUES])
    begin = few.head.begin
    later = replace(begin, mono_ns=begin.mono_ns + 10**9, wall_ns=begin.wall_ns + 10**9)
    copy = replace(few, head=replace(few.head, run_id="copy", begin=later))
    assert "run copy: integrity check failed: its data is a copy of run run-1" in _text(judge([few, copy], LIMIT))
    steady = _run(tmp_path, values=[[np.full(1000, 5000)] * 7])
    again = _run(tmp_path, values=[[np.full(1000, 5000)] * 7], run_id="again")
    assert "integrity" not in _text(judge([steady, again], LIMIT)), "two calm runs may hold the same few values"


def test_two_runs_with_one_id_are_not_believed(tmp_path: Path) -> None:
    one, other = _run(tmp_path), _run(tmp_path, values=latencies(2))
    assessment = judge([one, other], LIMIT)
    assert assessment.verdict is Verdict.BROKEN
    assert "another recording with different data has the same run id" in _text(assessment)


def test_a_series_under_two_ids_is_not_believed(tmp_path: Path) -> None:
    run = _run(tmp_path)
    again = replace(run.series[0], id=50)
    doubled = replace(
        run,
        head=replace(run.head, series=(*run.series, again)),
        aggregate=replace(run.aggregate, totals={**run.totals, 50: run.totals[run.series[0].id]}),
    )
    assessment = judge([doubled], LIMIT)
    assert assessment.verdict is Verdict.BROKEN
    assert "two of its series, both wakeup, hold the same data" in _text(assessment)


def test_a_corrected_series_hides_no_cpu_that_has_only_a_plain_one(tmp_path: Path) -> None:
    late = [VALUES[0], [np.append(interval, 900_000) for interval in VALUES[1]]]
    run = _run(tmp_path, values=late)
    kept = tuple(series for series in run.series if (series.name, series.cpu) != ("wakeup_corrected", 1))
    bare = replace(run, head=replace(run.head, series=kept))
    assert judge([bare], LIMIT).verdict is Verdict.FAIL


def test_missed_periods_without_a_corrected_series_reach_no_limit(tmp_path: Path) -> None:
    assert judge([_run(tmp_path, views=("wakeup",), missed=3)], LIMIT).verdict is Verdict.FAIL


@pytest.mark.parametrize("changed", [{"to_event": "another"}, {"period_ns": 999}, {"clock": "TSC"}], ids=str)
def test_series_of_one_name_that_are_not_of_one_kind_are_not_believed(tmp_path: Path, changed: dict[str, Any]) -> None:
    run = _run(tmp_path)
    *others, last = run.series
    twisted = replace(run, head=replace(run.head, series=(*others, replace(last, **changed))))
    assessment = judge([twisted], LIMIT)
    assert assessment.verdict is Verdict.BROKEN
    assert "contradict each other: different" in _text(assessment)


@pytest.mark.parametrize(("cpu", "believed"), [(1, True), (0, False)])
def test_only_threads_of_different_cpus_may_have_intervals_a_distance_apart(
    tmp_path: Path, cpu: int, believed: bool
) -> None:
    run = _run(tmp_path)
    series = tuple(replace(one, period_ns=999, cpu=cpu) if one.cpu == 1 else one for one in run.head.series)
    head = replace(run.head, series=series, parameters={**run.head.parameters, "distance_ns": 500_000})
    assert ("contradict each other" in _text(judge([replace(run, head=head)], LIMIT))) != believed


@pytest.mark.parametrize(("empty", "verdict"), [(6, Verdict.BROKEN), (15, Verdict.PASS)])
def test_only_after_the_end_that_was_planned_nothing_need_come(tmp_path: Path, empty: int, verdict: Verdict) -> None:
    values = [np.full(1000, 5000 + second) for second in range(16)]
    values[empty] = np.array([], dtype=np.int64)
    run = _run(tmp_path, values=[values], interval_ns=10**9, head={"parameters": {"duration_ns": 15 * 10**9}})
    assert judge([run], replace(LIMIT, return_time_ns=10**9)).verdict is verdict


def test_twice_as_many_values_as_periods_are_not_believed(tmp_path: Path) -> None:
    assessment = judge([_run(tmp_path, interval_ns=10**9)], LIMIT)
    assert assessment.verdict is Verdict.BROKEN
    assert "has 60,000 values for about 30,000 due periods, which is impossible" in _text(assessment)


def _jitter(tmp_path: Path, values: list[list[int]], missed: int) -> Recording:
    """Deviations of edges in intervals of 2 s, due each 1 ms; edges missed in the first interval."""
    by_interval = [np.array(interval, dtype=np.int64) for interval in values]
    run = _run(tmp_path, values=[by_interval], views=("period-jitter",), missed=missed)
    return replace(run, head=replace(run.head, series=(replace(run.series[0], two_sided=True),)))


def test_edges_that_make_up_for_a_stall_in_a_later_interval_are_possible(tmp_path: Path) -> None:
    stalled, rest = [*[0] * 1399, 600 * 10**6], [[0] * 2000] * 3
    for caught_up, believed in (([-(10**6)] * 600, True), ([0] * 600, False)):
        found = findings_of(_jitter(tmp_path, [stalled, [0] * 2000 + caught_up, *rest], missed=600))
        assert any("impossible" in finding.text for finding in found) is not believed


@pytest.mark.parametrize("limit_ns", [5_000_000, 1_100_000])
def test_missed_periods_of_a_jitter_reach_no_limit(tmp_path: Path, limit_ns: int) -> None:
    rest = [[number, *[0] * 1999] for number in range(1, 20)]
    run = _jitter(tmp_path, [[*[0] * 1997, 1_200_000, -200_000], *rest], missed=1)
    assert judge([run], Requirement(limit_ns)).verdict is Verdict.FAIL


@pytest.mark.parametrize(("relative", "expected"), [(True, Verdict.PASS), (False, Verdict.BROKEN)])
def test_a_relative_sleep_lasts_its_interval_and_the_latency(tmp_path: Path, relative: bool, expected: Verdict) -> None:
    """At a period of 200 us and a latency of 60 us an act comes every 260 us: none of them is absent."""
    values = [[np.full(4000, 60_000)] * 16]
    run = _run(tmp_path, values=values, period_ns=200_000, interval_ns=4000 * 260_000)
    told = replace(
        run,
        head=replace(
            run.head,
            series=tuple(replace(series, relative=relative and not series.corrected) for series in run.series),
            planned_n=run.duration_ns // 200_000,
        ),
    )
    assert judge([told], LIMIT).verdict is expected


STOPPED = {"cpu_ns": 0, "context_switches": 0, "processes": 4}
GONE = STOPPED | {"processes": 0}


def _uses(of_30: int, use: dict[str, Any] | None) -> list[dict[str, Any] | None]:
    return [RAN] * (30 - of_30) + [use] * of_30


@pytest.mark.parametrize(
    ("uses", "expected", "said"),
    [
        (_uses(24, GONE), Verdict.BROKEN, "it was idle in 24 of 30 intervals"),
        (_uses(24, STOPPED), Verdict.BROKEN, "it was idle in 24 of 30 intervals"),
        (_uses(1, GONE), Verdict.BROKEN, "it was idle in 1 of 30 intervals"),
        (_uses(1, STOPPED), Verdict.INCONCLUSIVE, "may not have run throughout"),
        (_uses(1, STOPPED | {"window_ns": 10_000_000}), Verdict.PASS, "at most 1 disturbance above 200 µs"),
        (_uses(5, None), Verdict.INCONCLUSIVE, "the bench was busy and checked it in only 25 of 30 intervals"),
        (_uses(30, None), Verdict.INCONCLUSIVE, "its use is recorded in 0 of 30 intervals"),
        (_uses(30, {"cpu_ns": None, "context_switches": None, "processes": 4}), Verdict.INCONCLUSIVE, "0 of 30"),
    ],
)
def test_a_load_that_ran_for_a_part_of_the_time_is_not_proven(
    tmp_path: Path, uses: list[dict[str, Any] | None], expected: Verdict, said: str
) -> None:
    """Its proof, of what it consumed in all, says that it ran."""
    assessment = judge([_run(tmp_path, load_use=uses)], LIMIT)
    assert assessment.verdict is expected and said in _text(assessment)


@pytest.mark.check
@pytest.mark.parametrize(
    ("absent", "expected"),
    [
        (0.0, Verdict.PASS),
        (1 / 60_000, Verdict.PASS),
        (4 / 60_000, Verdict.INCONCLUSIVE),
        (0.001, Verdict.INCONCLUSIVE),
        (0.01, Verdict.INCONCLUSIVE),
        (0.045, Verdict.INCONCLUSIVE),
        (0.06, Verdict.BROKEN),
    ],
)
def test_due_periods_that_are_absent_may_have_been_late(tmp_path: Path, absent: float, expected: Verdict) -> None:
    """A period at either end is a matter of rounding; no time is left for threads to begin and to end in."""
    run = _run(tmp_path, interval_ns=round(2000 * 1_000_000 / (1 - absent)))
    for required in (LIMIT, Requirement(200_000, 0.001, longest_burst=5)):
        assert judge([run], required).verdict is expected


def test_periods_of_a_length_that_is_not_told_cannot_be_accounted_for(tmp_path: Path) -> None:
    run = _run(tmp_path)
    assert judge([run], LIMIT).verdict is Verdict.PASS
    untold = tuple(replace(series, period_ns=None) for series in run.series)
    assessment = judge([replace(run, head=replace(run.head, series=untold))], LIMIT)
    assert assessment.verdict is Verdict.INCONCLUSIVE
    assert "does not state its period" in _text(assessment)


def test_a_run_that_was_to_last_so_long_may_be_written_later(tmp_path: Path) -> None:
    """Of 60 s of periods 59.5 are there, and the last half a second is what it took to write them."""
    values = [[*cpu[:29], cpu[29][:1500]] for cpu in VALUES]
    for duration_ns, passes in ((29_500_000_000, True), (10**10, True), (10**12, False)):
        run = _run(
            tmp_path,
            values=values,
            period_ns=500_000,
            interval_ns=10**9,
            head={"parameters": {"duration_ns": duration_ns}},
        )
        assert (judge([run], LIMIT).verdict is Verdict.PASS) == passes


def _holes(of_12: int) -> list[Any]:
    return [cpu[: 12 - of_12] + [np.array([], dtype=np.int64)] * of_12 for cpu in VALUES]


@pytest.mark.parametrize(
    ("views", "said"),
    [(("wakeup",), "wakeup on CPU 0 has no value in 8 s of the 12 s"), (("wakeup", "wakeup_corrected"), "due periods")],
)
def test_a_hole_is_no_part_of_the_time_measured(tmp_path: Path, views: tuple[str, ...], said: str) -> None:
    whole, holed = (
        _run(tmp_path, values=_holes(hole), views=views, interval_ns=10**9, period_ns=500_000) for hole in (0, 8)
    )
    loose = Requirement(200_000, 0.01, longest_burst=5)
    assert judge([whole], loose).verdict is Verdict.PASS
    assessment = judge([holed], loose)
    assert assessment.verdict is not Verdict.PASS and said in _text(assessment)


def test_a_hole_too_short_to_matter_shows_nothing_either(tmp_path: Path) -> None:
    """How rare a disturbance is said to be rests on the time with values."""
    values = [[*cpu[:29], np.array([], dtype=np.int64)] for cpu in VALUES]
    run = _run(tmp_path, values=values, views=("wakeup",), interval_ns=10**9, period_ns=500_000)
    [judgment] = judge([run], Requirement(200_000, 0.01, longest_burst=5)).judgments
    assert run.duration_ns == 30 * 10**9
    assert {one.duration_ns for one in judgment.evidence} == {29 * 10**9}


def test_a_hole_in_one_long_interval_is_one_too(tmp_path: Path) -> None:
    """3 s with values, and 8 s that one interval is too long."""
    run = _run(tmp_path, values=[cpu[:4] for cpu in VALUES], views=("wakeup",), interval_ns=3 * 10**9)
    assert "has no value in 4 s of the 12 s" in _text(judge([run], Requirement(200_000, 0.01, longest_burst=5)))


@pytest.mark.check
@pytest.mark.parametrize(
    ("marks", "counter", "said"),
    [
        ((), "throttled", "RT throttling"),
        (("virtual-machine",), "steal_ns", "time taken by the hypervisor"),
    ],
)
@pytest.mark.parametrize("gone", [True, False])
def test_a_counter_that_cannot_be_read_is_not_zero(
    tmp_path: Path, marks: tuple[str, ...], counter: str, said: str, gone: bool
) -> None:
    counters = (
        {name: value for name, value in COUNTERS.items() if name != counter} if gone else (COUNTERS | {counter: None})
    )
    assessment = judge([_run(tmp_path, marks=marks, counters=counters)], Requirement(200_000, 0.01, longest_burst=5))
    assert assessment.verdict is Verdict.INCONCLUSIVE and said in _text(assessment)
    assert judge([_run(tmp_path, marks=marks)], Requirement(200_000, 0.01, longest_burst=5)).verdict is Verdict.PASS


@pytest.mark.parametrize(
    "counter", ["steal_ns", "throttled", "cgroup_throttled", "thermal_throttled", "frequency_limited"]
)
def test_a_counter_that_went_backwards_is_not_zero(tmp_path: Path, counter: str) -> None:
    run = _run(tmp_path, counters=COUNTERS | {counter: -1})
    assert judge([run], LIMIT).verdict is Verdict.INCONCLUSIVE


def test_what_the_intervals_counted_is_not_denied_by_the_end(tmp_path: Path) -> None:
    run = _run(tmp_path, counters=COUNTERS | {"throttled": 3})
    assert run.end is not None
    denied = replace(run, end=replace(run.end, counters=COUNTERS))
    assert judge([denied], LIMIT).verdict is Verdict.BROKEN


OTHER = {"name": "policy", "requested": "other", "in_effect": "other"}


@pytest.mark.parametrize(
    ("change", "expected", "said"),
    [
        (
            {"settings": ({"name": "rt_throttling_us", "requested": None, "in_effect": 950000},)},
            Verdict.INCONCLUSIVE,
            "no scheduling policy was requested and read back",
        ),
        ({"settings": (OTHER | {"requested": None},)}, Verdict.INCONCLUSIVE, "no scheduling policy was requested"),
        (
            {"settings": (OTHER,), "head": {"parameters": {"policy": "fifo"}}},
            Verdict.BROKEN,
            "the recording states policy fifo, but no thread requested it",
        ),
        ({"settings": (OTHER | {"requested": "fifo"},)}, Verdict.BROKEN, "requested as fifo but is other"),
        (
            {"settings": (OTHER,), "head": {"parameters": {"policy": "other"}}, "marks": ("not-real-time",)},
            Verdict.PASS,
            "",
        ),
        ({"end": {"settings": []}}, Verdict.INCONCLUSIVE, "policy was not read back after the run"),
        (
            {"end": {"settings": [{"name": "policy", "in_effect": "fifo"}, {"name": "priority", "in_effect": None}]}},
            Verdict.INCONCLUSIVE,
            "priority was not read back after the run",
        ),
        (
            {"end": {"settings": [{"name": "policy", "in_effect": "other"}, {"name": "priority", "in_effect": 98}]}},
            Verdict.BROKEN,
            "policy from fifo to other",
        ),
    ],
)
def test_settings_are_as_asked_before_and_after(
    tmp_path: Path, change: dict[str, Any], expected: Verdict, said: str
) -> None:
    assessment = judge([_run(tmp_path, **change)], LIMIT)
    assert assessment.verdict is expected and said in _text(assessment)


@pytest.mark.check
def test_ordinary_threads_are_told_by_what_is_in_effect(tmp_path: Path) -> None:
    said = "The measured threads did not run under a real-time policy"
    assert said in judge([_run(tmp_path, settings=(OTHER,))], LIMIT).cautions
    assert said not in judge([_run(tmp_path)], LIMIT).cautions
    watched = (*SETTINGS, OTHER | {"thread": "watch"})
    assert said not in judge([_run(tmp_path, settings=watched)], LIMIT).cautions, "it watches, and is not measured"
    refused = (*SETTINGS, OTHER | {"thread": "high", "requested": "fifo"})
    assert said in judge([_run(tmp_path, settings=refused)], LIMIT).cautions


def test_no_setting_at_all_is_not_what_was_asked_for(tmp_path: Path) -> None:
    run = _run(tmp_path)
    assert run.end is not None and len(SETTINGS) == len(run.head.settings)
    empty = replace(run, head=replace(run.head, settings=()), end=replace(run.end, settings=None))
    assert judge([empty], LIMIT).verdict is Verdict.INCONCLUSIVE


def test_an_idle_run_alone_says_that_no_load_was_applied(tmp_path: Path) -> None:
    alone = judge([_run(tmp_path, load="none")], LIMIT)
    assert alone.verdict is Verdict.PASS and alone.headline.endswith("; no load was applied")
    both = judge([_run(tmp_path, load="none"), _run(tmp_path, run_id="loaded", values=latencies(2))], LIMIT)
    assert both.verdict is Verdict.PASS and "idle" not in both.headline


def test_an_idle_machine_with_commands_was_not_idle(tmp_path: Path) -> None:
    run = _run(tmp_path, load="none", head={"load": {"name": "none", "commands": [["stress-ng"]]}})
    assert judge([run], LIMIT).verdict is Verdict.BROKEN


@pytest.mark.parametrize("fact", ["emulated", "hypervisor"])
def test_what_the_profile_says_needs_no_mark(tmp_path: Path, fact: str) -> None:
    run = _run(tmp_path, counters=COUNTERS | {"steal_ns": None})
    told = replace(run, head=replace(run.head, profile={**(run.head.profile or {}), fact: True}))
    assert judge([run], LIMIT).verdict is Verdict.PASS
    assert judge([told], LIMIT).verdict is Verdict.INCONCLUSIVE


@pytest.mark.check
def test_disturbances_that_lie_apart_are_several_whatever_is_said_of_runs(tmp_path: Path) -> None:
    """Eight stalls of five; told as one, that would show a rate of a fifth."""
    rows = [np.where((np.arange(1000) < 5) & (second % 5 == 0), 60_000, 3_000) for second in range(40)]
    plan = Plan([rows], load="cpu", views=("wakeup_corrected",), rise_k=3, limit_ns=70_000)
    lines = [json.loads(line) for line in write(tmp_path / "run.jsonl", plan).read_bytes().splitlines()]
    for line in lines:
        if line["type"] in ("interval", "end"):
            line["series"][0]["rises"] = []
    path = tmp_path / "told.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    [judgment] = judge([read_recording(path)], Requirement(50_000, 0.0016, longest_burst=5)).judgments
    assert judgment.verdict is Verdict.INCONCLUSIVE and judgment.evidence[0].disturbances == (8, 8)


def _at(tmp_path: Path, run_id: str, begin_s: float, *, changed: bool = False, **change: Any) -> Recording:
    values = [list(cpu[:7]) for cpu in VALUES]
    if changed:
        values[0][3] = np.append(values[0][3][1:], values[0][3][0] + 1)
    return _run(tmp_path, values=values, run_id=run_id, begin_ns=round(begin_s * 1e9), **change)


@pytest.mark.parametrize(
    ("begin_s", "profile", "believed"),
    [
        (0, {}, False),
        (13, {}, False),
        (14, {}, True),
        (3600, {}, True),
        (0, {"boot_id": "2" * 36}, False),
        (5, {"boot_id": "2" * 36}, True),
        (5, {"boot_id": None}, False),
    ],
)
def test_runs_of_one_cpu_that_overlap_are_no_two_measurements(
    tmp_path: Path, begin_s: int, profile: dict[str, Any], believed: bool
) -> None:
    """Each lasts 14 s; the second is the first with one value changed by 1 ns."""
    one, other = (
        _at(tmp_path, "one", 0),
        _at(tmp_path, "other", begin_s, changed=True, head={"profile": PROFILE | profile}),
    )
    assessment = judge([one, other], LIMIT)
    assert (assessment.verdict is not Verdict.BROKEN) == believed
    assert ("at the same time as run one" in _text(assessment)) is not believed


@pytest.mark.parametrize(
    ("marks", "wall_ns", "believed"), [(("imported",), 0, True), (("imported",), 10**18, False), ((), 0, False)]
)
def test_imports_without_a_time_do_not_overlap(
    tmp_path: Path, marks: tuple[str, ...], wall_ns: int, believed: bool
) -> None:
    """Where a file does not state its begin, 0 is stored for it: the same for all of them."""
    head = {"begin": {"mono_ns": 0, "wall_ns": wall_ns}}
    one, other = (
        _at(tmp_path, run_id, 0, changed=run_id == "other", marks=marks, head=head) for run_id in ("one", "other")
    )
    assert ("at the same time as run one" in _text(judge([one, other], LIMIT))) is not believed
    copy = judge([one, _at(tmp_path, "copy", 0, marks=marks, head=head)], LIMIT)
    assert copy.verdict is Verdict.BROKEN, "a copy is one, whatever is known of its time"


@pytest.mark.parametrize(
    ("marks", "counted", "made", "verdict"),
    [
        (("emulated",), {"edges_answered": 320, "edges_returned": 320}, 320, Verdict.INCONCLUSIVE),
        (("emulated",), {"edges_answered": 376, "edges_returned": 320}, 320, Verdict.BROKEN),
        (("emulated",), {"edges_answered": None, "edges_returned": 320}, 320, Verdict.BROKEN),
        (("emulated",), {}, 320, Verdict.BROKEN),
        ((), {"edges_answered": 320, "edges_returned": 320}, 320, Verdict.BROKEN),
    ],
)
def test_a_slow_guest_is_no_loss_and_an_edge_that_is_not_counted_is_one(
    tmp_path: Path, marks: tuple[str, ...], counted: dict[str, Any], made: int, verdict: Verdict
) -> None:
    """Of 376 periods the board made 320: its task began late, or ended early."""
    run = _run(
        tmp_path,
        values=[[np.zeros(made, dtype=np.int64)]],
        views=("period-jitter",),
        load="none",
        period_ns=7_071_000,
        interval_ns=376 * 7_071_000,
        marks=marks,
        counters=COUNTERS | counted,
        head={"probe": "periodic", "instrument": {"name": "fastenough gauge"}, "parameters": {}},
    )
    found = [finding for finding in findings_of(run) if "due periods" in finding.text]
    assert [finding.verdict for finding in found] == [verdict]


@pytest.mark.parametrize(
    ("first_edge_ms", "started_ms", "verdict"),
    [
        (0, None, Verdict.PASS),
        (90, None, Verdict.PASS),
        (150, None, Verdict.INCONCLUSIVE),
        (900, None, Verdict.INCONCLUSIVE),
        (3000, None, Verdict.INCONCLUSIVE),
        (3050, 3000, Verdict.PASS),
        (3200, 3000, Verdict.INCONCLUSIVE),
    ],
)
def test_a_board_that_is_silent_until_its_first_edge_does_not_pass(
    tmp_path: Path, first_edge_ms: int, started_ms: int | None, verdict: Verdict
) -> None:
    """Of 60 s at 1 kHz, so that less than 6 % is missing; an instrument counts nothing before the first edge."""
    seen = [np.full(max(0, min(1000, 1000 * (second + 1) - first_edge_ms)), second % 7) for second in range(60)]
    run = _run(
        tmp_path,
        values=[seen],
        views=("period-jitter",),
        load="none",
        interval_ns=10**9,
        counters=COUNTERS | ({} if started_ms is None else {"task_started_ns": started_ms * 10**6}),
        head={"probe": "periodic", "instrument": {"name": "fastenough gauge"}, "parameters": {}},
    )
    assert judge([run], Requirement(200_000, 0.01, longest_burst=1)).verdict is verdict


@pytest.mark.parametrize("stall_ms", [150, 900])
def test_a_stall_in_the_first_intervals_is_no_late_start(tmp_path: Path, stall_ms: int) -> None:
    """It lasts from the end of the first interval into the second, and is a value of the second."""
    seen = [np.zeros(1000, dtype=np.int64) for _ in range(20)]
    seen[0] = seen[0][: 1000 - stall_ms // 2]
    seen[1] = np.append(seen[1][: 999 - stall_ms // 2], (stall_ms - 1) * 10**6)
    run = _run(
        tmp_path,
        values=[seen],
        views=("period-jitter",),
        load="none",
        interval_ns=10**9,
        head={"probe": "periodic", "instrument": {"name": "fastenough gauge"}, "parameters": {}},
    )
    assert not [finding for finding in findings_of(run) if "first edge" in finding.text]


@pytest.mark.parametrize(
    ("counted", "broken"),
    [
        ({"edges_sent": 500, "edges_seen": 500, "edges_answered": 500, "edges_returned": 500}, False),
        ({"edges_sent": 500, "edges_seen": 450, "edges_answered": 450, "edges_returned": 500}, True),
        ({"edges_sent": 510, "edges_seen": 510, "edges_answered": 510, "edges_returned": 500}, True),
        ({"edges_sent": 500, "edges_seen": None, "edges_answered": None, "edges_returned": 500}, False),
        ({"edges_answered": 500, "edges_returned": 493}, True),
        ({"edges_answered": 500, "edges_returned": 493, "edges_dropped": 7}, False),
        ({"edges_answered": 500, "edges_returned": 493, "edges_timed_out": None, "edges_dropped": 7}, False),
        ({"edges_answered": 493, "edges_returned": 500}, True),
        ({"spurious": 0}, False),
        ({"spurious": 1}, True),
    ],
)
def test_edges_that_only_one_side_counted_are_no_measurement(
    tmp_path: Path, counted: dict[str, Any], broken: bool
) -> None:
    """Noise that is taken for an answer hides the answer; an edge that the instrument missed may have been late."""
    run = _run(tmp_path, load="none", counters=COUNTERS | counted, head={"instrument": {"name": "fastenough gauge"}})
    assert any("edge" in finding.text for finding in findings_of(run)) == broken


def test_boards_and_probes_measure_at_the_same_time(tmp_path: Path) -> None:
    one = _at(tmp_path, "one", 0)
    for change in ({"board": "another"}, {"probe": "another"}):
        assert judge([one, _at(tmp_path, "other", 0, changed=True, head=change)], LIMIT).verdict is not Verdict.BROKEN


HIDDEN = [[np.full(2000, 10_000_000)] * 30, VALUES[1]]


@pytest.mark.parametrize(
    "declared",
    [
        {"refused": "too coarse"},
        {"role": "throughput", "bytes": 10},
        {"role": "diagnostic"},
        {"role": "diagnostic", "name": "anything"},
        {"role": "diagnostic", "name": "wakeup"},
    ],
    ids=str,
)
@pytest.mark.parametrize("probe", ["timer", "made-up"])
def test_no_declaration_hides_what_was_measured_on_a_cpu(tmp_path: Path, declared: dict[str, Any], probe: str) -> None:
    run = _run(tmp_path, values=HIDDEN, views=("wakeup_corrected",), first_series=declared, head={"probe": probe})
    assessment = judge([run], LIMIT)
    assert assessment.verdict in (Verdict.BROKEN, Verdict.FAIL, Verdict.INCONCLUSIVE)


@pytest.mark.parametrize("ns", [None, -1])
def test_a_time_suspended_that_is_not_known_is_not_zero(tmp_path: Path, ns: int | None) -> None:
    for counters in (COUNTERS | {"suspended_ns": ns}, {name: 0 for name in COUNTERS if name != "suspended_ns"}):
        assert judge([_run(tmp_path, counters=counters)], LIMIT).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("cpu_ns", "proven_s", "expected"),
    [
        (400_000_000, 12.0, Verdict.PASS),
        (1, 12.0, Verdict.BROKEN),
        (1, 3e-8, Verdict.BROKEN),
        (20_000_000, 0.6, Verdict.BROKEN),
        (400_000_000, 120.0, Verdict.BROKEN),
    ],
)
def test_a_load_does_as_much_as_is_expected_of_it(
    tmp_path: Path, cpu_ns: int, proven_s: float, expected: Verdict
) -> None:
    """Of the load full 5 % of each of two CPUs are expected: 0.2 s in each interval of 2 s."""
    proof = {"name": "full", "ran": True, "cpu_time_s": proven_s, "window_s": 60.0, "processes": 8, "reasons": []}
    run = _run(tmp_path, load="full", load_use=(RAN | {"cpu_ns": cpu_ns},), load_proof=proof)
    assert judge([run], LIMIT).verdict is (expected if proven_s >= 6 or expected is Verdict.BROKEN else Verdict.BROKEN)


@pytest.mark.parametrize(
    ("interval_s", "expected"), [(2, Verdict.PASS), (4, Verdict.BROKEN), (2.02, Verdict.INCONCLUSIVE)]
)
def test_a_plain_series_is_held_to_its_periods(tmp_path: Path, interval_s: float, expected: Verdict) -> None:
    run = _run(tmp_path, views=("wakeup",), interval_ns=round(interval_s * 1e9))
    assert judge([run], LIMIT).verdict is expected


@pytest.mark.parametrize(
    ("period_s", "activations", "expected"),
    [(10.0, 2, Verdict.INCONCLUSIVE), (1.0, 16, Verdict.INCONCLUSIVE), (0.05, 400, Verdict.PASS)],
)
def test_never_needs_more_than_a_few_activations(
    tmp_path: Path, period_s: float, activations: int, expected: Verdict
) -> None:
    values = [[np.full(activations // 2, 5_000 + second) for second in range(2)]]
    run = _run(tmp_path, values=values, period_ns=round(period_s * 1e9), load="none")
    assert judge([run], Requirement(200_000, return_time_ns=10**9)).verdict is expected
