# SPDX-License-Identifier: GPL-2.0-or-later
"""HdrHistogram's percentile distribution (.hgrm): a value for each percentile, and the number of values up to it.

The file does not state its unit; the user does.  Each value, also the minimum, is the upper edge of its bucket.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from fastenough.exchange.imported import Bucket, ImportedRun, ImportedSeries
from fastenough.exchange.source import LineReader, Source

_TITLE = re.compile(r"\s*Value\s+Percentile\s+TotalCount\s+1/\(1-Percentile\)\s*")
_ROW = re.compile(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s+([01]\.\d{1,16})\s+(\d{1,18})(?:\s+(\d{1,18}\.\d+|inf|Infinity))?\s*")
_MEAN = re.compile(r"#\[Mean\s*=\s*(\d{1,15}(?:\.\d+)?), StdDeviation\s*=\s*(\d{1,15}(?:\.\d+)?)\]\s*")
_MAX = re.compile(r"#\[Max\s*=\s*(\d{1,15}(?:\.\d+)?), Total count\s*=\s*(\d{1,18})\]\s*")
_BUCKETS = re.compile(r"#\[Buckets\s*=\s*\d+, SubBuckets\s*=\s*(\d{1,9})\]\s*")
_FEWEST_SUB_BUCKETS = 32
"""Subbuckets of one significant digit."""


class _Hgrm:
    what = "HdrHistogram: percentile distribution (.hgrm)"

    def recognises(self, source: Source) -> bool:
        return any(_TITLE.fullmatch(line) for line in source.lines[:20])

    def read(self, source: Source) -> ImportedRun:
        source.whole()
        if source.unit_ns is None:
            source.refuse("it does not state the unit of its values; add --unit ns, us, ms or s")
        rows, mean, most = _parts(LineReader(source), source.unit_ns)
        first_width_ns = 2 * rows[0][0] // _sub_buckets(source) if rows else 0
        series = ImportedSeries(
            "latency",
            "not stated",
            "not stated",
            1,
            rows[-1][1] if rows else 0,
            rows[0][0] if rows else None,
            most if rows else None,
            mean if rows else None,
            Decimal(2 * source.unit_ns + first_width_ns),
            overflow=0,
            overflow_from=most + 1,
            buckets=tuple(_buckets(rows)),
        )
        return ImportedRun(
            "hdrhistogram",
            None,
            "unknown",
            (series,),
            probe="hgrm",
            facts={"unit": f"{source.unit_ns} ns, as stated at the import"},
        )


IMPORTER = _Hgrm()


def _parts(reading: LineReader, unit_ns: int) -> tuple[list[tuple[int, int]], Decimal, int]:
    """Values in ns with the number of values up to each, both ascending; mean and maximum in ns."""
    rows: list[tuple[int, int]] = []
    mean = end = None
    for line in reading:
        if match := _ROW.fullmatch(line):
            value, total = int(Decimal(match[1]) * unit_ns), reading.count(match[3], "TotalCount")
            if rows and (value < rows[-1][0] or total < rows[-1][1]):
                reading.refuse("its rows do not ascend")
            rows.append((value, total))
        elif match := _MEAN.fullmatch(line):
            mean = Decimal(match[1]) * unit_ns
        elif match := _MAX.fullmatch(line):
            end = int(Decimal(match[1]) * unit_ns), reading.count(match[2], "Total count")
        elif line.strip() and not _TITLE.fullmatch(line) and not _BUCKETS.fullmatch(line):
            reading.refuse(f"not a line of HdrHistogram: {line[:60]!r}")
    if mean is None or end is None:
        reading.refuse("its last lines (Mean, Max) are missing: file truncated")
    if (rows[-1] if rows else (0, 0)) != end:
        reading.refuse("its last row does not match its maximum and total count: file truncated or modified")
    return rows, mean, end[0]


def _sub_buckets(source: Source) -> int:
    """A bucket is at most 2/N of its value wide; its mean is taken at the middle, below the first row's upper edge."""
    counts = [int(match[1]) for line in source.lines if (match := _BUCKETS.fullmatch(line))]
    return max(_FEWEST_SUB_BUCKETS, *counts) if counts else _FEWEST_SUB_BUCKETS


def _buckets(rows: list[tuple[int, int]]) -> Iterator[Bucket]:
    """Number of values above one row and up to the next one."""
    low, placed = rows[0][0] if rows else 0, 0
    for value, total in rows:
        if total > placed:
            yield min(low, value), value, total - placed
        low, placed = value + 1, max(placed, total)
