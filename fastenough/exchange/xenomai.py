# SPDX-License-Identifier: GPL-2.0-or-later
"""Xenomai's ``latency``: its text (with -h its histogram, with -s its statistics), and the file of -g.

Cells are counted by magnitude, and the last one holds all that is greater.  In the file of -g each cell is one more
than it counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from fastenough.exchange.imported import ImportedRun, ImportedSeries
from fastenough.exchange.rounds import require_one_run
from fastenough.exchange.source import LineReader, Source
from fastenough.recording.head import Plain, RecordedSetting

_NUMBER = r"\s*(-?\d+\.\d{3})"
_SUMMARY = re.compile(
    rf"(?:RTS\||#){_NUMBER}\|{_NUMBER}\|{_NUMBER}\|\s*(\d+)\|\s*(\d+)\|\s*"
    r"(?:(\d+):(\d\d):(\d\d)/(\d+):(\d\d):(\d\d))?\s*"
)
_MODE = re.compile(r"(?:RTT\||#)\s*(\d+):(\d\d):(\d\d)\s+\(([^,()]+), (\d+) us period, priority (\d+)\)\s*")
_CELL = re.compile(r"HSD\|\s*(min|avg|max)\|\s*(\d+)\s*-\s*(\d+)\s*\|\s*(\d+)\s*")
_STATS = re.compile(r"HSS\|\s*(min|avg|max)\|\s*(\d+)\|\s*(-?\d+\.\d+|-?nan)\|\s*(-?\d+\.\d+|-?nan)\s*")
_POINT = re.compile(r"(\d+(?:\.\d+)?(?:e\+\d\d)?) (\d+)\s*")
_OURS = re.compile(r"(RTD|RTH|HSH|---)\||==|# *-|warming up|Warning!|Please contact|running quietly")
_IMPLEMENTATIONS = {"in-kernel periodic task": "xenomai-kernel", "in-kernel timer handler": "xenomai-kernel"}
_CELL_NS = 1000
"""Default width of -h, which does not state it; if the extremes do not match, it was another one (-B)."""
_LAST_CELL = 299
"""Default number of cells (-H); the last one counts all greater values."""


@dataclass
class _LatencyOutput:
    summary: re.Match[str] | None = None
    mode: re.Match[str] | None = None
    cells: dict[str, dict[int, int]] = field(default_factory=lambda: {"min": {}, "avg": {}, "max": {}})
    stats: dict[str, int] = field(default_factory=dict)
    points: list[tuple[Decimal, int]] = field(default_factory=list)


class _Xenomai:
    what = "Xenomai: latency, with and without its histogram, and its gnuplot file"

    def recognises(self, source: Source) -> bool:
        """Whether it is Xenomai's: EVL's latmus prints similar columns, with the CPU."""
        return any(
            _MODE.fullmatch(line) or line.startswith(("RTS|", "RTD|", "== Test mode: ")) for line in source.lines[:200]
        ) and not any(
            line.startswith("# libevl version: ") or re.match(r"RTT\|.* CPU\d+(-noisol)?\)\s*$", line)
            for line in source.lines[:200]
        )

    def read(self, source: Source) -> ImportedRun:
        source.whole()
        require_one_run(source)
        reading = LineReader(source)
        parts = _parts(reading)
        if parts.summary is None:
            source.refuse("its summary (RTS) is missing: file truncated, or latency was killed")
        if parts.summary[0].startswith("#") and not parts.points:
            source.refuse("its histogram is missing: file truncated")
        mode = (
            parts.mode[4]
            if parts.mode
            else next(
                (line.partition(": ")[2].strip() for line in source.lines if line.startswith("== Test mode:")),
                "unknown",
            )
        )
        facts: dict[str, Plain] = {
            "mode": mode,
            "overruns": int(parts.summary[4]),
            "mode switches": int(parts.summary[5]),
        }
        settings = () if parts.mode is None else (RecordedSetting("priority", None, int(parts.mode[6])),)
        return ImportedRun(
            "xenomai-latency",
            None,
            _IMPLEMENTATIONS.get(mode, "unknown"),
            (_series(reading, parts),),
            facts=facts,
            settings=settings,
            duration_ns=_duration_ns(parts),
        )


IMPORTER = _Xenomai()


def _parts(reading: LineReader) -> _LatencyOutput:
    parts = _LatencyOutput()
    for line in reading:
        if match := _SUMMARY.fullmatch(line):
            parts.summary = match
        elif match := _MODE.fullmatch(line):
            parts.mode = match
        elif match := _CELL.fullmatch(line):
            _take_cell(reading, parts.cells[match[1]], match)
        elif match := _STATS.fullmatch(line):
            parts.stats[match[1]] = reading.count(match[2], "samples")
        elif (match := _POINT.fullmatch(line)) and parts.summary is not None:
            parts.points.append((Decimal(match[1]), reading.count(match[2], "a count")))
        elif line.strip() and not _OURS.match(line) and ("|" in line or parts.points):
            reading.refuse(f"not a line of latency: {line[:60]!r}")
    return parts


def _take_cell(reading: LineReader, cells: dict[int, int], match: re.Match[str]) -> None:
    first, last = int(match[2]), int(match[3])
    if last != first + 1 or first <= next(reversed(cells), -1):
        reading.refuse("its cells do not ascend in steps of one")
    cells[first] = reading.count(match[4], "a count")


def _duration_ns(parts: _LatencyOutput) -> int | None:
    match, first = (parts.summary, 6) if parts.summary is not None and parts.summary[6] else (parts.mode, 1)
    if match is None:
        return None
    hours, minutes, seconds = (int(match[first + place]) for place in range(3))
    return ((hours * 60 + minutes) * 60 + seconds) * 10**9 or None


def _series(reading: LineReader, parts: _LatencyOutput) -> ImportedSeries:
    assert parts.summary is not None
    low, mean, high = (int(Decimal(parts.summary[group]) * 1000) for group in (1, 2, 3))
    period_us = int(parts.mode[5]) if parts.mode else None
    series = ImportedSeries(
        "wakeup",
        "the instant the timer was due",
        "the task, or handler, reads its clock",
        1,
        None,
        low,
        high,
        Decimal(mean),
        Decimal(2000),
        period_ns=period_us * 1000 if period_us else None,
        missed=reading.count(parts.summary[4], "overruns"),
        clock="monotonic",
    )
    cells, cell_ns = _cells_of(reading, parts)
    if not cells:
        return replace(series, count=parts.stats.get("avg"))
    count = sum(cells.values())
    if parts.stats.get("avg", count) != count:
        reading.refuse(
            f"its histogram adds up to {count}, but it reports {parts.stats['avg']}: file truncated or modified"
        )
    return _with_cells(series, cells, cell_ns, count, width_said=bool(parts.points))


def _cells_of(reading: LineReader, parts: _LatencyOutput) -> tuple[Mapping[int, int], int]:
    """Counts by cell, and the width of a cell, which -g writes with six digits."""
    if not parts.points:
        return parts.cells["avg"], _CELL_NS
    if len(parts.points) < 3:
        reading.refuse("its histogram lacks a border at the beginning or end: file truncated")
    (begin, first), *middles, (end, last) = parts.points
    if (first, last) != (1, 1) or any(count < 1 for _, count in middles):
        reading.refuse("its histogram lacks a border at the beginning or end: file truncated or modified")
    cell_ns = round((end - begin) * 1000 / len(middles))
    cell = round(begin * 1000 / cell_ns) if cell_ns > 0 else 0
    places = [cell, *(cell + place + 0.5 for place in range(len(middles))), cell + len(middles)]
    if cell_ns <= 0 or any(
        Decimal(f"{place * cell_ns / 1000:g}") != at for place, (at, _) in zip(places, parts.points, strict=True)
    ):
        reading.refuse("its cells are not in sequence: file truncated or modified")
    return {cell + place: count - 1 for place, (_, count) in enumerate(middles) if count > 1}, cell_ns


def _with_cells(
    series: ImportedSeries, cells: Mapping[int, int], cell_ns: int, count: int, *, width_said: bool
) -> ImportedSeries:
    """The series with its histogram if the extremes show its cells; else with its count only.

    A maximum beyond the cells is an overflow, or the sign of wider cells.
    """
    low, high = series.minimum or 0, series.maximum or 0
    filled = sorted(cells)
    if low < 0:
        return replace(series, count=count, labels={"histogram": "of magnitudes: some values were negative"})
    over = high >= (filled[-1] + 1) * cell_ns
    if (
        low // cell_ns != filled[0]
        or high < filled[-1] * cell_ns
        or (over and not width_said and filled[-1] != _LAST_CELL)
    ):
        return replace(series, count=count, labels={"histogram": "of cells whose width is not said (-B)"})
    buckets = tuple(
        (cell * cell_ns, (cell + 1) * cell_ns - 1, cells[cell]) for cell in (filled[:-1] if over else filled)
    )
    return replace(
        series,
        count=count,
        buckets=buckets,
        overflow=cells[filled[-1]] if over else 0,
        overflow_from=filled[-1] * cell_ns,
    )
