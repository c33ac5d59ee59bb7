# SPDX-License-Identifier: GPL-2.0-or-later
"""oslat's text and JSON: gaps in a busy loop.

Older versions round each gap up to whole µs, the name of its bucket.  Newer ones round extremes down and name a
bucket after its upper end, which no value in it reaches; with --bucket-width (-W) their times are in ns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import gcd

from fastenough.exchange.imported import Bucket, ImportedRun, ImportedSeries
from fastenough.exchange.rt_tests import histogram_of, imported_run, mean_of, number, test_of, threads_of
from fastenough.exchange.source import LineReader, Source

_ROW = re.compile(
    r"\s*(Core|Counter Freq|CPU Freq|\d+(?:\.\d{3})? \(us\)|Minimum|Average|Maximum|Max-Min|Duration):\t"
    r"((?: \d+(?:\.\d+)?)+)\s*(\([A-Za-z ]+\))?\s*"
)
_OPTION = re.compile(r"([A-Z][A-Za-z ]+): *\t+(.+)")
_NEEDED = ("Core", "Minimum", "Average", "Maximum", "Max-Min", "Duration")
_STARTED, _ENDED = "Test starts...", "Test completed."
"""Neither is printed with -q: then the last line is the duration of each core."""
_LEFT_OUT = "..."
"""Empty buckets, with -z."""


@dataclass(frozen=True)
class _Core:
    """Data of one core, in units; ``counts`` by the names of its filled buckets, ascending."""

    cpu: int
    low: int
    high: int
    mean: Decimal
    mean_step: Decimal
    counts: Mapping[int, int]


@dataclass(frozen=True)
class _Naming:
    """Names of buckets.  ``upper``: an end that no value reaches.  ``biased``: the first may hold values one lower."""

    unit_ns: int
    width: int
    upper: bool
    biased: bool

    def bucket(self, name: int, count: int) -> Bucket:
        return (max(0, name - self.width), name - 1, count) if self.upper else (name, name, count)


class _Oslat:
    what = "oslat: text and JSON"

    def recognises(self, source: Source) -> bool:
        return source.text.startswith("oslat V ") or test_of(source) == "oslat"

    def read(self, source: Source) -> ImportedRun:
        if source.text.startswith("oslat V "):
            return _read_text(source)
        cores, fine = _of_json(source)
        return imported_run(source, "oslat", _gaps(cores, _naming(cores, fine, _biased(source))))


IMPORTER = _Oslat()


def _biased(source: Source) -> bool:
    """Whether all buckets are shifted by the least gap (-B)."""
    arguments = str(source.json.get("cmdline:", "")).split() if source.text.lstrip().startswith("{") else []
    return any(re.fullmatch(r"--bias|-[a-zA-Z]*B", argument) for argument in arguments) or any(
        line.startswith("Global bias set to") for line in source.lines[:20]
    )


def _naming(cores: Sequence[_Core], fine: bool, biased: bool) -> _Naming:
    """The naming deduced from the extremes, since the version is not always stated."""
    names = [name for core in cores for name in core.counts]
    width = gcd(*(name - names[0] for name in names), *(names if not biased else ())) if names else 1
    filled = [core for core in cores if core.counts]
    if biased:
        upper = fine or any(core.high == max(core.counts) - 1 for core in filled)
    else:
        upper = fine or any(core.low < min(core.counts) for core in filled)
    return _Naming(1 if fine else 1000, width or 1, upper, biased)


def _gaps(cores: Sequence[_Core], naming: _Naming) -> Iterator[ImportedSeries]:
    """Series of each core.  oslat adds the overflow of the first core to every sum: such a mean is ignored."""
    series = [_gap(core, naming) for core in cores]
    for place, gap in enumerate(series):
        wrong = gap.overflow if naming.upper else place and (gap.overflow or series[0].overflow)
        yield replace(gap, mean=None) if wrong else gap


def _gap(core: _Core, naming: _Naming) -> ImportedSeries:
    """Series of a core.  The last bucket also counts longer gaps; if the maximum is beyond it, it is the overflow."""
    buckets = [naming.bucket(name, count) for name, count in core.counts.items()]
    if buckets and naming.biased and core.low == buckets[0][0] - 1:
        buckets[0] = (core.low, *buckets[0][1:])
    count = sum(n for _, _, n in buckets)
    overflow = buckets[-1][2] if buckets and core.high > buckets[-1][1] else 0
    step = core.mean_step + 2 * (naming.width if naming.upper else naming.biased)
    return ImportedSeries(
        "gap",
        "a reading of the clock in a busy loop",
        "the next reading",
        naming.unit_ns,
        count,
        core.low if count else None,
        core.high if count else None,
        core.mean if count else None,
        step,
        overflow=overflow,
        overflow_from=buckets[-1][0] if buckets else None,
        buckets=tuple(buckets[:-1] if overflow else buckets),
        cpu=core.cpu,
    )


def _of_json(source: Source) -> tuple[list[_Core], bool]:
    """The cores, and whether their times are ns: then names of buckets have three decimals, and are µs as the mean."""
    entries = list(threads_of(source).values())
    fine = any("." in name for entry in entries for name in entry.get("histogram", {}))
    scale = 1000 if fine else 1
    cores = []
    for entry in entries:
        held = entry.get("histogram", {})
        if fine and isinstance(held, dict):
            if not all(re.fullmatch(r"\d{1,15}\.\d{3}", name) for name in held):
                source.refuse("a bucket of its histogram is not a number of µs with three decimals")
            held = {str(int(name.replace(".", ""))): n for name, n in held.items()}
        low, high, cpu = (number(source, entry, name) for name in ("min", "max", "cpu"))
        cores.append(
            _Core(
                cpu,
                low,
                high,
                mean_of(source, entry) * scale,
                Decimal("0.000001") * scale,
                {name: count for name, _, count in histogram_of(source, {"histogram": held})},
            )
        )
    return cores, fine


def _read_text(source: Source) -> ImportedRun:
    source.whole()
    reading = LineReader(source)
    rows: dict[str, Sequence[str]] = {}
    facts: dict[str, str] = {}
    for line in reading:
        if match := _ROW.fullmatch(line):
            if match[1] in rows or "Duration" in rows:
                reading.refuse(f"{match[1]} is out of place")
            rows[match[1]] = match[2].split()
        elif match := _OPTION.fullmatch(line):
            facts[match[1]] = match[2].strip()
        elif line.strip() not in ("", _LEFT_OUT) and rows:
            reading.refuse(f"not a line of oslat: {line[:60]!r}")
    missing = [name for name in _NEEDED if name not in rows]
    if missing or (_STARTED in source.lines and _ENDED not in source.lines):
        source.refuse(f"it has no line {missing[0] if missing else _ENDED!r}: file truncated, or oslat was killed")
    if len({len(values) for values in rows.values()}) != 1:
        source.refuse("its lines have different numbers of cores: file truncated or modified")
    facts["duration_s"] = " ".join(rows["Duration"])
    longest_s = max(map(Decimal, rows["Duration"]))
    fine = "." in rows["Minimum"][0]
    biased = _biased(source)
    names = _names(reading, rows, biased)
    cores = list(_of_rows(reading, rows, names, 1000 if fine else 1))
    series = list(_gaps(cores, _naming(cores, fine, biased)))
    for gap, core in zip(series, cores, strict=True):
        if gap.overflow and max(core.counts) != max(names):
            source.refuse(f"the maximum of core {core.cpu} is beyond its buckets, but the last is empty: file modified")
    return ImportedRun(
        "oslat",
        source.lines[0].removeprefix("oslat V ").strip() or None,
        "linux-user",
        tuple(series),
        facts=facts,
        duration_ns=int(longest_s * 10**9),
    )


def _names(reading: LineReader, rows: Mapping[str, Sequence[str]], biased: bool) -> dict[int, Sequence[str]]:
    """Counts by names of buckets in units."""
    named = {int(name.split()[0].replace(".", "")): values for name, values in rows.items() if name.endswith("(us)")}
    names = list(named)
    if names != sorted(names) or not names:
        reading.refuse("its buckets do not ascend")
    step = names[1] - names[0] if len(names) > 1 else 1
    first = names[0] if biased else step
    if _LEFT_OUT not in map(str.strip, reading.source.lines) and names != list(
        range(first, first + len(names) * step, step)
    ):
        reading.refuse("a bucket is missing without -z: file truncated or modified")
    return named


def _of_rows(
    reading: LineReader, rows: Mapping[str, Sequence[str]], named: Mapping[int, Sequence[str]], scale: int
) -> Iterator[_Core]:
    def whole(name: str, place: int) -> int:
        return reading.count(rows[name][place].replace(".", ""), name)

    for place, core in enumerate(rows["Core"]):
        counts = {name: reading.count(values[place], "a count") for name, values in named.items()}
        low, high, spread = (whole(name, place) for name in ("Minimum", "Maximum", "Max-Min"))
        if high - low != spread:
            reading.refuse(f"Max-Min of core {core} is not its maximum minus its minimum: file modified")
        yield _Core(
            reading.count(core, "Core"),
            low,
            high,
            Decimal(rows["Average"][place]) * scale,
            Decimal("0.001") * scale,
            {name: n for name, n in counts.items() if n},
        )
