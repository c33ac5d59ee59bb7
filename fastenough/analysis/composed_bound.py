# SPDX-License-Identifier: GPL-2.0-or-later
"""Bound of the scheduling latency caused by blocking in the kernel, composed of separately measured terms.

De Oliveira, Casini, de Oliveira and Cucinotta, "Demystifying the real-time Linux scheduling latency" (ECRTS 2020): the
thread of highest priority runs no later than L after it was made runnable, L the least with
L = max(D_ST, D_POID) + D_PAIE + D_PSD + I(L), where I(L) is what interrupts take of L.  The composition holds for true
maxima; of measured ones it is the bound only as far as these were seen.  All times are whole nanoseconds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

_MOST_STEPS = 10_000
"""Longest iteration; a longer one counts as unbounded, since interrupts then take nearly all of the CPU."""
_FIRST_PIECE = 64
"""Interrupts looked at first in the search for the end of a window; then twice as many, and so on."""


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
    """The bound for one way to count interrupts; ``latency_ns`` None: interrupts of that kind take all of the CPU, or
    the trace is too short to contain a window of that length."""

    interrupts: str
    latency_ns: int | None


def composed(
    blocking: Blocking, interrupts: Sequence[Interrupt], traced_ns: int | None = None, resolution_ns: int = 0
) -> tuple[Composed, ...]:
    """The bound for each way to count interrupts, most conservative last but one; the last uses observed windows.

    ``traced_ns``: length of the trace; a longer window was not observed.  None: any window was.  ``resolution_ns``: two
    interrupts may be so much closer than their times.
    """
    undisturbed_ns = blocking.undisturbed_ns
    models = tuple(Composed(name, _least(undisturbed_ns, way)) for name, way in _ways(interrupts, resolution_ns))
    fullest_ns = _least(undisturbed_ns, partial(_Windows(interrupts, resolution_ns).taken_ns, undisturbed_ns))
    if traced_ns is not None and fullest_ns is not None and fullest_ns > traced_ns:
        fullest_ns = None
    return (*models, Composed("the fullest window seen", fullest_ns))


def _least(undisturbed_ns: int, interference_ns: Callable[[int], int]) -> int | None:
    """Least L = undisturbed + interference(L), by iteration from below; ``interference_ns`` never decreases."""
    latency_ns = undisturbed_ns
    for _ in range(_MOST_STEPS):
        longer_ns = undisturbed_ns + interference_ns(latency_ns)
        if longer_ns == latency_ns:
            return latency_ns
        latency_ns = longer_ns
    return None


def _longest_ns(interrupts: Sequence[Interrupt]) -> Mapping[str, int]:
    """Longest execution time of each kind."""
    longest: dict[str, int] = {}
    for interrupt in interrupts:
        longest[interrupt.kind] = max(longest.get(interrupt.kind, 0), interrupt.took_ns)
    return longest


def _ways(interrupts: Sequence[Interrupt], resolution_ns: int) -> Iterable[tuple[str, Callable[[int], int]]]:
    longest = _longest_ns(interrupts)
    begins: dict[str, list[int]] = {}
    for interrupt in interrupts:
        begins.setdefault(interrupt.kind, []).append(interrupt.at_ns)
    apart = {kind: _closest_ns(at_ns, resolution_ns) for kind, at_ns in begins.items()}

    def sporadic(latency_ns: int) -> int:
        return sum(
            took_ns * (1 if between is None else -(-max(1, latency_ns) // between))
            for kind, took_ns in longest.items()
            for between in (apart[kind],)
        )

    return (
        ("none", lambda _: 0),
        ("the longest, once", lambda _: max(longest.values(), default=0)),
        ("the longest of each kind, once", lambda _: sum(longest.values())),
        ("each kind as often as its closest two", sporadic),
    )


def _closest_ns(at_ns: Sequence[int], resolution_ns: int) -> int | None:
    """Shortest time between consecutive interrupts; None with fewer than two."""
    ordered = sorted(at_ns)
    return min(
        (max(1, next_begin_ns - begin_ns - resolution_ns) for begin_ns, next_begin_ns in itertools.pairwise(ordered)),
        default=None,
    )


def _ends_ns(ordered: Iterable[Interrupt]) -> Iterator[tuple[int, str]]:
    """End and kind of each interrupt, in order of the ends, from interrupts in order of the begins.

    A nested interrupt postpones the end of those that it interrupts by its own duration.
    """
    running: list[tuple[str, int]] = []
    now_ns = 0
    for interrupt in ordered:
        while running and now_ns + running[-1][1] <= interrupt.at_ns:
            kind, left_ns = running.pop()
            now_ns += left_ns
            yield now_ns, kind
        if running:
            running[-1] = (running[-1][0], running[-1][1] - (interrupt.at_ns - now_ns))
        running.append((interrupt.kind, interrupt.took_ns))
        now_ns = interrupt.at_ns
    for kind, left_ns in reversed(running):
        now_ns += left_ns
        yield now_ns, kind


class _Windows:
    """Greatest time that interrupts take in any window of a length.

    As in the published method, the window slides over the measured interrupts, and each counts with the longest
    execution time of its kind.  One that began before the window and reaches into it counts in full.
    """

    def __init__(self, interrupts: Sequence[Interrupt], resolution_ns: int) -> None:
        longest_ns = _longest_ns(interrupts)
        # In order of their ends: of two that begin in one step of the clock, the last one to end is the outer one.
        ordered = sorted(reversed(interrupts), key=lambda interrupt: interrupt.at_ns)
        ends = list(_ends_ns(ordered))
        self._begins_ns = np.array([interrupt.at_ns for interrupt in ordered], dtype=np.int64)
        self._ends_ns = np.array([end_ns for end_ns, _ in ends], dtype=np.int64)
        self._begun_ns = np.cumsum([0, *(longest_ns[interrupt.kind] for interrupt in ordered)], dtype=np.int64)
        self._ended_ns = np.cumsum([0, *(longest_ns[kind] for _, kind in ends)], dtype=np.int64)
        self._resolution_ns = resolution_ns

    def taken_ns(self, undisturbed_ns: int, latency_ns: int) -> int:
        """Time that interrupts take in the fullest window of a length, extended until all in it is done.

        A window is fullest if it opens just before an interrupt ends.  Interrupts that begin until its work is done
        count, too, which saves steps: that is never later than the least L.
        """
        if not self._begins_ns.size:
            return 0
        opens_ns = self._ends_ns - 1 + self._resolution_ns
        begun = np.searchsorted(self._begins_ns, opens_ns + max(1, latency_ns), side="right")
        first = int(np.argmax(self._begun_ns[begun] - self._ended_ns[:-1]))
        place, size = int(begun[first]), _FIRST_PIECE
        until_ns = int(opens_ns[first]) + undisturbed_ns - int(self._ended_ns[first])
        while place < self._begins_ns.size:
            piece = slice(place, min(place + size, self._begins_ns.size))
            free = self._begins_ns[piece] > until_ns + self._begun_ns[piece]
            if free.any():
                place += int(np.argmax(free))
                break
            place, size = piece.stop, size * 2
        return int(self._begun_ns[place] - self._ended_ns[first])
