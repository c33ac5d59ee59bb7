# SPDX-License-Identifier: GPL-2.0-or-later
"""Response-time analysis: whether each task of a CPU meets its deadline for all phases of the other tasks.

Fixed priorities, preemptive, one CPU.  Deadlines may lie behind the next release: every job of the busy period is
looked at.  Sources: Joseph and Pandya, "Finding response times in a real-time system" (1986); Lehoczky, "Fixed priority
scheduling of periodic task sets with arbitrary deadlines" (1990); Audsley, Burns, Richardson, Tindell and Wellings,
"Applying new scheduling theory to static priority pre-emptive scheduling" (1993); Tindell, Burns and Wellings, "An
extendible approach for analysing fixed priority hard real-time tasks" (1994).  All times are whole nanoseconds, and all
sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

MOST_STEPS = 2_000
"""So many steps are taken for one task; what needs more is not settled."""
SHARES = 10_000
"""A factor on the compute times is looked for in steps of one in so many."""


@dataclass(frozen=True)
class PeriodicTask:
    """Work that comes again: at most one job in ``period_ns``, each taking ``compute_ns`` at most.

    ``deadline_ns`` and the response count from the instant at which a job was due.  ``jitter_ns``: how much later than
    due it may be released; ``blocking_ns``: how long a task of lower priority may hold what it needs.  A higher
    ``priority`` goes first.
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
    """How many events at most come in a time, from counts in stretches of ``stretch_ns`` that follow each other.

    ``most``: in one stretch, in two that follow each other, and so on: the densest of each length that was observed.
    Where within a stretch its events came is not known: all of them may have come at once, at its end or its begin.
    """

    stretch_ns: int
    most: tuple[int, ...]

    def within(self, window_ns: int) -> int:
        """In any window of this length, wherever it begins: it touches one stretch more than it is long.

        What is longer than all lengths that were looked at has at most what its parts have.
        """
        repetitions, remaining = divmod(-(-window_ns // self.stretch_ns) + 1, len(self.most))
        return repetitions * self.most[-1] + (self.most[remaining - 1] if remaining else 0)

    @property
    def per_ns(self) -> Fraction:
        """In the long run."""
        return Fraction(self.most[-1], len(self.most) * self.stretch_ns)


@dataclass(frozen=True)
class Interference:
    """What takes the CPU from every task: ``cost_ns`` each time, as often as the worst of some observed arrivals."""

    name: str
    cost_ns: int
    arrivals: tuple[Arrivals, ...]

    def within(self, window_ns: int) -> int:
        """What it takes of any window of this length."""
        return max(arrivals.within(window_ns) for arrivals in self.arrivals) * self.cost_ns

    @property
    def most_together(self) -> int:
        """How many may come at one instant."""
        return max(arrivals.within(1) for arrivals in self.arrivals)

    @property
    def utilisation(self) -> Fraction:
        """In the long run."""
        return max(arrivals.per_ns for arrivals in self.arrivals) * self.cost_ns


@dataclass(frozen=True)
class Terms:
    """What the machine adds.  ``release_ns``: a job starts so much later than due; ``dispatch_ns``: what each job of a
    task costs the CPU beside its compute time."""

    release_ns: int = 0
    dispatch_ns: int = 0
    interference: tuple[Interference, ...] = ()


NO_TERMS = Terms()
"""A machine that takes no time for itself."""


class DeadlineResult(StrEnum):
    """Whether a task answers in time."""

    YES = "kept"
    NO = "missed"
    UNSETTLED = "not settled"


@dataclass(frozen=True)
class ResponseTime:
    """The longest response of a task; where the deadline is missed the first one found that is too long.

    ``response_ns`` None: responses grow without end, or there are too many jobs to look at.
    """

    task: PeriodicTask
    kept: DeadlineResult
    response_ns: int | None

    @property
    def slack_ns(self) -> int | None:
        """What is left before the deadline."""
        return None if self.response_ns is None else self.task.deadline_ns - self.response_ns


@dataclass(frozen=True)
class Margin:
    """How much more the set would bear: all compute times times ``factor`` (rounded down), or every release later by
    ``added_ns``; less than 1 and None where it is not schedulable as it is."""

    factor: float
    added_ns: int | None


@dataclass(frozen=True)
class _Demand:
    """What goes first: its jobs come ``period_ns`` apart, the first so much earlier."""

    period_ns: int
    cost_ns: int
    jitter_ns: int

    def within(self, window_ns: int) -> int:
        """What it takes of a window that begins when it has waited for longest."""
        return -(-(window_ns + self.jitter_ns) // self.period_ns) * self.cost_ns

    @property
    def utilisation(self) -> Fraction:
        return Fraction(self.cost_ns, self.period_ns)


class _Before:
    """What goes before a task, and how long it lets work of the task take; for one task, since steps are counted."""

    def __init__(self, jobs: Sequence[_Demand], interference: Sequence[Interference]) -> None:
        self._demands: tuple[_Demand | Interference, ...] = (*jobs, *interference)
        self._steps = MOST_STEPS
        self._of_jobs = sum((demand.utilisation for demand in jobs), Fraction())
        self.utilisation = self._of_jobs + sum((demand.utilisation for demand in interference), Fraction())
        self._early = sum((demand.utilisation * demand.jitter_ns for demand in jobs), Fraction())

    def _least_ns(self, work_ns: int) -> int:
        """When it would be done without interference, and if nothing were rounded up to whole jobs: never later than
        it is."""
        free = 1 - self._of_jobs
        work = work_ns * self._early.denominator + self._early.numerator
        return -(-work * free.denominator // (self._early.denominator * free.numerator))

    def done_ns(self, work_ns: int, late_ns: int) -> int | None:
        """When so much work is done: the least w that is the work and what goes before it in w, looked for from below.

        Given up behind ``late_ns``, where more makes no difference.  None: it took too many steps.
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
    """The longest response of each task, in their order.

    Tasks of equal priority are served in the order of release: a task's peers are taken to go first, which overstates
    its response; without ``peers_first`` to go behind it, and to be who holds what others need, which understates it.
    """
    return tuple(_responses(tasks, terms, peers_first))


def _responses(tasks: Sequence[PeriodicTask], terms: Terms, peers_first: bool) -> Iterator[ResponseTime]:
    for number, task in enumerate(tasks):
        first = [
            other
            for place, other in enumerate(tasks)
            if place != number and (other.priority > task.priority or (peers_first and other.priority == task.priority))
        ]
        yield _behind(task, first, terms) if peers_first else _response(task, first, terms, task.blocking_ns)


def schedulable(tasks: Sequence[PeriodicTask], terms: Terms = NO_TERMS) -> bool:
    """Whether every task is shown to keep its deadline."""
    return all(response.kept is DeadlineResult.YES for response in _responses(tasks, terms, True))


def _demand(task: PeriodicTask, terms: Terms) -> _Demand:
    return _Demand(task.period_ns, task.compute_ns + terms.dispatch_ns, task.jitter_ns + terms.release_ns)


def _blocking_ns(task: PeriodicTask, first: Sequence[PeriodicTask]) -> int:
    """For how long tasks of lower priority may keep it waiting: once for what it needs itself, and once for what each
    of those that go first needs, since whoever holds that inherits their priority, and goes before this task too."""
    return task.blocking_ns + sum(other.blocking_ns for other in first)


def _behind(task: PeriodicTask, first: Sequence[PeriodicTask], terms: Terms) -> ResponseTime:
    return _response(task, first, terms, _blocking_ns(task, first))


def _response(task: PeriodicTask, first: Sequence[PeriodicTask], terms: Terms, blocking_ns: int) -> ResponseTime:
    demand = _demand(task, terms)
    before = _Before([_demand(other, terms) for other in first], terms.interference)
    if before.utilisation + demand.utilisation > 1:
        return ResponseTime(task, DeadlineResult.NO, None)
    longest_ns = 0
    for job in range(MOST_STEPS):
        done_ns = before.done_ns(
            blocking_ns + (job + 1) * demand.cost_ns, task.deadline_ns + job * task.period_ns - demand.jitter_ns
        )
        if done_ns is None:
            break
        longest_ns = max(longest_ns, demand.jitter_ns + done_ns - job * task.period_ns)
        if longest_ns > task.deadline_ns:
            return ResponseTime(task, DeadlineResult.NO, longest_ns)
        if done_ns + demand.jitter_ns <= (job + 1) * task.period_ns:
            return ResponseTime(task, DeadlineResult.YES, longest_ns)
    return ResponseTime(task, DeadlineResult.UNSETTLED, None)


def margin(tasks: Sequence[PeriodicTask], terms: Terms = NO_TERMS) -> Margin:
    """By bisection: a set that bears more bears less."""
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
    """The greatest number up to ``limit`` for which ``holds`` is true, as for all below it; -1: not even for 0."""
    low, high = -1, limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def with_priorities(tasks: Sequence[PeriodicTask], terms: Terms = NO_TERMS) -> tuple[PeriodicTask, ...]:
    """The tasks, in their order, with priorities under which all deadlines are kept, where there are any.

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
            if _behind(tasks[place], [tasks[other] for other in waiting if other != place], terms).kept
            is DeadlineResult.YES
        )
        lowest = next(fitting, behind[0])
        priorities[lowest] = len(priorities) + 1
        waiting.remove(lowest)
    return tuple(replace(task, priority=priorities[place]) for place, task in enumerate(tasks))


def never_schedulable(tasks: Sequence[PeriodicTask], *, chosen: bool = False) -> tuple[str, ...]:
    """Why a deadline is missed in the worst case that the tasks themselves state, on a CPU that takes no time for
    itself; empty where that is not so, or not settled.  ``chosen``: under any order of priorities.

    Without jitter the worst case is exact: it takes no more than all tasks due at once, each with all of its compute
    time.
    """
    used = sum((Fraction(task.compute_ns, task.period_ns) for task in tasks), Fraction())
    if used > 1:
        return (f"the tasks {_named(tasks)} require {float(used) * 100:.4g} % of one CPU",)
    if not chosen:
        return tuple(
            _misses(response.task)
            for response in responses(tasks, peers_first=False)
            if response.kept is DeadlineResult.NO
        )
    ordered = with_priorities(tasks)
    late = [response.task for response in responses(ordered) if response.kept is not DeadlineResult.YES]
    rivals = [task for task in ordered if late and task.priority >= min(response.priority for response in late)]
    if any(
        _response(task, [other for other in rivals if other is not task], NO_TERMS, task.blocking_ns).kept
        is not DeadlineResult.NO
        for task in rivals
    ):
        return ()
    if len(rivals) == 1:
        return (_misses(rivals[0]),)
    return (f"no order of priorities meets all deadlines of {_named(rivals)}",) if rivals else ()


def _misses(task: PeriodicTask) -> str:
    return f"task {task.name} misses its deadline even without any time taken by the system"


def _named(tasks: Sequence[PeriodicTask]) -> str:
    return ", ".join(task.name for task in tasks)
