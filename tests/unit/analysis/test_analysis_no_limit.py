# SPDX-License-Identifier: GPL-2.0-or-later
"""A requirement is for the probe it was stated for; where none is stated, what was seen is told and nothing passes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis import Assessment, judge, words
from fastenough.analysis.compare import cautions
from fastenough.analysis.machine import INSTRUCTIONS
from fastenough.model import VERDICT_EXIT_STATUS, ExitStatus, Requirement, Role, Verdict
from fastenough.recording import Recording
from tests.support.recordings import COUNTERS, PROFILE, Plan, latencies, recording

LIMIT = Requirement(200_000)
VALUES = latencies(1)
LATE = [[interval + 400_000 for interval in cpu] for cpu in VALUES]


def _run(tmp_path: Path, **change: Any) -> Recording:
    return recording(tmp_path, replace(Plan(VALUES, load="cpu"), **change))


def _text(assessment: Assessment) -> str:
    return " | ".join((assessment.headline, *assessment.reasons))


@pytest.mark.check
def test_without_a_requirement_what_was_seen_is_told_and_nothing_passes(tmp_path: Path) -> None:
    assessment = judge([_run(tmp_path)])
    worst = max(int(interval.max()) for cpu in VALUES for interval in cpu)
    assert assessment.verdict is Verdict.NO_LIMIT and str(assessment.verdict) == "no limit stated"
    assert VERDICT_EXIT_STATUS[assessment.verdict] is ExitStatus.DONE
    assert (
        assessment.headline
        == f"Maximum latency {words.latency_up(worst)} in 120,000 wake-ups (no limit given, so no verdict)"
    )
    assert assessment.requirements == () and assessment.requirements_of("run-1") == ()
    for supported in assessment.supported:
        assert judge([_run(tmp_path)], Requirement(supported.limit_ns, supported.miss_rate)).verdict is Verdict.PASS


def test_an_invalid_load_does_not_hide_the_others(tmp_path: Path) -> None:
    loads = ("none", "cpu", "io")
    runs = [
        _run(tmp_path, run_id=f"run-{2 + place}", load=load, values=latencies(2 + place))
        for place, load in enumerate(loads)
    ]
    failed = _run(tmp_path, run_id="run-9", load="vm", outcome="failed", reasons=("probe killed",))
    assessment, sound = judge([*runs, failed]), judge(runs)
    assert (assessment.verdict, sound.verdict) == (Verdict.BROKEN, Verdict.NO_LIMIT)
    assert "1 of 4 kinds of runs is invalid" in assessment.headline
    maximum = words.latency_up(max(judgment.maximum_ns or 0.0 for judgment in sound.judgments))
    assert f"{maximum} in 360,000 wake-ups" in assessment.headline
    assert len(sound.reasons) == 3 and assessment.reasons[1:] == sound.reasons
    assert assessment.supported == (), "no limit is supported under each load"


@pytest.mark.parametrize(("runs", "none"), [(1, True), (2, False)])
def test_a_kind_of_runs_with_an_invalid_run_is_invalid(tmp_path: Path, runs: int, none: bool) -> None:
    """Without any valid run, no valid data was recorded."""
    failed = _run(tmp_path, run_id="run-9", outcome="failed", reasons=("probe killed",))
    assessment = judge([failed, *(_run(tmp_path, values=latencies(2)) for _ in range(runs - 1))])
    assert assessment.verdict is Verdict.BROKEN and len(assessment.judgments) == 1
    assert ("No valid data" in assessment.headline) is none


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (999_999, "999,999"),
        (10**6, "1 million"),
        (2_886_000, "2.88 million"),
        (28_860_000, "28.8 million"),
        (4_260_000_000, "4.26 billion"),
    ],
)
def test_a_number_in_words_is_never_more_than_there_are(n: int, said: str) -> None:
    assert words.about(n) == said


@pytest.mark.parametrize(
    ("rate", "said"),
    [(0.05, "5 % of the activations"), (0.01, "1 in 100 activations"), (1e-6, "1 in 1,000,000 activations")],
)
def test_a_rate_is_of_something(rate: float, said: str) -> None:
    assert words.rate_of(rate, "activations") == said


@pytest.mark.parametrize(
    ("change", "expected", "said"),
    [
        ({"lost": 1}, Verdict.BROKEN, "4 values lost"),
        ({"outcome": None}, Verdict.BROKEN, "cut off"),
        ({"outcome": "aborted"}, Verdict.NO_LIMIT, "the run was aborted"),
        ({"values": [], "outcome": "aborted"}, Verdict.INCONCLUSIVE, "no latency data"),
        ({"marks": ("emulated",)}, Verdict.INCONCLUSIVE, "Emulated: no verdict"),
        ({"counters": COUNTERS | {"steal_ns": 10**9}}, Verdict.NO_LIMIT, "Maximum latency"),
        ({"load": "none"}, Verdict.NO_LIMIT, "; no load was applied"),
        ({"views": ("wakeup",), "missed": 3}, Verdict.NO_LIMIT, "wake-ups, and 6 missed periods of unknown latency"),
    ],
    ids=str,
)
def test_what_was_seen_is_told_as_far_as_it_is_sound(
    tmp_path: Path, change: dict[str, Any], expected: Verdict, said: str
) -> None:
    assessment = judge([_run(tmp_path, **change)])
    assert assessment.verdict is expected
    assert said in _text(assessment)


@pytest.mark.check
def test_values_that_count_instructions_are_called_so(tmp_path: Path) -> None:
    counted = PROFILE | {"emulator": {"program": "qemu", "version": "7.2", "sha256": "ab" * 32}}
    runs = [_run(tmp_path, head={"profile": profile}) for profile in (PROFILE, counted)]
    assert [INSTRUCTIONS in judge([run]).cautions for run in runs] == [False, True]
    assert [INSTRUCTIONS in cautions([run]) for run in runs] == [False, True]


def test_a_missing_load_is_named_and_decides_nothing_that_was_not_asked(tmp_path: Path) -> None:
    assessment = judge([_run(tmp_path)], loads=["cpu", "io"])
    assert assessment.verdict is Verdict.NO_LIMIT and "no run has load io" in _text(assessment)


def _late_mutex(tmp_path: Path, **change: Any) -> Recording:
    return _run(tmp_path, run_id="mutex", values=LATE, head={"probe": "mutex"} | change)


@pytest.mark.check
def test_a_limit_is_for_the_probe_it_is_stated_for(tmp_path: Path) -> None:
    runs = [_run(tmp_path), _late_mutex(tmp_path)]
    both = judge(runs, LIMIT, probe="timer")
    assert both.verdict is Verdict.PASS
    assert [(judgment.probe, judgment.verdict) for judgment in both.judgments] == [
        ("timer", Verdict.PASS),
        ("mutex", Verdict.NO_LIMIT),
    ]
    assert both.headline.startswith("Fast enough: timer: none of 120,000 wake-ups above 200 µs")
    assert judge(runs, LIMIT, probe="mutex").verdict is Verdict.FAIL


def test_a_limit_for_a_probe_that_was_not_measured_decides_nothing(tmp_path: Path) -> None:
    assessment = judge([_late_mutex(tmp_path)], LIMIT, probe="timer")
    assert assessment.verdict is Verdict.INCONCLUSIVE
    assert "the limit applies to the probe timer, and no run used it" in _text(assessment)


def _stated(limit_ns: int) -> dict[str, Any]:
    return {"requirement": {"limit_ns": limit_ns, "miss_rate": 0, "confidence": 0.95}}


@pytest.mark.check
def test_many_probes_are_no_headline(tmp_path: Path) -> None:
    runs = [
        _run(tmp_path, run_id=probe, values=latencies(seed), head={"probe": probe})
        for seed, probe in enumerate(("timer", "mutex", "switch", "condvar", "semaphore"))
    ]
    assert judge(runs[:4]).headline.count(" activations") == 3
    assessment = judge(runs)
    assert assessment.headline == "Maximum latencies of 5 probes, listed below (no limit given, so no verdict)"
    assert len([reason for reason in assessment.reasons if ", maximum " in reason]) == 5


def test_what_was_not_applicable_is_told_apart_by_its_parameters(tmp_path: Path) -> None:
    unfit = [
        _run(
            tmp_path,
            run_id=method,
            values=[],
            outcome="not-applicable",
            reasons=("no module",),
            head={"parameters": {"method": method, "interval_ns": 1000}},
        )
        for method in ("thread", "handler")
    ]
    (found,) = [reason for reason in judge([_run(tmp_path), *unfit]).reasons if "not applicable here" in reason]
    assert ("method thread" in found, "method handler" in found, "interval" in found) == (True, True, False)
    assert found.endswith("; run handler) were not applicable here: no module") and found.count("no module") == 1


@pytest.mark.check
def test_what_a_run_states_itself_it_is_judged_by(tmp_path: Path) -> None:
    timer, mutex = _run(tmp_path, head=_stated(200_000)), _late_mutex(tmp_path, **_stated(900_000))
    assessment = judge([timer, mutex])
    assert assessment.verdict is Verdict.PASS
    assert assessment.requirements_of("mutex") == (Requirement(900_000),)
    assert [
        part in assessment.headline for part in ("timer: none of 120,000 wake-ups above 200 µs", "; mutex: none of ")
    ] == [True] * 2
    strict = judge([timer, _late_mutex(tmp_path, **_stated(300_000))])
    assert strict.verdict is Verdict.FAIL and strict.headline.startswith("Too slow: mutex: ")
    assert judge([timer], Requirement(1_000)).verdict is Verdict.FAIL, "the command's limit takes its place"


@pytest.mark.check
@pytest.mark.parametrize("of_other", [None, 2_000_000, 5_000])
def test_all_runs_of_one_key_are_judged_by_each_requirement(tmp_path: Path, of_other: int | None) -> None:
    """Also the runs that state another requirement, or none."""
    good = _run(tmp_path, head=_stated(200_000))
    late = _run(tmp_path, run_id="late", values=LATE, head={} if of_other is None else _stated(of_other))
    assert judge([good]).verdict is Verdict.PASS
    for runs in ([good, late], [late, good]):
        assessment = judge(runs)
        assert assessment.verdict is Verdict.FAIL
        verdicts = {
            judgment.requirement.limit_ns: judgment.verdict for judgment in assessment.judgments if judgment.requirement
        }
        others = {2_000_000: Verdict.PASS, 5_000: Verdict.FAIL}
        assert verdicts == {200_000: Verdict.FAIL} | ({} if of_other is None else {of_other: others[of_other]})
        assert {judgment.run_ids for judgment in assessment.judgments} == {tuple(run.run_id for run in runs)}
        least = min(200_000, of_other or 200_000)
        assert {assessment.requirements_of(run.run_id)[0].limit_ns for run in runs} == {least}


@pytest.mark.check
def test_what_differs_among_the_runs_is_named_in_each_reason(tmp_path: Path) -> None:
    """Two kernels under one load read alike otherwise."""
    runs = [
        _run(tmp_path, run_id=f"run-{seed}", values=latencies(seed), head={"configuration": name, "implementation": by})
        for seed, (name, by) in enumerate((("stock", "linux-user"), ("rt", "linux-user"), ("rt", "linux-kernel")))
    ]
    for assessment in (judge(runs), judge(runs, Requirement(10**7))):
        labels = [reason.split(":")[0] for reason in assessment.reasons]
        assert labels == ["load cpu, stock, linux-user", "load cpu, rt, linux-user", "load cpu, rt, linux-kernel"]
    assert [reason.split(":")[0] for reason in judge(runs[:2]).reasons] == ["load cpu, stock", "load cpu, rt"]
    assert judge(runs[:1]).reasons[0].startswith("load cpu: ")
    emulated = judge(
        [
            _run(tmp_path, run_id=run_id, marks=("emulated",), values=latencies(seed), head={"configuration": run_id})
            for seed, run_id in enumerate(("stock", "rt"))
        ]
    )
    assert emulated.reasons[0].startswith("load cpu, stock; load cpu, rt: emulated")


def test_a_planned_run_that_is_missing_forbids_a_pass_of_what_the_others_state(tmp_path: Path) -> None:
    run = _run(tmp_path, head=_stated(200_000))
    assert judge([run]).verdict is Verdict.PASS
    assert judge([run], missing=["timer, load io"]).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("role", [Role.DIAGNOSTIC, Role.THROUGHPUT])
def test_inversions_on_purpose_and_throughput_are_never_judged(tmp_path: Path, role: Role) -> None:
    run = _late_mutex(tmp_path)
    labels = {"inheritance": "no"}
    declared = tuple(replace(series, role=role, corrected=False, labels=labels) for series in run.series)
    bare = replace(run, head=replace(run.head, probe="inversion", series=declared))
    timer = _run(tmp_path)
    assert judge([timer, bare], LIMIT).verdict is Verdict.PASS, "whatever probe the limit is for"
    alone = judge([bare])
    assert alone.verdict is Verdict.NO_LIMIT and alone.headline == "No latency was measured"
    assert judge([bare], LIMIT).verdict is Verdict.INCONCLUSIVE


@pytest.mark.check
def test_a_failure_shown_by_sound_runs_is_not_hidden_by_a_broken_one_of_their_key(tmp_path: Path) -> None:
    late = _run(tmp_path, values=[[np.append(interval, 900_000) for interval in cpu] for cpu in VALUES])
    broken = _run(tmp_path, run_id="broken", values=latencies(2), lost=1)
    assessment = judge([late, broken], LIMIT)
    assert len(assessment.judgments) == 1
    assert assessment.verdict is Verdict.FAIL and "run broken: 4 values lost" in _text(assessment)
    assert judge([broken], LIMIT).verdict is Verdict.BROKEN


@pytest.mark.check
def test_parameters_in_which_runs_of_one_probe_differ_are_named_in_each_reason(tmp_path: Path) -> None:
    differing: list[dict[str, Any]] = [
        {"method": "nanosleep", "priority": 99},
        {"method": "timerfd", "priority": 98},
        {"method": "posix-timer"},
    ]
    runs = [
        _run(tmp_path, run_id=f"run-{seed}", values=latencies(seed), head={"parameters": some})
        for seed, some in enumerate(differing)
    ]
    assert [reason.split(": ")[0] for reason in judge(runs[:2]).reasons] == [
        "load cpu, method nanosleep, priority 99",
        "load cpu, method timerfd, priority 98",
    ]
    assert [reason.split(": ")[0] for reason in judge(runs).reasons] == [
        "load cpu, method nanosleep",
        "load cpu, method timerfd",
        "load cpu, method posix-timer",
    ]


def test_a_cpu_that_another_entry_measured_is_not_said_to_be_unmeasured(tmp_path: Path) -> None:
    profile = PROFILE | {"cpu_isolation": {"online": "0-1"}}
    both = recording(tmp_path, Plan(latencies(1), load="cpu", head={"profile": profile}))
    single = recording(
        tmp_path,
        Plan(
            latencies(2)[:1],
            load="cpu",
            run_id="run-2",
            views=("switch",),
            series={"corrected": False},
            head={"probe": "switch", "profile": profile},
        ),
    )
    assert "not measured" in judge([single]).headline
    assert "not measured" not in judge([both, single]).headline


@pytest.mark.parametrize(
    ("average", "said"),
    [
        ("40.12 3.00 1.00 1/100 5", "no load was applied (load average 40.12 before)"),
        ("x", "no load was applied"),
        (None, "no load was applied"),
    ],
)
def test_without_a_load_the_machine_may_be_busy(tmp_path: Path, average: str | None, said: str) -> None:
    run = recording(tmp_path, Plan(latencies(1), load="none", head={"profile": PROFILE | {"load_average": average}}))
    assert judge([run]).headline.endswith(said)
