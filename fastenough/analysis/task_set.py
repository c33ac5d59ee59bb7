# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the tasks of an application meet their deadlines on a measured machine.

Measured terms are no bounds: the answer is never a PASS (docs/task.md says what each term is and what follows).  Pure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis import words
from fastenough.analysis.assessment import Assessment
from fastenough.analysis.machine import is_emulated
from fastenough.analysis.merged import load_name
from fastenough.analysis.response_time import (
    Arrivals,
    DeadlineResult,
    Interference,
    Margin,
    PeriodicTask,
    ResponseTime,
    Terms,
    margin,
    never_schedulable,
    responses,
    with_priorities,
)
from fastenough.model import Outcome, Series, Verdict
from fastenough.recording import Recording
from fastenough.recording.histogram import Histogram, IndexArray, bucket_lowest

WAKEUP, GAP = "wakeup", "gap"
_Act = tuple[str, int | None, int | None]
"""A series by its name, of wake-ups with their period and priority; None: any priority."""
_BUSY_LOOP: _Act = (GAP, None, None)
LEAST_GAP_NS = 1_000
"""Shorter gaps of a busy loop are its own: reading the clock, and the caches."""
MOST_STRETCHES = 256
"""Longest window, in intervals, whose greatest count is searched; that of a longer one is the sum of its parts."""
SCHEDULABLE = "schedulable with the measured terms"
NOT_DEMONSTRATED = "not shown to be schedulable with the measured terms"
NEVER = "not schedulable on any machine"


@dataclass(frozen=True)
class TaskSet:
    """Tasks, and the CPU of each; without ``cpus`` all share one, whichever that is.

    ``assign_priorities``: the analysis assigns priorities, since the tasks state none.
    """

    tasks: tuple[PeriodicTask, ...]
    cpus: tuple[int, ...] = ()
    assign_priorities: bool = False

    def on(self, cpu: int) -> tuple[PeriodicTask, ...]:
        """The tasks of one CPU."""
        return (
            self.tasks
            if not self.cpus
            else tuple(task for task, task_cpu in zip(self.tasks, self.cpus, strict=True) if task_cpu == cpu)
        )

    def acts_on(self, cpu: int) -> tuple[_Act, ...]:
        """What must be measured on one CPU: a wake-up at each period and priority of its tasks, and a busy loop."""
        wakeups = ((WAKEUP, task.period_ns, self._stated(task.priority)) for task in self.on(cpu))
        return (*dict.fromkeys(wakeups), _BUSY_LOOP)

    def _stated(self, priority: int) -> int | None:
        return None if self.assign_priorities else priority

    @property
    def by_cpu(self) -> tuple[tuple[PeriodicTask, ...], ...]:
        """The sets of tasks that share a CPU."""
        return tuple(self.on(cpu) for cpu in sorted(set(self.cpus))) if self.cpus else (self.tasks,)


@dataclass(frozen=True)
class CpuMeasurement:
    """The measurement of one CPU: its wake-ups, and the interruptions of a busy loop.

    ``median_ns`` and ``maximum_ns``: of the wake-up latencies.  ``busy_ns``: time for which the busy loop ran.
    ``terms``: the resulting terms of the analysis.
    """

    cpu: int
    wakeups: int
    median_ns: int
    maximum_ns: int
    busy_ns: int
    terms: Terms


@dataclass(frozen=True)
class CpuSchedulability:
    """The tasks of one CPU with its terms."""

    measured: CpuMeasurement
    responses: tuple[ResponseTime, ...]
    margin: Margin

    @property
    def schedulable(self) -> bool:
        return all(response.deadline_result is DeadlineResult.MET for response in self.responses)


@dataclass(frozen=True)
class TaskAnswer:
    """The result for a task set.  ``conclusion``: the result as a phrase.  ``missing``: terms that were not measured,
    with the CPU."""

    task_set: TaskSet
    conclusion: str
    cpus: tuple[CpuSchedulability, ...]
    missing: tuple[str, ...] = ()

    @property
    def tightest(self) -> CpuSchedulability | None:
        """The CPU with the least margin."""
        return min(self.cpus, key=lambda cpu: (cpu.margin.factor, cpu.margin.added_ns or -1), default=None)


def impossible(task_set: TaskSet) -> tuple[str, ...]:
    """Why no machine, even one without overhead, meets these deadlines; empty if one may."""
    return tuple(
        sentence
        for tasks in task_set.by_cpu
        for sentence in never_schedulable(tasks, assign_priorities=task_set.assign_priorities)
    )


