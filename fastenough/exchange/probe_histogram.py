# SPDX-License-Identifier: GPL-2.0-or-later
"""fastenough-probe's histogram (-h, -H, --histfile), below its table or by itself.

It has cyclictest's form with three differences.  Maximum and mean are rounded up, early wake-ups have a line of their
own, and a row counts the buckets of the probe that begin in it: the last value of a row may be above its microsecond by
the width of a bucket.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from fastenough.exchange.cyclictest import FROM, PROBE_COLUMNS, TO
from fastenough.exchange.imported import Bucket, ImportedRun, ImportedSeries
from fastenough.exchange.source import LineReader, Source
from fastenough.recording.head import Plain

_COLUMN = re.compile(r", ([\w-]+)(?: of CPU (\d{1,6}))?")
_ALL = "all"
"""Name of the column of -H, the sum of the others."""
_TABLE_TITLE = re.compile(r"(?:# ?)? *CPU series +count +missed +min( ns)? .*")
_ROW = re.compile(r"\d{6,}(?:\s+\d+)+")
_COUNTS = ("Before the due time", "Total", "Histogram Overflows")
_LATENCIES = ("Min Latencies", "Avg Latencies", "Max Latencies")
_FOOTER = re.compile(rf"# ({'|'.join((*_COUNTS, *_LATENCIES))}):((?: -?\d{{1,19}})+)")
_ROW_NS = 1000
_BUCKET_SHIFT = 10
"""A bucket of the probe is at most 2^-10 of its value wide."""


@dataclass
class _ProbeOutput:
    """The lines by kind; ``columns``: series and CPU of each.  ``unit_ns``: unit of the latencies, None: not stated."""

    columns: list[tuple[str, int | None]]
    summed: bool
    unit_ns: int | None = None
    rows: list[list[int]] = field(default_factory=list)
    footers: dict[str, list[int]] = field(default_factory=dict)

    @property
    def end_ns(self) -> int:
        return len(self.rows) * _ROW_NS

    @property
    def slack_ns(self) -> int:
        """How far a value may be above its row."""
        return self.end_ns >> _BUCKET_SHIFT

    def latency_ns(self, name: str, column: int) -> int:
        return self.footers[name][column] * (self.unit_ns or 1000)


class _ProbeHistogram:
    what = "fastenough-probe: histogram"

    def recognises(self, source: Source) -> bool:
        return bool(PROBE_COLUMNS.search(source.text))

    def read(self, source: Source) -> ImportedRun:
        source.whole()
        reading = LineReader(source)
        output = _read_lines(reading)
        _check_counts(reading, output)
        facts: dict[str, Plain] = {"histogram": f"{len(output.rows)} rows"}
        if output.unit_ns is None:
            facts["unit"] = "µs, assumed: without the table above it the file does not show whether -N was given"
        return ImportedRun("fastenough-probe", None, "unknown", tuple(_series(output)), facts=facts)


IMPORTER = _ProbeHistogram()


def _read_lines(reading: LineReader) -> _ProbeOutput:
    """The histogram without the table above it; raises BadInput for any other line."""
    output: _ProbeOutput | None = None
    unit_ns = None
    for line in reading:
        if PROBE_COLUMNS.fullmatch(line):
            if output is not None:
                reading.refuse_second()
            names = [(name, int(cpu) if cpu else None) for name, cpu in _COLUMN.findall(line)]
            summed = len(names) > 1 and names[-1] == (_ALL, None)
            output = _ProbeOutput(names[:-1] if summed else names, summed, unit_ns)
        elif output is None and (match := _TABLE_TITLE.fullmatch(line)):
            unit_ns = 1 if match[1] else 1000
        elif output is not None:
            _take(reading, output, line)
    assert output is not None
    missing = next((name for name in (*_COUNTS, *_LATENCIES) if name not in output.footers), None)
    if missing is not None:
        reading.refuse(f"its histogram has no line '# {missing}:': file truncated, or the probe was killed")
    return output


def _take(reading: LineReader, output: _ProbeOutput, line: str) -> None:
    """One line below that of the columns."""
    if (match := _FOOTER.fullmatch(line)) and match[1] not in output.footers:
        output.footers[match[1]] = [int(value) for value in match[2].split()]
    elif _ROW.fullmatch(line) and "Total" not in output.footers:
        edge, *counts = (reading.count(value, "a count") for value in line.split())
        if edge != len(output.rows):
            reading.refuse(f"its row {len(output.rows)} is missing: file modified")
        output.rows.append(counts)
    elif line not in ("", "# Histogram"):
        reading.refuse(f"not a line of fastenough-probe's histogram: {line[:60]!r}")


def _check_counts(reading: LineReader, output: _ProbeOutput) -> None:
    """Raises BadInput unless all lines have the same columns, and the sums are those of their counts."""
    counted = [*output.rows, *(output.footers[name] for name in _COUNTS)]
    of_all = [output.footers["Max Latencies"], *counted]
    widths = {len(counts) - output.summed for counts in of_all} | {len(output.footers[name]) for name in _LATENCIES[:2]}
    if widths != {len(output.columns)}:
        reading.refuse("its lines have different numbers of columns: file truncated or modified")
    highest = output.footers["Max Latencies"]
    if output.summed and (any(sum(row[:-1]) != row[-1] for row in counted) or max(highest[:-1]) != highest[-1]):
        reading.refuse("its last column is not that of all others: file modified")
    if output.footers["Total"] != [sum(column) for column in zip(*output.rows, strict=True)]:
        reading.refuse("its rows do not add up to # Total: file truncated or modified")


def _series(output: _ProbeOutput) -> Iterator[ImportedSeries]:
    """One series for each column, in ns."""
    for column, (name, cpu) in enumerate(output.columns):
        early, total, beyond = (output.footers[kind][column] for kind in _COUNTS)
        low, mean, high = (output.latency_ns(kind, column) for kind in _LATENCIES)
        count = early + total + beyond
        buckets = _buckets(output, column, low)
        if buckets and not beyond and high <= buckets[-1][1] + output.slack_ns + 1:
            buckets[-1] = (buckets[-1][0], max(buckets[-1][1], high), buckets[-1][2])
        yield ImportedSeries(
            name,
            *((FROM, TO) if name == "wakeup" else ("not stated", "not stated")),
            1,
            count,
            (low if count > 1 else high) if count else None,  # of one value the two are its limits
            high if count else None,
            Decimal(mean) if count else None,
            Decimal(2 * ((output.unit_ns or 1000) + output.slack_ns)),
            overflow=beyond,
            overflow_from=output.end_ns,
            buckets=tuple(buckets),
            cpu=cpu,
            labels={"column": column} if output.columns.count((name, cpu)) > 1 else {},
        )


def _buckets(output: _ProbeOutput, column: int, low_ns: int) -> list[Bucket]:
    """The rows with values, and early wake-ups.  ``low_ns``: the minimum, which may be above the row that counts it."""
    early = output.footers["Before the due time"][column]
    buckets: list[Bucket] = [(low_ns, -1, early)] if early else []
    for row, counts in enumerate(output.rows):
        first_ns, count = row * _ROW_NS, counts[column]
        last_ns = first_ns + _ROW_NS - 1
        if count and last_ns < low_ns <= last_ns + output.slack_ns:
            first_ns = last_ns = low_ns
        if count and buckets and buckets[-1][1] >= first_ns:
            first_ns, _, before = buckets.pop()
            count += before
        if count:
            buckets.append((first_ns, last_ns, count))
    return buckets
