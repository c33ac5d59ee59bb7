# SPDX-License-Identifier: GPL-2.0-or-later
"""Head, end and events of a recording as types, whatever the version it was written in (docs/format.md)."""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastenough.model import Configuration, Outcome, Requirement, Series

VERSION = 2
"""The version that is written."""

Plain = str | int | float | bool | None

COUNTED_DURING_THE_RUN = ("migrations", "mode_switches")
"""Settings read after the run only: moves of a pinned thread to another CPU, and losses to Linux of a core's thread."""

NOT_APPLICABLE = "not applicable: "
"""How the reason begins of a setting that the board does not have."""


@dataclass(frozen=True)
class Instant:
    """One reading of both clocks."""

    mono_ns: int
    wall_ns: int

    @classmethod
    def now(cls) -> Instant:
        return cls(time.monotonic_ns(), time.time_ns())


@dataclass(frozen=True)
class Tool:
    """What measured."""

    name: str
    version: str
    build: str | None = None


@dataclass(frozen=True)
class Origin:
    """The file that a recording was imported from; ``facts``: what it says of the whole run, in its own words.

    ``text``: all of it, where it is text and short enough to be kept whole.
    """

    file: str
    sha256: str
    bytes: int
    facts: Mapping[str, Plain] = field(default_factory=dict)
    text: str | None = None


@dataclass(frozen=True)
class RecordedSetting:
    """``requested`` None: only read.  ``in_effect``: as read back, None where it cannot be read.

    ``thread`` and ``cpu`` where it is one thread's; ``reason`` where what is in effect is not what was requested.
    """

    name: str
    requested: Plain
    in_effect: Plain
    cpu: int | None = None
    thread: str | None = None
    reason: str | None = None

    @property
    def differs(self) -> bool:
        """Something was requested, and something else is in effect, or it is not known what."""
        return self.requested is not None and self.requested != self.in_effect

    @property
    def place(self) -> tuple[str, str | None, int | None]:
        """What tells one setting of a recording from the others."""
        return self.name, self.thread, self.cpu


@dataclass(frozen=True)
class SettingChange:
    """A setting that read otherwise after the run than before it."""

    name: str
    before: Plain
    after: Plain
    cpu: int | None = None
    thread: str | None = None


@dataclass(frozen=True)
class LoadStated:
    """Which load is to run, and the commands it consists of.

    ``busy_at_least``, ``busy_at_most``: where nobody started it, for which share of the time each measured CPU must be
    busy, and may be; that is read back.
    """

    name: str
    commands: tuple[tuple[str, ...], ...] = ()
    source: str | None = None
    bounds: Mapping[str, Any] | None = None
    busy_at_least: float | None = None
    busy_at_most: float | None = None

    @property
    def read_back(self) -> bool:
        return self.busy_at_least is not None or self.busy_at_most is not None


@dataclass(frozen=True)
class LoadProof:
    """Whether the load ran (None: not said), and what it consumed while it was measured; None: not known.

    ``stated``: somebody said so, and nothing proves it.
    """

    name: str | None
    ran: bool | None
    reasons: tuple[str, ...] = ()
    stated: bool = False
    window_s: float | None = None
    cpu_time_s: float | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None
    counted: int | None = None
    processes: int | None = None


@dataclass(frozen=True)
class LoadUse:
    """What the load did between two looks at it, ``window_ns`` apart; None: cannot be read, or not known."""

    cpu_ns: int | None
    context_switches: int | None
    processes: int | None
    window_ns: int | None = None

    @property
    def ran(self) -> bool | None:
        """Whether anything was seen of it; None where that cannot be told."""
        if self.processes == 0:
            return False
        if self.cpu_ns or self.context_switches:
            return True
        return None if None in (self.processes, self.cpu_ns, self.context_switches) else False


@dataclass(frozen=True)
class LimitCount:
    """Values above a limit given before the run, counted one by one; ``runs`` of consecutive ones where they begin."""

    ns: int
    exceeded: int
    runs: int
    sum_sq_runs: int
    longest: int

    def plus(self, other: LimitCount) -> LimitCount:
        """Both one after the other, which are of one limit."""
        return LimitCount(
            self.ns,
            self.exceeded + other.exceeded,
            self.runs + other.runs,
            self.sum_sq_runs + other.sum_sq_runs,
            max(self.longest, other.longest),
        )


@dataclass(frozen=True)
class SeriesEnd:
    """What the end says of one series; ``rises`` as [edge, delta].

    ``k`` and ``buckets``, indices and their counts: of the whole run, where its intervals have a coarser k.
    """

    taken: int
    stored: int
    lost: int
    missed: int
    minimum: int | None
    maximum: int | None
    sum: int
    sum_sq: int
    rises: tuple[tuple[int, int], ...] | None = None
    limit: LimitCount | None = None
    order_unknown: int = 0
    k: int | None = None
    buckets: tuple[array[int], array[int]] = (array("q"), array("q"))


@dataclass(frozen=True)
class SamplesKept:
    """Where every sample was kept: how many the file holds, and how many it had no room for."""

    kept: int
    lost: int


@dataclass(frozen=True)
class Event:
    """``kind`` is max, threshold, clock-step, throttled or note; ``series`` the id of the one it belongs to."""

    kind: str
    at: Instant
    series: int | None = None
    cpu: int | None = None
    value: int | None = None
    text: str | None = None
    culprit: Mapping[str, Plain] | None = None


@dataclass(frozen=True)
class Head:
    """What was measured, how, and at what cost.  ``version``: of the file it was read from.

    ``boot_id``: which boot of the machine, as its kernel names it; None where what measured does not say.
    ``requirement``: stated before the run, and of this run alone.
    ``planned_n``: how many activations of each series were planned before the run, where that was known.
    """

    tool: Tool
    run_id: str
    probe: str
    implementation: str
    parameters: Mapping[str, Any]
    series: tuple[Series, ...]
    settings: tuple[RecordedSetting, ...]
    cost_ns: Mapping[str, float | None]
    interval_ns: int
    begin: Instant
    boot_id: str | None = None
    marks: frozenset[str] = frozenset()
    load: LoadStated | None = None
    profile: Mapping[str, Any] | None = None
    profile_sha256: str | None = None
    board: str | None = None
    configuration: Configuration | None = None
    instrument: Mapping[str, Any] | None = None
    requirement: Requirement | None = None
    planned_n: int | None = None
    origin: Origin | None = None
    version: int = VERSION


@dataclass(frozen=True)
class End:
    """How the run ended.  ``settings``: read back after it, None where they were not.

    ``changes``: what they show to have changed since the head.
    """

    outcome: Outcome
    reasons: tuple[str, ...]
    at: Instant
    series: Mapping[int, SeriesEnd] = field(default_factory=dict)
    counters: Mapping[str, int | None] = field(default_factory=dict)
    settings: tuple[RecordedSetting, ...] | None = None
    changes: tuple[SettingChange, ...] = ()
    events_dropped: int = 0
    samples: SamplesKept | None = None
    load: LoadProof | None = None
