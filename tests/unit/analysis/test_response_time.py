# SPDX-License-Identifier: GPL-2.0-or-later
"""Response-time analysis against the literature's own examples, and against simulating each instant."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from fastenough.analysis.response_time import (
    SHARES,
    Arrivals,
    DeadlineResult,
    Interference,
    PeriodicTask,
    Terms,
    margin,
    never_schedulable,
    responses,
    schedulable,
    with_priorities,
)
from fastenough.analysis.task_set import most_in_stretches


def _task(period: int, compute: int, deadline: int | None = None, priority: int = 0, **more: int) -> PeriodicTask:
    return PeriodicTask(f"{period}", period, compute, deadline or period, priority, **more)


def _ordered(*tasks: PeriodicTask) -> list[PeriodicTask]:
    """The first goes first."""
    return [replace(task, priority=len(tasks) - place) for place, task in enumerate(tasks)]


# --- examples with known answers


@pytest.mark.parametrize(
    ("tasks", "known"),
    [
        # Burns and Wellings, Real-Time Systems and Programming Languages, chapter on scheduling, task sets A, C and D
        ([_task(30, 10), _task(40, 10), _task(50, 12)], [10, 20, 52]),
        ([_task(20, 5), _task(40, 10), _task(80, 40)], [5, 15, 80]),
        ([_task(7, 3), _task(12, 3), _task(20, 5)], [3, 6, 20]),
        # Lehoczky 1990, example 1: the responses of the second task's jobs are 114, 102, 116, 104, 118, 106, 94
        ([_task(70, 26), _task(100, 62, 118)], [26, 118]),
        # Liu and Layland: harmonic periods, all of the CPU
        ([_task(2, 1), _task(4, 1), _task(8, 2)], [1, 2, 8]),
    ],
)
def test_the_literatures_examples(tasks: list[PeriodicTask], known: list[int]) -> None:
    found = responses(_ordered(*tasks))
    assert [one.response_ns for one in found] == known
    assert [one.deadline_result for one in found] == [
        DeadlineResult.MET if response <= task.deadline_ns else DeadlineResult.MISSED
        for task, response in zip(tasks, known, strict=True)
    ]


def test_every_job_of_the_busy_period_is_looked_at() -> None:
    """Lehoczky's second task: its first job takes 114, its fifth 118."""
    assert schedulable(_ordered(_task(70, 26), _task(100, 62, 118)))
    assert not schedulable(_ordered(_task(70, 26), _task(100, 62, 117)))


def test_terms_of_the_machine_each_have_their_place() -> None:
    """By hand: two tasks, 10 in 100 and 20 in 200."""
    tasks = _ordered(_task(100, 10), _task(200, 20))

    def found(terms: Terms, more: Sequence[PeriodicTask] = tasks) -> list[int | None]:
        return [one.response_ns for one in responses(more, terms)]

    assert found(Terms()) == [10, 30]
    assert found(Terms(release_ns=5)) == [15, 35]
    assert found(Terms(release_ns=71)) == [81, 111], "the first task comes again 29 after it was late"
    assert found(Terms(dispatch_ns=3)) == [10 + 3 + 3, 36], "the timer of the second interrupts the first"
    interrupt = Interference("interrupt", 4, (Arrivals(25, (1,)),))
    assert found(Terms(interference=(interrupt,))) == [18, 42], "the end of one stretch and the begin of the next"
    burst = Interference("burst", 4, (Arrivals(25, (5, 5, 6)),))
    assert found(Terms(interference=(burst,))) == [10 + 6 * 4, 30 + (6 + 5) * 4], "three stretches, and four"
    assert found(Terms(interference=(replace(burst, arrivals=(*burst.arrivals, *interrupt.arrivals)),))) == [34, 74]
    assert found(Terms(), [replace(tasks[0], blocking_ns=7), tasks[1]]) == [17, 37]
    assert found(Terms(), [replace(tasks[0], jitter_ns=95), tasks[1]]) == [105, 40]


