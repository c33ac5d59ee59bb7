# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict: every condition of a PASS is removed alone, and the PASS must vanish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from recordings import COUNTERS, Plan, latencies, recording

from fastenough.analysis import LIFE_SAFETY, Assessment, checks, evidence, judge
from fastenough.model import Requirement, Role, Verdict
from fastenough.recording import Recording

LIMIT = Requirement(200_000)
VALUES = latencies(1)
FIFO = {"name": "policy", "requested": "fifo", "in_effect": "fifo"}


def _good(**change: Any) -> Plan:
    return replace(Plan(VALUES, load="cpu"), **change)


def _judge(tmp_path: Path, plan: Plan, requirement: Requirement | None = LIMIT) -> Assessment:
    return judge([recording(tmp_path, plan)], requirement)


def _text(assessment: Assessment) -> str:
    return " | ".join(assessment.reasons)


def _with_one_late() -> list[Any]:
    values = [list(cpu) for cpu in VALUES]
    values[1][7] = np.append(values[1][7], 250_000)
    return values


def test_good_evidence_passes_and_says_what_it_does_not_exclude(tmp_path: Path) -> None:
    assessment = _judge(tmp_path, _good())
    assert assessment.verdict is Verdict.PASS
    assert assessment.headline == "Fast enough: never later than 200.0 µs, as far as these samples reach"
    assert "nothing above the limit" in _text(assessment)
    assert "not excluded: one in every 20,028 activations = one in every 20 s" in _text(assessment)
    assert assessment.life_safety == LIFE_SAFETY and "no verdict" in LIFE_SAFETY
    assert not assessment.all_not_applicable and assessment.requirements == (LIMIT,)


REMOVED: list[tuple[str, dict[str, Any], Verdict, str]] = [
    ("the end", {"outcome": None}, Verdict.BROKEN, "cut off"),
    ("the outcome", {"outcome": "failed", "reasons": ("disk full",)}, Verdict.BROKEN, "the run failed: disk full"),
    ("completion", {"outcome": "aborted", "reasons": ("SIGINT",)}, Verdict.INCONCLUSIVE, "aborted: SIGINT"),
    ("no loss", {"lost": 1}, Verdict.BROKEN, "4 values lost"),
    ("the samples", {"values": [[np.array([], dtype=np.int64)] * 30] * 2, "interval_ns": 10**9}, Verdict.BROKEN,
     "holds no sample"),
    ("the load", {"load_proof": {"name": "cpu", "ran": False, "reasons": ["stress-ng ended"]}}, Verdict.BROKEN,
     "the load cpu did not run: stress-ng ended"),
    ("the proof of the load", {"load_proof": {}}, Verdict.BROKEN, "no proof that the load cpu ran"),
    ("the right load", {"load_proof": {"name": "io", "ran": True}}, Verdict.BROKEN, "no proof that the load cpu ran"),
    ("the name of the load", {"load": None}, Verdict.INCONCLUSIVE, "does not state under which load"),
    ("idleness", {"load": "none", "load_proof": {"name": "none", "ran": False}}, Verdict.BROKEN,
     "idle machine was not"),
    ("a granted setting", {"settings": [FIFO, {"name": "priority", "cpu": 1, "requested": 98, "in_effect": 50}]},
     Verdict.BROKEN, "priority of cpu 1 was requested to be 98 but is 50"),
    ("a readable setting", {"settings": [FIFO, {"name": "cpu_dma_latency_us", "requested": 0, "in_effect": None,
                                                "reason": "no such file"}]},
     Verdict.INCONCLUSIVE, "could not be read back (no such file)"),
    ("settings that were kept", {"settings": [FIFO | {"thread": "timer", "cpu": 1}], "end": {"settings": [
        {"name": "policy", "thread": "timer", "cpu": 1, "in_effect": "other"}]}},
     Verdict.BROKEN, "policy of thread timer of cpu 1 from fifo to other"),
    ("a steady clock", {"series": {"clock": "CLOCK_REALTIME"}, "counters": COUNTERS | {"clock_step_ns": -5}},
     Verdict.BROKEN, "clock, by which this run was timed, was set"),
    ("a clock that nobody set", {"series": {"clock": "realtime"}, "counters": COUNTERS | {"clock_sets": 1}},
     Verdict.BROKEN, "clock, by which this run was timed, was set"),
    ("CPU time", {"counters": COUNTERS | {"throttled": 1}}, Verdict.BROKEN, "RT throttling"),
    ("CPU time, told by an event", {"counters": COUNTERS | {"throttled": None}, "events": [{"kind": "throttled"}]},
     Verdict.BROKEN, "RT throttling"),
    ("its quota", {"counters": COUNTERS | {"cgroup_throttled": 1}}, Verdict.BROKEN,
     "CPU quota was used up in 1 period:"),
    ("its CPU", {"settings": [FIFO, {"name": "affinity", "cpu": 1, "requested": "1", "in_effect": "1"}],
                 "counters": COUNTERS | {"migrations": 2}}, Verdict.BROKEN, "moved to another (2 times)"),
    ("a policy", {"settings": [FIFO | {"requested": None}]}, Verdict.INCONCLUSIVE, "no scheduling policy was"),
    ("a readable counter", {"counters": COUNTERS | {"throttled": None}}, Verdict.INCONCLUSIVE, "cannot be read"),
    ("values all the time", {"views": ("wakeup",), "values": [[*cpu[:20], *[cpu[0][:0]] * 10] for cpu in VALUES],
                             "interval_ns": 2 * 10**9}, Verdict.INCONCLUSIVE, "has no value in 20 s of the 60 s"),
    ("the due periods", {"interval_ns": 4 * 10**9}, Verdict.BROKEN, "of about 120,000 due periods"),
    ("silicon", {"marks": ("emulated",)}, Verdict.INCONCLUSIVE, "emulated: no verdict"),
    ("a low maximum", {"values": _with_one_late()}, Verdict.FAIL,
     "1 of 60,001 activations on CPU 1 took longer than 200.0 µs"),
    ("one period kept", {"views": ("wakeup",), "missed": 1}, Verdict.FAIL, "1 of 60,001"),
    ("enough samples", {"values": [cpu[:10] for cpu in VALUES], "period_ns": 5_000_000}, Verdict.INCONCLUSIVE,
     "do not exclude a rate"),
    ("time", {"period_ns": 100_000}, Verdict.INCONCLUSIVE, "6 s were measured"),
    ("a machine of one's own", {"counters": COUNTERS | {"steal_ns": 10**7}}, Verdict.INCONCLUSIVE,
     "no worst-case verdict on this machine: its hypervisor takes time"),
    ("known steal", {"marks": ("virtual-machine",), "counters": COUNTERS | {"steal_ns": None}}, Verdict.INCONCLUSIVE,
     "or may, unseen"),
]


