# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of history queries.  Times are wall-clock seconds (UTC), values integer nanoseconds, ends exclusive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from fastenough.model import Requirement

Integers = NDArray[np.int64]

NOTHING = -1
"""Stands in arrays of maxima where nothing was measured."""


class UnknownBoard(LookupError):
    """There is no such board for who asks: one that is not public is as unknown to the public as one that is not."""


@dataclass(frozen=True)
class Viewer:
    """Who asks.  ``sees_all``: also boards that are not public."""

    sees_all: bool


PUBLIC = Viewer(sees_all=False)
OWNER = Viewer(sees_all=True)


class BoardCondition(StrEnum):
    """What needs attention of a board, the most urgent first."""

    DEAD = "dead"
    FAIL = "FAIL"
    NEW_MAXIMUM = "new max"
    ABOVE = "above limit"
    SILENT = "silent"
    REFUSED = "refused"
    CHANGED = "changed"
    RESERVED = "lent"
    NO_DATA = "no data"
    OK = "ok"
    RETIRED = "retired"

    @property
    def shape(self) -> str:
        return _SHAPES[self]

    @property
    def label(self) -> str:
        """The state as pages show it; the value is what database, JSON and metrics store."""
        return "reserved" if self is BoardCondition.RESERVED else self.value

    @property
    def style(self) -> str:
        """The end of its CSS class."""
        return self.name.lower()

    @property
    def rank(self) -> int:
        """0 is the most urgent."""
        return list(BoardCondition).index(self)


_SHAPES = {
    BoardCondition.DEAD: "□",
    BoardCondition.FAIL: "✕",
    BoardCondition.NEW_MAXIMUM: "▲",
    BoardCondition.ABOVE: "△",
    BoardCondition.SILENT: "■",
    BoardCondition.REFUSED: "▣",
    BoardCondition.CHANGED: "◆",
    BoardCondition.RESERVED: "◇",
    BoardCondition.NO_DATA: "○",
    BoardCondition.OK: "●",
    BoardCondition.RETIRED: "–",
}


@dataclass(frozen=True)
class RefusedRecording:
    """A recording of a board that was not taken, or not whole.  ``kind``: refused, damaged, cut off or clock;
    ``at_s``: when this was first seen."""

    name: str
    kind: str
    reason: str
    at_s: int

    @property
    def label(self) -> str:
        return {"cut off": "incomplete", "clock": "clock ahead"}.get(self.kind, self.kind)


@dataclass(frozen=True)
class BoardSeries:
    """A series of a board: ``name`` is what questions name it by; ``judged``: a limit applies to it.

    A value lies between the two events.
    """

    name: str
    judged: bool
    from_event: str
    to_event: str


@dataclass(frozen=True)
class BoardInfo:
    """A board as it is now.  ``cpus``: how many it has.  ``limit_ns`` None: no limit stated; ``requirement``: all that
    is required of it, with that limit.

    ``facts``: the facts of its profile that matter most to latency, in the words of `profile_differences`.
    ``series``: what was measured on it, judged ones first; ``main`` names the one that its maxima are of.
    """

    name: str
    rack: str
    public: bool
    cpus: int
    arch: str
    model: str
    kernel: str
    preemption: str
    configuration: str
    limit_ns: int | None
    facts: Mapping[str, str] = field(default_factory=dict)
    series: tuple[BoardSeries, ...] = ()
    main: str = ""
    requirement: Requirement | None = None
    type: str = ""
    site: str = ""


@dataclass(frozen=True)
class BoardStatus:
    """One board in the overview.  ``reason``: why it has its state, in words, empty where nothing needs attention.

    ``seen_s``: the end of its newest interval; ``daily_ns``: maxima of the last 30 days, oldest first, None where
    nothing was measured.  ``verdict``: on all recordings of its configuration within 30 days, from ``judged_from_s``
    on; empty where none was judged; ``cycle_verdict``: on the newest cycle alone.  ``changed_s``: when its
    configuration last changed.  ``more_ns``: how far the maximum of 24 hours is above that of the 30 days before, None
    where it is not or nothing was measured before.  ``silence``: why nothing is known of what it does now, empty where
    something is; ``silent_after_s``: how old its newest interval may be.  ``refused``: how many of its recordings were
    first seen within 30 days to be refused, damaged or cut off, and ``refusal`` the newest of them.  ``above_ns``: the
    greatest value of the judged configuration within 30 days, where it is above a limit that must never be exceeded.
    """

    board: BoardInfo
    state: BoardCondition
    reason: str
    seen_s: int | None
    max_5min_ns: int | None
    max_24h_ns: int | None
    max_30d_ns: int | None
    max_ever_ns: int | None
    max_ever_at_s: int | None
    daily_ns: tuple[int | None, ...]
    verdict: str
    verdict_reason: str
    changed_s: int | None
    more_ns: int | None
    cycle_verdict: str = ""
    cycle_reason: str = ""
    judged_from_s: int | None = None
    silence: str = ""
    silent_after_s: int = 0
    refused: int = 0
    refusal: RefusedRecording | None = None
    above_ns: int | None = None