def test_who_is_waited_for_inherits_priority_and_delays_those_between_too() -> None:
    """By hand: the lowest holds what the first needs for 4 more when both others come.  It has the first one's priority
    then, so that the second, which needs nothing, waits for the 4, for the first one's 2, and takes 5."""
    tasks = _ordered(_task(20, 2, blocking_ns=4), _task(20, 5), _task(40, 10))
    assert [one.response_ns for one in responses(tasks)] == [6, 11, 28]
    holds_itself = _ordered(_task(20, 10, blocking_ns=5), _task(20, 6, 18))
    assert not schedulable(holds_itself)
    assert never_schedulable(holds_itself) == (), "the second may be who holds it, and its compute time has it already"


def test_more_than_the_cpu_has_is_missed_without_end() -> None:
    found = responses(_ordered(_task(10, 6), _task(10, 5, 10**9)))
    assert [(one.deadline_result, one.response_ns, one.slack_ns) for one in found] == [
        (DeadlineResult.MET, 6, 4),
        (DeadlineResult.MISSED, None, None),
    ]


def test_a_little_more_than_the_cpu_has_is_not_all_of_it() -> None:
    (reason,) = never_schedulable([_task(1_000_000, 1_000_001)])
    assert "more than 100 %" in reason


def test_peers_go_first_or_last() -> None:
    """Tasks of equal priority: one's response lies between the two."""
    tasks = [_task(10, 3, priority=5), _task(20, 4, priority=5)]
    assert [one.response_ns for one in responses(tasks)] == [7, 7]
    assert [one.response_ns for one in responses(tasks, peers_first=False)] == [3, 4]


# --- against simulation of each instant


