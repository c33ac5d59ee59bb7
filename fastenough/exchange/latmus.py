# SPDX-License-Identifier: GPL-2.0-or-later
"""EVL's latmus: its text output, and the gnuplot file of -g.

A latency is counted in its cell of 1 µs by magnitude, and the last cell, marked ``+``, holds all that is greater.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from fastenough.exchange.imported import Bucket, ImportedRun, ImportedSeries
from fastenough.exchange.rounds import require_one_run
from fastenough.exchange.source import LineReader, Source
from fastenough.model import Role
from fastenough.recording.head import Plain, RecordedSetting

_NUMBER = r"\s*(-?\d{1,12}\.\d{3})"
_HEAD = re.compile(
    r"RTT\|\s*\d+:\d\d:\d\d\s+\((user|kernel|irq|sirq|oob-gpio|inband-gpio), (\d+) us period,"
    r"(?: priority (\d+),)? CPU(\d+)(-noisol)?\)\s*"
)
_ROUND = re.compile(rf"RTD\|{_NUMBER}\|{_NUMBER}\|{_NUMBER}\|\s*(\d+)\|\s*(\d+)\|{_NUMBER}\|{_NUMBER}\s*")
_SUMMARY = re.compile(
    rf"RTS\|{_NUMBER}\|{_NUMBER}\|{_NUMBER}\|\s*(\d+)\|\s*(\d+)\|\s*"
    r"(\d+):(\d\d):(\d\d)/\d+:\d\d:\d\d\s*"
)
_KNOWN = re.compile(r"RTH\||---\||warming up|\*\*\*|  |CAUTION|connecting")
_FACT = re.compile(r"# ([A-Za-z][\w .()-]*?): ?(.*)")
_CELL = re.compile(r"(\d{1,7})(\+?) (\d{1,12})\s*")
_PLOTTED = (
    "sampling period",
    "context",
    "duration (hhmmss)",
    "min latency",
    "avg latency",
    "max latency",
    "sample count",
)
_KEPT = ("test started on", "libevl version", "clock gravity", "clocksource")
_CONTEXTS = {
    "user": ("wakeup", "evl-user", "the thread runs"),
    "kernel": ("wakeup", "evl-kernel", "the kernel thread runs"),
    "irq": ("irq", "evl-kernel", "its interrupt handler runs"),
    "sirq": ("sirq", "linux-kernel", "the synthetic interrupt runs in band"),
    "oob-gpio": ("response", "evl-user", "the answer arrives at the other machine"),
    "inband-gpio": ("response", "linux-user", "the answer arrives at the other machine"),
}


@dataclass
class _LatmusRun:
    """``numbers``: minimum, mean and maximum as they are printed, in µs."""

    context: str
    period_us: int
    numbers: tuple[str, str, str]
    overruns: int
    switches: int
    duration_s: int
    count: int | None = None
    priority: int | None = None
    cpu: int | None = None
    buckets: tuple[Bucket, ...] = ()
    last_is_open: bool = False
    facts: dict[str, Plain] = field(default_factory=dict)


class _Latmus:
    what = "EVL: latmus, and its gnuplot file"

    def recognises(self, source: Source) -> bool:
        return any(_HEAD.fullmatch(line) or line.startswith("# libevl version: ") for line in source.lines[:200])

    def read(self, source: Source) -> ImportedRun:
        source.whole()
        require_one_run(source)
        plotted = any(line.startswith("# libevl version: ") for line in source.lines[:200])
        run = _plotted(LineReader(source)) if plotted else _printed(LineReader(source))
        facts = run.facts | {"context": run.context, "overruns": run.overruns, "in-band switches": run.switches}
        if run.switches:
            facts["caveat"] = "latmus counted switches to in-band mode and calls its figures not reliable"
        settings = () if run.priority is None else (RecordedSetting("priority", None, run.priority, cpu=run.cpu),)
        return ImportedRun(
            "latmus",
            None,
            _CONTEXTS[run.context][1],
            (_series(run),),
            probe="latmus",
            settings=settings,
            facts=facts,
            duration_ns=run.duration_s * 10**9 or None,
        )


IMPORTER = _Latmus()


def _ns(text: str) -> int:
    return int(Decimal(text) * 1000)


def _series(run: _LatmusRun) -> ImportedSeries:
    """The series; without a histogram if latencies are negative, since cells count magnitudes."""
    name, _, to_event = _CONTEXTS[run.context]
    low, mean, high = map(_ns, run.numbers)
    known = bool(run.buckets) and low >= 0
    buckets, beyond = run.buckets, 0
    if known and run.last_is_open:
        buckets, beyond = run.buckets[:-1], run.buckets[-1][2]
    return ImportedSeries(
        name,
        "the instant the timer was due" if name != "response" else "the pulse leaves the other machine",
        to_event,
        1,
        run.count,
        low if run.count != 0 else None,
        high if run.count != 0 else None,
        Decimal(mean),
        Decimal(2),
        overflow=beyond if known else None,
        overflow_from=run.buckets[-1][0] if known else None,
        buckets=buckets if known else (),
        cpu=run.cpu,
        period_ns=run.period_us * 1000 or None,
        missed=run.overruns,
        role=Role.DIAGNOSTIC if name in ("irq", "sirq") else Role.VERDICT,
        clock="evl-monotonic",
    )


def _printed(reading: LineReader) -> _LatmusRun:
    head = summary = None
    worst: list[str] = []
    for line in reading:
        if match := _HEAD.fullmatch(line):
            head = match
        elif match := _ROUND.fullmatch(line):
            worst.append(match[7])
        elif match := _SUMMARY.fullmatch(line):
            summary = match
        elif line.strip() and head is not None and not _KNOWN.match(line):
            reading.refuse(f"not a line of latmus: {line[:60]!r}")
    if head is None or summary is None:
        reading.refuse("its summary (RTS) is missing: file truncated, or latmus was killed")
    if worst and worst[-1] != summary[3]:
        reading.refuse("the worst latency of its last line differs from its summary: file truncated or modified")
    hours, minutes, seconds = (int(summary[group]) for group in (6, 7, 8))
    return _LatmusRun(
        head[1],
        int(head[2]),
        (summary[1], summary[2], summary[3]),
        int(summary[4]),
        int(summary[5]),
        hours * 3600 + minutes * 60 + seconds,
        priority=int(head[3]) if head[3] else None,
        cpu=int(head[4]),
        facts={"isolated": head[5] is None},
    )


def _plotted(reading: LineReader) -> _LatmusRun:
    facts: dict[str, str] = {}
    cells: list[tuple[int, int]] = []
    opened = False
    for line in reading:
        if (match := _CELL.fullmatch(line)) and not opened:
            edge = reading.count(match[1], "a cell")
            if cells and edge != cells[-1][0] + 1:
                reading.refuse("its cells do not ascend in steps of one: file truncated or modified")
            cells.append((edge, reading.count(match[3], "a count")))
            opened = bool(match[2])
        elif (match := _FACT.fullmatch(line)) and not cells:
            if match[1] in _PLOTTED and match[1] in facts:
                reading.refuse_second()
            facts.setdefault(match[1], match[2].strip())
        elif (
            line.strip()
            and (cells or not line.startswith("#"))
            and not _SUMMARY.fullmatch(line)
            and not _KNOWN.match(line)
        ):
            reading.refuse(f"not a line of latmus: {line[:60]!r}")
    missing = [name for name in _PLOTTED if name not in facts]
    if missing or not cells:
        reading.refuse(f"it has no {'line ' + repr(missing[0]) if missing else 'cells'}: file truncated")
    return _of_facts(reading, facts, tuple((edge * 1000, edge * 1000 + 999, count) for edge, count in cells), opened)


def _of_facts(reading: LineReader, facts: Mapping[str, str], cells: tuple[Bucket, ...], opened: bool) -> _LatmusRun:
    numbers = tuple(facts[f"{name} latency"] for name in ("min", "avg", "max"))
    lasted = re.fullmatch(r"(\d+):(\d\d):(\d\d)", facts["duration (hhmmss)"])
    affinity = re.fullmatch(r"CPU(\d+)(-noisol)?", facts.get("thread affinity", ""))
    period = facts["sampling period"].removesuffix(" microseconds")
    if (
        facts["context"] not in _CONTEXTS
        or lasted is None
        or not all(re.fullmatch(_NUMBER, number) for number in numbers)
    ):
        reading.refuse("invalid context, duration or latencies: file modified")
    low, mean, high = numbers
    count = reading.count(facts["sample count"], "sample count")
    if sum(n for _, _, n in cells) != count:
        reading.refuse("its cells do not add up to its sample count: file truncated or modified")
    priority = facts.get("thread priority")
    return _LatmusRun(
        facts["context"],
        reading.count(period, "sampling period"),
        (low, mean, high),
        reading.count(facts.get("OVERRUNS", "0"), "OVERRUNS"),
        reading.count(facts.get("IN-BAND SWITCHES", "0"), "IN-BAND SWITCHES"),
        int(lasted[1]) * 3600 + int(lasted[2]) * 60 + int(lasted[3]),
        count,
        None if priority is None else reading.count(priority, "thread priority"),
        int(affinity[1]) if affinity else None,
        cells,
        opened,
        {name: facts[name] for name in _KEPT if name in facts},
    )