@dataclass(frozen=True)
class MaximaSeries:
    """Maxima over time, of one step each.  ``times_s`` (T,): where each step begins, without a gap.

    ``values_ns``: by CPU (T,), NOTHING where nothing was measured.
    """

    times_s: Integers
    step_s: int
    values_ns: Mapping[int, Integers]

    @property
    def worst_ns(self) -> Integers:
        """Of all CPUs, (T,)."""
        worst = np.full(self.times_s.size, NOTHING, dtype=np.int64)
        for values in self.values_ns.values():
            np.maximum(worst, values, out=worst)
        return worst


@dataclass(frozen=True)
class Worst:
    """All boards' maxima, step by step, of each the main series.  ``times_s`` (T,); ``values_ns`` by board (T,)."""

    times_s: Integers
    values_ns: Mapping[str, Integers]


@dataclass(frozen=True)
class Buckets:
    """Counts of values, k = 4: ``lower_ns`` (B,) is the least value a bucket can hold, ``upper_ns`` the greatest.

    ``max_ns`` is exact, None where there is no value.
    """

    lower_ns: Integers
    upper_ns: Integers
    count: Integers
    max_ns: int | None

    @property
    def n(self) -> int:
        return int(self.count.sum())


@dataclass(frozen=True)
class Distribution:
    """How often which latency was seen from ``begin_s`` to ``end_s``, by CPU.

    ``elsewhere_s``: the begins of closed months of which this needs rows that are in another farm's store: they lack.
    """

    begin_s: int
    end_s: int
    cpus: Mapping[int, Buckets]
    elsewhere_s: tuple[int, ...] = ()


@dataclass(frozen=True)
class RidgeRow:
    """One cycle, all CPUs together."""

    begin_s: int
    buckets: Buckets


@dataclass(frozen=True)
class Ridge:
    """Cycles of 12 hours, oldest first; those in which nothing was measured are left out."""

    rows: tuple[RidgeRow, ...]
    cycle_s: int


@dataclass(frozen=True)
class Heat:
    """How often which latency was seen when: ``count`` (T, B), all CPUs; ``times_s`` (T,), ``lower_ns`` (B,).

    The least value of each of B buckets, ascending; a step without a value is a row of zeros.  ``elsewhere_s``: as in
    `Distribution`.
    """

    times_s: Integers
    step_s: int
    lower_ns: Integers
    upper_ns: Integers
    count: Integers
    elsewhere_s: tuple[int, ...] = ()


@dataclass(frozen=True)
class RunSpan:
    """A run in the range that was asked for, as a band behind a figure.  ``load`` is empty where none was stated."""

    begin_s: int
    end_s: int
    load: str
    configuration: str
    run: str


@dataclass(frozen=True)
class LatencyEvent:
    """A value that stands out.  ``kind``: ``max`` or ``threshold``.

    ``new_maximum``: above all that was measured of this series in the 30 days before.  ``culprit``: in words, empty
    where it is not known.
    """

    at_s: int
    kind: str
    series: str
    cpu: int | None
    value_ns: int
    culprit: str
    run: str
    new_maximum: bool


@dataclass(frozen=True)
class BoardChange:
    """What changed.  ``kind``: ``configuration``, with the ``key`` and its values; ``tail`` or ``trend``: the maxima of
    cycles, at once or gradually.

    ``latency``: the key is known to matter to latency.  ``last_run``: the last one before it; ``run``: the first after.
    Of a step or trend, ``noted_s``: when it was shown; ``until_s``: the end of a trend; ``withdrawn_s``: when later
    cycles made it improbable.
    """

    at_s: int
    kind: str
    key: str
    was: str
    now: str
    latency: bool
    last_run: str
    run: str
    noted_s: int | None = None
    until_s: int | None = None
    withdrawn_s: int | None = None
