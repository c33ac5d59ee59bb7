# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of several CPUs and runs, merged.

Runs may be merged only where everything that shapes a latency is the same; the first key that differs is named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastenough.model import BadInput, Series
from fastenough.recording import Histogram, Recording

FloatArray = NDArray[np.float64]
CountArray = NDArray[np.int64]

OWED = "_owed"
_OF_ONE_RUN = re.compile(r"fastenough-[0-9a-f]+")
_HOW_LONG = frozenset({"duration_ns", "duration_s", "duration", "loops"})


class MixedRuns(BadInput):
    """Runs that may not be put together; the message names the key that differs."""


def load_name(recording: Recording) -> str | None:
    """The name of the load, None where the recording does not state any."""
    load = recording.head.get("load")
    return None if load is None else str(load.get("name"))


def load_commands(recording: Recording) -> list[list[str]]:
    """What the load ran, without what names this one run: how long, and its temporary folder."""
    commands = (recording.head.get("load") or {}).get("commands", ())
    return [[_OF_ONE_RUN.sub("", argument) for before, argument in zip(["", *command], command, strict=False)
             if before != "--timeout"] for command in commands]


def _instrument(head: dict[str, Any]) -> dict[str, Any] | None:
    """The instrument, by its serial number where it has one: the port's name is another after each plugging in."""
    known = head.get("instrument")
    if not known or not known.get("serial"):
        return known
    return {name: value for name, value in known.items() if name != "port"}


def run_key(recording: Recording) -> dict[str, Any]:
    """What two runs must share to be one evidence: names and plain values."""
    head = recording.head
    profile = head.get("profile") or {}
    return {
        "board": head.get("board"),
        "processor": profile.get("cpu"),
        "kernel": profile.get("kernel"),
        "command line": profile.get("cmdline"),
        "configuration": head.get("configuration"),
        "probe": head["probe"],
        "implementation": head["implementation"],
        "parameters": {name: value for name, value in head["parameters"].items() if name not in _HOW_LONG},
        "settings": sorted((s["name"], s.get("cpu", -1), str(s["granted"])) for s in head["settings"]),
        "load": load_name(recording),
        "load's commands": load_commands(recording),
        "instrument": _instrument(head),
        "marks": sorted(head["marks"]),
    }


def series_key(series: Series) -> dict[str, Any]:
    """What two series must share to be added; the CPU may differ."""
    return {
        "series": series.name, "unit": series.unit, "tick": series.tick_ps, "resolution k": series.k,
        "clock": series.clock, "from": series.from_event, "to": series.to_event,
        "period": series.period_ns, "bytes": series.bytes, "labels": series.labels,
    }


def first_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """In words, the first key in which two of the above differ; None where they agree."""
    for name in one:
        if one[name] != other[name]:
            return f"{name} differs: {_brief(one[name], other[name])}"
    return None


