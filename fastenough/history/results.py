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
"""Marks missing data in arrays of maxima."""


class UnknownBoard(LookupError):
    """There is no such board that the viewer may see; hidden and missing boards are indistinguishable."""


@dataclass(frozen=True)
class Viewer:
    """The viewer of a page.  ``sees_all``: also boards that are not public.  ``sites``: the boards of these sites, also
    if they are not public, and no others; None: the public boards."""

    sees_all: bool = False
    sites: frozenset[str] | None = None


PUBLIC = Viewer()
OWNER = Viewer(sees_all=True)
NOBODY = Viewer(sites=frozenset())
"""Sees no board."""


class BoardCondition(StrEnum):
    """Conditions of a board, the most urgent first."""

    DEAD = "dead"
    FAIL = "FAIL"
    NEW_MAXIMUM = "new max"
    ABOVE = "above limit"
    SILENT = "silent"
    REFUSED = "refused"
    CHANGED = "changed"
    NOT_JUDGED = "not judged"
    RESERVED = "reserved"
    NO_DATA = "no data"
    OK = "ok"
    RETIRED = "retired"

    @property
    def shape(self) -> str:
        return _SHAPES[self]

    @classmethod
    def _missing_(cls, value: object) -> BoardCondition | None:
        """The condition of this former value, which addresses of pages may still contain."""
        return cls.RESERVED if value == "lent" else None

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
    BoardCondition.NOT_JUDGED: "◌",
    BoardCondition.RESERVED: "◇",
    BoardCondition.NO_DATA: "○",
    BoardCondition.OK: "●",
    BoardCondition.RETIRED: "–",
}


@dataclass(frozen=True)
class RefusedRecording:
    """A refused or incomplete recording of a board.  ``kind``: refused, damaged, cut off, clock, or, during a rebuild,
    not read again; ``at_s``: when it was first seen."""

    name: str
    kind: str
    reason: str
    at_s: int

    @property
    def label(self) -> str:
        return {"cut off": "incomplete", "clock": "clock ahead"}.get(self.kind, self.kind)


@dataclass(frozen=True)
class BoardSeries:
    """A series of a board.

    ``name``: its identity in queries.  ``judged``: a limit applies to it.  A value is the time between the two events.
    """

    name: str
    judged: bool
    from_event: str
    to_event: str


@dataclass(frozen=True)
class BoardInfo:
    """The present state of a board.

    ``cpus``: number of CPUs.  ``limit_ns`` None: no limit stated; ``requirement``: includes that limit: that of the
    runs of the newest judged cycle if they state one, else that of the farm.  ``facts``: facts of its profile that
    affect latency, named as in `profile_differences`.  ``series``: measured series, those that it still measures first;
    ``main``: the series of its maxima.  ``farm_requirement``: for runs that state none.
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
    farm_requirement: Requirement | None = None


@dataclass(frozen=True)
class BoardStatus:
    """The status of a board.

    ``reason``: why it has its state; empty if nothing needs attention.  ``seen_s``: end of its newest interval;
    ``main_seen_s``: of that of its main series.  ``daily_ns``: maxima of the last 30 days, oldest first, None without
    data.  ``verdict``: on all recordings of its configuration within 30 days, from ``judged_from_s`` on; empty if none
    was judged by the present requirement (``verdict_reason`` then names the last verdict, if there is one).
    ``cycle_verdict``: on the newest cycle.  ``changed_s``: last change of its configuration.  ``more_ns``: excess of
    the maximum of 24 hours over that of the 30 days before, None if there is none.  ``silence``: why its present state
    is unknown, empty if it is known.  ``silent_after_s``: maximum age of its newest interval.  ``refused``: number of
    recordings first seen within 30 days to be refused, damaged or cut off; ``refusal``: the newest of them.
    ``above_ns``: greatest value of all judged series in the judged configuration within 30 days, if it is above a limit
    that must never be exceeded.
    ``max_5min_ns``: maximum of the five minutes that began at ``max_5min_s``, in which the main series has its newest
    interval; both are None if another series was measured since.
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
    main_seen_s: int | None = None
    max_5min_s: int | None = None


