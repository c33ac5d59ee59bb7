# SPDX-License-Identifier: GPL-2.0-or-later
"""Choose how to build a real-time task by Brown and Martin's flowchart (their figure 6), walked with measurements.

Each box of the chart is an approach: the kind of task and the kernel.  Its rating follows from the verdict at the
limit and, if that is FAIL, from the verdict at a longer limit, so every branch rests on bounds.  The walk ends at an
undecided box.  Pure: measurements in, advice out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fastenough import words
from fastenough.analysis import bounds, sequential
from fastenough.analysis.approach_rating import MARGINAL_TIMES, NOT_MEASURED, OFF_THE_MAP_TIMES, ApproachRating, Grade
from fastenough.analysis.assessment import LIFE_SAFETY
from fastenough.analysis.cpu_evidence import MINIMUM_DURATION_NS, UNSEEN_WITHOUT_PERIOD
from fastenough.analysis.power import NO_PASS_WITHOUT_MISSES
from fastenough.implementations import IMPLEMENTATIONS, TaskKind
from fastenough.model import Requirement


class Ending(StrEnum):
    """The end of the path through the chart."""

    DELIVER = "deliver"
    HARDWARE = "use dedicated hardware"
    UNDECIDED = "undecided"
    MEASURE = "measure"


@dataclass(frozen=True)
class Approach:
    """A box of the chart.  ``cost``: the effort to maintain it for years."""

    id: str
    title: str
    task: TaskKind
    kernel: str
    cost: str

    @property
    def implementations(self) -> tuple[str, ...]:
        """Implementations whose tasks run there."""
        return tuple(name for name, implementation in IMPLEMENTATIONS.items() if implementation.kind is self.task)


APPROACHES = {
    approach.id: approach
    for approach in (
        Approach(
            "user-stock",
            "user space on stock Linux",
            TaskKind.LINUX_USER,
            "stock",
            "none beyond the distribution's kernel, which others build, test and update",
        ),
        Approach(
            "user-rt",
            "user space on PREEMPT_RT",
            TaskKind.LINUX_USER,
            "rt",
            "a PREEMPT_RT kernel: the distribution's, if it has one, else your own build, kept up to date; "
            "drivers may need changes",
        ),
        Approach(
            "xenomai-user",
            "user space on Xenomai (3, or 4: EVL)",
            TaskKind.CORE_USER,
            "xenomai",
            "a patched kernel of your own, which lags behind the mainline and has rare bugs, and special drivers "
            "if the task accesses hardware",
        ),
        Approach(
            "kernel-stock",
            "a module on stock Linux",
            TaskKind.LINUX_KERNEL,
            "stock",
            "the task is a kernel module of your own: hard to write and to debug, a fault in it stops the machine, "
            "and it is built and tested again for every kernel",
        ),
        Approach(
            "xenomai-kernel",
            "a module on Xenomai (3, or 4: EVL)",
            TaskKind.CORE_KERNEL,
            "xenomai",
            "the most work: a patched kernel of your own, with the task as a module of your own",
        ),
    )
}
HARDWARE_COST = "a circuit or a microcontroller with firmware and tools of its own"
_HARDWARE = "hardware"


@dataclass(frozen=True)
class Turn:
    """The next boxes after one that is not good; they differ if the chart distinguishes marginal from awful."""

    marginal: str
    awful: str

    @property
    def asks(self) -> bool:
        return self.marginal != self.awful


TOLERANT = {
    "user-stock": Turn("user-rt", "xenomai-user"),
    "user-rt": Turn("xenomai-user", "xenomai-user"),
    "xenomai-user": Turn("kernel-stock", "kernel-stock"),
    "kernel-stock": Turn(_HARDWARE, _HARDWARE),
}
"""The side for tasks that may miss deadlines at times (95 % in the paper), in the order of the chart."""
STRICT = {
    "xenomai-user": Turn("xenomai-kernel", "xenomai-kernel"),
    "xenomai-kernel": Turn(_HARDWARE, _HARDWARE),
}
"""The side for tasks that may never miss a deadline (100 %)."""


@dataclass(frozen=True)
class Step:
    """One box of the path."""

    approach: Approach
    rating: ApproachRating


@dataclass(frozen=True)
class Advice:
    """The path through the chart and its end.

    ``basis``: the data that it rests on.  ``off_path``: measured approaches off the path, by name.  ``cost``: of the
    approach to deliver.  ``next``: next steps if undecided.
    """

    requirement: Requirement
    marginal_ns: int
    side: str
    steps: tuple[Step, ...]
    ending: Ending
    text: str
    cost: str
    next: tuple[str, ...]
    off_path: tuple[tuple[str, ApproachRating], ...]
    basis: str
    cautions: tuple[str, ...]
    ratings: Mapping[str, ApproachRating]
    life_safety: str = LIFE_SAFETY

    @property
    def chart(self) -> Mapping[str, Turn]:
        """The side of the chart that was used."""
        return chart_of(self.requirement)


def approach_of(implementation: str, kernel: str) -> str:
    """The box of an implementation and kernel, or another name if the chart has none."""
    fitting = (
        approach.id
        for approach in APPROACHES.values()
        if implementation in approach.implementations and approach.kernel == kernel
    )
    return next(fitting, " on ".join(filter(None, (implementation, _KERNELS.get(kernel, kernel)))))


def chart_of(requirement: Requirement) -> Mapping[str, Turn]:
    """The side of the chart: tasks that may never miss, or tasks that may miss at times."""
    return TOLERANT if requirement.miss_rate else STRICT


# --- walking


def advise(
    ratings: Mapping[str, ApproachRating],
    requirement: Requirement,
    *,
    probe: str,
    basis: str,
    times: float = MARGINAL_TIMES,
    cautions: Sequence[str] = (),
) -> Advice:
    """Walk the chart; ``ratings``: ratings by the name of an approach, with or without a box in the chart."""
    chart = chart_of(requirement)
    steps, box_id = [], next(iter(chart))
    while box_id in chart:
        step = Step(APPROACHES[box_id], ratings.get(box_id, NOT_MEASURED))
        steps.append(step)
        following = _following(
            chart[box_id],
            step.rating.grade,
            any(ratings.get(box, NOT_MEASURED).grade is Grade.GOOD for box in chart),
        )
        if following is None:
            break
        box_id = following
    ending = _ending(steps[-1].rating.grade, box_id)
    on_path = {step.approach.id for step in steps}
    off_path = tuple(
        (APPROACHES[name].title if name in APPROACHES else name, rating)
        for name, rating in ratings.items()
        if name not in on_path
    )
    return Advice(
        requirement,
        round(requirement.limit_ns * times),
        _side(requirement),
        tuple(steps),
        ending,
        _text(ending, steps[-1], off_path),
        _cost(ending, steps[-1]),
        _next(ending, steps[-1], requirement, probe),
        off_path,
        basis,
        (*_own_cautions(requirement, ending, off_path), *cautions),
        dict(ratings),
    )


def _following(turn: Turn, answer: Grade, one_is_good: bool) -> str | None:
    """The next box; None if the walk ends in this one.

    An approach off the map leads to hardware, as in the paper, unless a box of this side was measured as good.
    """
    if answer is Grade.OFF_THE_MAP:
        return turn.awful if one_is_good else _HARDWARE
    if answer in (Grade.GOOD, Grade.UNDECIDED, Grade.NO_DATA) or (answer is Grade.NOT_GOOD and turn.asks):
        return None
    return turn.marginal if answer is Grade.MARGINAL else turn.awful


def _ending(answer: Grade, at: str) -> Ending:
    if at == _HARDWARE:
        return Ending.HARDWARE
    return {Grade.GOOD: Ending.DELIVER, Grade.NO_DATA: Ending.MEASURE}.get(answer, Ending.UNDECIDED)


def _side(requirement: Requirement) -> str:
    if requirement.miss_rate == 0:
        return "100 % hard: the limit may never be exceeded"
    rate = words.rate(requirement.miss_rate)
    return (
        f"{words.percent(1 - requirement.miss_rate)} hard: up to {rate}{' of the' if '%' in rate else ''} "
        "activations may exceed the limit"
    )


def _text(ending: Ending, last: Step, off_path: Sequence[tuple[str, ApproachRating]]) -> str:
    title = last.approach.title
    good = [name for name, rating in off_path if rating.grade is Grade.GOOD]
    if ending is Ending.HARDWARE and good:
        return f"The chart ends at dedicated hardware, but {', '.join(good)}, off its path, was measured as good enough"
    if ending is Ending.HARDWARE and last.rating.grade is Grade.OFF_THE_MAP:
        return (
            f"Use dedicated hardware: {title} is off the map: it does not meet even {OFF_THE_MAP_TIMES:g} times "
            "the limit"
        )
    return {
        Ending.DELIVER: f"Deliver: {title} is good enough",
        Ending.HARDWARE: "Use dedicated hardware: no approach on this side of the chart is good enough",
        Ending.UNDECIDED: f"Not enough evidence whether {title} is good enough, or how far it misses the limit",
        Ending.MEASURE: f"Measure {title}: the chart requires it, and it was not measured",
    }[ending]


def _cost(ending: Ending, last: Step) -> str:
    return HARDWARE_COST if ending is Ending.HARDWARE else last.approach.cost


def _next(ending: Ending, last: Step, requirement: Requirement, probe: str) -> tuple[str, ...]:
    if ending is Ending.UNDECIDED:
        return last.rating.next_steps or ("measure longer, under the load of the application",)
    if ending is not Ending.MEASURE:
        return ()
    approach = last.approach
    return (
        *last.rating.reasons,
        f"on a {_KERNELS[approach.kernel]} kernel: fastenough run {probe} --implementation "
        f"{approach.implementations[0]} --load LOADS --duration TIME{_enough(requirement)}",
    )


_KERNELS = {"stock": "stock", "rt": "PREEMPT_RT", "xenomai": "Xenomai"}


def _enough(requirement: Requirement) -> str:
    """Suffix: least measurement that gives a PASS if no value exceeds the limit, or that none does."""
    where = "under each load of the application"
    if requirement.miss_rate == 0:
        least_ns = max(
            MINIMUM_DURATION_NS, sequential.unseen_upper(requirement.confidence) * requirement.return_time_ns
        )
        n = bounds.samples_for_unseen_rate(UNSEEN_WITHOUT_PERIOD, requirement.confidence)
        return (
            f", at least {words.duration(words.round_up(least_ns))} {where}, and "
            f"{words.counted(words.round_up(n), 'activation')} if these have no period"
        )
    if requirement.longest_burst is None:
        return f"; {NO_PASS_WITHOUT_MISSES}"
    needed = sequential.events_upper(0, requirement.confidence) * requirement.longest_burst
    n = words.round_up(needed / requirement.miss_rate)
    return f", at least {words.counted(n, 'activation')} and {words.duration(MINIMUM_DURATION_NS)} {where}"


def _own_cautions(
    requirement: Requirement, ending: Ending, off_path: Sequence[tuple[str, ApproachRating]]
) -> list[str]:
    cautions = []
    if 0 < requirement.miss_rate < 0.05:
        cautions.append(
            "The paper's chart has two sides, 95 % and 100 %. A requirement that allows misses takes the "
            f"side of 95 %, and is judged at its own rate, {words.rate(requirement.miss_rate)}"
        )
    good = [name for name, rating in off_path if rating.grade is Grade.GOOD]
    if good and requirement.miss_rate == 0 and ending is not Ending.DELIVER:
        cautions.append(
            f"Measured as good, but off the path: {', '.join(good)}. For 100 % the paper starts with Xenomai, "
            "since a path independent of Linux makes rare events less likely; the measurement allows no "
            "conclusion about events rarer than it can detect"
        )
    return cautions
