# SPDX-License-Identifier: GPL-2.0-or-later
"""rtla timerlat top, osnoise top and hwnoise: one line for each CPU, without a histogram.

Without -q it redraws the screen; the last screen counts.  Some versions write colours into files too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from fastenough.exchange.imported import ImportedRun, ImportedSeries
from fastenough.exchange.rtla import EVENTS, MISSED, STOPPED, STOPPED_FACT, is_title, lasted_ns, top_title, undrawn
from fastenough.exchange.source import GrowingValues, LineReader, Source
from fastenough.model import Role

_CLEAR = "\x1bc"
"""Precedes each screen of a live display, and no other output."""
_DURATION = re.compile(r"\s*(?:duration:\s*)?(\d+ \d\d:\d\d:\d\d)\s*\|(.*)")
_UNIT = re.compile(r"\((ns|us)\)")
_HEADER = {"timerlat": ["CPU", "COUNT"], "osnoise": ["CPU", "Period"], "hwnoise": ["CPU", "Period"]}
_ROW = re.compile(r"\s*(\d+) #(\d+)\s+(.*\S)\s*")
_ALL = re.compile(r"ALL #(\d+)\s+e(\d) \|(.*)")
_KINDS = ("IRQ", "Thr", "Usr")
_NOISE = ("runtime", "noise", "available", "max noise", "max single", "HW", "NMI", "IRQ", "softirq", "thread")
_MAXIMA = (_NOISE.index("max noise"), _NOISE.index("max single"))


@dataclass
class _Picture:
    """``rows``: by CPU what stands behind its count, and the count."""

    which: str
    unit_ns: int
    duration_ns: int
    columns: int
    rows: dict[int, tuple[int, list[str]]]


class _RtlaTop:
    what = "rtla: timerlat top, osnoise top, hwnoise"

    def recognises(self, source: Source) -> bool:
        return any(top_title(line) for line in source.lines[:50])

    def read(self, source: Source) -> ImportedRun:
        source.whole()
        before: _Picture | None = None
        reading = LineReader(source)
        lines = (undrawn(line) for line in reading)
        growing = GrowingValues(reading)
        last = next((name for line in lines if (name := top_title(line))), "")
        while last:
            picture, last = _picture(reading, lines, last)
            if last and (last != picture.which or not source.lines[reading.number - 1].startswith(_CLEAR)):
                reading.refuse_second()
            _take_growing(growing, picture)
            if before is not None and set(before.rows) - set(picture.rows):
                source.refuse("its last screen lacks a CPU: file truncated, or rtla was killed")
            before = picture
        assert before is not None
        if not before.rows:
            source.refuse("no CPU was measured")
        series = _latencies(reading, before) if before.which == "timerlat" else _noises(reading, before)
        return ImportedRun(
            "rtla",
            None,
            "linux-kernel",
            tuple(series),
            probe=f"rtla-{before.which}",
            facts={
                "command": f"rtla {before.which} top",
                "unit": "ns" if before.unit_ns == 1 else "µs",
                "end": "not marked: a file cut between two CPUs is not told from one of fewer CPUs",
            }
            | (STOPPED_FACT if any(map(STOPPED.fullmatch, source.lines)) else {}),
            duration_ns=before.duration_ns or None,
        )


IMPORTER = _RtlaTop()


def _picture(reading: LineReader, lines: Iterator[str], which: str) -> tuple[_Picture, str]:
    """One screen, and the title of the next one, empty if there is none."""
    picture = _opening(reading, lines, which)
    ended = False
    for line in lines:
        if is_title(line):
            if ended or not top_title(line):
                reading.refuse_second()
            return picture, top_title(line)
        if match := _ROW.fullmatch(line):
            if ended or int(match[1]) <= next(reversed(picture.rows), -1):
                reading.refuse("a CPU is out of place")
            picture.rows[int(match[1])] = reading.count(match[2], "a count"), _cells(reading, match[3], picture.columns)
        elif match := _ALL.fullmatch(line):
            _check_all(reading, picture, match)
        elif line.strip("-| ") and not ended and not MISSED.match(line):
            if not line.startswith(("rtla ", "##")) and not STOPPED.fullmatch(line):
                reading.refuse(f"not a line of rtla: {line[:60]!r}")
            ended = True  # why it stopped, in many forms
    return picture, ""


def _take_growing(growing: GrowingValues, picture: _Picture) -> None:
    """Raises BadInput if a duration, count or maximum decreases from one screen to the next."""
    growing.take("duration", picture.duration_ns)
    for cpu, (count, cells) in picture.rows.items():
        growing.take(cpu, count)
        for place in range(3, len(cells), 4) if picture.which == "timerlat" else _MAXIMA:
            if cells[place].isdecimal():
                growing.take((cpu, place), int(cells[place]))


def _opening(reading: LineReader, lines: Iterator[str], which: str) -> _Picture:
    lasted, header = _DURATION.fullmatch(next(lines, "")), next(lines, "")
    if lasted is None or header.split()[:2] != _HEADER[which]:
        reading.refuse("incomplete header: title, duration and columns are required")
    units = set(_UNIT.findall(lasted[2])) if which == "timerlat" else {"us"}
    if len(units) != 1:
        reading.refuse("its header does not state the unit of its times")
    columns = 4 * header.count("|") if which == "timerlat" else len(_NOISE) - 3 * (which == "hwnoise")
    return _Picture(which, 1 if units == {"ns"} else 1000, lasted_ns(lasted[1]), columns, {})


def _cells(reading: LineReader, text: str, columns: int) -> list[str]:
    cells = text.replace("|", " ").split()
    if len(cells) != columns:
        reading.refuse(f"a line has {len(cells)} columns instead of {columns}: file truncated or modified")
    return cells


def _check_all(reading: LineReader, picture: _Picture, match: re.Match[str]) -> None:
    """Raises BadInput unless the summary of all CPUs, which older versions lack, matches their lines."""
    total, places = sum(count for count, _ in picture.rows.values()), 10 ** int(match[2])
    summary = match[3].replace("|", " ").split()
    matches = len(summary) == picture.columns // 4 * 3 and total // places == int(match[1])
    for kind in range(picture.columns // 4):
        for place, most in ((1, min), (3, max)):
            values = [
                int(cells[4 * kind + place])
                for _, cells in picture.rows.values()
                if cells[4 * kind + place].isdecimal()
            ]
            matches = matches and (not values or summary[3 * kind + place - 1] == str(most(values)))
    if not matches:
        reading.refuse("its summary of all CPUs does not match their lines: file modified")


def _latencies(reading: LineReader, picture: _Picture) -> Iterator[ImportedSeries]:
    """Series of each CPU; COUNT is that of interrupts: the thread may have one value less."""
    for cpu, (count, cells) in picture.rows.items():
        for number, kind in enumerate(_KINDS[: picture.columns // 4]):
            texts = cells[4 * number : 4 * number + 4]
            if texts == ["-"] * 4:
                continue
            now, low, mean, high = (reading.count(text, "a latency") for text in texts)
            if not low <= now <= high:
                reading.refuse(f"CPU {cpu}: a latency lies outside its minimum and maximum: file modified")
            interrupt = kind == "IRQ"
            yield ImportedSeries(
                *EVENTS[kind],
                picture.unit_ns,
                count if interrupt else None,
                low,
                high,
                Decimal(mean),
                cpu=cpu,
                role=Role.DIAGNOSTIC if interrupt else Role.VERDICT,
            )


def _noises(reading: LineReader, picture: _Picture) -> Iterator[ImportedSeries]:
    """Series of the longest single interruption; the number of interruptions is not stated."""
    for cpu, (_, cells) in picture.rows.items():
        times = _times(reading, cells)
        if (
            times["max single"] > times["max noise"]
            or times["max noise"] > times["noise"]
            or times["noise"] > times["runtime"]
            or bool(times["noise"]) != bool(times["max single"])
            or _share(times) != cells[_NOISE.index("available")]
        ):
            reading.refuse(f"CPU {cpu}: its noise does not match its parts: file modified")
        longest = times["max single"]
        yield ImportedSeries(
            *EVENTS["CPU"], picture.unit_ns, None if longest else 0, None, longest or None, None, cpu=cpu
        )


def _times(reading: LineReader, cells: Sequence[str]) -> dict[str, int]:
    return {name: reading.count(cell, name) for name, cell in zip(_NOISE, cells, strict=False) if name != "available"}


def _share(times: dict[str, int]) -> str:
    """The remaining share of the time in percent, as printed by rtla."""
    share = (times["runtime"] - times["noise"]) * 10**7 // max(1, times["runtime"])
    return f"{share // 10**5}.{share % 10**5:05d}"
