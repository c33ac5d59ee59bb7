# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict: every condition of a PASS is removed alone, and the PASS must vanish."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fastenough.analysis import LIFE_SAFETY, Assessment, checks, evidence, judge
from fastenough.analysis.assessment import CheckFinding
from fastenough.analysis.evidence import Evidence
from fastenough.analysis.gate import Limit, requirement_result
from fastenough.model import Requirement, Role, Verdict
from fastenough.recording import Recording, RecordingWriter, read_recording
from tests.support.presence import present
from tests.support.recordings import COUNTERS, PROFILE, Plan, latencies, quiet, recording, write

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
    assert (
        assessment.headline
        == "Fast enough: none of 120,000 wake-ups above 200 µs, at most 1 disturbance per 5 s (95 % confidence)"
    )
    assert "on each CPU, at most 1 disturbance above 200 µs per 20 s (95 % confidence)" in _text(assessment)
    assert assessment.life_safety == LIFE_SAFETY and "no verdict" in LIFE_SAFETY
    assert not assessment.all_not_applicable and assessment.requirements == (LIMIT,)


REMOVED: list[tuple[str, dict[str, Any], Verdict, str]] = [
    ("the end", {"outcome": None}, Verdict.BROKEN, "cut off"),
    ("the outcome", {"outcome": "failed", "reasons": ("disk full",)}, Verdict.BROKEN, "the run failed: disk full"),
    ("completion", {"outcome": "aborted", "reasons": ("SIGINT",)}, Verdict.INCONCLUSIVE, "aborted: SIGINT"),
    ("no loss", {"lost": 1}, Verdict.BROKEN, "4 values lost"),
    (
        "the samples",
        {"values": [[np.array([], dtype=np.int64)] * 30] * 2, "interval_ns": 10**9},
        Verdict.BROKEN,
        "holds no latency",
    ),
    (
        "the load",
        {"load_proof": {"name": "cpu", "ran": False, "reasons": ["stress-ng ended"]}},
        Verdict.BROKEN,
        "load cpu did not run as required: stress-ng ended",
    ),
    ("the proof of the load", {"load_proof": {}}, Verdict.BROKEN, "no proof that load cpu ran"),
    ("the right load", {"load_proof": {"name": "io", "ran": True}}, Verdict.BROKEN, "no proof that load cpu ran"),
    ("the name of the load", {"load": None}, Verdict.INCONCLUSIVE, "does not state its load"),
    (
        "idleness",
        {"load": "none", "load_proof": {"name": "none", "ran": False}},
        Verdict.BROKEN,
        "a load ran, but the recording states none",
    ),
    (
        "a granted setting",
        {"settings": [FIFO, {"name": "priority", "cpu": 1, "requested": 98, "in_effect": 50}]},
        Verdict.BROKEN,
        "priority of cpu 1 was requested as 98 but is 50",
    ),
    (
        "a readable setting",
        {
            "settings": [
                FIFO,
                {"name": "cpu_dma_latency_us", "requested": 0, "in_effect": None, "reason": "no such file"},
            ]
        },
        Verdict.INCONCLUSIVE,
        "could not be read back (no such file)",
    ),
    (
        "a setting that the board has",
        {
            "settings": [
                FIFO,
                {
                    "name": "timer-threads",
                    "requested": 99,
                    "in_effect": None,
                    "reason": "not applicable: no thread runs timers",
                },
            ]
        },
        Verdict.INCONCLUSIVE,
        "was requested as 99, which is not applicable: no thread runs timers",
    ),
    (
        "settings that were kept",
        {
            "settings": [FIFO | {"thread": "timer", "cpu": 1}],
            "end": {"settings": [{"name": "policy", "thread": "timer", "cpu": 1, "in_effect": "other"}]},
        },
        Verdict.BROKEN,
        "policy of thread timer of cpu 1 from fifo to other",
    ),
    (
        "a steady clock",
        {"series": {"clock": "CLOCK_REALTIME"}, "counters": COUNTERS | {"clock_step_ns": -5}},
        Verdict.BROKEN,
        "clock, which timed this run, was set",
    ),
    (
        "a clock that nobody set",
        {"series": {"clock": "realtime"}, "counters": COUNTERS | {"clock_sets": 1}},
        Verdict.BROKEN,
        "clock, which timed this run, was set",
    ),
    ("CPU time", {"counters": COUNTERS | {"throttled": 1}}, Verdict.BROKEN, "RT throttling"),
    (
        "CPU time, told by an event",
        {"counters": COUNTERS | {"throttled": None}, "events": [{"kind": "throttled"}]},
        Verdict.BROKEN,
        "RT throttling",
    ),
    ("being awake", {"counters": COUNTERS | {"suspended_ns": 3 * 10**9}}, Verdict.BROKEN, "suspended for 3 s"),
    (
        "its quota",
        {"counters": COUNTERS | {"cgroup_throttled": 1}},
        Verdict.BROKEN,
        "used up its CPU quota in 1 period;",
    ),
    (
        "a cool machine",
        {"counters": COUNTERS | {"thermal_throttled": 3}},
        Verdict.INCONCLUSIVE,
        "thermal throttling slowed the CPUs 3 times",
    ),
    (
        "one frequency",
        {"counters": COUNTERS | {"frequency_limited": 2}},
        Verdict.INCONCLUSIVE,
        "a CPU's frequency limit was lower than at the start in 2 intervals",
    ),
    (
        "a frequency that was watched",
        {"counters": COUNTERS | {"thermal_throttled": None, "frequency_limited": None}},
        Verdict.INCONCLUSIVE,
        "could not be read: intervals with a lower CPU frequency limit than at the start",
    ),
    (
        "its CPU",
        {
            "settings": [FIFO, {"name": "affinity", "cpu": 1, "requested": "1", "in_effect": "1"}],
            "counters": COUNTERS | {"migrations": 2},
        },
        Verdict.BROKEN,
        "moved to another CPU (2 times)",
    ),
    ("a policy", {"settings": [FIFO | {"requested": None}]}, Verdict.INCONCLUSIVE, "no scheduling policy was"),
    ("a readable counter", {"counters": COUNTERS | {"throttled": None}}, Verdict.INCONCLUSIVE, "could not be read"),
    (
        "values all the time",
        {
            "head": {"probe": "made-up"},
            "series": {"period_ns": None, "corrected": False},
            "values": [[*cpu[:20], *[cpu[0][:0]] * 10] for cpu in VALUES],
            "interval_ns": 2 * 10**9,
        },
        Verdict.INCONCLUSIVE,
        "has no value in 20 s of the 60 s",
    ),
    (
        "each interval",
        {"views": ("wakeup_corrected",), "missing": 29},
        Verdict.BROKEN,
        "wakeup_corrected on CPU 0 is missing from 1 interval of 30",
    ),
    (
        "every latency",
        {"views": ("wakeup_corrected",), "first_series": {"role": "diagnostic", "name": "x"}},
        Verdict.BROKEN,
        "the probe timer does not record x on CPU 0, declared as for diagnostic",
    ),
    ("the due periods", {"interval_ns": 4 * 10**9}, Verdict.BROKEN, "of about 120,000 due periods"),
    (
        "every act",
        {"plain_only": 900_000},
        Verdict.BROKEN,
        "wakeup_corrected on CPU 0 lacks 1 value of the series that it corrects",
    ),
    (
        "a measurement of our own",
        {"marks": ("imported",)},
        Verdict.INCONCLUSIVE,
        "imported from test, which records no missed activations",
    ),
    ("silicon", {"marks": ("emulated",)}, Verdict.INCONCLUSIVE, "emulated: no verdict"),
    (
        "a low maximum",
        {"values": _with_one_late()},
        Verdict.FAIL,
        "1 of 60,001 activations on CPU 1 exceeded 200 µs",
    ),
    ("one period kept", {"views": ("wakeup",), "missed": 1}, Verdict.FAIL, "1 of 60,001"),
    (
        "enough time",
        {"values": [cpu[:7] for cpu in VALUES]},
        Verdict.INCONCLUSIVE,
        "requires at most 1 disturbance per 5 s",
    ),
    (
        "the n that was planned",
        {"head": {"planned_n": 65_000}},
        Verdict.INCONCLUSIVE,
        "run run-1 ended after 60,000 of 65,000 planned activations",
    ),
    ("time", {"period_ns": 100_000}, Verdict.INCONCLUSIVE, "6 s measured"),
    (
        "a machine of one's own",
        {"counters": COUNTERS | {"steal_ns": 10**7}},
        Verdict.INCONCLUSIVE,
        "no worst-case verdict in a virtual machine",
    ),
    (
        "known steal",
        {"marks": ("virtual-machine",), "counters": COUNTERS | {"steal_ns": None}},
        Verdict.INCONCLUSIVE,
        "time taken by the hypervisor",
    ),
]


