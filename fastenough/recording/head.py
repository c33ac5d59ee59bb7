# SPDX-License-Identifier: GPL-2.0-or-later
"""Types of the head, the end and the events of a recording of any version (docs/format.md)."""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastenough.model import Configuration, Identifiers, Outcome, Requirement, Series, identifiers_of

VERSION = 2
"""Version of new recordings."""

Plain = str | int | float | bool | None

COUNTED_DURING_THE_RUN = ("migrations", "mode_switches")
"""Settings read after the run only: moves of a pinned thread to another CPU, and losses to Linux of a core's thread."""

NOT_APPLICABLE = "not applicable: "
"""Prefix of the reason of a setting that the board does not have."""


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
    """The measuring program."""

    name: str
    version: str
    build: str | None = None


@dataclass(frozen=True)
class Origin:
    """The file that a recording was imported from; ``facts``: its data about the whole run, unchanged.

    ``text``: the whole file, if it is text and short enough.
    """

    file: str
    sha256: str
    bytes: int
    facts: Mapping[str, Plain] = field(default_factory=dict)
    text: str | None = None


@dataclass(frozen=True)
class RecordedSetting:
    """A setting of a run.  ``requested`` None: only read.  ``in_effect``: as read back, None if unknown.

    ``thread`` and ``cpu`` of a thread's setting; ``reason`` if the value in effect is not the requested one.
    """

    name: str
    requested: Plain
    in_effect: Plain
    cpu: int | None = None
    thread: str | None = None
    reason: str | None = None

    @property
    def differs(self) -> bool:
        """Whether a requested value is not in effect, or the value in effect is unknown."""
        return self.requested is not None and self.requested != self.in_effect

    @property
    def place(self) -> tuple[str, str | None, int | None]:
        """The identity of a setting in a recording."""
        return self.name, self.thread, self.cpu


@dataclass(frozen=True)
class SettingChange:
    """A setting whose value after the run differs from that before it."""

    name: str
    before: Plain
    after: Plain
    cpu: int | None = None
    thread: str | None = None


@dataclass(frozen=True)
class LoadStated:
    """The requested load and its commands.

    ``busy_at_least``, ``busy_at_most``: of a load not started by the bench, the share of time that each measured CPU
    must and may be busy, verified from the recording.
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
    """Whether the load ran (None: not stated), and its use of resources during the measurement; None: unknown.

    ``stated``: stated by a person, without a proof.
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
    """Resources used by the load in a window of ``window_ns``; None: unknown."""

    cpu_ns: int | None
    context_switches: int | None
    processes: int | None
    window_ns: int | None = None

    @property
    def ran(self) -> bool | None:
        """Whether the load used anything; None if unknown."""
        if self.processes == 0:
            return False
        if self.cpu_ns or self.context_switches:
            return True
        return None if None in (self.processes, self.cpu_ns, self.context_switches) else False


@dataclass(frozen=True)
class LimitCount:
    """Count of values above a limit given before the run; ``runs`` of consecutive ones count where they begin."""

    ns: int
    exceeded: int
    runs: int
    sum_sq_runs: int
    longest: int

    def plus(self, other: LimitCount) -> LimitCount:
        """The sum of two consecutive counts at the same limit."""
        return LimitCount(
            self.ns,
            self.exceeded + other.exceeded,
            self.runs + other.runs,
            self.sum_sq_runs + other.sum_sq_runs,
            max(self.longest, other.longest),
        )


@dataclass(frozen=True)
class SeriesEnd:
    """Totals of one series in the end line; ``rises`` as [edge, delta].

    ``k`` and ``buckets`` (indices, counts): of the whole run, if its intervals have a coarser k.
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
class SampleCounts:
    """Number of samples in the sample file, and number of samples lost for lack of room."""

    stored: int
    lost: int


@dataclass(frozen=True)
class Event:
    """An event.  ``kind`` is max, threshold, clock-step, throttled or note; ``series`` is an id."""

    kind: str
    at: Instant
    series: int | None = None
    cpu: int | None = None
    value: int | None = None
    text: str | None = None
    culprit: Mapping[str, Plain] | None = None


@dataclass(frozen=True)
class Head:
    """The head line: what was measured and how.  ``version``: that of the file.

    ``boot_id``: the kernel's id of the boot; None if the measuring program does not state it.
    ``address``: by which the bench reached the board, if the run is of a bench and not local.
    ``requirement``: stated before the run, for this run only.
    ``planned_n``: planned activations of each series, if known before the run.
    ``phase_ns``: by how much later the measurement began than without a phase, on a deterministic board.
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
    address: str | None = None
    configuration: Configuration | None = None
    instrument: Mapping[str, Any] | None = None
    requirement: Requirement | None = None
    planned_n: int | None = None
    phase_ns: int | None = None
    origin: Origin | None = None
    version: int = VERSION

    @property
    def machine(self) -> Identifiers:
        """Identifiers of the machine, from the profile; empty if unknown."""
        return identifiers_of(self.profile)


@dataclass(frozen=True)
class End:
    """The end line.  ``settings``: as read back after the run, None if they were not.

    ``changes``: their changes since the head.
    """

    outcome: Outcome
    reasons: tuple[str, ...]
    at: Instant
    series: Mapping[int, SeriesEnd] = field(default_factory=dict)
    counters: Mapping[str, int | None] = field(default_factory=dict)
    settings: tuple[RecordedSetting, ...] | None = None
    changes: tuple[SettingChange, ...] = ()
    events_dropped: int = 0
    samples: SampleCounts | None = None
    load: LoadProof | None = None