@dataclass(frozen=True)
class MaximaSeries:
    """Maxima over time in equal steps.

    ``times_s`` (T,): begin of each step, without gaps.  ``values_ns``: by CPU (T,), NOTHING without data.
    """

    times_s: Integers
    step_s: int
    values_ns: Mapping[int, Integers]

    @property
    def worst_ns(self) -> Integers:
        """Maxima over all CPUs, (T,)."""
        worst = np.full(self.times_s.size, NOTHING, dtype=np.int64)
        for values in self.values_ns.values():
            np.maximum(worst, values, out=worst)
        return worst


@dataclass(frozen=True)
class Worst:
    """Maxima of the main series of all boards over time.  ``times_s`` (T,); ``values_ns`` by board (T,)."""

    times_s: Integers
    values_ns: Mapping[str, Integers]


@dataclass(frozen=True)
class Buckets:
    """Counts of values, k = 4: ``lower_ns`` (B,): least value of each bucket, ``upper_ns`` (B,): greatest.

    ``max_ns`` is exact; None without a value.
    """

    lower_ns: Integers
    upper_ns: Integers
    count: Integers
    max_ns: int | None

    @property
    def n(self) -> int:
        return int(self.count.sum())


@dataclass(frozen=True, order=True)
class MissingSpan:
    """Times within a closed month of which most five-minute rows are missing: those near new maxima and changes stay.

    ``in_fleet_archive``: the values are in the archive of takers; else in the store of another farm.
    """

    begin_s: int
    end_s: int
    in_fleet_archive: bool


@dataclass(frozen=True)
class Distribution:
    """Counts of latencies from ``begin_s`` to ``end_s``, by CPU.

    ``lost``: number of values that were lost in the hours of this range, all CPUs.
    ``missing``: times whose rows are in neither the database nor the files of this history.
    """

    begin_s: int
    end_s: int
    cpus: Mapping[int, Buckets]
    missing: tuple[MissingSpan, ...] = ()
    lost: int = 0


@dataclass(frozen=True)
class RidgeRow:
    """One cycle, all CPUs combined."""

    begin_s: int
    buckets: Buckets


@dataclass(frozen=True)
class Ridge:
    """Cycles of 12 hours, oldest first; cycles without data are omitted."""

    rows: tuple[RidgeRow, ...]
    cycle_s: int


@dataclass(frozen=True)
class Heat:
    """Counts of latencies over time: ``count`` (T, B), all CPUs; ``times_s`` (T,), ``lower_ns`` (B,).

    ``lower_ns``: least value of each of B buckets, ascending.  A step without data is a row of zeros.  ``missing``: as
    in `Distribution`.
    """

    times_s: Integers
    step_s: int
    lower_ns: Integers
    upper_ns: Integers
    count: Integers
    missing: tuple[MissingSpan, ...] = ()


@dataclass(frozen=True)
class RunSpan:
    """A run in a range, shown as a band behind a figure.  ``load`` is empty if none was stated."""

    begin_s: int
    end_s: int
    load: str
    configuration: str
    run: str


@dataclass(frozen=True)
class LatencyEvent:
    """A notable value.

    ``kind``: ``max`` or ``threshold``.  ``new_maximum``: above all values of this series in the 30 days before.
    ``culprit``: its cause as text, empty if unknown.
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
    """A change.

    ``kind``: ``configuration``, with the ``key`` and its values; ``tail`` or ``trend``: the maxima of cycles, at once
    or gradually.  ``latency``: the key affects latency.  ``last_run``: the last one before the change; ``run``: the
    first after it.  Of a step or trend: ``noted_s``: when it was noted; ``until_s``: end of a trend; ``withdrawn_s``:
    when later cycles made it improbable.
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