Late = Callable[[int], int]


def _late(late: Late, intervals: int = 60) -> list[Any]:
    """Of the 1,000 values of each second so many of 90 us, by its number."""
    rows = [
        np.array([1000] * 500 + [90_000] * late(second) + [1000] * (500 - late(second))) for second in range(intervals)
    ]
    return [rows, rows]


def _rate(late: Late, **change: Any) -> dict[str, Any]:
    """Order known, as probes record it."""
    return {"values": _late(late), "rise_k": 3, "limit_ns": 50_000} | change


def _two_levels() -> list[Any]:
    """About five values of 60 us in each second, and in the last 14 seconds one of 90 us."""
    rows = np.full((60, 1000), 1000)
    for row, late in zip(rows, np.random.default_rng(1).poisson(5, 60), strict=True):
        row[10 : 10 + 20 * late : 20] = 60_000
    rows[-14:, 5] = 90_000
    return [list(rows)] * 2


RATE = Requirement(50_000, 0.001)
RARE: list[tuple[str, dict[str, Any], Requirement, Verdict, str]] = [
    (
        "an edge from the begin on",
        {
            "values": [[np.full(200, 0), *[np.full(1000, second % 7) for second in range(59)]]],
            "views": ("period-jitter",),
            "interval_ns": 10**9,
            "head": {"probe": "periodic", "instrument": {"name": "fastenough gauge"}, "parameters": {}},
        },
        Requirement(200_000, 0.01, longest_burst=1),
        Verdict.INCONCLUSIVE,
        "no edge in the first 800 ms",
    ),
    (
        "a rate within what is allowed",
        _rate(lambda second: 1 + second % 3),
        RATE,
        Verdict.FAIL,
        "120 of 60,000 activations on CPU 0 (and on 1 more CPU) exceeded 50 µs; 1 in 1,000 allowed, exceeded at 95 %",
    ),
    (
        "a rate well within it",
        _rate(lambda second: int(second % 5 > 0)),
        RATE,
        Verdict.INCONCLUSIVE,
        "(95 % confidence); 1 in 1,000 allowed",
    ),
    (
        "ten disturbances",
        _rate(lambda second: 20 * (second == 7)),
        RATE,
        Verdict.INCONCLUSIVE,
        "1 disturbance in 60 s: at most 1 disturbance above 50 µs per 8.08 s (95 % confidence); 1 in 1,000 allowed; "
        "fewer than 10 disturbances: no rate can be derived",
    ),
    (
        "disturbances apart",
        _rate(lambda second: 60 * (second == 7) + (second % 5 == 0)),
        RATE,
        Verdict.INCONCLUSIVE,
        "these are so close together that they count as 1; fewer than 10",
    ),
    (
        "the longest burst declared",
        _rate(lambda second: 20 * (second == 7)),
        replace(RATE, longest_burst=5),
        Verdict.INCONCLUSIVE,
        "one disturbance may have delayed 20 activations; the declared longest burst is 5",
    ),
    (
        "samples enough for the longest burst declared",
        _rate(lambda second: 20 * (second == 7)),
        replace(RATE, longest_burst=20),
        Verdict.INCONCLUSIVE,
        "1 in 1,000 allowed",
    ),
    (
        "steadiness",
        _rate(lambda second: 4 * (second > 40)),
        replace(RATE, miss_rate=0.01),
        Verdict.INCONCLUSIVE,
        "not stationary",
    ),
    (
        "short clusters",
        _rate(lambda second: int(6 <= second < 18 or 30 <= second < 42)),
        RATE,
        Verdict.INCONCLUSIVE,
        "disturbances up to 7 s apart depend on each other (test at 1 %)",
    ),
    (
        "disturbances that are independent",
        _rate(lambda second: int(second in range(20, 30, 2))),
        replace(RATE, longest_burst=1),
        Verdict.INCONCLUSIVE,
        "one cluster of them may have delayed 5 activations; the declared longest burst is 1",
    ),
    (
        "steadiness above a higher limit",
        {"values": _two_levels(), "rise_k": 3, "limit_ns": 50_000},
        replace(RATE, miss_rate=0.02),
        Verdict.INCONCLUSIVE,
        "at the higher limit 61.439 µs, where a PASS needs the same evidence: on CPU 0, the rate of exceedances",
    ),
]
"""The same for a miss rate, each with its requirement."""


