# SPDX-License-Identifier: GPL-2.0-or-later
"""The stations of a wake-up by a timer: what a monitor has of each, joined on the exact due time.

Known delays within one station: whether they were found, there and nowhere else, and how long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis.injections import Injection, least_ns
from fastenough.recording.samples import Samples

STATIONS = ("expiry-to-interrupt", "interrupt-to-runnable", "runnable-to-running", "running-to-return")
"""One begins where the one before it ends: they sum to ``SUM``."""
SUM = "expiry-to-return"
TOLERANCE_NS = 2_000
TOLERANCE_SHARE = 0.01
"""How far the median over many injections may be off: the monitor's own work lies within what it measures."""
_OTHERS_SHARE = 0.5
"""An injection is at a wrong station where that is longer than usual by this share of it, and the right one is not."""

Times = NDArray[np.int64]


@dataclass(frozen=True)
class Wakeups:
    """Wake-ups of one CPU that are known at every station: due times (ns, ascending), and ns by station."""

    due_ns: Times
    by_station: Mapping[str, Times]

    @property
    def sum_ns(self) -> Times:
        """From the programmed expiry to the return into user space."""
        total: Times = np.stack([self.by_station[name] for name in STATIONS]).sum(axis=0)
        return total

    def only(self, chosen: NDArray[np.bool_]) -> Wakeups:
        """Those chosen."""
        return Wakeups(self.due_ns[chosen], {name: values[chosen] for name, values in self.by_station.items()})


def wakeups(samples: Mapping[str, Samples]) -> Wakeups:
    """Samples by station, each keyed by the programmed expiry; what is not known at each station is left out.

    Raises KeyError where a station has none at all.
    """
    firsts = {name: np.unique(samples[name].due_ns, return_index=True) for name in STATIONS}
    due_ns = reduce(np.intersect1d, (found for found, _ in firsts.values()))
    return Wakeups(
        due_ns,
        {
            name: samples[name].latency_ns[first[np.searchsorted(found, due_ns)]]
            for name, (found, first) in firsts.items()
        },
    )


@dataclass(frozen=True)
class Placed:
    """What a monitor found of the injections of one size at one station; medians in ns, None of nothing.

    Of ``injected``, ``found`` were seen at the station, ``elsewhere`` at another one only, and ``unseen`` belong to
    wake-ups that the monitor has not.  ``too_late`` more were intended.  ``culprits``: whom the monitor named how
    often, by the events that it recorded of them.
    """

    station: str
    asked_ns: int
    injected: int
    too_late: int
    unseen: int
    found: int
    elsewhere: int
    injected_median_ns: int | None
    undisturbed_median_ns: int | None
    station_median_ns: int | None
    culprits: tuple[tuple[str, int], ...] = ()

    @property
    def excess_ns(self) -> int | None:
        """How much longer the station was than usual, beyond what was injected (medians)."""
        if self.injected_median_ns is None or self.station_median_ns is None or self.undisturbed_median_ns is None:
            return None
        return self.station_median_ns - self.undisturbed_median_ns - self.injected_median_ns

    @property
    def tolerated_ns(self) -> int:
        return TOLERANCE_NS + round(TOLERANCE_SHARE * (self.injected_median_ns or 0))

    @property
    def right_size(self) -> bool:
        return self.excess_ns is not None and abs(self.excess_ns) <= self.tolerated_ns

    @property
    def missed(self) -> bool:
        """Something that was injected into a wake-up which the monitor saw was not found where it was."""
        return self.found + self.unseen < self.injected


def undisturbed(seen: Wakeups, injected: Sequence[Injection], before_ns: int, after_ns: int) -> Wakeups:
    """Wake-ups that were due neither so long before an injection's due time, nor so long after its end."""
    if not injected:
        return seen
    at = sorted(injected, key=lambda one: one.due_mono_ns)
    begins = np.array([one.due_mono_ns - before_ns for one in at])
    ends = np.array([one.due_mono_ns + one.injected_ns + after_ns for one in at])
    within = np.searchsorted(begins, seen.due_ns, side="right") - 1
    return seen.only((within < 0) | (seen.due_ns > ends[np.maximum(within, 0)]))


def usual(quiet: Wakeups) -> dict[str, int | None]:
    """Each station's median."""
    return {name: _median(values) for name, values in quiet.by_station.items()}


@dataclass(frozen=True)
class Witnessed:
    """What a monitor has of the wake-ups among which delays were injected at one station.

    ``usual_ns``: each station's median without an injection.  ``culprits``: by due time, whom the monitor named.
    """

    station: str
    seen: Wakeups
    usual_ns: Mapping[str, int | None]
    culprits: Mapping[int, str]

    def placed(self, injected: Sequence[Injection], late: Mapping[int, int]) -> list[Placed]:
        """Match each injection with the wake-up of its very due time, size by size.

        ``late``: by size, how many were intended but came too late.
        """
        return [
            self._placed(asked_ns, [one for one in injected if one.asked_ns == asked_ns], late.get(asked_ns, 0))
            for asked_ns in sorted({one.asked_ns for one in injected} | set(late))
        ]

    def _placed(self, asked_ns: int, group: Sequence[Injection], late: int) -> Placed:
        position = {due_ns: place for place, due_ns in enumerate(self.seen.due_ns.tolist())}
        matched = [(one, position[one.due_mono_ns]) for one in group if one.due_mono_ns in position]
        values = self.seen.by_station[self.station]
        astray = [(one, place) for one, place in matched if values[place] < least_ns(one.injected_ns)]
        named = Counter(self.culprits[one.due_mono_ns] for one in group if one.due_mono_ns in self.culprits)
        return Placed(
            self.station,
            asked_ns,
            len(group),
            late,
            unseen=len(group) - len(matched),
            found=len(matched) - len(astray),
            elsewhere=sum(self._elsewhere(one, place) for one, place in astray),
            injected_median_ns=_median(one.injected_ns for one in group),
            undisturbed_median_ns=self.usual_ns[self.station],
            station_median_ns=_median(int(values[place]) for _, place in matched),
            culprits=tuple(named.most_common()),
        )

    def _elsewhere(self, one: Injection, place: int) -> bool:
        return any(
            values[place] - (self.usual_ns[name] or 0) >= _OTHERS_SHARE * one.injected_ns
            for name, values in self.seen.by_station.items()
            if name != self.station
        )


def _median(values: Iterable[int] | Times) -> int | None:
    listed = np.fromiter(values, dtype=np.int64)
    return round(float(np.median(listed))) if len(listed) else None
