# SPDX-License-Identifier: GPL-2.0-or-later
"""oslat's text and JSON: gaps that a busy loop sees, each rounded up to whole µs by oslat itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from fastenough.exchange.found import Bucket, Found, FoundSeries
from fastenough.exchange.rt_tests import found_in, histogram_of, is_of, mean_of, number, threads_of
from fastenough.exchange.source import Reading, Source

_ROW = re.compile(r"\s*(Core|Counter Freq|CPU Freq|\d+ \(us\)|Minimum|Average|Maximum|Max-Min|Duration):\t"
                  r"((?: \d+(?:\.\d+)?)+)\s*(\([A-Za-z ]+\))?\s*")
_OPTION = re.compile(r"([A-Z][A-Za-z ]+): *\t+(.+)")
_NEEDED = ("Core", "Minimum", "Average", "Maximum", "Max-Min", "Duration")
_ENDED = "Test completed."
_LEFT_OUT = "..."
"""Empty buckets, with -z."""


class _Oslat:
    what = "oslat: text and JSON"

    def recognises(self, source: Source) -> bool:
        return source.text.startswith("oslat V ") or is_of(source, "freq", "duration", "max")

    def read(self, source: Source) -> Found:
        return _read_text(source) if source.text.startswith("oslat V ") else found_in(
            source, "oslat", _with_own_means(list(_of_json(source))))


IMPORTER = _Oslat()


def _gap(low: int, high: int, mean: Decimal, step: str, buckets: tuple[Bucket, ...]) -> FoundSeries:
    """The last bucket also holds what is longer; where the maximum lies beyond it, that bucket is no more than that."""
    count = sum(n for _, _, n in buckets)
    overflow = buckets[-1][2] if buckets and high > buckets[-1][1] else 0
    return FoundSeries(
        "gap", "a reading of the clock in a busy loop", "the next reading", 1000, count, low if count else None,
        high if count else None, mean if count else None, Decimal(step), overflow=overflow,
        overflow_from=buckets[-1][0] if buckets else None, buckets=buckets[:-1] if overflow else buckets)


def _with_own_means(cores: Sequence[FoundSeries]) -> Iterator[FoundSeries]:
    """oslat adds what overflowed on the first core to the sum of every core: such a mean is not told."""
    for place, core in enumerate(cores):
        yield replace(core, mean=None) if place and (core.overflow or cores[0].overflow) else core


def _of_json(source: Source) -> Iterator[FoundSeries]:
    for entry in threads_of(source).values():
        buckets = histogram_of(source, entry)
        low, high, cpu = (number(source, entry, name) for name in ("min", "max", "cpu"))
        yield replace(_gap(low, high, mean_of(source, entry), "0.000001", buckets), cpu=cpu)


def _read_text(source: Source) -> Found:
    source.whole()
    reading = Reading(source)
    rows: dict[str, Sequence[str]] = {}
    facts: dict[str, str] = {}
    for line in reading:
        if match := _ROW.fullmatch(line):
            if match[1] in rows or "Duration" in rows:
                reading.refuse(f"{match[1]} stands where it cannot")
            rows[match[1]] = match[2].split()
        elif match := _OPTION.fullmatch(line):
            facts[match[1]] = match[2].strip()
        elif line.strip() not in ("", _LEFT_OUT) and rows:
            reading.refuse(f"no line of oslat's: {line[:60]!r}")
    missing = [name for name in _NEEDED if name not in rows]
    if missing or _ENDED not in source.lines:
        source.refuse(f"it has no line {missing[0] if missing else _ENDED!r}: it was cut off, or oslat was killed")
    if len({len(words) for words in rows.values()}) != 1:
        source.refuse("its lines are not of equally many cores: it was cut or changed")
    facts["duration_s"] = " ".join(rows["Duration"])
    longest_s = max(map(Decimal, rows["Duration"]))
    return Found("oslat", source.lines[0].removeprefix("oslat V ").strip() or None, "linux-user",
                 tuple(_with_own_means(list(_of_rows(reading, rows)))), facts=facts, duration_ns=int(longest_s * 10**9))


def _of_rows(reading: Reading, rows: Mapping[str, Sequence[str]]) -> Iterator[FoundSeries]:
    named = {int(name.split()[0]): words for name, words in rows.items() if name.endswith("(us)")}
    if list(named) != sorted(named):
        reading.refuse("its buckets do not ascend")
    if _LEFT_OUT not in map(str.strip, reading.source.lines) and list(named) != list(range(1, len(named) + 1)):
        reading.refuse("a bucket is missing, and none was left out (-z): it was cut or changed")
    for place, core in enumerate(rows["Core"]):
        counts = {edge: reading.count(words[place], "a count") for edge, words in named.items()}
        low, high, spread = (reading.count(rows[name][place], name) for name in ("Minimum", "Maximum", "Max-Min"))
        if high - low != spread:
            reading.refuse(f"Max-Min of core {core} is not its maximum less its minimum: it was changed")
        buckets = tuple((edge, edge, n) for edge, n in counts.items() if n)
        gap = _gap(low, high, Decimal(rows["Average"][place]), "0.001", buckets)
        if gap.overflow and gap.overflow_from != max(named):
            reading.refuse(f"the maximum of core {core} is beyond its buckets, and the last is empty: it was changed")
        yield replace(gap, cpu=reading.count(core, "Core"))