@pytest.fixture(scope="module")
def removals(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Recording, Requirement, Verdict, str]]:
    """Per removal the recording, what is required, the verdict, and the words that must be in the reasons."""
    folder = tmp_path_factory.mktemp("removals")
    return [
        (recording(folder, _good(**change)), required, verdict, words)
        for _, change, required, verdict, words in (
            *((name, change, LIMIT, verdict, words) for name, change, verdict, words in REMOVED),
            *RARE,
        )
    ]


Removals = list[tuple[Recording, Requirement, Verdict, str]]


NAMES_OF_CASES = [*(case[0] for case in REMOVED), *(case[0] for case in RARE)]


@pytest.mark.check
@pytest.mark.parametrize("which", range(len(NAMES_OF_CASES)), ids=NAMES_OF_CASES)
def test_without_it_there_is_no_pass(removals: Removals, which: int) -> None:
    one, required, expected, words = removals[which]
    assessment = judge([one], required)
    assert assessment.verdict is expected
    assert words in _text(assessment)
    assert expected is Verdict.FAIL or assessment.next_steps, "it says what would settle it"


CHECKS: list[tuple[ModuleType, str]] = [(checks, "RUN_CHECKS"), (evidence, "EVIDENCE_CHECKS")]
Check = Callable[..., Iterator[CheckFinding]]


def _noting(check: Check, noted: set[Check]) -> Check:
    """The same check, which is added to ``noted`` where it finds something."""

    @wraps(check)
    def noting(subject: Recording | Evidence) -> Iterator[CheckFinding]:
        for finding in check(subject):
            noted.add(check)
            yield finding

    return noting


@pytest.fixture(scope="module")
def found_by(removals: Removals) -> list[set[Check]]:
    """Per removal the checks that find something in it: no other check can change its reasons."""
    found: list[set[Check]] = []
    with pytest.MonkeyPatch.context() as patch:
        listed = [(module, name, getattr(module, name)) for module, name in CHECKS]
        for one, required, _, _ in removals:
            noted: set[Check] = set()
            for module, name, of_module in listed:
                patch.setattr(module, name, tuple(_noting(check, noted) for check in of_module))
            judge([one], required)
            found.append(noted)
    return found