def answer_of(task_set: TaskSet, recordings: Sequence[Recording], loads: Sequence[str] = ()) -> TaskAnswer:
    """The analysis with the terms of each CPU that may run the tasks; pure, never raises for recordings.

    ``loads``: loads that were requested, with or without a recording.
    """
    measured = measured_of(recordings)
    cpus_needed = sorted(set(task_set.cpus)) or sorted(measured)
    missing = list(_missing(task_set, recordings, cpus_needed, loads))
    cpus = tuple(_on_cpu(task_set, measured[cpu]) for cpu in cpus_needed if cpu in measured)
    demonstrated = bool(cpus) and not missing and all(cpu.schedulable for cpu in cpus)
    return TaskAnswer(
        task_set,
        SCHEDULABLE if demonstrated else NOT_DEMONSTRATED,
        cpus,
        tuple(missing) if cpus_needed else ("no wake-up was measured",),
    )


def _missing(
    task_set: TaskSet, recordings: Sequence[Recording], cpus: Sequence[int], loads: Sequence[str]
) -> Iterator[str]:
    """Terms of these CPUs that no completed run measured, or not under each load."""
    measured: dict[tuple[int, _Act], set[str | None]] = {}
    for recording, series, cpu, _ in _acts(recordings):
        if recording.outcome is Outcome.COMPLETED:
            for act in _measured_acts(recording, series):
                measured.setdefault((cpu, act), set()).add(load_name(recording))
    all_loads = dict.fromkeys(filter(None, [*map(load_name, recordings), *loads]))
    lacking: dict[str, list[int]] = {}
    for cpu in cpus:
        required = task_set.acts_on(cpu)
        for act in required:
            for sentence in _lacking(_act_text(act, required), measured.get((cpu, act), ()), all_loads):
                lacking.setdefault(sentence, []).append(cpu)
    return (f"{words.cpus(of_cpus)}: {sentence}" for sentence, of_cpus in lacking.items())


def _measured_acts(recording: Recording, series: Series) -> tuple[_Act, ...]:
    """The acts that a series measures: a wake-up also counts for tasks that state no priority."""
    if series.name == GAP:
        return (_BUSY_LOOP,)
    without_priority: _Act = (WAKEUP, series.period_ns, None)
    priority = recording.head.parameters.get("priority")
    return (without_priority, (WAKEUP, series.period_ns, priority)) if type(priority) is int else (without_priority,)


def _act_text(act: _Act, required: Collection[_Act]) -> str:
    """The act; a wake-up with what distinguishes it from the other required ones."""
    name, period_ns, priority = act
    if name == GAP or period_ns is None:
        return "busy loop"
    wakeups = [other for other in required if other[0] == WAKEUP]
    which = [f"period {words.exact_time(period_ns)}"] if len({period for _, period, _ in wakeups}) > 1 else []
    which += [f"priority {priority}"] if len({level for _, _, level in wakeups}) > 1 else []
    return f"wake-up{' with ' if which else ''}{' and '.join(which)}"


def _lacking(act_text: str, measured: Collection[str | None], loads: Iterable[str]) -> Iterator[str]:
    """Under which loads an act was not measured on one CPU."""
    if not measured:
        yield f"no {act_text} was measured"
    else:
        yield from (f"no {act_text} was measured under load {load}" for load in loads if load not in measured)


def _on_cpu(task_set: TaskSet, measured: CpuMeasurement) -> CpuSchedulability:
    tasks = task_set.on(measured.cpu)
    if task_set.assign_priorities:
        tasks = with_priorities(tasks, measured.terms)
    return CpuSchedulability(measured, responses(tasks, measured.terms), margin(tasks, measured.terms))


# --- the terms


def measured_of(recordings: Sequence[Recording]) -> Mapping[int, CpuMeasurement]:
    """The measurement of each CPU, over all loads, with the worst of each term; emulated times are none."""
    wakeups: dict[int, list[_Wakeups]] = {}
    gaps: dict[int, list[_Gaps]] = {}
    for recording, series, cpu, total in _acts(recordings):
        if series.name == WAKEUP:
            wakeups.setdefault(cpu, []).append(_Wakeups.of(series, total))
        else:
            gaps.setdefault(cpu, []).append(_Gaps.of(recording, series, total))
    return {cpu: _measured(cpu, of_cpu, gaps.get(cpu, [])) for cpu, of_cpu in sorted(wakeups.items())}