def _simulated(
    tasks: Sequence[PeriodicTask],
    offsets: Sequence[int],
    late: Sequence[Sequence[int]],
    until: int,
    gaps: Mapping[int, int] | None = None,
) -> list[int]:
    """The longest response of each task: one unit of time after the other, the highest priority that waits runs.

    Job n of task i is due at its offset + n periods and released ``late[i][n]`` after, never before the one before it.
    ``gaps``: what takes the CPU from all of them, from which instant on and for how long.
    """
    jobs = [
        (task.priority, at, offsets[at] + number * task.period_ns, late[at][number % len(late[at])])
        for at, task in enumerate(tasks)
        for number in range(until // task.period_ns)
    ]
    left = {job: tasks[job[1]].compute_ns for job in jobs}
    gap = len(tasks)
    left |= {(10**6, gap, instant, 0): cost for instant, cost in (gaps or {}).items()}
    longest = [0] * (len(tasks) + 1)
    for now in range(2 * until):
        ready = [job for job in left if job[2] + job[3] <= now]
        if not ready:
            if not left:
                break
            continue
        job = max(ready, key=lambda one: (one[0], -one[2]))
        left[job] -= 1
        if not left[job]:
            del left[job]
            longest[job[1]] = max(longest[job[1]], now + 1 - job[2])
    return longest[:gap]


def _random_set(chance: random.Random, most_jitter: int) -> list[PeriodicTask]:
    tasks = [
        _task(period, chance.randint(1, max(1, period // 2)), 10**6, jitter_ns=chance.randint(0, most_jitter))
        for period in (chance.randint(3, 9) for _ in range(chance.randint(2, 3)))
    ]
    return _ordered(*tasks)


def _random_sets(seed: int, most_jitter: int, many: int) -> list[tuple[list[PeriodicTask], list[int]]]:
    """Sets that have longest responses, and what the analysis says these are."""
    chance = random.Random(seed)
    found: list[tuple[list[PeriodicTask], list[int]]] = []
    while len(found) < many:
        tasks = _random_set(chance, most_jitter)
        bounds = [one.response_ns for one in responses(tasks)]
        load = sum(task.compute_ns / task.period_ns for task in tasks)
        if load < 0.95 and None not in bounds:
            found.append((tasks, [bound for bound in bounds if bound is not None]))
    return found


def test_no_phase_makes_a_response_longer_and_none_together_reaches_it() -> None:
    """All offsets of small sets; where all are due at once and nothing is late, the analysis is exact."""
    for tasks, bounds in _random_sets(1, 0, 15):
        nothing_late = [[0]] * len(tasks)
        assert _simulated(tasks, [0] * len(tasks), nothing_late, 120) == bounds, tasks
        for offsets in itertools.product(*(range(task.period_ns) for task in tasks[1:])):
            longest = _simulated(tasks, [0, *offsets], nothing_late, 40)
            assert all(seen <= bound for seen, bound in zip(longest, bounds, strict=True)), (tasks, offsets)


def test_no_lateness_makes_a_response_longer_and_the_worst_reaches_it() -> None:
    """Random offsets and latenesses; and the worst: all first jobs as late as can be, at once, and none after them."""
    chance = random.Random(2)
    for tasks, bounds in _random_sets(3, 4, 25):
        for _ in range(30):
            late = [[chance.randint(0, task.jitter_ns) for _ in range(11)] for task in tasks]
            longest = _simulated(tasks, [chance.randrange(task.period_ns) for task in tasks], late, 60)
            assert all(seen <= bound for seen, bound in zip(longest, bounds, strict=True)), tasks
        longest_jitter = max(task.jitter_ns for task in tasks)
        at_once = [longest_jitter - task.jitter_ns for task in tasks]
        worst = _simulated(
            tasks,
            at_once,
            [[max(0, task.jitter_ns - number * task.period_ns) for number in range(60)] for task in tasks],
            120,
        )
        assert worst == bounds, tasks


def _bunched(chance: random.Random, counts: Sequence[int], stretch: int) -> Counter[int]:
    """Instants of so many gaps in each stretch: all at its begin, at its end, or anywhere in it."""
    found: Counter[int] = Counter()
    for place, count in enumerate(counts):
        where = chance.choice(("begin", "end", "anywhere"))
        for _ in range(count):
            within = {"begin": 0, "end": stretch - 1}.get(where, chance.randrange(stretch))
            found[place * stretch + within] += 1
    return found


def test_no_bunch_of_gaps_makes_a_response_longer() -> None:
    """Counts of each stretch are what is known; simulated with every phase that chance gives."""
    chance, reached, tried = random.Random(12), 0, 0
    for tasks, _ in _random_sets(5, 0, 12):
        stretch, cost = chance.randint(8, 15), chance.randint(1, 2)
        counts = [chance.choice((0, 0, 0, 0, 1, 4)) for _ in range(8)]
        arrivals = Arrivals(stretch, most_in_stretches(np.array(counts)))
        terms = Terms(interference=(Interference("gap", cost, (arrivals,)),))
        bounds = [one.response_ns for one in responses(tasks, terms)]
        if not sum(counts) or None in bounds:
            continue
        longest = [0] * len(tasks)
        for _ in range(60):
            gaps = _bunched(chance, counts, stretch)
            offsets = [chance.randrange(task.period_ns) for task in tasks]
            seen = _simulated(
                tasks,
                offsets,
                [[0]] * len(tasks),
                8 * stretch,
                {instant: many * cost for instant, many in gaps.items()},
            )
            longest = list(map(max, longest, seen))
        tried += 1
        reached += longest[0] == bounds[0]
        assert all(seen <= bound for seen, bound in zip(longest, bounds, strict=True) if bound is not None), tasks
    assert tried >= 5 and reached >= tried / 2, "and it is not far from what comes"


@pytest.mark.check
@pytest.mark.parametrize("late", [False, True])
def test_no_timer_makes_a_response_longer(late: bool) -> None:
    """Each wake-up takes its time from all tasks at the instant at which its job is due; the worst phase reaches it.

    ``late``: the last task still computes when its next job is due."""
    chance, reached, tried = random.Random(7), 0, 0
    while tried < 12:
        numbers = [(chance.randint(9, 15), chance.randint(1, 4)) for _ in range(3)]
        tasks = _ordered(*(_task(period, compute, 3 * period) for period, compute in numbers))
        dispatch_ns = chance.randint(1, 2)
        bounds = [one.response_ns for one in responses(tasks, Terms(dispatch_ns=dispatch_ns))]
        overrun = [bound is None or bound > task.period_ns for bound, task in zip(bounds, tasks, strict=True)]
        if None in bounds or overrun != [False, False, late]:
            continue
        tried += 1
        longest = [0] * len(tasks)
        for offsets in itertools.product(*(range(task.period_ns) for task in tasks[1:])):
            due = Counter(
                at for task, first in zip(tasks, (0, *offsets), strict=True) for at in range(first, 180, task.period_ns)
            )
            wakeups = {at: many * dispatch_ns for at, many in due.items()}
            seen = _simulated(tasks, [0, *offsets], [[0]] * len(tasks), 120, wakeups)
            longest = list(map(max, longest, seen))
        assert all(time <= bound for time, bound in zip(longest, bounds, strict=True) if bound is not None), tasks
        reached += longest == bounds
    assert reached == tried


def test_ten_gaps_may_come_together() -> None:
    """4 ms of computing with a deadline of 5 ms, and ten gaps of 400 us in one second."""
    task = PeriodicTask("loop", 10_000_000, 4_000_000, 5_000_000)
    terms = Terms(interference=(Interference("gap", 400_000, (Arrivals(500_000_000, (10, 10)),)),))
    (found,) = responses([replace(task, deadline_ns=10_000_000)], terms)
    assert found.response_ns == 8_000_000
    assert not schedulable([task], terms)


# --- priorities


def test_priorities_are_found_wherever_there_are_any() -> None:
    """Against all orders; among these sets are some for which no order by deadline will do."""
    chance, found, by_deadline = random.Random(8), 0, 0
    for _ in range(200):
        tasks = [
            _task(
                period,
                chance.randint(1, max(1, period // 3)),
                chance.randint(period // 2, 2 * period),
                jitter_ns=chance.randint(0, 3),
            )
            for period in (chance.randint(4, 15) for _ in range(3))
        ]
        some = any(schedulable(_ordered(*order)) for order in itertools.permutations(tasks))
        chosen = with_priorities(tasks)
        assert schedulable(chosen) == some, tasks
        assert sorted(task.priority for task in chosen) == [1, 2, 3]
        found += some
        by_deadline += some and not schedulable(_ordered(*sorted(tasks, key=lambda task: task.deadline_ns)))
    assert found > 20
    assert by_deadline > 2


# --- margins


def test_margins_are_the_largest_that_hold() -> None:
    for tasks, bounds in _random_sets(11, 3, 30):
        limited = [
            replace(task, deadline_ns=bound + place)
            for place, (task, bound) in enumerate(zip(tasks, bounds, strict=True))
        ]
        found = margin(limited)
        share = round(found.factor * SHARES)

        def scaled(share: int, limited: Sequence[PeriodicTask] = limited) -> list[PeriodicTask]:
            return [replace(task, compute_ns=-(-task.compute_ns * share // SHARES)) for task in limited]

        assert schedulable(scaled(share))
        assert not schedulable(scaled(share + 1))
        assert found.added_ns is not None
        assert schedulable(limited, Terms(release_ns=found.added_ns))
        assert not schedulable(limited, Terms(release_ns=found.added_ns + 1))


def test_margins_of_what_is_not_schedulable() -> None:
    over = margin(_ordered(_task(10, 6), _task(10, 6)))
    assert 0 < over.factor < 1
    assert over.added_ns is None
    assert margin([_task(100, 10, 50)], Terms(release_ns=60)).factor == 0


# --- what is meant to be hard


@pytest.mark.check
@pytest.mark.parametrize(
    "tasks",
    [
        [_task(10**6 + 3, 500_000, 10**15), _task(10**6 + 7, 500_003, 10**15)],
        [_task(2, 1, 10**15), _task(10**15, 10**14 * 4)],
        [_task(2 + place, 1, 10**12) for place in range(32)],
    ],
)
def test_hostile_numbers_end(tasks: list[PeriodicTask]) -> None:
    """Whole sums and a bounded number of steps: the result may be that it is undecided."""
    begin = time.process_time()
    assert len(responses(_ordered(*tasks))) == len(tasks)
    margin(_ordered(*tasks))
    assert time.process_time() - begin < 60, "seconds of the CPU, not of the clock"
