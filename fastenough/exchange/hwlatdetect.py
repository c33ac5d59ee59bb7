# SPDX-License-Identifier: GPL-2.0-or-later
"""hwlatdetect: gaps above a threshold that the kernel's hwlat tracer measured with interrupts off."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from fastenough.exchange.imported import ImportedRun, ImportedSeries
from fastenough.exchange.source import LineReader, Source
from fastenough.recording import Event, Instant

_TITLE = re.compile(r"hwlatdetect:\s+test duration (\d+) seconds\s*")
_OPTION = re.compile(
    r"\s+(detector|CPU list|Latency threshold|Sample window|Sample width|Non-sampling period|"
    r"Output File|parameters):\s*(.*)"
)
_SAMPLE = re.compile(
    r"ts: (\d+)\.(\d{9})(?:, delta:(?:nan|-?\d+\.\d{6}))?, inner:(\d+), outer:(\d+)(?:, cpu:(\d+))?"
    r"(?:, count:(\d+))?\s*"
)
_ENDING = re.compile(r"(Max Latency|Samples recorded|Samples exceeding threshold|SMIs during run|MTBF): (.+)")
_NEEDED = ("Max Latency", "Samples recorded", "Samples exceeding threshold")
_INTERRUPTED = "interrupted"
"""Printed at Ctrl-C; the results until then are complete, except for the duration."""
_KNOWN = ("", "Starting test", "test finished", "parameters:", _INTERRUPTED)
_SMIS = re.compile(r"\d+ SMIs occured on cpu \d+\s*")


@dataclass(frozen=True)
class _Gap:
    """The greatest gap of a sampling window; ``count``: number of gaps above the threshold in that window."""

    wall_ns: int
    inner_us: int
    outer_us: int
    cpu: int | None
    count: int

    @property
    def us(self) -> int:
        """The greater one, as hwlatdetect's own maximum counts it."""
        return max(self.inner_us, self.outer_us)


class _Hwlatdetect:
    what = "hwlatdetect: text"

    def recognises(self, source: Source) -> bool:
        return any(_TITLE.fullmatch(line) for line in source.lines[:20])

    def read(self, source: Source) -> ImportedRun:
        source.whole()
        reading = LineReader(source)
        facts, ending, gaps = _lines(reading)
        missing = [name for name in _NEEDED if name not in ending]
        if missing or "test finished" not in map(str.strip, source.lines):
            source.refuse("its end is missing: file truncated, or hwlatdetect was killed")
        series = tuple(_series(reading, ending, gaps))
        numbers = {core.cpu: number for number, core in enumerate(series)}
        first_wall_ns = min((gap.wall_ns for gap in gaps), default=None)
        events = tuple(
            Event(
                "threshold",
                Instant(gap.wall_ns - (first_wall_ns or 0), gap.wall_ns),
                series=numbers[gap.cpu],
                cpu=gap.cpu,
                value=gap.us,
                text=f"inner {gap.inner_us} us, outer {gap.outer_us} us"
                + (f", the greatest of {gap.count} gaps" if gap.count > 1 else ""),
            )
            for gap in gaps
        )
        asked_s = reading.count(facts["test duration"], "test duration")
        cut = _INTERRUPTED in map(str.strip, source.lines)
        return ImportedRun(
            "hwlatdetect",
            None,
            "linux-kernel",
            series,
            facts=facts | ending | ({"gaps above the threshold": total} if (total := _total(gaps)) > len(gaps) else {}),
            events=events,
            duration_ns=None if cut else asked_s * 10**9 or None,
            aborted=f"hwlatdetect was interrupted before its {asked_s} s were over" if cut else "",
        )


IMPORTER = _Hwlatdetect()


def _lines(reading: LineReader) -> tuple[dict[str, str], dict[str, str], list[_Gap]]:
    """Options, what its end says, and the gaps one by one."""
    facts: dict[str, str] = {}
    ending: dict[str, str] = {}
    gaps: list[_Gap] = []
    for line in reading:
        if match := _TITLE.fullmatch(line):
            if "test duration" in facts:
                reading.refuse_second()
            facts["test duration"] = match[1]
        elif match := _SAMPLE.fullmatch(line):
            seconds, nanoseconds, inner, outer = (reading.count(text, "a number") for text in match.groups()[:4])
            cpu = None if match[5] is None else int(match[5])
            count = max(1, reading.count(match[6] or "1", "count"))
            gaps.append(_Gap(seconds * 10**9 + nanoseconds, inner, outer, cpu, count))
        elif match := _OPTION.fullmatch(line):
            facts[match[1]] = match[2].strip()
        elif match := _ENDING.fullmatch(line):
            if match[1] in ending:
                reading.refuse_second()
            ending[match[1]] = match[2].strip()
        elif (
            facts
            and line.strip() not in _KNOWN
            and not line.startswith(("CPU ", "report saved"))
            and (not _SMIS.fullmatch(line))
        ):
            reading.refuse(f"not a line of hwlatdetect: {line[:60]!r}")
    return facts, ending, gaps


def _total(gaps: Sequence[_Gap]) -> int:
    return sum(gap.count for gap in gaps)


def _series(reading: LineReader, ending: dict[str, str], gaps: Sequence[_Gap]) -> Iterator[ImportedSeries]:
    """One series for each CPU if the gaps are listed; else one with only the number and the maximum.

    Of several gaps in a window only the greatest is listed.  They are no lost values, since none exceeds it; but count,
    minimum and mean of a series without them would be wrong, and are unknown.
    """
    recorded = reading.count(ending["Samples recorded"], "Samples recorded")
    most = ending["Max Latency"]
    below = most == "Below threshold"
    if not below and not re.fullmatch(r"\d{1,15}us", most):
        reading.refuse(f"Max Latency is not a time: {most[:40]!r}")
    greatest = None if below else int(most.removesuffix("us"))
    if gaps and (len(gaps) != recorded or max(gap.us for gap in gaps) != greatest):
        reading.refuse("the listed samples do not match the reported number or maximum: file truncated or modified")
    if not gaps:
        if recorded and greatest is None:
            reading.refuse("it reports recorded samples, but none above the threshold")
        yield replace(_GAP, count=recorded, maximum=greatest if recorded else None, overflow=None if recorded else 0)
    for cpu in dict.fromkeys(gap.cpu for gap in gaps):
        values = sorted(gap.us for gap in gaps if gap.cpu == cpu)
        buckets = tuple((us, us, count) for us, count in Counter(values).items())
        complete = all(gap.count == 1 for gap in gaps if gap.cpu == cpu)
        yield replace(
            _GAP,
            count=len(values) if complete else None,
            minimum=values[0] if complete else None,
            maximum=values[-1],
            overflow=0 if complete else None,
            buckets=buckets,
            mean=Decimal(sum(values)) / len(values) if complete else None,
            cpu=cpu,
        )


_GAP = ImportedSeries(
    "gap", "a reading of the clock with interrupts off", "the next reading", 1000, None, None, None, None
)
