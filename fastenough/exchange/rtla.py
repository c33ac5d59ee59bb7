# SPDX-License-Identifier: GPL-2.0-or-later
"""rtla timerlat hist and rtla osnoise hist: one column for each CPU and context (IRQ, thread, return to user)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import gcd

from fastenough.exchange.imported import ImportedRun, ImportedSeries
from fastenough.exchange.source import LineReader, Source
from fastenough.model import Role

_TITLE = re.compile(r"# RTLA (timerlat|osnoise) histogram\s*")
_UNIT = re.compile(r"# Time unit is (?:nanoseconds|microseconds) \((ns|us)\)\s*")
_DURATION = re.compile(r"# Duration:\s*(\d+ \d\d:\d\d:\d\d)\s*")
_COLUMN = re.compile(r"(IRQ|Thr|Usr|CPU)-(\d{3,})")
_SUMMARY = ("over:", "count:", "min:", "avg:", "max:")
EVENTS = {
    "IRQ": ("irq", "the instant the timer was due", "its interrupt handler runs"),
    "Thr": ("thread", "the instant the timer was due", "the thread runs"),
    "Usr": ("user", "the instant the timer was due", "the thread is back in user space"),
    "CPU": ("noise", "the begin of an interruption of a busy loop", "its end"),
}
STOPPED = re.compile(r"(?:rtla )?(?:timerlat|osnoise) hit stop tracing\s*")
"""Printed after all numbers if a threshold (-a, -i, -T, -s) ended the run; its analysis follows."""
MISSED = re.compile(r"\d+ .*(?:missed|lost|dropped)")

STOPPED_FACT = {"stopped": "at the first latency above its threshold, not at a time chosen before"}


_TOP_TITLES = {"Timer Latency": "timerlat", "Operating System Noise": "osnoise", "Hardware-related Noise": "hwnoise"}
_DRAWN = re.compile(r"\x1b(?:c|\[[\d;]*m)")
"""Clears the screen, or sets a colour."""


def undrawn(line: str) -> str:
    """A line without clearing and colours."""
    return _DRAWN.sub("", line)


def top_title(line: str) -> str:
    """The tracer in the title of ``rtla ... top``, empty for another line."""
    return _TOP_TITLES.get(undrawn(line).strip(), "")


def is_title(line: str) -> bool:
    """Whether a line begins the output of any rtla tool."""
    return bool(_TITLE.fullmatch(line) or top_title(line))


@dataclass
class _Table:
    """``rows`` by lower edge; ``summary`` of the columns, ``all_summary`` of all CPUs together."""

    columns: list[tuple[str, int]] = field(default_factory=list)
    rows: dict[int, list[int]] = field(default_factory=dict)
    summary: dict[str, list[str]] = field(default_factory=dict)
    all_columns: list[str] = field(default_factory=list)
    all_summary: dict[str, list[str]] = field(default_factory=dict)
    stopped: bool = False


class _Rtla:
    what = "rtla: timerlat hist, osnoise hist"

    def recognises(self, source: Source) -> bool:
        return any(_TITLE.fullmatch(line) for line in source.lines[:50])

    def read(self, source: Source) -> ImportedRun:
        source.whole()
        reading = LineReader(source)
        which, unit_ns, duration_ns = _opening(reading)
        table = _table(reading)
        if "over:" not in table.summary:
            source.refuse("its table has no line 'over:': file truncated, or rtla was killed")
        if "count:" in table.summary and (missing := [name for name in _SUMMARY if name not in table.summary]):
            source.refuse(f"its table has no line '{missing[0]}': file truncated")
        if which == "timerlat" and "count:" in table.summary:
            _check_all(reading, table)
        return ImportedRun(
            "rtla",
            None,
            "linux-kernel",
            tuple(_series(reading, table, unit_ns)),
            probe=f"rtla-{which}",
            facts={"command": f"rtla {which} hist", "unit": "ns" if unit_ns == 1 else "µs"}
            | (STOPPED_FACT if table.stopped else {}),
            duration_ns=duration_ns or None,
        )


IMPORTER = _Rtla()


def _opening(reading: LineReader) -> tuple[str, int, int]:
    """Tracer, unit and duration."""
    title = next((match for line in reading if (match := _TITLE.fullmatch(line))), None)
    unit = _UNIT.fullmatch(next(iter(reading), ""))
    lasted = _DURATION.fullmatch(next(iter(reading), ""))
    if title is None or unit is None or lasted is None:
        reading.refuse("incomplete header: title, time unit and duration are required")
    return title[1], 1 if unit[1] == "ns" else 1000, lasted_ns(lasted[1])


def lasted_ns(text: str) -> int:
    """The duration of ``1 02:03:04``: days and time."""
    days, hours, minutes, seconds = map(int, re.split("[ :]", text))
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 10**9


def _table(reading: LineReader) -> _Table:
    table = _Table()
    for line in _of_one_output(reading):
        cells = line.split()
        table.stopped = table.stopped or bool(table.summary and STOPPED.fullmatch(line))
        if not cells or table.stopped:
            continue
        if not table.columns:
            _take_columns(reading, table, cells)
        elif cells[0].isdecimal() and not table.summary:
            edge = reading.count(cells[0], "Index")
            if edge <= next(reversed(table.rows), -1):
                reading.refuse("its rows do not ascend")
            table.rows[edge] = [reading.count(cell, "a count") for cell in _as_many(reading, cells, table.columns)]
        elif cells[0] == "ALL:" and table.summary:
            table.all_columns = cells[1:]
        elif cells[0] in _SUMMARY:
            held = table.all_summary if table.all_columns else table.summary
            if cells[0] != ("", *_SUMMARY, "")[1 + len(held) + bool(table.all_columns)]:
                reading.refuse(f"{cells[0]} is out of place")
            held[cells[0]] = _as_many(reading, cells, table.all_columns or table.columns)
        elif not (table.summary and MISSED.match(line)) and not line.startswith(("rtla ", "##", " ")):
            reading.refuse(f"not a line of rtla: {line[:60]!r}")
    return table


def _of_one_output(reading: LineReader) -> Iterator[str]:
    for line in reading:
        if is_title(line):
            reading.refuse_second()
        yield line


def _take_columns(reading: LineReader, table: _Table, cells: Sequence[str]) -> None:
    columns = [_COLUMN.fullmatch(cell) for cell in cells[1:]]
    if cells[0] != "Index" or not all(columns):
        reading.refuse("its columns have no names: only rtla output with header and index is supported")
    if len(cells) == 1:
        reading.refuse("no CPU was measured")
    table.columns = [(match[1], int(match[2])) for match in columns if match]


def _as_many(reading: LineReader, cells: Sequence[str], columns: Sequence[object]) -> list[str]:
    if len(cells) - 1 != len(columns):
        reading.refuse(f"{len(cells) - 1} values for {len(columns)} columns: file truncated or modified")
    return list(cells[1:])


def _check_all(reading: LineReader, table: _Table) -> None:
    """Raises BadInput unless the summary of all CPUs, which older versions lack, matches the columns."""
    if not table.all_columns:
        return
    for name in ("count:", "min:", "max:"):
        if name not in table.all_summary:
            reading.refuse(f"its summary of all CPUs has no line '{name}': file truncated")
        for kind, total in zip(table.all_columns, table.all_summary[name], strict=True):
            values = [
                int(value)
                for (column, _), value in zip(table.columns, table.summary[name], strict=True)
                if column == kind and value.isdecimal()
            ]
            joined = {"count:": sum(values), "min:": min(values, default=0), "max:": max(values, default=0)}[name]
            if values and total.isdecimal() and joined != int(total):
                reading.refuse(f"'{name}' of all CPUs does not match its columns: file modified")


def _width(reading: LineReader, table: _Table) -> int:
    """Width of buckets or a multiple: empty rows are omitted, and -b is not stated.  0 if only row 0 is present."""
    width = gcd(*table.rows)
    if table.rows and width != 1 and "count:" not in table.summary:
        reading.refuse(
            "its buckets are wider than one unit (-b), so minimum and maximum are unknown; run rtla "
            "without --no-summary"
        )
    return width


def _series(reading: LineReader, table: _Table, unit_ns: int) -> Iterator[ImportedSeries]:
    edges, width = list(table.rows), _width(reading, table)
    for place, (kind, cpu) in enumerate(table.columns):
        name, from_event, to_event = EVENTS[kind]

        def value_of(what: str, place: int = place) -> str | None:
            text = table.summary[what][place] if what in table.summary else "-"
            return None if text == "-" else text

        overflow = reading.count(table.summary["over:"][place], "over:")
        count, low, high = (
            None if (text := value_of(what)) is None else reading.count(text, what)
            for what in ("count:", "min:", "max:")
        )
        mean, top = value_of("avg:"), width - 1 if width else high or 0
        buckets = tuple((edge, edge + top, row[place]) for edge, row in table.rows.items() if row[place])
        yield ImportedSeries(
            name,
            from_event,
            to_event,
            unit_ns,
            sum(n for _, _, n in buckets) + overflow if count is None else count,
            low if count != 0 else None,
            high if count != 0 else None,
            _mean(reading, mean) if count != 0 else None,
            Decimal("0.01") if mean and "." in mean else Decimal(1),
            cpu=cpu,
            role=Role.VERDICT if kind in ("Thr", "Usr", "CPU") else Role.DIAGNOSTIC,
            buckets=buckets,
            overflow=overflow,
            overflow_from=edges[-1] + 1 if edges else 0,
        )


def _mean(reading: LineReader, text: str | None) -> Decimal | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,18}(\.\d{2})?", text):
        reading.refuse(f"avg is not a number: {text[:40]!r}")
    return Decimal(text)