@pytest.mark.check
@pytest.mark.parametrize(("module", "name"), CHECKS)
def test_every_check_is_needed(
    removals: Removals, found_by: list[set[Check]], monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str
) -> None:
    """Without any one check, some removal above would no longer be noticed."""
    listed: tuple[Check, ...] = getattr(module, name)
    for check in listed:
        monkeypatch.setattr(module, name, tuple(other for other in listed if other is not check))
        affected = (removal for removal, found in zip(removals, found_by, strict=True) if check in found)
        noticed = (words in _text(judge([one], required)) for one, required, _, words in affected)
        assert not all(noticed), f"{check.__name__} is not tested"
        monkeypatch.setattr(module, name, listed)


def test_few_acts_without_a_period_do_not_say_never_however_long_they_take(tmp_path: Path) -> None:
    for count, expected in ((12, Verdict.INCONCLUSIVE), (30, Verdict.PASS)):
        one = recording(tmp_path, _good(values=[cpu[:count] for cpu in VALUES]))
        acts = replace(
            one,
            head=replace(
                one.head,
                probe="made-up",
                series=tuple(replace(series, period_ns=None, corrected=False) for series in one.series),
            ),
        )
        assessment = judge([acts], replace(LIMIT, return_time_ns=10**9))
        assert assessment.verdict is expected
        assert (expected is Verdict.PASS) == ("are too few for" not in _text(assessment))


@pytest.mark.parametrize(("planned", "expected"), [(65_000, Verdict.INCONCLUSIVE), (60_000, Verdict.PASS)])
def test_a_missed_period_of_a_corrected_series_counts_once(planned: int, expected: Verdict, tmp_path: Path) -> None:
    """Its charge is among the 60,000 values."""
    values = [[np.append(interval[:-1], 10_000_000) for interval in cpu] for cpu in VALUES]
    plan = _good(values=values, missed=5_000, head={"planned_n": planned})
    assert _judge(tmp_path, plan, Requirement(10**9)).verdict is expected


@pytest.mark.check
@pytest.mark.parametrize(("fact", "counter"), [("hypervisor", "steal_ns"), ("cpu_quota", "cgroup_throttled")])
def test_an_unknown_machine_needs_its_counter(fact: str, counter: str, tmp_path: Path) -> None:
    """An older recording lacks the fact, or it was not understood; another reason for its absence is an answer."""
    unknown: list[dict[str, Any]] = [
        {name: value for name, value in PROFILE.items() if name != fact},
        PROFILE | {"absent": {fact: "not understood: KeyError('x')"}},
    ]
    known = [PROFILE, PROFILE | {"absent": {fact: "none is mounted here"}}]
    for value, expected in ((None, Verdict.INCONCLUSIVE), (0, Verdict.PASS)):
        run = recording(tmp_path, _good(counters=COUNTERS | {counter: value}))
        runs = [replace(run, head=replace(run.head, profile=profile)) for profile in (*unknown, *known)]
        verdicts = [judge([run], LIMIT).verdict for run in runs]
        assert verdicts == [expected, expected, Verdict.PASS, Verdict.PASS]


def test_a_virtual_machine_without_steal_may_pass(tmp_path: Path) -> None:
    assert _judge(tmp_path, _good(marks=("virtual-machine",))).verdict is Verdict.PASS


def test_a_failure_on_a_machine_with_steal_stands_and_names_the_steal(tmp_path: Path) -> None:
    plan = _good(values=_with_one_late(), counters=COUNTERS | {"steal_ns": 10**9})
    assessment = _judge(tmp_path, plan)
    assert assessment.verdict is Verdict.FAIL
    assert any("may have caused the failure" in caution for caution in assessment.cautions)


def test_an_emulated_machine_never_fails_either(tmp_path: Path) -> None:
    assessment = _judge(tmp_path, _good(values=_with_one_late(), marks=("emulated",)))
    assert assessment.verdict is Verdict.INCONCLUSIVE and assessment.emulated


def test_too_few_samples_say_how_many_more_and_how_long(tmp_path: Path) -> None:
    values = [cpu[:12] for cpu in VALUES]
    [finding] = _judge(tmp_path, _good(values=values), replace(LIMIT, return_time_ns=10**10)).judgments[0].findings
    assert (finding.more_samples, finding.more_ns) == (6_000, 6e9)
    assert finding.next_step == "measure 6 s longer under this load"
    enough = [[*cpu[:12], *cpu[:3]] for cpu in VALUES]
    assert _judge(tmp_path, _good(values=enough), replace(LIMIT, return_time_ns=10**10)).verdict is Verdict.PASS


@pytest.mark.check
@pytest.mark.parametrize(
    ("limit_us", "miss_rate", "longest", "expected"),
    [
        (15, 0.0015, None, Verdict.PASS),
        (5, 0.01, None, Verdict.FAIL),
        (15, 0.0008, None, Verdict.INCONCLUSIVE),
        (20, 0.01, None, Verdict.INCONCLUSIVE),
        (20, 0.01, 50, Verdict.PASS),
    ],
)
def test_a_miss_rate_is_judged_by_the_bound(
    tmp_path: Path, limit_us: int, miss_rate: float, longest: int | None, expected: Verdict
) -> None:
    random = np.random.default_rng(3)
    values = [
        [np.where(random.random(2000) < 0.0007, 16_000, random.integers(4_000, 7_000, 2000)) for _ in range(30)]
        for _ in range(2)
    ]
    required = Requirement(limit_us * 1000, miss_rate, longest_burst=longest)
    assert _judge(tmp_path, _good(values=values), required).verdict is expected