def _brief(one: Any, other: Any) -> str:
    """Two unequal values, cut down to the parts that differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        unequal = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
        return "; ".join(f"{name}: {_brief(one.get(name), other.get(name))}" for name in unequal)
    if isinstance(one, list) and isinstance(other, list):
        return (f"{[item for item in one if item not in other]} against "
                f"{[item for item in other if item not in one]}")
    return f"{one!r} against {other!r}"


def key_text(recording: Recording) -> str:
    """The run key and what its series are, as one string to group by."""
    series = [series_key(series) for series in recording.series]
    return json.dumps([run_key(recording), series], sort_keys=True, default=str)


def grouped(recordings: Iterable[Recording]) -> list[list[Recording]]:
    """Recordings in groups that share their run key, in order of first appearance."""
    groups: dict[str, list[Recording]] = {}
    for recording in recordings:
        groups.setdefault(key_text(recording), []).append(recording)
    return list(groups.values())


@dataclass(frozen=True)
class Merged:
    """Values of one kind, from one or more CPUs and runs, in the series' own unit.

    ``duration_ns`` is the time measured per CPU, added over runs.  ``owed``: missed periods are already
    charged in the values.  ``two_sided``: a value off in either direction counts (jitter).
    """

    name: str
    cpus: tuple[int, ...]
    unit_ns: float
    period_ns: int | None
    owed: bool
    two_sided: bool
    histogram: Histogram
    lost: int
    missed: int
    duration_ns: int
    run_ids: tuple[str, ...]
    from_event: str
    to_event: str

    @property
    def n(self) -> int:
        """How many values are stored."""
        return self.histogram.total

    @property
    def judged(self) -> int:
        """How many activations a verdict rests on: values, and periods missed that no value stands for."""
        return self.n + self._missed_uncharged

    @property
    def _missed_uncharged(self) -> int:
        return 0 if self.owed else self.missed

    @property
    def maximum_ns(self) -> float | None:
        """The exact maximum; for jitter, the exact greatest magnitude."""
        low, high = self.histogram.minimum, self.histogram.maximum
        if low is None or high is None:
            return None
        return (max(abs(low), abs(high)) if self.two_sided else high) * self.unit_ns

    def edges_ns(self) -> tuple[FloatArray, FloatArray]:
        """Least and greatest value of each bucket, signed and ascending, in ns."""
        unit_ns = np.float64(self.unit_ns)
        return self.histogram.lowest() * unit_ns, self.histogram.highest() * unit_ns

    def exceeded(self, limit_ns: float) -> tuple[int, int]:
        """Activations (surely, possibly) beyond the limit; they differ where the limit lies within a bucket."""
        lowest, highest = self.edges_ns()
        surely, possibly = lowest > limit_ns, highest > limit_ns
        if self.two_sided:
            surely, possibly = surely | (highest < -limit_ns), possibly | (lowest < -limit_ns)
        count = self.histogram.count
        return (int(count[surely].sum()) + self._missed_uncharged,
                int(count[possibly].sum()) + self._missed_uncharged)

    def magnitudes(self) -> tuple[FloatArray, FloatArray, CountArray]:
        """(lowest, highest, count) per bucket, ascending, in ns; for jitter of the magnitudes."""
        lowest, highest = self.edges_ns()
        count = self.histogram.count
        if not self.two_sided:
            return lowest, highest, count
        negative = highest < 0
        low, high = np.where(negative, -highest, lowest), np.where(negative, -lowest, highest)
        order = np.argsort(high, kind="stable")
        return low[order], high[order], count[order]


def is_jitter(series: Series) -> bool:
    """Values about an expected instant, off in either direction; all others are delays, late only."""
    return "jitter" in series.name


def merge_samples(parts: Sequence[tuple[Recording, Series]]) -> Merged:
    """Add up series of one or several runs; raises MixedRuns where they may not be added."""
    first_recording, first = parts[0]
    for recording, series in parts[1:]:
        difference = (first_difference(run_key(first_recording), run_key(recording))
                      or first_difference(series_key(first), series_key(series)))
        if difference is not None:
            raise MixedRuns(f"runs {first_recording.run_id} and {recording.run_id} cannot be put together: "
                            f"{difference}")
    runs = {recording.run_id: recording for recording, _ in parts}
    return Merged(
        name=first.name,
        cpus=tuple(sorted({series.cpu for _, series in parts if series.cpu is not None})),
        unit_ns=first.unit_ns,
        period_ns=first.period_ns,
        owed=first.name.endswith(OWED),
        two_sided=is_jitter(first),
        histogram=Histogram.merged((recording.totals[series.id] for recording, series in parts), first.k),
        lost=sum(recording.lost(series.id) for recording, series in parts),
        missed=sum(recording.missed(series.id) for recording, series in parts),
        duration_ns=sum(recording.duration_ns for recording in runs.values()),
        run_ids=tuple(runs),
        from_event=first.from_event,
        to_event=first.to_event,
    )


def judged_series(recording: Recording) -> list[Series]:
    """The series a limit applies to: the owed view where there is one, and no throughput."""
    names = {series.name for series in recording.series}
    return [series for series in recording.series
            if series.name + OWED not in names and series.bytes is None and series.refused is None]


def kinds(recording: Recording) -> list[list[Series]]:
    """The recording's series in groups that differ in their CPU only, in order of first appearance."""
    groups: dict[str, list[Series]] = {}
    for series in recording.series:
        groups.setdefault(json.dumps(series_key(series), sort_keys=True), []).append(series)
    return list(groups.values())
