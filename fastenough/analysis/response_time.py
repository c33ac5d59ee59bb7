# SPDX-License-Identifier: GPL-2.0-or-later
"""Response-time analysis: whether each task of a CPU meets its deadline for all phases of the other tasks.

Fixed priorities, preemptive, one CPU.  Deadlines may lie behind the next release: every job of the busy period is
looked at.  Sources: Joseph and Pandya, "Finding response times in a real-time system" (1986); Lehoczky, "Fixed priority
scheduling of periodic task sets with arbitrary deadlines" (1990); Audsley, Burns, Richardson, Tindell and Wellings,
"Applying new scheduling theory to static priority pre-emptive scheduling" (1993); Tindell, Burns and Wellings, "An
extendible approach for analysing fixed priority hard real-time tasks" (1994); Burns, Tindell and Wellings, "Effective
analysis for engineering real-time fixed priority schedulers" (1995), for the timers of all tasks.  All times are whole
nanoseconds, and all sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

MOST_STEPS = 2_000
"""Greatest number of steps for one task; a task that needs more is undecided."""
SHARES = 10_000
"""Steps per unit in the search for a factor on the compute times."""


@dataclass(frozen=True)
class PeriodicTask:
    """A sporadic task: at most one job in ``period_ns``, each taking ``compute_ns`` at most.

    ``deadline_ns`` and the response time count from the instant at which a job is due.  ``jitter_ns``: greatest delay
    of its release.  ``blocking_ns``: longest time for which a task of lower priority holds a resource that it needs.  A
    task of higher ``priority`` preempts.
    """

    name: str
    period_ns: int
    compute_ns: int
    deadline_ns: int
    priority: int = 0
    jitter_ns: int = 0
    blocking_ns: int = 0


@dataclass(frozen=True)
class Arrivals:
    """Greatest number of events in a window, from counts in successive intervals of ``interval_ns``.

    ``maximum_counts``: the greatest count of one interval, of two successive ones, and so on.  The times of events
    within an interval are unknown: all may occur at once, at its begin or its end.
    """

    interval_ns: int
    maximum_counts: tuple[int, ...]

    def within(self, window_ns: int) -> int:
        """Greatest number of events in any window of this length, which may overlap one interval more than fit into it.

        A window longer than all counted lengths has at most the sum of its parts.
        """
        repetitions, remaining = divmod(-(-window_ns // self.interval_ns) + 1, len(self.maximum_counts))
        return repetitions * self.maximum_counts[-1] + (self.maximum_counts[remaining - 1] if remaining else 0)

    @property
    def per_ns(self) -> Fraction:
        """In the long run."""
        return Fraction(self.maximum_counts[-1], len(self.maximum_counts) * self.interval_ns)


@dataclass(frozen=True)
class Interference:
    """Time taken from every task: ``cost_ns`` per event, with the densest of the observed arrivals."""

    name: str
    cost_ns: int
    arrivals: tuple[Arrivals, ...]

    def within(self, window_ns: int) -> int:
        """Greatest time taken in any window of this length, in ns."""
        return max(arrivals.within(window_ns) for arrivals in self.arrivals) * self.cost_ns

    @property
    def most_together(self) -> int:
        """Greatest number of events at one instant."""
        return max(arrivals.within(1) for arrivals in self.arrivals)

    @property
    def utilisation(self) -> Fraction:
        """In the long run."""
        return max(arrivals.per_ns for arrivals in self.arrivals) * self.cost_ns


@dataclass(frozen=True)
class Terms:
    """Terms of the machine.  ``release_ns``: greatest delay of the start of a job; ``dispatch_ns``: CPU time of each
    job beside its compute time, also taken from tasks of higher priority and late jobs, which its timer interrupts."""

    release_ns: int = 0
    dispatch_ns: int = 0
    interference: tuple[Interference, ...] = ()


NO_TERMS = Terms()
"""A machine without overhead."""


class DeadlineResult(StrEnum):
    """Whether a task meets its deadline."""

    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class ResponseTime:
    """The longest response time of a task; if the deadline is missed, the first response time that is too long.

    ``response_ns`` None: response times grow without bound, or there are too many jobs to examine.
    """

    task: PeriodicTask
    deadline_result: DeadlineResult
    response_ns: int | None

    @property
    def slack_ns(self) -> int | None:
        """Time left before the deadline."""
        return None if self.response_ns is None else self.task.deadline_ns - self.response_ns


@dataclass(frozen=True)
class Margin:
    """Margin of a task set: ``factor`` on all compute times (rounded down), or ``added_ns`` on the delay of every
    release; less than 1 and None if the set is not schedulable."""

    factor: float
    added_ns: int | None


@dataclass(frozen=True)
class _Demand:
    """Demand of a task of higher priority: its jobs are due ``period_ns`` apart and released up to ``jitter_ns``
    later."""

    period_ns: int
    cost_ns: int
    jitter_ns: int

    def within(self, window_ns: int) -> int:
        """Time demanded in a window that begins after its longest delay."""
        return -(-(window_ns + self.jitter_ns) // self.period_ns) * self.cost_ns

    @property
    def utilisation(self) -> Fraction:
        return Fraction(self.cost_ns, self.period_ns)


class _PrecedingDemand:
    """Demand that precedes a task, and completion times behind it; an object serves one task, since it counts steps."""

    def __init__(self, jobs: Sequence[_Demand], interference: Sequence[Interference]) -> None:
        self._demands: tuple[_Demand | Interference, ...] = (*jobs, *interference)
        self._steps = MOST_STEPS
        self._of_jobs = sum((demand.utilisation for demand in jobs), Fraction())
        self.utilisation = self._of_jobs + sum((demand.utilisation for demand in interference), Fraction())
        self._early = sum((demand.utilisation * demand.jitter_ns for demand in jobs), Fraction())

    def _least_ns(self, work_ns: int) -> int:
        """Lower bound of the completion time: without interference, and without rounding up to whole jobs."""
        free = 1 - self._of_jobs
        work = work_ns * self._early.denominator + self._early.numerator
        return -(-work * free.denominator // (self._early.denominator * free.numerator))

    def done_ns(self, work_ns: int, late_ns: int) -> int | None:
        """Completion time of ``work_ns``: the least w that equals the work and the preceding demand in w, approached
        from below.

        Stops beyond ``late_ns``, where more makes no difference.  None: too many steps.
        """
        if self.utilisation >= 1:
            return None
        window_ns = self._least_ns(work_ns)
        while self._steps > 0:
            self._steps -= 1
            needed_ns = work_ns + sum(demand.within(window_ns) for demand in self._demands)
            if needed_ns == window_ns or window_ns > late_ns:
                return window_ns
            window_ns = needed_ns
        return None


def responses(
    tasks: Sequence[PeriodicTask], terms: Terms = NO_TERMS, *, peers_first: bool = True
) -> tuple[ResponseTime, ...]:
    """The longest response time of each task, in the order of the tasks.

    Tasks of equal priority are served in the order of release.  With ``peers_first``, the others are assumed to run
    before a task, which overstates its response time; without it, to run after the task and to cause no blocking but
    its own ``blocking_ns``, which understates it, as does leaving out the wake-ups of tasks of lower priority.
    """
    return tuple(_responses(tasks, terms, peers_first))


def _responses(tasks: Sequence[PeriodicTask], terms: Terms, peers_first: bool) -> Iterator[ResponseTime]:
    for number, task in enumerate(tasks):
        others = [other for place, other in enumerate(tasks) if place != number]
        first = [
            other
            for other in others
            if other.priority > task.priority or (peers_first and other.priority == task.priority)
        ]
        lower = [other for other in others if other.priority < task.priority]
        yield (
            _response_behind(task, first, lower, terms)
            if peers_first
            else _least_response(task, first, terms, task.blocking_ns)
        )


def schedulable(tasks: Sequence[PeriodicTask], terms: Terms = NO_TERMS) -> bool:
    """Whether every task is shown to keep its deadline."""
    return all(response.deadline_result is DeadlineResult.MET for response in _responses(tasks, terms, True))


def _demand(task: PeriodicTask, terms: Terms) -> _Demand:
    return _Demand(task.period_ns, task.compute_ns + terms.dispatch_ns, task.jitter_ns + terms.release_ns)


def _blocking_ns(task: PeriodicTask, first: Sequence[PeriodicTask]) -> int:
    """Longest blocking by tasks of lower priority: once for the task's own resources, and once for those of each
    task in ``first``, since their holder inherits that priority and precedes this task, too."""
    return task.blocking_ns + sum(other.blocking_ns for other in first)


def _wakeup(task: PeriodicTask, terms: Terms) -> _Demand:
    """Demand of the timer of each job of a task, which interrupts the task that runs."""
    return _Demand(task.period_ns, terms.dispatch_ns, task.jitter_ns + terms.release_ns)


def _response_behind(
    task: PeriodicTask, first: Sequence[PeriodicTask], lower: Sequence[PeriodicTask], terms: Terms
) -> ResponseTime:
    """``first``: tasks that precede this one; ``lower``: tasks that it precedes.

    All their timers interrupt it, and so does its own, which may expire while an earlier job is late.
    """
    preceding = [*(_demand(other, terms) for other in first), *(_wakeup(other, terms) for other in (*lower, task))]
    own = replace(_demand(task, terms), cost_ns=task.compute_ns)
    return _response(task, own, _PrecedingDemand(preceding, terms.interference), _blocking_ns(task, first))


def _least_response(task: PeriodicTask, first: Sequence[PeriodicTask], terms: Terms, blocking_ns: int) -> ResponseTime:
    """With no time for wake-ups but those of ``first`` and its own."""
    before = _PrecedingDemand([_demand(other, terms) for other in first], terms.interference)
    return _response(task, _demand(task, terms), before, blocking_ns)


def _response(task: PeriodicTask, demand: _Demand, before: _PrecedingDemand, blocking_ns: int) -> ResponseTime:
    """``demand``: of the task itself; ``before``: what precedes it."""
    if before.utilisation + demand.utilisation > 1:
        return ResponseTime(task, DeadlineResult.MISSED, None)
    longest_ns = 0
    for job in range(MOST_STEPS):
        done_ns = before.done_ns(
            blocking_ns + (job + 1) * demand.cost_ns, task.deadline_ns + job * task.period_ns - demand.jitter_ns
        )
        if done_ns is None:
            break
        longest_ns = max(longest_ns, demand.jitter_ns + done_ns - job * task.period_ns)
        if longest_ns > task.deadline_ns:
            return ResponseTime(task, DeadlineResult.MISSED, longest_ns)
        if done_ns + demand.jitter_ns <= (job + 1) * task.period_ns:
            return ResponseTime(task, DeadlineResult.MET, longest_ns)
    return ResponseTime(task, DeadlineResult.UNDECIDED, None)


def margin(tasks: Sequence[PeriodicTask], terms: Terms = NO_TERMS) -> Margin:
    """Margins by bisection: a set that is schedulable with more demand is schedulable with less."""
    greatest = SHARES * max(1, min(task.deadline_ns // task.compute_ns for task in tasks) + 1)
    share = _greatest(greatest, lambda share: schedulable([_scaled(task, share) for task in tasks], terms))
    longest_ns = max(task.deadline_ns for task in tasks)
    added_ns = _greatest(
        longest_ns, lambda added_ns: schedulable(tasks, replace(terms, release_ns=terms.release_ns + added_ns))
    )
    return Margin(max(0, share) / SHARES, added_ns if added_ns >= 0 else None)


def _scaled(task: PeriodicTask, share: int) -> PeriodicTask:
    return replace(task, compute_ns=-(-task.compute_ns * share // SHARES))


def _greatest(limit: int, holds: Callable[[int], bool]) -> int:
    """The greatest number up to ``limit`` for which ``holds`` is true, which is then true for all below; -1: not
    even for 0."""
    low, high = -1, limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def with_priorities(tasks: Sequence[PeriodicTask], terms: Terms = NO_TERMS) -> tuple[PeriodicTask, ...]:
    """The tasks, in their order, with priorities under which all deadlines are met, if there are any.

    Audsley, "Optimal priority assignment and feasibility of static priority tasks with arbitrary start times" (1991): a
    task that meets its deadline below all others gets the lowest priority.  If there is none, the task with the latest
    deadline gets it, and the set is not schedulable.
    """
    priorities: dict[int, int] = {}
    waiting = list(range(len(tasks)))
    while waiting:
        behind = sorted(waiting, key=lambda place: tasks[place].deadline_ns - tasks[place].jitter_ns, reverse=True)
        fitting = (
            place
            for place in behind
            if _response_behind(
                tasks[place],
                [tasks[other] for other in waiting if other != place],
                [tasks[other] for other in priorities],
                terms,
            ).deadline_result
            is DeadlineResult.MET
        )
        lowest = next(fitting, behind[0])
        priorities[lowest] = len(priorities) + 1
        waiting.remove(lowest)
    return tuple(replace(task, priority=priorities[place]) for place, task in enumerate(tasks))


def never_schedulable(tasks: Sequence[PeriodicTask], *, assign_priorities: bool = False) -> tuple[str, ...]:
    """Why a deadline is missed in the worst case of the stated tasks, on a CPU without overhead; empty if all are met,
    or if that is undecided.  ``assign_priorities``: no order of priorities meets all deadlines.

    Without jitter the worst case is exact: it takes no more than all tasks due at once, each with all of its compute
    time.
    """
    used = sum((Fraction(task.compute_ns, task.period_ns) for task in tasks), Fraction())
    if used > 1:
        percent = f"{float(used) * 100:.4g}"
        return (f"the tasks {_named(tasks)} require {'more than 100' if percent == '100' else percent} % of one CPU",)
    if not assign_priorities:
        return tuple(
            _misses(response.task)
            for response in responses(tasks, peers_first=False)
            if response.deadline_result is DeadlineResult.MISSED
        )
    ordered = with_priorities(tasks)
    late = [response.task for response in responses(ordered) if response.deadline_result is not DeadlineResult.MET]
    rivals = [task for task in ordered if late and task.priority >= min(response.priority for response in late)]
    if any(_fits_below(task, [other for other in rivals if other is not task]) for task in rivals):
        return ()
    if len(rivals) == 1:
        return (_misses(rivals[0]),)
    return (f"no order of priorities meets all deadlines of {_named(rivals)}",) if rivals else ()


def _fits_below(task: PeriodicTask, first: Sequence[PeriodicTask]) -> bool:
    """Whether the task may meet its deadline below these.  One of them may be the holder of the resource that it needs:
    then it waits for the compute time of that task only."""
    blocking_ns = 0 if first else task.blocking_ns
    return _least_response(task, first, NO_TERMS, blocking_ns).deadline_result is not DeadlineResult.MISSED


def _misses(task: PeriodicTask) -> str:
    return f"task {task.name} misses its deadline even without any time taken by the system"


def _named(tasks: Sequence[PeriodicTask]) -> str:
    return ", ".join(task.name for task in tasks)