def test_advised_samples_are_said_to_decide_only_at_the_measured_rate(tmp_path: Path) -> None:
    assessment = _judge(tmp_path, _good(), Requirement(200_000, 0.00003, longest_burst=1))
    assert assessment.verdict is Verdict.INCONCLUSIVE
    (step,) = assessment.next_steps
    assert "take about " in step and " on each CPU (" in step
    assert "a verdict is then likely if the rate is as measured, and less likely if it is closer to the " in step


def test_how_much_longer_is_said_once(tmp_path: Path) -> None:
    """A run may be too short for never, and too short at all: the longer of the two settles both."""
    said = _judge(tmp_path, _good(values=[cpu[:3] for cpu in VALUES]))
    assert len([finding for finding in said.judgments[0].findings if finding.more_ns]) == 2
    assert [settle for settle in said.next_steps if "longer" in settle] == [
        "load cpu: measure 9 s longer under this load"
    ]


@pytest.mark.check
@pytest.mark.parametrize(
    ("lossy", "kinds", "said"),
    [
        (6, 6, "load 0, load 1, load 2, load 3, load 4, load 5: 4 values lost"),
        (8, 8, "all 8 kinds of runs: 4 values lost"),
        (7, 9, "all kinds of runs except load 7, load 8: 4 values lost"),
        (7, 15, "load 0, and 6 of the 14 other kinds of runs: 4 values lost"),
    ],
)
def test_what_holds_for_many_is_read_at_a_glance(tmp_path: Path, lossy: int, kinds: int, said: str) -> None:
    runs = [
        recording(
            tmp_path,
            _good(
                run_id=f"run-{kind}",
                load=str(kind),
                lost=int(kind < lossy),
                values=[[interval + kind for interval in cpu] for cpu in VALUES],
                load_proof={"name": str(kind), "ran": True},
            ),
        )
        for kind in range(kinds)
    ]
    assert any(reason.startswith(said) for reason in judge(runs, LIMIT).reasons)


def test_a_miss_rate_may_pass_on_a_machine_with_steal_with_a_caution(tmp_path: Path) -> None:
    plan = _good(counters=COUNTERS | {"steal_ns": 10**6})
    assessment = _judge(tmp_path, plan, Requirement(200_000, 0.01, longest_burst=100))
    assert assessment.verdict is Verdict.PASS
    assert any("only to this host at that time" in caution for caution in assessment.cautions)


@pytest.mark.parametrize(
    ("late", "longest", "rests"),
    [
        (lambda second: 0, 50, True),
        (lambda second: 20 * (second == 7), 20, True),
        (lambda second: 5, 50, False),
    ],
)
def test_a_pass_that_rests_on_a_declared_burst_says_so(tmp_path: Path, late: Late, longest: int, rests: bool) -> None:
    """In the headline, the reasons and the caveats; a rate from ten disturbances on rests on what was measured."""
    required = Requirement(50_000, 0.02, longest_burst=longest)
    assessment = _judge(tmp_path, _good(**_rate(late)), required)
    assert assessment.verdict is Verdict.PASS
    assert {one.declared_burst for judgment in assessment.judgments for one in judgment.evidence} == {
        longest if rests else None
    }
    said = f"delays more than {longest} activations"
    assert (
        said in assessment.headline,
        f"longest burst of {longest}" in assessment.reasons[0],
        any(said in caution for caution in assessment.cautions),
    ) == (rests,) * 3