@pytest.fixture(scope="module")
def removals(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Recording, str]]:
    """Per removal the recording and the words that must be in the reasons."""
    folder = tmp_path_factory.mktemp("removals")
    return [(recording(folder, _good(**change)), words) for _, change, _, words in REMOVED]


@pytest.mark.parametrize("which", range(len(REMOVED)), ids=[case[0] for case in REMOVED])
def test_without_it_there_is_no_pass(removals: list[tuple[Recording, str]], which: int) -> None:
    expected = REMOVED[which][2]
    one, words = removals[which]
    assessment = judge([one], LIMIT)
    assert assessment.verdict is expected
    assert words in _text(assessment)
    assert expected is Verdict.FAIL or assessment.settle, "it says what would settle it"


@pytest.mark.parametrize(("module", "name"), [(checks, "RUN_CHECKS"), (evidence, "EVIDENCE_CHECKS")])
def test_every_check_is_needed(removals: list[tuple[Recording, str]], monkeypatch: pytest.MonkeyPatch,
                               module: ModuleType, name: str) -> None:
    """Without any one check, some removal above would no longer be noticed."""
    listed: tuple[Callable[..., Any], ...] = getattr(module, name)
    for check in listed:
        monkeypatch.setattr(module, name, tuple(other for other in listed if other is not check))
        noticed = [words in _text(judge([one], LIMIT)) for one, words in removals]
        assert not all(noticed), f"{check.__name__} is not tested"
        monkeypatch.setattr(module, name, listed)


def test_a_virtual_machine_without_steal_may_pass(tmp_path: Path) -> None:
    assert _judge(tmp_path, _good(marks=("virtual-machine",))).verdict is Verdict.PASS