def _acts(recordings: Sequence[Recording]) -> Iterator[tuple[Recording, Series, int, Histogram]]:
    """Each series of wake-ups or gaps with values, its CPU, and its total histogram."""
    for recording in recordings:
        if recording.damage is not None or recording.outcome is Outcome.NOT_APPLICABLE or is_emulated(recording):
            continue
        for series in recording.series:
            total = recording.totals.get(series.id)
            if series.cpu is None or series.refused is not None or total is None or not total.total:
                continue
            if series.name in (WAKEUP, GAP):
                yield recording, series, series.cpu, total


def _measured(cpu: int, wakeups: Sequence[_Wakeups], gaps: Sequence[_Gaps]) -> CpuMeasurement:
    maximum_ns = max(0, *(of_run.maximum_ns for of_run in wakeups))
    median_ns = max(0, *(of_run.median_ns for of_run in wakeups))
    interference = _longest_by_size([term for gap in gaps for term in gap.interference])
    return CpuMeasurement(
        cpu,
        sum(of_run.n for of_run in wakeups),
        median_ns,
        maximum_ns,
        sum(gap.busy_ns for gap in gaps),
        Terms(maximum_ns, median_ns, interference),
    )


def _in_ns(value: int, series: Series) -> int:
    """A value of a series in ns, rounded up: no term is understated."""
    return math.ceil(value * series.unit_ns)


