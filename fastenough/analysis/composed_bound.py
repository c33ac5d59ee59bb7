# SPDX-License-Identifier: GPL-2.0-or-later
"""Bound of the scheduling latency caused by blocking in the kernel, composed of separately measured terms.

De Oliveira, Casini, de Oliveira and Cucinotta, "Demystifying the real-time Linux scheduling latency" (ECRTS 2020): the
thread of highest priority runs no later than L after it was made runnable, L the least with
L = max(D_ST, D_POID) + D_PAIE + D_PSD + I(L), where I(L) is what interrupts take of L.  The composition holds for true
maxima; of measured ones it is the bound only as far as these were seen.  All times are whole nanoseconds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

_MOST_STEPS = 10_000
"""Longest latency; a longer one counts as unbounded, since interrupts then take nearly all of the CPU."""


@dataclass(frozen=True)
class Interrupt:
    """One interrupt: kind, begin, and own duration, without nested interrupts."""

    kind: str
    at_ns: int
    took_ns: int


@dataclass(frozen=True)
class Blocking:
    """The longest measured time of each term, in ns, without interrupts.

    ``poid_ns``: preemption or interrupts off, not to schedule.  ``paie_ns``: both on, rescheduling requested, and the
    scheduler not yet called.  ``psd_ns``: preemption off to schedule, to the end.  ``dst_ns``: interrupts off, from the
    point where the scheduler can no longer consider a wake-up, to the end.
    """

    poid_ns: int = 0
    paie_ns: int = 0
    psd_ns: int = 0
    dst_ns: int = 0

    @property
    def undisturbed_ns(self) -> int:
        """The bound without interrupts."""
        return max(self.dst_ns, self.poid_ns) + self.paie_ns + self.psd_ns


@dataclass(frozen=True)
class Composed:
    """The bound for one way to count interrupts; ``latency_ns`` None: interrupts of that kind take all of the CPU."""

    interrupts: str
    latency_ns: int | None


def composed(blocking: Blocking, interrupts: Sequence[Interrupt]) -> tuple[Composed, ...]:
    """The bound for each way to count interrupts, most conservative last but one; the last uses observed windows."""
    return tuple(Composed(name, _least(blocking.undisturbed_ns, way)) for name, way in _ways(interrupts))


def _least(undisturbed_ns: int, interference_ns: Callable[[int], int]) -> int | None:
    """Least L = undisturbed + interference(L), by iteration from below; ``interference_ns`` never decreases."""
    latency_ns = undisturbed_ns
    for _ in range(_MOST_STEPS):
        longer_ns = undisturbed_ns + interference_ns(latency_ns)
        if longer_ns == latency_ns:
            return latency_ns
        latency_ns = longer_ns
    return None


def _ways(interrupts: Sequence[Interrupt]) -> Iterable[tuple[str, Callable[[int], int]]]:
    longest = {
        kind: max(interrupt.took_ns for interrupt in interrupts if interrupt.kind == kind)
        for kind in dict.fromkeys(interrupt.kind for interrupt in interrupts)
    }
    apart = {
        kind: _closest_ns([interrupt.at_ns for interrupt in interrupts if interrupt.kind == kind]) for kind in longest
    }

    def sporadic(latency_ns: int) -> int:
        return sum(
            took_ns * (1 if between is None else -(-latency_ns // between))
            for kind, took_ns in longest.items()
            for between in (apart[kind],)
        )

    return (
        ("none", lambda _: 0),
        ("the longest, once", lambda _: max(longest.values(), default=0)),
        ("the longest of each kind, once", lambda _: sum(longest.values())),
        ("each kind as often as its closest two", sporadic),
        ("the fullest window seen", _Windows(interrupts, longest)),
    )


def _closest_ns(at_ns: Sequence[int]) -> int | None:
    """Shortest time between consecutive interrupts; None with fewer than two."""
    ordered = sorted(at_ns)
    return min(
        (max(1, next_begin_ns - begin_ns) for begin_ns, next_begin_ns in itertools.pairwise(ordered)), default=None
    )


class _Windows:
    """Greatest time that interrupts take in any window of a length.

    As in the published method, the window slides over the measured interrupts, and each counts with the longest
    execution time of its kind.  One that began before the window and reaches into it counts in full.
    """

    def __init__(self, interrupts: Sequence[Interrupt], longest_ns: Mapping[str, int]) -> None:
        self._ordered = sorted(interrupts, key=lambda interrupt: interrupt.at_ns + interrupt.took_ns)
        self._begins_ns = sorted((interrupt.at_ns, longest_ns[interrupt.kind]) for interrupt in interrupts)
        self._longest_ns = longest_ns

    def __call__(self, latency_ns: int) -> int:
        fullest, sum_ns, first = 0, 0, 0
        for at_ns, longest_ns in self._begins_ns:
            sum_ns += longest_ns
            while self._ended_before(first, at_ns - max(1, latency_ns)):
                sum_ns -= self._longest_ns[self._ordered[first].kind]
                first += 1
            fullest = max(fullest, sum_ns)
        return fullest

    def _ended_before(self, place: int, window_begin_ns: int) -> bool:
        interrupt = self._ordered[place]
        return interrupt.at_ns + interrupt.took_ns <= window_begin_ns