def test_a_failure_on_a_machine_with_steal_stands_and_names_the_steal(tmp_path: Path) -> None:
    plan = _good(values=_with_one_late(), counters=COUNTERS | {"steal_ns": 10**9})
    assessment = _judge(tmp_path, plan)
    assert assessment.verdict is Verdict.FAIL
    assert any("may be the cause" in caution for caution in assessment.cautions)


def test_an_emulated_machine_never_fails_either(tmp_path: Path) -> None:
    assessment = _judge(tmp_path, _good(values=_with_one_late(), marks=("emulated",)))
    assert assessment.verdict is Verdict.INCONCLUSIVE and assessment.emulated


def test_too_few_samples_say_how_many_more_and_how_long(tmp_path: Path) -> None:
    values = [cpu[:12] for cpu in VALUES]
    finding = _judge(tmp_path, _good(values=values)).judgments[0].findings[0]
    assert finding.more_samples == 29_956 - 24_000
    assert finding.more_ns == (29_956 - 24_000) * 1e6
    assert finding.settle == "6,000 more samples on each CPU (6 s more)"


@pytest.mark.parametrize(("limit_us", "miss_rate", "expected"), [
    (20, 0.01, Verdict.PASS), (5, 0.01, Verdict.FAIL), (15, 0.0008, Verdict.INCONCLUSIVE),
])
def test_a_miss_rate_is_judged_by_the_bound(tmp_path: Path, limit_us: int, miss_rate: float, expected: Verdict) -> None:
    random = np.random.default_rng(3)
    values = [[np.where(random.random(2000) < 0.0007, 16_000, random.integers(4_000, 7_000, 2000))
               for _ in range(30)] for _ in range(2)]
    assert _judge(tmp_path, _good(values=values), Requirement(limit_us * 1000, miss_rate)).verdict is expected


def test_a_miss_rate_may_pass_on_a_machine_with_steal_with_a_caution(tmp_path: Path) -> None:
    plan = _good(counters=COUNTERS | {"steal_ns": 10**6})
    assessment = _judge(tmp_path, plan, Requirement(200_000, 0.01))
    assert assessment.verdict is Verdict.PASS
    assert any("for this host at that time only" in caution for caution in assessment.cautions)


def test_a_good_cpu_does_not_hide_a_bad_one(tmp_path: Path) -> None:
    values = [VALUES[0], [interval + 50_000 for interval in VALUES[1]]]
    assessment = _judge(tmp_path, _good(values=values), Requirement(40_000, 0.6))
    assert assessment.verdict is Verdict.FAIL and "CPU 1" in _text(assessment)


def test_a_failure_on_several_cpus_names_the_worst_and_counts_it_alone(tmp_path: Path) -> None:
    values = [[np.append(i, [300_000] * (cpu + 1)) for i in rows] for cpu, rows in enumerate(VALUES)]
    assert "60 of 60,060 activations on CPU 1 (and 1 more) took longer" in _text(_judge(tmp_path, _good(values=values)))


def test_a_limit_within_a_bucket_decides_nothing(tmp_path: Path) -> None:
    values = [[np.concatenate([interval, [1_000_000] * 30]) for interval in cpu] for cpu in VALUES]
    values[0][0] = np.append(values[0][0], 1_000_400)
    assessment = _judge(tmp_path, _good(values=values), Requirement(1_000_100, 0.001))
    assert assessment.verdict is Verdict.INCONCLUSIVE and "lies within a bucket" in _text(assessment)


def test_missed_periods_are_judged_by_the_corrected_series(tmp_path: Path) -> None:
    path = tmp_path / "run-1.jsonl"
    one = recording(tmp_path, _good(missed=3))
    assert judge([one], LIMIT).verdict is Verdict.PASS, "the corrected series holds the missed periods' delays already"
    assert path.exists()


def test_all_loads_must_pass_and_a_failure_outweighs_a_broken_run(tmp_path: Path) -> None:
    good = recording(tmp_path, _good())
    broken = recording(tmp_path, _good(run_id="broken", load="io", lost=2))
    failed = recording(tmp_path, _good(run_id="failed", load="hdd", values=_with_one_late()))
    assert judge([good, broken], LIMIT).verdict is Verdict.BROKEN
    assert judge([good, broken, failed], LIMIT).verdict is Verdict.FAIL
    assert judge([good, failed], LIMIT).verdict is Verdict.FAIL


