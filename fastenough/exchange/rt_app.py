# SPDX-License-Identifier: GPL-2.0-or-later
"""rt-app's log of one thread: a line for each loop of its work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import numpy as np

from fastenough.exchange.imported import MOST_NS, ImportedRun, ImportedSeries, TimedValues
from fastenough.exchange.source import LineReader, Source
from fastenough.model import Role
from fastenough.recording.head import RecordedSetting

_POLICY = re.compile(r"# Policy : SCHED_([A-Z_]{2,20}) priority : (-?\d{1,3})")
_COLUMNS = ("#idx", "perf", "run", "period", "start", "end", "rel_st", "slack", "c_duration", "c_period", "wu_lat")
_ROUNDED_US = 2
"""Begin and end of a loop, and what lies between them, are rounded one by one."""
LoopRow = dict[str, int]


class _RtApp:
    what = "rt-app: log of a thread"

    def recognises(self, source: Source) -> bool:
        return tuple(source.lines[:2][-1].split()) == _COLUMNS and _POLICY.fullmatch(source.lines[0]) is not None

    def read(self, source: Source) -> ImportedRun:
        source.whole()
        rows = list(_rows(LineReader(source)))
        _check(source, rows)
        timed = [row for row in rows if row["c_period"] and not _never_waited(row)]
        if not timed:
            source.refuse("its loops have no timer (c_period is 0); rt-app logs no latency of other wake-ups")
        slept = [row for row in timed if not _never_slept(row)]
        if not slept:
            source.refuse("no loop slept: each one ended after the start of its next period")
        policy, priority = _POLICY.findall(source.lines[0])[0]
        samples = _sample(slept, "wu_lat"), _sample(timed, "slack")
        series = _wakeups(samples[0], len(timed) - len(slept)), _slacks(samples[1])
        return ImportedRun(
            "rt-app",
            None,
            "linux-user",
            series,
            samples=samples,
            settings=(
                RecordedSetting("policy", None, policy.lower()),
                RecordedSetting("priority", None, int(priority)),
            ),
            facts={
                "loops": len(rows),
                "loops without a timer": len(rows) - len(timed),
                "end": "not marked: a file cut between two loops is not told from a whole one",
            },
        )


IMPORTER = _RtApp()


def _rows(reading: LineReader) -> Iterator[LoopRow]:
    last = len(reading.source.lines)
    for line in reading:
        values = line.split()
        if reading.number <= len(("policy", "columns")) or (not values and reading.number in (3, last)):
            continue
        if len(values) != len(_COLUMNS):
            reading.refuse(f"not a loop of {len(_COLUMNS)} columns: {line[:60]!r}")
        row = {
            name: (reading.integer if name == "slack" else reading.count)(value, name)
            for name, value in zip(_COLUMNS, values, strict=True)
        }
        if any(abs(value) > MOST_NS // 1000 for value in row.values()):
            reading.refuse("it contains a time longer than 10 years")
        yield row


def _check(source: Source, rows: list[LoopRow]) -> None:
    """Raises BadInput unless the two begins and lengths of each loop agree, and loops follow each other."""
    if not rows:
        source.refuse("it contains no loop: rt-app was killed or has not written yet")
    begin = rows[0]["start"] - rows[0]["rel_st"]
    for row in rows:
        if (
            abs(row["end"] - row["start"] - row["period"]) > _ROUNDED_US
            or abs(row["start"] - row["rel_st"] - begin) > _ROUNDED_US
            or row["#idx"] != rows[0]["#idx"]
        ):
            source.refuse("the begin or length of a loop is inconsistent: file modified")
        if row["wu_lat"] > row["period"]:
            source.refuse("a wake-up took longer than its loop: file modified")
    if any(previous["start"] + _ROUNDED_US < row["end"] for row, previous in pairwise(rows)):
        source.refuse("its loops are not in sequence: file modified")


def _never_waited(row: LoopRow) -> bool:
    """Whether rt-app ended before this loop reached its timer."""
    return row["slack"] == row["wu_lat"] == 0


def _never_slept(row: LoopRow) -> bool:
    """Whether the loop did not sleep: the next period had begun, and rt-app logged a latency of 0."""
    return row["slack"] < 0 and row["wu_lat"] == 0


def _wakeups(sample: TimedValues, missed: int) -> ImportedSeries:
    return _series(
        "wakeup",
        ("the instant the timer was due", "the thread runs; added up where a loop has several timers"),
        sample,
        missed,
    )


def _slacks(sample: TimedValues) -> ImportedSeries:
    events = "the end of a loop's work", "the end of its period; negative where it took longer than that"
    return replace(_series("slack", events, sample), role=Role.DIAGNOSTIC)


def _sample(rows: list[LoopRow], column: str) -> TimedValues:
    return TimedValues(
        *(np.array([row[name] * unit for row in rows], dtype=np.int64) for name, unit in (("end", 1000), (column, 1)))
    )


def _series(name: str, events: tuple[str, str], sample: TimedValues, missed: int = 0) -> ImportedSeries:
    values, counts = np.unique(sample.value, return_counts=True)
    mean = Decimal(int(sample.value.sum(dtype=np.object_))) / len(sample.value)
    return ImportedSeries(
        name,
        *events,
        1000,
        len(sample.value),
        int(values[0]),
        int(values[-1]),
        mean,
        overflow=0,
        missed=missed,
        buckets=tuple((at, at, n) for at, n in zip(values.tolist(), counts.tolist(), strict=True)),
        clock="monotonic",
    )