def _single_late(*numbers: int, seed: int = 5) -> dict[str, Any]:
    """60 s of 2,000 values each; of each CPU so many single late values."""
    values = latencies(seed, intervals=60, tail_us=1.0)
    for rows, number in zip(values, numbers, strict=True):
        for at in np.linspace(999, 60 * 2000 - 1, number, dtype=np.int64):
            rows[at // 2000][at % 2000] = 300_000
    return {"values": values, "rise_k": 3, "limit_ns": 200_000}


@pytest.mark.check
@pytest.mark.parametrize(("few", "bound"), [(3, "1 in 1,090"), (0, "1 in 1,340")])
def test_a_pass_states_the_weakest_bound_of_all_cpus(tmp_path: Path, few: int, bound: str) -> None:
    """CPU 0 has enough disturbances for a rate; that of CPU 1 rests on the declared longest burst."""
    assessment = _judge(tmp_path, _good(**_single_late(40, few)), Requirement(200_000, 0.001, longest_burst=10))
    assert assessment.verdict is Verdict.PASS
    assert [result.declared_burst for result in assessment.judgments[0].evidence] == [None, 10]
    assert bound in assessment.reasons[0] and "CPU 1 relies on the declared longest burst of 10" in _text(assessment)
    assert f"CPU {int(few > 0)}, " in _text(assessment) and "each" not in _text(assessment)
    assert "as declared, no disturbance delays more than 10 activations" in assessment.headline


@pytest.mark.check
@pytest.mark.parametrize(("longest", "rests"), [(10, True), (12, True), (9, False), (1, False)])
def test_a_rate_that_rests_on_a_declared_burst_says_so(tmp_path: Path, longest: int, rests: bool) -> None:
    """60 single late values and a burst of 10, which allow for a much longer one, and may refute the declaration."""
    late = _single_late(60, 60)
    for rows in late["values"]:
        rows[30][100:110] = 300_000
    required = Requirement(200_000, 0.004)
    assert _judge(tmp_path, _good(**late), required).verdict is Verdict.INCONCLUSIVE
    assessment = _judge(tmp_path, _good(**late, run_id="run-2"), replace(required, longest_burst=longest))
    assert assessment.verdict is (Verdict.PASS if rests else Verdict.INCONCLUSIVE)
    evidence_per_cpu = assessment.judgments[0].evidence
    assert all(result.upper is not None for result in evidence_per_cpu)
    assert {result.declared_burst for result in evidence_per_cpu} == {longest if rests else None}
    assert (
        f"as declared, no disturbance delays more than {longest} activations" in assessment.headline,
        f"longest burst of {longest}" in assessment.reasons[0],
        any("PASS rests on a declaration" in caution for caution in assessment.cautions),
    ) == (rests,) * 3


@pytest.mark.check
def test_a_limit_has_the_reasons_of_its_own_runs(tmp_path: Path) -> None:
    """One load passes by a declaration; another one fails."""
    required = Requirement(200_000, 0.001, longest_burst=10)
    plans = [_good(**_single_late(40, 3)), _good(**_single_late(4000, 4000, seed=6), run_id="run-2", load="io")]
    runs = [recording(tmp_path, plan) for plan in plans]
    assessment = judge(runs, required)
    passed, failed = (
        requirement_result(Limit("limits.toml:1", required), judgment, [run])
        for judgment, run in zip(assessment.judgments, runs, strict=True)
    )
    assert (passed.verdict, failed.verdict) == (Verdict.PASS, Verdict.FAIL)
    assert "longest burst of 10" in passed.reason and "load io" not in passed.reason
    assert "4,000 of 120,000" in failed.reason


@pytest.mark.check
@pytest.mark.parametrize("late", [lambda second: 0, lambda second: 3 * (second == 7), lambda second: 5 * (second > 50)])
@pytest.mark.parametrize("declared", [None, 2])
def test_no_advice_asks_for_a_declaration_that_suits_the_data(tmp_path: Path, late: Late, declared: int | None) -> None:
    required = Requirement(50_000, 0.00005, longest_burst=declared)
    assessment = _judge(tmp_path, _good(**_rate(late)), required)
    assert assessment.verdict is Verdict.INCONCLUSIVE and assessment.next_steps
    assert "--longest-burst" not in " ".join(assessment.next_steps)


@pytest.mark.check
@pytest.mark.parametrize(("longest", "told"), [(None, True), (4, True), (5, False)])
def test_a_rate_that_passes_says_what_it_does_not_hold_for(tmp_path: Path, longest: int | None, told: bool) -> None:
    required = Requirement(50_000, 0.02, longest_burst=longest)
    assessment = _judge(tmp_path, _good(**_rate(lambda second: 5)), required)
    assert assessment.verdict is Verdict.PASS
    said = [caution for caution in assessment.cautions if "--longest-burst" in caution]
    assert told is bool(said)
    assert not told or "may still begin at 1 in 20,000 activations (95 % confidence)" in said[0]


def test_a_good_cpu_does_not_hide_a_bad_one(tmp_path: Path) -> None:
    values = [VALUES[0], [interval + 50_000 for interval in VALUES[1]]]
    assessment = _judge(tmp_path, _good(values=values), Requirement(40_000, 0.6))
    assert assessment.verdict is Verdict.FAIL and "CPU 1" in _text(assessment)


def test_a_failure_on_several_cpus_names_the_worst_and_counts_it_alone(tmp_path: Path) -> None:
    values = [[np.append(i, [300_000] * (cpu + 1)) for i in rows] for cpu, rows in enumerate(VALUES)]
    assert "60 of 60,060 activations on CPU 1 (and on 1 more CPU) exceeded 200 µs" in _text(
        _judge(tmp_path, _good(values=values))
    )


def test_too_few_intervals_for_a_rate_are_not_called_too_few_disturbances(tmp_path: Path) -> None:
    """Twenty-one disturbances are more than ten; the number of the other CPU is smaller."""
    rows = [np.where(np.arange(1_000) % apart < apart - 1, 1_000, 60_000) for apart in (150, 130)]
    values = [[row] * 3 for row in rows]
    plan = _good(values=values, rise_k=3, limit_ns=50_000)
    assessment = _judge(tmp_path, plan, replace(RATE, miss_rate=0.009))
    assert "on each CPU, up to 21 disturbances in 3 s" in _text(assessment)
    assert "unknown (3 intervals recorded, at least 10 required): no rate can be derived" in _text(assessment)
    assert "fewer than 10 disturbances" not in _text(assessment)
    assert any("at least 10 intervals were recorded" in step for step in assessment.next_steps)


def test_a_limit_within_a_bucket_decides_nothing(tmp_path: Path) -> None:
    values = [[np.concatenate([interval, [1_000_000] * 30]) for interval in cpu] for cpu in VALUES]
    values[0][0] = np.append(values[0][0], 1_000_400)
    assessment = _judge(tmp_path, _good(values=values), Requirement(1_000_100, 0.001))
    assert assessment.verdict is Verdict.INCONCLUSIVE and "lies within a bucket" in _text(assessment)


def test_missed_periods_are_judged_by_the_corrected_series(tmp_path: Path) -> None:
    path = tmp_path / "run-1.jsonl"
    values = [[np.append(interval[:-1], 3_500_000) for interval in cpu] for cpu in VALUES]
    one = recording(tmp_path, _good(values=values, missed=3))
    assert judge([one], Requirement(4_000_000)).verdict is Verdict.PASS, (
        "the corrected series holds the missed periods' delays already"
    )
    assert path.exists()


@pytest.mark.parametrize(
    ("missed", "latest_ns", "expected"),
    [(0, 7, Verdict.PASS), (5, 7, Verdict.BROKEN), (5, 700_000, Verdict.BROKEN), (5, 1_000_000, Verdict.PASS)],
)
def test_a_missed_period_needs_an_act_that_late(missed: int, latest_ns: int, expected: Verdict, tmp_path: Path) -> None:
    """The period is 1 ms."""
    values = [[np.full(1000, 7, dtype=np.int64) for _ in range(40)]]
    values[0][3][5] = latest_ns
    plan = Plan(values, load="cpu", missed=missed)
    assert _judge(tmp_path, plan, Requirement(2_000_000)).verdict is expected
    warm = recording(tmp_path, replace(plan, head={"parameters": {"warm_up_ns": 10**9}}))
    assert judge([warm], Requirement(2_000_000)).verdict is Verdict.PASS


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
    assert assessment.verdict is Verdict.INCONCLUSIVE and "no run has load io" in _text(assessment)


def _on_kernel(tmp_path: Path, number: int, release: str, load: str, probe: str = "timer") -> Recording:
    profile = PROFILE | {"kernel": PROFILE["kernel"] | {"release": release}}
    run_id = f"run-{number}"
    head = {"profile": profile, "probe": probe}
    return recording(tmp_path, Plan(quiet(run_id), run_id=run_id, load=load, head=head))


def _gaps(assessment: Assessment) -> list[str]:
    return [reason for reason in assessment.reasons if "was not measured under load" in reason]


def test_each_kernel_must_be_measured_under_each_load(tmp_path: Path) -> None:
    """A resumed campaign may span an upgrade of the kernel."""
    idle, busy = _on_kernel(tmp_path, 1, "6.1.0-30", "none"), _on_kernel(tmp_path, 2, "6.1.0-31", "own")
    assessment = judge([idle, busy], LIMIT)
    assert assessment.verdict is Verdict.INCONCLUSIVE
    gaps = _gaps(assessment)
    assert len(gaps) == 2 and all("'6.1.0-30'" in gap and "'6.1.0-31'" in gap for gap in gaps)
    complete = [idle, busy, _on_kernel(tmp_path, 3, "6.1.0-30", "own"), _on_kernel(tmp_path, 4, "6.1.0-31", "none")]
    assert judge(complete, LIMIT).verdict is Verdict.PASS


def test_loads_are_those_of_the_probe_that_has_the_limit(tmp_path: Path) -> None:
    idle = _on_kernel(tmp_path, 1, "6.1.0-30", "none")
    other_probe = _on_kernel(tmp_path, 2, "6.1.0-30", "own", "semaphore")
    both = [_on_kernel(tmp_path, number, "6.1.0-31", load) for number, load in ((3, "none"), (4, "own"))]
    assert len(_gaps(judge([idle, other_probe, *both], LIMIT, probe="timer"))) == 1
    unlimited = _on_kernel(tmp_path, 5, "6.1.0-32", "none", "semaphore")
    complete = [idle, _on_kernel(tmp_path, 6, "6.1.0-30", "own"), *both, unlimited]
    assert judge(complete, LIMIT, probe="timer").verdict is Verdict.PASS
    assert not _gaps(judge([idle, both[1]])), "nothing is required of runs without a limit"


def test_a_run_without_a_profile_may_be_of_the_system_of_another(tmp_path: Path) -> None:
    idle = _on_kernel(tmp_path, 1, "6.1.0-30", "none")
    unknown = recording(tmp_path, _good(run_id="unknown", load="own", head={"profile": None}))
    assert not _gaps(judge([idle, unknown], LIMIT))


def _unfit(tmp_path: Path) -> Recording:
    return recording(tmp_path, Plan([], run_id="unfit", outcome="not-applicable", reasons=("no stress-ng",)))


def test_what_is_not_applicable_never_passes(tmp_path: Path) -> None:
    unfit, good = _unfit(tmp_path), recording(tmp_path, _good())
    alone = judge([unfit], LIMIT)
    assert alone.verdict is Verdict.INCONCLUSIVE and alone.all_not_applicable
    assert alone.not_applicable == (("unfit", "no stress-ng"),)
    said = "timer by linux-user (load none, stock; run unfit) was not applicable here: no stress-ng"
    assert said in alone.reasons, "a reader knows the plan's runs by what they measure"
    alike = [
        recording(tmp_path, Plan([], run_id=name, outcome="not-applicable", reasons=(reason,)))
        for name, reason in (("b", "no stress-ng"), ("c", "no pins"), *((name, "no stress-ng") for name in "de"))
    ]
    gaps = [reason for reason in judge([unfit, *alike], LIMIT).reasons if "not applicable here" in reason]
    assert gaps == [
        said.replace(" was", " and 3 more runs were"),
        said.replace("unfit", "c").replace("stress-ng", "pins"),
    ]
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


def test_a_finding_of_several_runs_is_stated_once(tmp_path: Path) -> None:
    parts = [[cpu[i::4] for cpu in VALUES] for i in range(4)]
    good, *lossy = (
        recording(tmp_path, _good(values=part, run_id=f"r{i}", lost=min(i, 1))) for i, part in enumerate(parts)
    )
    text = _text(judge([good, *lossy], LIMIT))
    assert "run r1 and 2 more runs: 4 values lost" in text and text.count("values lost") == 1
    assert "all 3 runs: 4 values lost" in _text(judge(lossy, LIMIT))


def test_the_hardest_requirements_that_are_supported_would_pass(tmp_path: Path) -> None:
    one = recording(tmp_path, _good())
    worst = max(int(interval.max()) for cpu in VALUES for interval in cpu)
    never, thousandth, twentieth = judge([one]).supported
    assert worst <= never.limit_ns <= worst * 1.1
    assert len(str(never.limit_ns).rstrip("0")) <= 2
    assert never.limit_ns > thousandth.limit_ns > twentieth.limit_ns
    for supported in (never, thousandth, twentieth):
        assert judge([one], Requirement(supported.limit_ns, supported.miss_rate)).verdict is Verdict.PASS


NO_SUPPORT: dict[str, dict[str, Any]] = {
    "throttled": {"counters": COUNTERS | {"throttled": 3}},
    "suspended": {"counters": COUNTERS | {"suspended_ns": 10**9}},
    "failed": {"outcome": "failed"},
    "without an end": {"outcome": None},
    "not real-time": {"marks": ("not-real-time",), "settings": ({**FIFO, "in_effect": "other"},)},
}


@pytest.mark.check
@pytest.mark.parametrize("change", NO_SUPPORT.values(), ids=NO_SUPPORT)
def test_data_that_cannot_be_trusted_support_no_limit(tmp_path: Path, change: dict[str, Any]) -> None:
    assert len(_judge(tmp_path, _good(), None).supported) == 3
    assert _judge(tmp_path, _good(**change), None).supported == ()


def test_one_cpu_with_missed_periods_of_unknown_latency_leaves_no_bound(tmp_path: Path) -> None:
    """CPU 1 has 5 of them, and more activations than CPU 0, which has none."""
    values = [[interval[:1990] for interval in VALUES[0]], VALUES[1]]
    path = write(tmp_path / "one", _good(values=values, views=("jitter",), missed=5, interval_ns=2 * 10**9))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines[1:]:
        line["series"][0]["missed"] = 0
    with path.open("wb") as stream:
        writer = RecordingWriter(stream)
        for line in lines:
            writer.line(line)
    (judgment,) = judge([read_recording(path)]).judgments
    assert (judgment.uncharged, judgment.bound.n) == (5, 0)


@pytest.mark.parametrize("outcome", [None, "failed", "aborted", "completed"])
def test_an_empty_recording_never_passes(tmp_path: Path, outcome: str | None) -> None:
    assert _judge(tmp_path, Plan([], outcome=outcome), None).verdict is not Verdict.PASS
    assert _judge(tmp_path, Plan([], outcome=outcome)).verdict is not Verdict.PASS


def test_throughput_is_not_judged(tmp_path: Path) -> None:
    """Transfers of bytes have no latency: beside runs that have they change nothing, alone they settle nothing."""
    timed = recording(tmp_path, _good())
    moved = replace(
        timed,
        head=replace(
            timed.head, series=tuple(replace(series, role=Role.THROUGHPUT, bytes=1000) for series in timed.series)
        ),
    )
    assert judge([timed, moved], LIMIT).verdict is Verdict.PASS
    alone = judge([moved], LIMIT)
    assert alone.verdict is Verdict.INCONCLUSIVE
    assert "throughput" in _text(alone)


def test_steal_before_the_run_forbids_a_worst_case_too(tmp_path: Path) -> None:
    """Steal is counted in ticks: a short run may see none on a machine from which time is taken all day."""
    good = recording(tmp_path, _good())
    profile = {**present(good.head.profile, "profile"), "steal_so_far_ns": 10**9}
    stolen = replace(good, head=replace(good.head, profile=profile))
    assert judge([stolen], LIMIT).verdict is Verdict.INCONCLUSIVE
    assert judge([stolen], replace(LIMIT, miss_rate=0.001, longest_burst=10)).verdict is Verdict.PASS