def test_a_load_that_was_asked_for_and_is_missing_forbids_a_pass(tmp_path: Path) -> None:
    good = recording(tmp_path, _good())
    assert judge([good], LIMIT, loads=["cpu"]).verdict is Verdict.PASS
    assessment = judge([good], LIMIT, loads=["cpu", "io"])
    assert assessment.verdict is Verdict.INCONCLUSIVE and "load io was to be measured" in _text(assessment)


def _unfit(tmp_path: Path) -> Recording:
    return recording(tmp_path, Plan([], run_id="unfit", outcome="not-applicable", reasons=("no stress-ng",)))


def test_what_is_not_applicable_never_passes(tmp_path: Path) -> None:
    unfit, good = _unfit(tmp_path), recording(tmp_path, _good())
    alone = judge([unfit], LIMIT)
    assert alone.verdict is Verdict.INCONCLUSIVE and alone.all_not_applicable
    assert alone.not_applicable == (("unfit", "no stress-ng"),)
    both = judge([unfit, good], LIMIT)
    assert both.verdict is Verdict.INCONCLUSIVE and not both.all_not_applicable


@pytest.mark.parametrize("requirement", [None, LIMIT])
def test_no_run_is_no_pass(requirement: Requirement | None) -> None:
    assert judge([], requirement).verdict is Verdict.INCONCLUSIVE


def test_runs_of_one_key_are_merged_and_a_broken_one_is_named(tmp_path: Path) -> None:
    halves = [recording(tmp_path, _good(values=[cpu[i::2] for cpu in VALUES], run_id=f"half-{i}")) for i in (0, 1)]
    halves.append(recording(tmp_path, _good(run_id="third")))
    assert judge(halves, LIMIT).verdict is Verdict.PASS
    assert len(judge(halves, LIMIT).judgments) == 1
    halves.append(recording(tmp_path, _good(run_id="fourth", lost=1)))
    assert "run fourth: 4 values lost" in _text(judge(halves, LIMIT))


def test_the_hardest_requirements_that_are_supported_would_pass(tmp_path: Path) -> None:
    one = recording(tmp_path, _good())
    worst = max(int(interval.max()) for cpu in VALUES for interval in cpu)
    never, thousandth, twentieth = judge([one]).supported
    assert worst <= never.limit_ns <= worst * 1.1
    assert len(str(never.limit_ns).rstrip("0")) <= 2
    assert never.limit_ns > thousandth.limit_ns > twentieth.limit_ns
    for supported in (never, thousandth, twentieth):
        assert judge([one], Requirement(supported.limit_ns, supported.miss_rate)).verdict is Verdict.PASS


@pytest.mark.parametrize("outcome", [None, "failed", "aborted", "completed"])
def test_an_empty_recording_never_passes(tmp_path: Path, outcome: str | None) -> None:
    assert _judge(tmp_path, Plan([], outcome=outcome), None).verdict is not Verdict.PASS
    assert _judge(tmp_path, Plan([], outcome=outcome)).verdict is not Verdict.PASS


def test_throughput_is_not_judged(tmp_path: Path) -> None:
    """Transfers of bytes have no latency: beside runs that have they change nothing, alone they settle nothing."""
    timed = recording(tmp_path, _good())
    moved = replace(timed, head=replace(timed.head, series=tuple(
        replace(series, name="transfer", role=Role.THROUGHPUT, bytes=1000) for series in timed.series)))
    assert judge([timed, moved], LIMIT).verdict is Verdict.PASS
    alone = judge([moved], LIMIT)
    assert alone.verdict is Verdict.INCONCLUSIVE
    assert "throughput" in _text(alone)


def test_steal_before_the_run_forbids_a_worst_case_too(tmp_path: Path) -> None:
    """Steal is counted in ticks: a short run may see none on a machine from which time is taken all day."""
    good = recording(tmp_path, _good())
    stolen = replace(good, head=replace(good.head, profile={**good.head.profile, "steal_so_far_ns": 10**9}))
    assert judge([stolen], LIMIT).verdict is Verdict.INCONCLUSIVE
    assert judge([stolen], replace(LIMIT, miss_rate=0.001)).verdict is Verdict.PASS