@dataclass(frozen=True)
class _Wakeups:
    """Number, median and maximum of the wake-up latencies of one run."""

    n: int
    median_ns: int
    maximum_ns: int

    @classmethod
    def of(cls, series: Series, total: Histogram) -> _Wakeups:
        n = total.total
        return cls(n, _in_ns(total.value_at_rank((n + 1) // 2), series), _in_ns(total.maximum or 0, series))


@dataclass(frozen=True)
class _Gaps:
    """Interruptions of a busy loop in one run, by size: one kind for each doubling of the length."""

    busy_ns: int
    interference: tuple[Interference, ...]

    @classmethod
    def of(cls, recording: Recording, series: Series, total: Histogram) -> _Gaps:
        stated = recording.head.parameters.get("floor_ns")
        floor_ns = stated if type(stated) is int else 0
        busy_ns = max(1, _in_ns(total.sum, series) + total.total * floor_ns)
        share = min(1.0, busy_ns / max(1, recording.duration_ns))
        longest = {
            size: cost_ns
            for size, highest in zip(_sizes(series, total.index, total.k), total.highest().tolist(), strict=True)
            if (cost_ns := _in_ns(highest, series)) >= LEAST_GAP_NS
        }
        return cls(
            busy_ns,
            tuple(
                Interference(str(size), cost_ns, (_arrivals(recording, series, size, share),))
                for size, cost_ns in longest.items()
            ),
        )


def _sizes(series: Series, index: IndexArray, k: int) -> list[int]:
    """Class of the length of each bucket: one for each doubling."""
    return [max(_in_ns(lowest, series), 1).bit_length() for lowest in bucket_lowest(index, k).tolist()]


def _arrivals(recording: Recording, series: Series, size: int, share: float) -> Arrivals:
    """Arrivals of gaps of one size; ``share``: part of an interval in which the loop spins, which is the counted
    part."""
    timeline = recording.timeline
    course = timeline.courses[series.id]
    sizes = np.array(_sizes(series, course.index, course.k), dtype=np.int64)
    counts_of_size = np.where(sizes == size, course.bucket_count, 0)
    running = np.concatenate(([0], np.cumsum(counts_of_size)))
    counts = np.zeros(timeline.begin_mono_ns.size, np.int64)
    counts[course.at] = running[course.offsets[1:]] - running[course.offsets[:-1]]
    lengths = timeline.end_mono_ns - timeline.begin_mono_ns
    if not counts.any():
        return Arrivals(max(1, int(share * recording.duration_ns)), (max(1, recording.totals[series.id].total),))
    return Arrivals(max(1, int(share * np.min(lengths[_full_length(lengths)]))), most_in_stretches(counts))


def _full_length(lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Marks of the intervals of full length; the counts of a shorter one are assumed to belong to a full one."""
    return np.asarray(lengths >= 0.9 * np.median(lengths))


def most_in_stretches(counts: NDArray[np.int64]) -> tuple[int, ...]:
    """The greatest count of one interval, of two successive ones, and so on."""
    running = np.concatenate(([0], np.cumsum(counts)))
    return tuple(
        int(np.max(running[length:] - running[:-length])) for length in range(1, min(counts.size, MOST_STRETCHES) + 1)
    )


def _longest_by_size(interference: Sequence[Interference]) -> tuple[Interference, ...]:
    """The longest interference of each size, with the arrivals under each load; the longest first."""
    by_size: dict[str, Interference] = {}
    for item in interference:
        other = by_size.get(item.name, Interference(item.name, 0, ()))
        by_size[item.name] = Interference(item.name, max(item.cost_ns, other.cost_ns), other.arrivals + item.arrivals)
    longest_first = sorted(by_size.values(), key=lambda item: item.cost_ns, reverse=True)
    return tuple(replace(item, name=f"up to {words.latency(item.cost_ns)}") for item in longest_first)


# --- the verdict


def judged_with(assessment: Assessment, answer: TaskAnswer) -> Assessment:
    """The assessment of an application: FAIL and BROKEN of single observations stay, and so does that of an emulated
    board; otherwise INCONCLUSIVE with the answer of the analysis; never PASS."""
    without_pass = replace(
        assessment,
        verdict=_no_pass(assessment.verdict),
        judgments=tuple(replace(judgment, verdict=_no_pass(judgment.verdict)) for judgment in assessment.judgments),
        requirement_results=tuple(
            replace(result, verdict=_no_pass(result.verdict)) for result in assessment.requirement_results
        ),
        cautions=(*assessment.cautions, *_cautions(answer)),
    )
    if assessment.verdict in (Verdict.FAIL, Verdict.BROKEN) or assessment.emulated:
        return without_pass
    return replace(
        without_pass,
        verdict=Verdict.INCONCLUSIVE,
        headline=_headline(answer),
        reasons=(*_reasons(answer), *assessment.reasons),
        next_steps=_next_steps(answer),
        supported=(),
    )


def _no_pass(verdict: Verdict) -> Verdict:
    return Verdict.INCONCLUSIVE if verdict is Verdict.PASS else verdict


def _headline(answer: TaskAnswer) -> str:
    """The answer with its margins, each the least of all CPUs.  The two may be of different CPUs."""
    phrase = answer.conclusion[0].upper() + answer.conclusion[1:]
    added_ns = min((cpu.margin.added_ns for cpu in answer.cpus if cpu.margin.added_ns is not None), default=None)
    if answer.conclusion != SCHEDULABLE or added_ns is None:
        return phrase
    factor = math.floor(min(cpu.margin.factor for cpu in answer.cpus) * 100) / 100
    return (
        f"{phrase}: all compute times could be {factor:.2f} times as long, or every wake-up "
        f"{words.microseconds_down(added_ns)} µs later"
    )


def _reasons(answer: TaskAnswer) -> list[str]:
    late = [
        f"{words.cpus([cpu.measured.cpu])}: {_missed(response)}"
        for cpu in answer.cpus
        for response in cpu.responses
        if response.deadline_result is not DeadlineResult.MET
    ]
    return [
        "measured terms are no bounds, so this is never a PASS",
        *late,
        *answer.missing,
    ]


def _missed(response: ResponseTime) -> str:
    task = response.task
    if response.deadline_result is DeadlineResult.UNDECIDED:
        return f"task {task.name}: undecided; too many jobs interact because the CPU is nearly full"
    after = "without end" if response.response_ns is None else f"after {words.latency(response.response_ns)}"
    return (
        f"task {task.name}: with all terms at their maximum its response comes {after}, "
        f"and its deadline is {words.latency(task.deadline_ns)}"
    )


def _next_steps(answer: TaskAnswer) -> tuple[str, ...]:
    tightest = answer.tightest
    if answer.conclusion == SCHEDULABLE:
        return (
            "measure longer, under the load of the application; then measure the application itself: "
            "fastenough monitor --comm NAME",
        )
    if answer.missing:
        return (
            "measure the CPUs of the tasks under each load with the probes timer, at each of their periods and "
            "priorities, and spin; --load leaves loads out",
        )
    if tightest is not None and 0 < tightest.margin.factor < 1:
        return (
            f"on {words.cpus([tightest.measured.cpu])} compute times of {tightest.margin.factor:.2f} of those given "
            "would do; or make the longest terms shorter",
        )
    return ("shorten the longest terms: shorter compute times do not suffice",)


def _cautions(answer: TaskAnswer) -> tuple[str, ...]:
    """The assumptions of the answer."""
    shared = (
        ()
        if answer.task_set.cpus or len(answer.task_set.tasks) < 2
        else ("no CPU was stated: all tasks are assumed to share one",)
    )
    return (*shared, "compute times and blocking between tasks are as stated, not measured")
