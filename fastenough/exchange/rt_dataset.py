# SPDX-License-Identifier: GPL-2.0-or-later
"""OSADL's RT Dataset 1.0: JSON with cyclictest's histogram of every core and data of the system.

It states the maximum of each core, but no mean.  If the maximum is beyond the histogram, at least one value is,
and their number is not stated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from fastenough.exchange.cyclictest import FROM, TO
from fastenough.exchange.imported import Bucket, ImportedRun, ImportedSeries, wall_ns
from fastenough.exchange.source import Source
from fastenough.model import Configuration
from fastenough.recording.head import LoadStated

_NAME = "RT Dataset"
_UNIT_NS = {"microseconds": 1000, "nanoseconds": 1}
_MOST_CORES = 8192
_MOST_TEXT = 4096


class _RtDataset:
    what = "OSADL: RT Dataset"

    def recognises(self, source: Source) -> bool:
        return (
            source.text.lstrip().startswith("{")
            and f'"{_NAME}"' in source.text
            and _part(source.json, "format").get("name") == _NAME
        )

    def read(self, source: Source) -> ImportedRun:
        document = source.json
        version = _part(document, "format").get("version")
        if version != "1.0":
            source.refuse(f"its version is {str(version)[:20]!r}; only version 1.0 can be read")
        condition, kernel = _part(document, "condition"), _part(document, "kernel")
        release, command_line = _text(kernel.get("version")), _text(kernel.get("cmdline"))
        host, load = _text(_part(document, "system").get("hostname")), _text(condition.get("load"))
        run = ImportedRun(
            "cyclictest",
            None,
            "linux-user",
            tuple(_series(source, condition)),
            probe="cyclictest",
            facts=_facts(document),
            begin_wall_ns=_begin_ns(source, _part(document, "timestamps").get("origin")),
            board=host,
        )
        if load is not None:
            run = replace(run, load=LoadStated(load))
        if release is None:
            return run
        return replace(
            run,
            configuration=Configuration(release, release, None, command_line),
            profile={"hostname": host, "kernel": {"release": release, "command_line": command_line}},
        )


IMPORTER = _RtDataset()


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = document.get(name)
    return part if isinstance(part, dict) else {}


def _text(value: object) -> str | None:
    return value[:_MOST_TEXT] if isinstance(value, str) and value else None


def _facts(document: Mapping[str, Any]) -> dict[str, str | int | float]:
    """All single values; options and patches of the kernel are in the text of the file."""
    return {
        f"{part}.{name}": value if not isinstance(value, str) else value[:_MOST_TEXT]
        for part in ("format", "timestamps", "system", "processor", "kernel", "condition")
        for name, value in _part(document, part).items()
        if isinstance(value, str | int | float)
    }


def _begin_ns(source: Source, text: object) -> int | None:
    if text is None:
        return None
    try:
        return wall_ns(datetime.fromisoformat(str(text)))
    except (ValueError, OverflowError, OSError):
        source.refuse(f"not a time: {str(text)[:60]!r}")


def _numbers(source: Source, value: object, what: str) -> list[int]:
    if not isinstance(value, list) or not all(type(number) is int and number >= 0 for number in value):
        source.refuse(f"{what} is not a list of integers")
    return value


def _series(source: Source, condition: Mapping[str, Any]) -> Iterator[ImportedSeries]:
    """Series of each core: the first column has the edges of the classes, the others the counts of a core."""
    latency = _part(source.json, "latency")
    unit_ns = _UNIT_NS.get(str(latency.get("granularity")))
    if unit_ns is None:
        source.refuse(f"its granularity is {str(latency.get('granularity'))[:40]!r}, not microseconds or nanoseconds")
    columns = latency.get("cores")
    if not isinstance(columns, list) or not 2 <= len(columns) <= _MOST_CORES:
        source.refuse("it contains no histogram of a core")
    edges, *cores = (_numbers(source, column, f"column {place} of its cores") for place, column in enumerate(columns))
    maxima = _numbers(source, latency.get("maxima", []), "maxima")
    if any(len(core) != len(edges) for core in cores) or sorted(set(edges)) != edges or not edges:
        source.refuse("its columns differ in length, or its classes do not ascend: file truncated or modified")
    if maxima and len(maxima) != len(cores):
        source.refuse(f"it has {len(cores)} cores and {len(maxima)} maxima: file truncated or modified")
    interval = condition.get("interval")
    period_ns = interval * 1000 if type(interval) is int and interval > 0 else None
    for number, counts in enumerate(cores):
        buckets = tuple((edge, edge, count) for edge, count in zip(edges, counts, strict=True) if count)
        yield replace(
            _of_core(buckets, maxima[number] if maxima else None, edges[-1] + 1, unit_ns),
            cpu=number,
            period_ns=period_ns,
        )


def _of_core(buckets: tuple[Bucket, ...], maximum: int | None, end: int, unit_ns: int) -> ImportedSeries:
    """Series of a core.  If the maximum is beyond the histogram, at least one value is; their number is unknown."""
    beyond = maximum is not None and maximum >= end
    placed = sum(count for _, _, count in buckets)
    high = maximum if maximum is not None and (beyond or placed) else buckets[-1][1] if buckets else None
    return ImportedSeries(
        "wakeup",
        FROM,
        TO,
        unit_ns,
        None if beyond else placed,
        buckets[0][0] if buckets else None,
        high,
        None,
        overflow=int(beyond),
        overflow_from=end,
        buckets=buckets,
    )
