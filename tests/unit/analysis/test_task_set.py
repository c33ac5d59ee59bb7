# SPDX-License-Identifier: GPL-2.0-or-later
"""An application's tasks with the terms of recordings whose truth is known: what is said, and that it is never PASS."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fastenough.analysis import Assessment, judge
from fastenough.analysis.response_time import DeadlineResult, PeriodicTask
from fastenough.analysis.task_set import (
    NOT_DEMONSTRATED,
    SCHEDULABLE,
    TaskSet,
    answer_of,
    impossible,
    judged_with,
    measured_of,
)
from fastenough.cli.assess import print_tasks
from fastenough.jobs.assess import Question, judge_and_report
from fastenough.jobs.task_set import task_plan, task_set_of
from fastenough.model import BadInput, Outcome, Requirement, Verdict
from fastenough.recording import Recording
from fastenough.store import Store
from tests.support.cli_calls import command_line
from tests.support.recordings import Plan, recording

LOOP = "name=loop period=1ms compute=200us deadline=800us"
SLOW = "name=slow period=10ms compute=2ms"


def _wakeups(*cpus: Sequence[int], run_id: str = "timer", limit_ns: int | None = None, **change: Any) -> Plan:
    """Of each CPU these values again and again, 20,000 in 20 s."""
    values = [[np.resize(np.array(some, dtype=np.int64), 10_000)] * 2 for some in cpus]
    head = {} if limit_ns is None else {"requirement": {"limit_ns": limit_ns, "miss_rate": 0.0, "confidence": 0.95}}
    return replace(Plan(values, run_id=run_id, head=head), **change)


def _timer(*cpus: Sequence[int], ms: int = 1, priority: int = 98, load: str = "none") -> Plan:
    """As `_wakeups`, with a period and a priority, under a load."""
    run_id = f"timer-{load}-{ms}-{priority}"
    plan = _wakeups(*cpus, run_id=run_id, load=load, series={"period_ns": ms * 10**6})
    return replace(plan, head={"parameters": {"interval_ns": ms * 10**6, "priority": priority}})


def _gaps(*cpus: Sequence[Sequence[int]], run_id: str = "spin") -> Plan:
    """A busy loop that spins half of each second: 5,000 readings 100 µs apart, and what took it in each interval."""
    turns: NDArray[np.int64] = np.zeros(5_000, dtype=np.int64)
    values = [[np.append(turns[len(some) :], np.array(some, dtype=np.int64)) for some in cpu] for cpu in cpus]
    return Plan(
        values,
        run_id=run_id,
        views=("gap",),
        interval_ns=10**9,
        series={"period_ns": None},
        head={"probe": "spin", "parameters": {"floor_ns": 100_000, "width_ns": 10**7, "window_ns": 2 * 10**7}},
    )


def _recorded(folder: Path, *plans: Plan) -> list[Recording]:
    return [recording(folder, plan) for plan in plans]


# --- the terms


def test_terms_are_what_was_recorded(tmp_path: Path) -> None:
    """Two CPUs: the longest and the median wake-up; of what took the loop the longest of each size, and how close."""
    found = measured_of(
        _recorded(
            tmp_path,
            _wakeups([2_000, 2_000, 40_000], [1_500]),
            _gaps([[1_800] * 100 + [90_000], [1_900] * 250], [[500] * 40, []]),
        )
    )
    assert [(one.maximum_ns, one.median_ns) for one in found.values()] == [(40_000, 2_000), (1_500, 1_500)]
    terms = found[0].terms.interference
    assert [one.cost_ns for one in terms] == [90_000, 1_900]
    assert [one.arrivals[0].maximum_counts for one in terms] == [(1, 1), (250, 350)], "the busier second, and both"
    assert all(one.arrivals[0].interval_ns == pytest.approx(0.5e9, rel=0.05) for one in terms), "spun of a second"
    assert found[1].terms.interference == (), "what is shorter than 1 µs is the loop's own"


def test_terms_of_ticks_are_in_ns(tmp_path: Path) -> None:
    """The same values in ticks of 1.5 µs, which no test of whole nanoseconds would show."""
    ticks = {"unit": "ticks", "tick_ps": 1_500_000}
    gaps = _gaps([[2] * 40 + [60], [2] * 25])
    gaps.series |= ticks
    measured = measured_of(_recorded(tmp_path, _wakeups([2, 2, 41], series=ticks), gaps))[0]
    assert (measured.median_ns, measured.maximum_ns, measured.wakeups) == (3_000, 61_500, 20_000)
    assert [term.cost_ns for term in measured.terms.interference] == [90_000, 3_000]
    assert [term.arrivals[0].maximum_counts for term in measured.terms.interference] == [(1, 1), (40, 65)]
    assert measured.busy_ns == 10_000 * 100_000 + (65 * 2 + 60) * 1_500


@pytest.mark.parametrize("floor_ns", ["x", "100", True, 1.5, None])
def test_a_floor_that_is_no_integer_counts_as_none(floor_ns: object, tmp_path: Path) -> None:
    gaps = _gaps([[4_000] * 10, []])
    gaps.head["parameters"] = {"floor_ns": floor_ns}
    measured = measured_of(_recorded(tmp_path, _wakeups([1_000]), gaps))[0]
    assert (measured.busy_ns, measured.terms.interference[0].cost_ns) == (40_000, 4_000)


def test_the_worst_of_all_loads_counts(tmp_path: Path) -> None:
    found = measured_of(
        _recorded(
            tmp_path,
            _wakeups([1_000]),
            _wakeups([1_900], run_id="loaded", load="cpu"),
            _gaps([[4_000] * 10, []]),
            _gaps([[4_050] * 50, []], run_id="loaded-spin"),
        )
    )
    assert (found[0].maximum_ns, found[0].median_ns) == (1_900, 1_900)
    assert [one.cost_ns for one in found[0].terms.interference] == [4_050]
    assert [one.maximum_counts for one in found[0].terms.interference[0].arrivals] == [(10, 10), (50, 50)]


def test_answers_follow_from_the_terms_by_hand(tmp_path: Path) -> None:
    """Longest wake-up 50 µs, median 2 µs, 5 µs taken once a second of spinning at most."""
    answer = answer_of(
        task_set_of([LOOP + " priority=80", SLOW + " priority=70"]),
        _recorded(
            tmp_path,
            _timer([2_000, 2_000, 50_000], priority=80),
            _timer([1_000], ms=10, priority=70),
            _gaps([[5_000], []]),
        ),
    )
    loop, slow = answer.cpus[0].responses
    assert answer.conclusion == SCHEDULABLE
    assert loop.response_ns == 50_000 + 202_000 + 5_000 + 2_000, "the last for the timer of the other task"
    # in w: 2,002 µs of its own, 5 once, and 202 for each of ceil((w + 50) / 1000) jobs of the loop; w = 2,613, three
    assert slow.response_ns == 50_000 + 2_002_000 + 5_000 + 3 * 202_000
    assert (loop.slack_ns, slow.deadline_result) == (800_000 - 259_000, DeadlineResult.MET)


def test_each_cpu_answers_for_its_own_tasks(tmp_path: Path) -> None:
    timers = [_timer([5_000], [650_000], ms=ms) for ms in (1, 10)]
    runs = _recorded(tmp_path, *timers, _gaps([[], []], [[], []]))
    apart = answer_of(task_set_of([LOOP + " cpu=0", SLOW + " cpu=1"]), runs)
    assert apart.conclusion == SCHEDULABLE
    assert [[one.task.name for one in on.responses] for on in apart.cpus] == [["loop"], ["slow"]]
    either = answer_of(task_set_of([LOOP]), runs)
    assert either.conclusion == NOT_DEMONSTRATED, "one CPU is too late, and the task may be on it"
    assert [on.schedulable for on in either.cpus] == [True, False]


def test_what_was_not_measured_is_not_taken_for_nothing(tmp_path: Path) -> None:
    no_loop = answer_of(task_set_of([LOOP]), _recorded(tmp_path, _wakeups([5_000])))
    assert (no_loop.conclusion, no_loop.missing) == (NOT_DEMONSTRATED, ("CPU 0: no busy loop was measured",))
    elsewhere = answer_of(task_set_of([LOOP + " cpu=3"]), _recorded(tmp_path, _wakeups([5_000]), _gaps([[], []])))
    assert (elsewhere.conclusion, len(elsewhere.missing)) == (NOT_DEMONSTRATED, 2)
    assert answer_of(task_set_of([LOOP]), []).missing == ("no wake-up was measured",)


def test_a_term_that_one_load_lacks_is_missing(tmp_path: Path) -> None:
    """As where an assessment is interrupted, or a load is not available here."""
    timers = [_wakeups([5_000], run_id=load, load=load) for load in ("none", "io")]
    spins = [replace(_gaps([[], []], run_id=f"spin-{load}"), load=load) for load in ("none", "io")]
    runs = _recorded(tmp_path, *timers, *spins)
    tasks = task_set_of([LOOP + " cpu=0"])
    assert answer_of(tasks, runs).conclusion == SCHEDULABLE
    for left, act in ((3, "busy loop"), (1, "wake-up")):
        answer = answer_of(tasks, [run for place, run in enumerate(runs) if place != left])
        assert answer.conclusion == NOT_DEMONSTRATED
        assert answer.missing == (f"CPU 0: no {act} was measured under load io",)
    assert runs[3].end is not None
    ended = replace(runs[3], end=replace(runs[3].end, outcome=Outcome.ABORTED))
    assert answer_of(tasks, [*runs[:3], ended]).missing == ("CPU 0: no busy loop was measured under load io",)
    assert answer_of(tasks, runs, ("none", "io", "vm")).missing == (
        "CPU 0: no wake-up was measured under load vm",
        "CPU 0: no busy loop was measured under load vm",
    )


def test_emulated_times_are_no_measurement(tmp_path: Path) -> None:
    emulated = [replace(plan, marks=("emulated",)) for plan in (_wakeups([5_000]), _gaps([[], []]))]
    runs = _recorded(tmp_path, *emulated)
    answer = answer_of(task_set_of([LOOP + " cpu=0"]), runs)
    assert (answer.conclusion, len(answer.missing), answer.cpus) == (NOT_DEMONSTRATED, 2, ())
    alone = judge(runs, probe="timer")
    judged = judged_with(alone, answer)
    assert alone.emulated and (judged.verdict, judged.headline) == (Verdict.INCONCLUSIVE, alone.headline)
    assert judged.next_steps == alone.next_steps


@pytest.mark.parametrize(
    ("unmeasured", "missing"),
    [
        ((), ()),
        (("io",), ("CPU 0: no wake-up with {} was measured under load io",)),
        (("none", "io"), ("CPU 0: no wake-up with {} was measured",)),
    ],
)
@pytest.mark.parametrize(
    ("other", "which"),
    [((10, 80), "period 10 ms"), ((1, 50), "priority 50"), ((10, 50), "period 10 ms and priority 50")],
)
def test_the_timer_of_a_task_that_a_load_lacks_is_missing(
    other: tuple[int, int], which: str, unmeasured: tuple[str, ...], missing: tuple[str, ...], tmp_path: Path
) -> None:
    """Of two tasks on one CPU, the second of which has another period or priority."""
    loads, (ms, priority) = ("none", "io"), other
    timers = [_timer([5_000], ms=1, priority=80, load=load) for load in loads]
    timers += [_timer([5_000], ms=ms, priority=priority, load=load) for load in loads if load not in unmeasured]
    spins = [replace(_gaps([[], []], run_id=f"spin-{load}"), load=load) for load in loads]
    tasks = task_set_of(
        [
            "name=loop period=1ms compute=100us priority=80 cpu=0",
            f"name=other period={ms}ms compute=100us priority={priority} cpu=0",
        ]
    )
    answer = answer_of(tasks, _recorded(tmp_path, *timers, *spins), loads)
    assert answer.missing == tuple(sentence.format(which) for sentence in missing)
    assert (answer.conclusion == SCHEDULABLE) == (not missing)


def test_a_priority_that_no_task_states_may_be_any(tmp_path: Path) -> None:
    """The period must be that of the task."""
    runs = _recorded(tmp_path, _timer([5_000], priority=70), _gaps([[], []]))
    assert answer_of(task_set_of([LOOP + " cpu=0"]), runs).missing == ()
    other_period = answer_of(task_set_of([SLOW + " cpu=0"]), runs)
    assert (other_period.conclusion, other_period.missing) == (NOT_DEMONSTRATED, ("CPU 0: no wake-up was measured",))


# --- the verdict


def _judged(folder: Path, *plans: Plan, tasks: Sequence[str] = (LOOP,)) -> Assessment:
    runs = _recorded(folder, *plans)
    return judged_with(judge(runs, probe="timer"), answer_of(task_set_of(tasks), runs))


@pytest.mark.check
def test_it_is_never_a_pass(tmp_path: Path) -> None:
    """The single limit, what is left of the deadline for a wake-up, is kept and would be a PASS."""
    runs = _recorded(tmp_path, _wakeups([5_000], limit_ns=600_000), _gaps([[], []]))
    answer = judge_and_report(
        runs,
        Question(None, 0.95, probe="timer", tasks=task_set_of([LOOP])),
        Store(tmp_path / "store"),
        tmp_path / "report",
    )
    assert answer.tasks is not None and answer.tasks.conclusion == SCHEDULABLE
    assert answer.assessment.verdict is Verdict.INCONCLUSIVE
    assert "Schedulable with the measured terms: all compute times could be 3." in answer.assessment.headline
    assert Verdict.PASS not in {one.verdict for one in answer.assessment.judgments}
    said = json.loads((tmp_path / "report" / "report.json").read_text())
    assert said["assessment"]["verdict"] == "INCONCLUSIVE"
    assert said["tasks"]["conclusion"] == SCHEDULABLE
    page = (tmp_path / "report" / "index.html").read_text()
    assert "Task set" in page and "Measured terms are no bounds" in page
    assert ">PASS<" not in page


@pytest.mark.parametrize(("longest_ns", "verdict"), [(5_000, Verdict.INCONCLUSIVE), (100_000, Verdict.FAIL)])
def test_no_requirement_has_a_pass(longest_ns: int, verdict: Verdict, tmp_path: Path) -> None:
    """The runs state two requirements, and the wake-ups exceed neither or one."""
    limits = [_wakeups([longest_ns], run_id=f"run-{limit}", limit_ns=limit) for limit in (80_000, 600_000)]
    apart = [replace(plan, begin_ns=place * 10**12) for place, plan in enumerate(limits)]
    results = _judged(tmp_path, *apart, _gaps([[]])).requirement_results
    assert [result.verdict for result in results] == [verdict, Verdict.INCONCLUSIVE]


def test_no_margin_is_rounded_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """790 of 800 µs are left for 209, 3.7799 times; and of 3 µs nothing is left."""
    runs = _recorded(tmp_path, _wakeups([5_000]), _gaps([[], []]))
    loop = task_set_of([LOOP.replace("200us", "209us")])
    assert "could be 3.77 times" in judged_with(judge(runs), answer_of(loop, runs)).headline
    print_tasks(answer_of(task_set_of(["period=1ms compute=1us deadline=3us"]), runs))
    assert "has no time left to compute" in capsys.readouterr().out


def test_each_margin_is_that_of_the_cpu_with_the_least(tmp_path: Path) -> None:
    """CPU 0 has little compute time to spare, and CPU 1 little latency."""
    runs = _recorded(tmp_path, _wakeups([1_000], [1_000]), _gaps([[], []], [[], []]))
    long = "name=long period=1ms compute=500us cpu=0"
    short = "name=short period=1ms compute=10us deadline=30us cpu=1"
    answer = answer_of(task_set_of([long, short]), runs)
    assert [on.margin.added_ns for on in answer.cpus] == [498_000, 18_000]
    assert [on.margin.factor for on in answer.cpus] == [1.996, 2.8]
    assert "1.99 times as long, or every wake-up 18.0 µs later" in judged_with(judge(runs), answer).headline


def test_all_terms_at_once_are_no_proof_of_a_miss(tmp_path: Path) -> None:
    """The wake-up alone leaves room; with what took the loop it does not: seen apart, and never together."""
    answer = _judged(tmp_path, _wakeups([5_000, 5_000, 400_000], limit_ns=600_000), _gaps([[300_000], []]))
    assert answer.verdict is Verdict.INCONCLUSIVE
    assert answer.headline == "Not shown to be schedulable with the measured terms"
    assert any("task loop: with all terms at their maximum" in reason for reason in answer.reasons)


def test_one_wakeup_that_leaves_too_little_is_a_fail(tmp_path: Path) -> None:
    """700 µs late, 200 µs to compute, 800 µs deadline: that job would have been late whatever else happened."""
    answer = _judged(tmp_path, _wakeups([5_000, 700_000], limit_ns=600_000), _gaps([[], []]))
    assert answer.verdict is Verdict.FAIL


def test_data_that_cannot_be_trusted_is_broken(tmp_path: Path) -> None:
    answer = _judged(tmp_path, _wakeups([5_000], limit_ns=600_000, lost=3), _gaps([[], []]))
    assert answer.verdict is Verdict.BROKEN


@pytest.mark.check
def test_what_no_machine_can_do_is_told_without_measuring(tmp_path: Path) -> None:
    assert impossible(task_set_of([LOOP, SLOW])) == ()
    assert (
        "120 % of one CPU"
        in impossible(task_set_of(["name=a period=1ms compute=800us", "name=b period=10ms compute=4ms"]))[0]
    )
    assert (
        impossible(task_set_of(["name=a period=1ms compute=800us cpu=0", "name=b period=10ms compute=4ms cpu=1"])) == ()
    )
    wrong_way = ["name=a period=1ms compute=200us priority=1", "name=b period=10ms compute=3ms priority=2"]
    assert impossible(task_set_of(wrong_way)) == (
        "task a misses its deadline even without any time taken by the system",
    )
    assert impossible(task_set_of([text.rpartition(" ")[0] for text in wrong_way])) == ()
    rivals = ["name=a period=1ms compute=300us deadline=400us", "name=b period=1ms compute=300us deadline=400us"]
    assert impossible(task_set_of(rivals)) == ("no order of priorities meets all deadlines of a, b",)
    assert impossible(task_set_of(["name=a period=1ms compute=300us deadline=200us"])) == (
        "task a misses its deadline even without any time taken by the system",
    )
    done = command_line("assess", "--task", "period=1ms compute=2ms", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (1, "FAIL")
    assert list(tmp_path.iterdir()) == [], "nothing was measured"


def test_the_holder_of_a_resource_may_be_the_task_above() -> None:
    """Second below first: its response is 6 of 7, since what it would wait for is in the compute time of the first."""
    first, second = PeriodicTask("first", 20, 3, 5), PeriodicTask("second", 20, 3, 7, blocking_ns=2)
    assert impossible(TaskSet((first, second), assign_priorities=True)) == ()
    assert impossible(TaskSet((first, replace(second, deadline_ns=5)), assign_priorities=True)) != ()
    assert impossible(TaskSet((replace(second, deadline_ns=4),), assign_priorities=True)) != (), "no task is above it"


def test_equal_priorities_are_impossible_only_where_either_order_is() -> None:
    peers = [PeriodicTask("a", 10, 5, 8, 5), PeriodicTask("b", 10, 4, 8, 5)]
    assert impossible(TaskSet(tuple(peers))) == ()


# --- what is measured


def test_the_plan_has_a_timer_at_each_period_and_a_busy_loop() -> None:
    plan = task_plan(
        "local",
        task_set_of([LOOP + " priority=80 cpu=2", SLOW + " priority=70 cpu=3"]),
        ["none", "cpu"],
        60 * 10**9,
        98,
        required=Requirement,
    )
    assert [(entry.probe, dict(entry.parameters), entry.duration_s) for entry in plan.entries] == [
        ("timer", {"interval": ("1000000ns",), "priority": (80,), "affinity": ("2",)}, 10.0),
        ("timer", {"interval": ("10000000ns",), "priority": (70,), "affinity": ("3",)}, 10.0),
        ("spin", {"priority": (70,), "report": ("20ms",), "affinity": ("2,3",)}, 10.0),
    ]
    assert [entry.requirement and entry.requirement.limit_ns for entry in plan.entries] == [600_000, 8_000_000, None]
    with pytest.raises(BadInput, match="use at least 6s"):
        task_plan("local", task_set_of([LOOP, SLOW]), ["none", "cpu"], 5 * 10**9, 98, required=Requirement)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["period=1ms"], "requires compute="),
        ([""], "is not one of"),
        (["period=1ms compute=200us frequency=3"], "'frequency=3' is not one of"),
        (["period=1ms compute=200us period=2ms"], "given twice"),
        (["period=1 compute=200us"], "is no duration"),
        (["period=1ms compute=-5us"], "is no duration"),
        (["period=1us compute=200ns"], "between 5us and 10s"),
        (["period=1h compute=200ns"], "between 5us and 10s"),
        (["period=1ms compute=200us deadline=1h"], "longer than 100 periods"),
        (["period=1ms compute=200us priority=0"], "from 1 to 99"),
        (["period=1ms compute=200us cpu=-1"], "from 0 to 4095"),
        (["period=1ms compute=200us cpu=٣"], "from 0 to 4095"),
        (["period=1ms compute=200us name=\x1b[2J"], "letters, digits"),
        ([LOOP, LOOP], "two tasks have the name loop"),
        ([LOOP + " cpu=1", SLOW], "cpu= is missing for slow"),
        ([LOOP, SLOW + " priority=3"], "priority= is missing for loop"),
        (["period=1ms compute=1us"] * 33, "at most 32"),
    ],
)
def test_bad_tasks_are_refused_in_one_line(texts: list[str], said: str) -> None:
    with pytest.raises(BadInput, match=said) as refused:
        task_set_of(texts)
    assert "\n" not in str(refused.value)


@pytest.mark.check
@pytest.mark.parametrize("beside", [("--limit", "1ms"), ("--interval", "1ms")])
def test_options_that_tasks_replace_are_refused(tmp_path: Path, beside: tuple[str, str]) -> None:
    done = command_line("assess", "--task", LOOP, *beside, cwd=tmp_path)
    assert done.returncode == 2
    assert f"{beside[0]} cannot be used with --task" in done.stderr
