# SPDX-License-Identifier: GPL-2.0-or-later
"""stress-ng --cyclic: its summary, percentiles, and with --cyclic-dist its distribution."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from fastenough.exchange.imported import ImportedRun, ImportedSeries
from fastenough.exchange.source import LineReader, Source
from fastenough.recording.head import Plain

_OURS = re.compile(r"(?:stress-ng: )?(?:info:\s+)?\[(\d+)\] (?:stress-ng-)?cyclic: (.*)")
_OTHERS = re.compile(r"(?:stress-ng: )?(?:info|metrc|debug|warn|fail|skip|pass|note|tune|error):?\s")
_SCHED = re.compile(r"sched (SCHED_\w+): (\d+) ns delay, (\d+) samples\s*")
_MEAN = re.compile(r"\s*mean: (\d+\.\d+) ns, mode: (-?\d+) ns\s*")
_EXTREMES = re.compile(r"\s*min: (-?\d+) ns, max: (-?\d+) ns, std\.dev\. (\d+\.\d+)\s*")
_PERCENTILE = re.compile(r"\s*(\d+\.\d+)%:\s+(-?\d+) ns\s*")
_DISTRIBUTION = re.compile(r"latency distribution \((\d+) ns intervals\):\s*")
_FIRST = re.compile(r"\(for the first (\d+) buckets? of (\d+)\)\s*")
_ROW = re.compile(r"\s*(\d+)\s+(\d+)\s*")
_REST = re.compile(r"\s*\.\.\s+\.\.(?: \(all zeros hereafter\))?\s*")
_ENDED = re.compile(r".*(?:successful run completed|unsuccessful run completed|run completed) in .*")


@dataclass
class _Instance:
    """The output of one stressor."""

    pid: str
    matches: dict[str, re.Match[str]] = field(default_factory=dict)
    percentiles: dict[str, int] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    bucket_counts: tuple[int, int] | None = None


class _StressNg:
    what = "stress-ng: --cyclic, --cyclic-dist"

    def recognises(self, source: Source) -> bool:
        return any((match := _OURS.fullmatch(line)) and _SCHED.fullmatch(match[2]) for line in source.lines)

    def read(self, source: Source) -> ImportedRun:
        source.whole()
        reading = LineReader(source)
        instances, version = _instances(reading)
        if not any(_ENDED.fullmatch(line) for line in source.lines):
            source.refuse("the line that the run completed is missing: file truncated, or stress-ng was killed")
        several = len(instances) > 1
        series = tuple(
            _series(reading, instance, {"pid": int(instance.pid)} if several else {}) for instance in instances
        )
        facts: dict[str, Plain] = {}
        for instance in instances:
            facts |= {
                f"{f'{instance.pid} ' if several else ''}{share} %": value
                for share, value in instance.percentiles.items()
            }
            facts |= {
                f"{f'{instance.pid} ' if several else ''}std.dev.": instance.matches["extremes"][3],
                f"{f'{instance.pid} ' if several else ''}mode": int(instance.matches["mean"][2]),
            }
        facts |= {"policy": instances[0].matches["sched"][1]}
        return ImportedRun("stress-ng", version, "linux-user", series, probe="stress-ng-cyclic", facts=facts)


IMPORTER = _StressNg()


def _instances(reading: LineReader) -> tuple[list[_Instance], str | None]:
    instances: dict[str, _Instance] = {}
    version = None
    for line in reading:
        match = _OURS.fullmatch(line)
        if match is not None:
            _take(reading, instances.setdefault(match[1], _Instance(match[1])), match[2])
        elif version_line := re.search(r"\] stress-ng (\d+\.\d+\.\d+)", line):
            version = version_line[1]
        elif line.strip() and instances and not _OTHERS.match(line):
            reading.refuse(f"not a line of stress-ng: {line[:60]!r}")
    measured = [instance for instance in instances.values() if "sched" in instance.matches]
    for instance in measured:
        missing = [what for what in ("mean", "extremes") if what not in instance.matches]
        if missing:
            reading.refuse(f"cyclic [{instance.pid}] has no {missing[0]}: file truncated")
    return measured, version


def _take(reading: LineReader, instance: _Instance, text: str) -> None:
    for name, pattern in (("sched", _SCHED), ("mean", _MEAN), ("extremes", _EXTREMES), ("width", _DISTRIBUTION)):
        if match := pattern.fullmatch(text):
            if name in instance.matches:
                reading.refuse("a stressor repeats this line")
            instance.matches[name] = match
            return
    if match := _PERCENTILE.fullmatch(text):
        instance.percentiles[match[1]] = reading.integer(match[2], "a percentile")
    elif match := _FIRST.fullmatch(text):
        instance.bucket_counts = reading.count(match[1], "buckets"), reading.count(match[2], "buckets")
    elif (match := _ROW.fullmatch(text)) and "width" in instance.matches:
        edge = reading.count(match[1], "a bucket")
        if edge <= next(reversed(instance.rows), -1):
            reading.refuse("its rows do not ascend")
        instance.rows[edge] = reading.count(match[2], "a count")
    elif re.match(r"\s*(\d|min:|max:|mean:|sched)", text):
        reading.refuse(f"not a line of cyclic: {text[:60]!r}")


def _series(reading: LineReader, instance: _Instance, labels: dict[str, int]) -> ImportedSeries:
    sched, extremes = instance.matches["sched"], instance.matches["extremes"]
    count = reading.count(sched[3], "samples")
    series = ImportedSeries(
        "wakeup",
        "the instant the sleep was to end, counted from before it",
        "the thread reads its clock after waking",
        1,
        count,
        reading.integer(extremes[1], "min"),
        reading.integer(extremes[2], "max"),
        Decimal(instance.matches["mean"][1]),
        Decimal("0.01"),
        period_ns=reading.count(sched[2], "delay") or None,
        clock="realtime",
        labels=labels,
    )
    return series if "width" not in instance.matches else _distributed(reading, instance, series)


def _distributed(reading: LineReader, instance: _Instance, series: ImportedSeries) -> ImportedSeries:
    """The series with its distribution; values beyond the last row are only counted."""
    width = reading.count(instance.matches["width"][1], "intervals")
    listed, buckets = instance.bucket_counts or (0, 0)
    if (
        not width
        or not instance.rows
        or max(instance.rows) != (listed - 1) * width
        or any(edge % width for edge in instance.rows)
    ):
        reading.refuse(f"its distribution does not have the {listed} buckets it reports: file truncated or modified")
    if series.maximum is not None and buckets != series.maximum // width + 1:
        reading.refuse("the number of buckets does not match the maximum: file modified")
    filled = tuple(_rows(instance, width))
    return ImportedSeries(
        **{
            **vars(series),
            "buckets": filled,
            "overflow_from": listed * width,
            "overflow": (series.count or 0) - sum(count for _, _, count in filled),
        }
    )


def _rows(instance: _Instance, width: int) -> Iterator[tuple[int, int, int]]:
    """Values below 0 fall into the first bucket: division rounds towards 0."""
    for edge, count in instance.rows.items():
        if count:
            yield edge if edge else 1 - width, edge + width - 1, count
