# SPDX-License-Identifier: GPL-2.0-or-later
"""Latency histograms of the kernels of OSADL's farm (latency_hist in debugfs, per CPU)."""

from __future__ import annotations

import re
from decimal import Decimal

from fastenough.exchange.imported import ImportedRun, ImportedSeries
from fastenough.exchange.source import LineReader, Source

_HEAD = {
    "min": re.compile(r"#Minimum latency: (-?\d+|<undef>) microseconds\.?\s*"),
    "avg": re.compile(r"#Average latency: (-?\d+|<undef>) microseconds\.?\s*"),
    "max": re.compile(r"#Maximum latency: (-?\d+|<undef>) microseconds\.?\s*"),
    "total": re.compile(r"#Total samples: (\d+)\s*"),
    "below": re.compile(r"#There are (\d+) samples lower than (-?\d+) microseconds\.?\s*"),
    "above": re.compile(r"#There are (\d+) samples greater or equal than (-?\d+) microseconds\.?\s*"),
}
_TITLE = re.compile(r"#usecs\s+samples\s*")
_ROW = re.compile(r"\s*(-?\d+)\s+(\d+)\s*")


class _Osadl:
    what = "OSADL: the kernel's latency_hist"

    def recognises(self, source: Source) -> bool:
        return any(_HEAD["min"].fullmatch(line) for line in source.lines[:20])

    def read(self, source: Source) -> ImportedRun:
        source.whole()
        reading = LineReader(source)
        head, rows = _lines(reading)
        missing = [name for name in ("min", "avg", "max", "total", "above") if name not in head]
        if missing:
            source.refuse(f"its header lacks {missing[0]}: file truncated")
        above, bound = int(head["above"][1]), int(head["above"][2])
        below, floor = (int(head["below"][1]), int(head["below"][2])) if "below" in head else (0, 0)
        first = min(rows, default=0)
        if (bound - first, bound - 1) != (len(rows), max(rows, default=-1)):  # they ascend
            source.refuse(f"its rows do not reach {bound - 1} µs: file truncated")
        buckets = tuple((edge, edge, count) for edge, count in rows.items() if count)
        low, mean, high = (None if head[name][1] == "<undef>" else int(head[name][1]) for name in ("min", "avg", "max"))
        if below:
            if low is None or not rows or low >= floor:
                source.refuse("values lie below its histogram, but its minimum does not")
            buckets = ((low, min(rows) - 1, below), *buckets)
        count = int(head["total"][1])
        series = ImportedSeries(
            "latency",
            "the begin of the stretch that this kernel's histogram counts",
            "its end",
            1000,
            count,
            low if count else None,
            high if count else None,
            None if mean is None or not count else Decimal(mean),
            Decimal(2),
            overflow=above,
            overflow_from=bound,
            buckets=buckets,
            clock="kernel",
        )
        return ImportedRun("osadl-latency-hist", None, "linux-kernel", (series,), facts={"histogram": f"to {bound} µs"})


IMPORTER = _Osadl()


def _lines(reading: LineReader) -> tuple[dict[str, re.Match[str]], dict[int, int]]:
    head: dict[str, re.Match[str]] = {}
    rows: dict[int, int] = {}
    titled = False
    for line in reading:
        name = next((name for name, pattern in _HEAD.items() if pattern.fullmatch(line)), None)
        if name is not None and name not in head and not titled:
            match = _HEAD[name].fullmatch(line)
            assert match is not None
            head[name] = match
        elif _TITLE.fullmatch(line) and not titled:
            titled = True
        elif titled and (match := _ROW.fullmatch(line)):
            edge = reading.integer(match[1], "usecs")
            if rows and edge <= next(reversed(rows)):
                reading.refuse("its rows do not ascend")
            rows[edge] = reading.count(match[2], "samples")
        elif line.strip():
            reading.refuse(f"not a line of latency_hist: {line[:60]!r}")
    return head, rows
