# SPDX-License-Identifier: GPL-2.0-or-later
"""cyclictest's text: one line for each thread, or a histogram (-h, -H, --histfile); rt-tests 0.8 to 2.10.

Also the data of OSADL's latency plots: the same histogram.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from fastenough.exchange.imported import Bucket, ImportedRun, ImportedSeries
from fastenough.exchange.source import GrowingValues, LineReader, Source
from fastenough.recording import Event, Instant
from fastenough.recording.head import Plain, RecordedSetting

FROM = "the instant the timer was due"
TO = "the thread reads its clock after waking"
PROBE_COLUMNS = re.compile(r"^# Columns: us(?:, [\w-]+(?: of CPU \d{1,6})?)+$", re.MULTILINE)
"""The first line of the histogram of fastenough-probe, whose other lines are like those of cyclictest."""
_UP = re.compile(r"\x1b\[(\d+)A")
_THREAD = re.compile(
    r"T:\s*(\d+) \(\s*(\d+)\) P:\s*(\d+) I:\s*(\d+) C:\s*(\d+) Min:\s*(-?\d+) "
    r"Act:(\s*-?\d+) Avg:(\s*-?\d+) Max:\s*(-?\d+)(?: SMI:\s*(\d+))?\s*"
)
_ROW = re.compile(r"\d{6,}(?:\s+\d+)+\s*")
_FOOTER = re.compile(
    r"# (Total|Min Latencies|Avg Latencies|Max Latencies|Histogram Overflows|SMIs|Thread Ids|"
    r"Break thread|Break value):((?: +-?\d+)*)\s*"
)
_CYCLES_TITLE = "# Histogram Overflow at cycle number:"
_CYCLES = re.compile(r"# Thread (\d+):((?: +\d+)*)(?: # *(\d+) others)?\s*")
_SPIKE = re.compile(r"T:\s*(\d+) Spike:\s*(\d+): TS:\s*(\d+)\s*")
_SPIKES = re.compile(r"spikes = (\d+)\s*")
_TOLD = ("Thread Ids", "Break thread", "Break value", "SMIs")
_NS_WIDTH = 8
"""Width of Act and Avg with -N; without it they have 5 columns or as many as needed.  Nothing else shows the unit."""


_NO_ZERO = "minimum of 0 left out"
"""Marks cyclicdeadline, which prints the same histogram and takes a minimum of 0 for a missing one."""


@dataclass
class _CyclictestOutput:
    """The lines of a file by kind; ``cycles``: number of overflows of each thread that are listed or counted."""

    threads: list[re.Match[str]] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)
    footers: dict[str, list[int]] = field(default_factory=dict)
    cycles: dict[int, int] = field(default_factory=dict)
    spikes: list[tuple[int, int, int]] = field(default_factory=list)
    spikes_reported: int | None = None
    histogram: bool = False
    facts: dict[str, Plain] = field(default_factory=dict)

    @property
    def begun(self) -> bool:
        return self.histogram or bool(self.threads)


class _Cyclictest:
    what = "cyclictest: text, histogram, OSADL's latency plots"

    def recognises(self, source: Source) -> bool:
        if PROBE_COLUMNS.search(source.text):
            return False
        return any(line.startswith("# Histogram") or _THREAD.fullmatch(line) for line in source.lines[:200]) or (
            bool(_UP.search(source.text[:4096]))
            and " P:" in source.text
            and " I:" in source.text
            and " Max:" in source.text
        )

    def read(self, source: Source) -> ImportedRun:
        source.whole()
        parts = _parts(LineReader(source), _last_screen(source))
        if parts.histogram:
            series = tuple(_histogram(LineReader(source, len(source.lines)), parts))
        else:
            series = tuple(_threads(source, parts))
        settings = tuple(RecordedSetting("priority", None, int(match[3]), thread=match[1]) for match in parts.threads)
        events = tuple(_events(source, parts, len(series)))
        facts = parts.facts | {name: " ".join(map(str, parts.footers[name])) for name in _TOLD if name in parts.footers}
        missed_zero = parts.facts.pop(_NO_ZERO, False)
        return ImportedRun(
            "cyclicdeadline" if missed_zero else "cyclictest",
            None,
            "linux-user",
            series,
            settings=settings,
            facts=facts,
            events=events,
        )


IMPORTER = _Cyclictest()


def _last_screen(source: Source) -> int:
    """Number of lines before the last screen of a live display; raises BadInput if that screen is incomplete."""
    pictures = list(_UP.finditer(source.text))
    if not pictures:
        if source.text.startswith("policy: ") or "\npolicy: " in source.text:
            source.refuse(
                "its live display ends with the first screen: cyclictest was killed, or the file is truncated"
            )
        return 0
    rest = source.text[pictures[-1].end() :]
    threads = sum(bool(_THREAD.fullmatch(line)) for line in rest.split("\n"))
    if threads != int(pictures[-1][1]) - 2:
        source.refuse("its last screen of threads is incomplete: cyclictest was killed, or the file is truncated")
    return source.text.count("\n", 0, pictures[-1].start())


def _parts(reading: LineReader, skipped: int) -> _CyclictestOutput:
    parts = _CyclictestOutput()
    screens = GrowingValues(reading)
    for line in reading:
        if match := _THREAD.fullmatch(line):
            screens.take_task(match[1], int(match[2]))
            screens.take(match[1], int(match[5]), -int(match[6]), int(match[9]))
        if reading.number > skipped:
            _take(reading, parts, _UP.sub("", line))
    if not parts.begun:
        reading.refuse("it contains neither threads nor a histogram")
    return parts


def _take(reading: LineReader, parts: _CyclictestOutput, line: str) -> None:
    """One line into the part it belongs to."""
    if match := _THREAD.fullmatch(line):
        parts.threads.append(match)
    elif parts.histogram and not parts.footers and _ROW.fullmatch(line):
        parts.rows.append([reading.count(value, "a count") for value in line.split()])
    elif match := _FOOTER.fullmatch(line):
        if match[1] in parts.footers:
            reading.refuse(f"# {match[1]} appears twice")
        parts.footers[match[1]] = [reading.integer(value, match[1]) for value in match[2].split()]
    elif match := _SPIKE.fullmatch(line):
        parts.spikes.append((int(match[1]), reading.count(match[2], "a spike"), reading.count(match[3], "its time")))
    elif match := _SPIKES.fullmatch(line):
        parts.spikes_reported = reading.count(match[1], "the number of spikes")
    elif line.strip() == "# Histogram" and not parts.histogram:
        parts.histogram = True
    elif match := _CYCLES.fullmatch(line):
        parts.cycles[int(match[1])] = len(match[2].split()) + int(match[3] or 0)
    elif line.strip() not in ("", _CYCLES_TITLE):
        _take_other(reading, parts, line)


def _take_other(reading: LineReader, parts: _CyclictestOutput, line: str) -> None:
    """A line of the shell or the tool before the first number; raises BadInput after it."""
    if parts.begun or re.match(r"\s*T:|\s*\d{6} ", line):
        reading.refuse(f"not a line of cyclictest: {line[:60]!r}")
    if line.startswith("# /dev/cpu_dma_latency"):
        parts.facts["cpu_dma_latency"] = line.removeprefix("# /dev/cpu_dma_latency ").strip()
    elif line.startswith("policy:"):
        parts.facts["policy"] = line.strip()


def _threads(source: Source, parts: _CyclictestOutput) -> Iterator[ImportedSeries]:
    """Count, extremes and mean of each thread; only the columns show their unit."""
    if [int(match[1]) for match in parts.threads] != list(range(len(parts.threads))):
        source.refuse("its threads are not numbered from 0: file truncated or modified")
    unit_ns = _unit_ns(source, parts.threads)
    for match in parts.threads:
        reading = LineReader(source)
        count = reading.count(match[5], "C")
        low, high, mean = (reading.integer(match[group].strip(), "a latency") for group in (6, 9, 8))
        known = count > 0
        yield ImportedSeries(
            "wakeup",
            FROM,
            TO,
            unit_ns,
            count,
            low if known else None,
            high if known else None,
            Decimal(mean) if known else None,
            labels={"thread": int(match[1])},
            period_ns=int(match[4]) * 1000 or None,
        )


def _unit_ns(source: Source, threads: Sequence[re.Match[str]]) -> int:
    columns = {len(match[group]) for match in threads for group in (7, 8)}
    padded = any(match[group][0] == " " for match in threads for group in (7, 8) if len(match[group]) == _NS_WIDTH)
    if padded and min(columns) >= _NS_WIDTH:
        return 1
    if min(columns) >= _NS_WIDTH or padded:
        source.refuse("its columns do not show whether times are in µs or ns (-N)")
    return 1000


def _histogram(reading: LineReader, parts: _CyclictestOutput) -> Iterator[ImportedSeries]:
    """One series for each column.  Without lines of threads the file does not show -N, so µs are assumed."""
    low, mean, high, beyond = (
        _footer(reading, parts, name)
        for name in ("Min Latencies", "Avg Latencies", "Max Latencies", "Histogram Overflows")
    )
    columns = len(low)
    widths = {len(row) - 1 for row in parts.rows} or {columns}
    if len(mean) != columns or not columns or len(widths) != 1 or min(widths) not in (columns, columns + 1):
        reading.refuse("its lines have different numbers of threads: file truncated or modified")
    _check_all_column(reading, parts, columns, min(widths) > columns)
    unit_ns = _unit_of_lines(reading, parts, columns)
    edges = [row[0] for row in parts.rows]
    whole = edges == list(range(len(edges)))
    for thread in range(columns):
        buckets: tuple[Bucket, ...] = tuple((row[0], row[0], row[1 + thread]) for row in parts.rows if row[1 + thread])
        placed = sum(count for _, _, count in buckets)
        _check_sums(reading, parts, thread, placed, beyond[thread])
        count = placed + beyond[thread]
        if buckets and buckets[0][0] == 0 < low[thread] and "Total" not in parts.footers:
            low[thread], parts.facts[_NO_ZERO] = 0, True
        _check_line(reading, parts, thread, (count, low[thread], high[thread]))
        period_ns = int(parts.threads[thread][4]) * 1000 if parts.threads else None
        yield ImportedSeries(
            "wakeup",
            FROM,
            TO,
            unit_ns,
            count,
            low[thread] if count else None,
            high[thread] if count else None,
            Decimal(mean[thread]) if count else None,
            overflow=beyond[thread],
            overflow_from=edges[-1] + 1 if edges else 0,
            buckets=buckets,
            labels={"thread": thread},
            period_ns=period_ns or None,
        )
    if not parts.threads:
        parts.facts["unit"] = "µs, assumed: the file does not say whether -N was given"
    parts.facts["histogram"] = f"{len(edges)} rows" + ("" if whole else ", empty ones left out")


def _check_sums(reading: LineReader, parts: _CyclictestOutput, thread: int, placed: int, beyond: int) -> None:
    """Raises BadInput unless the rows of a thread have its total, and its overflows are listed."""
    if "Total" in parts.footers and parts.footers["Total"][thread : thread + 1] != [placed]:
        reading.refuse(f"its rows of thread {thread} add up to {placed}, # Total differs: file truncated or modified")
    if parts.cycles.get(thread, beyond) != beyond:
        reading.refuse(f"# Thread {thread} does not list its {beyond} overflows: file truncated or modified")


def _unit_of_lines(reading: LineReader, parts: _CyclictestOutput, columns: int) -> int:
    """The unit of the lines of threads above a histogram, which has the same; 1000 without them."""
    if not parts.threads:
        return 1000
    if [int(match[1]) for match in parts.threads] != list(range(columns)):
        reading.refuse("its lines and its histogram are not of the same threads: file truncated or modified")
    return _unit_ns(reading.source, parts.threads)


def _check_line(reading: LineReader, parts: _CyclictestOutput, thread: int, of_all: tuple[int, int, int]) -> None:
    """Raises BadInput for a line that is not of this run; ``of_all``: count, minimum and maximum of the histogram.

    cyclictest prints the line before it ends the threads: the histogram may hold more values, and never less.
    """
    if not parts.threads:
        return
    match = parts.threads[thread]
    count, low, high = (int(match[group]) for group in (5, 6, 9))
    if count > of_all[0] or (count and not of_all[1] <= low <= high <= of_all[2]):
        reading.refuse(f"the line of thread {thread} contradicts its histogram: file modified, or of several runs")


def _footer(reading: LineReader, parts: _CyclictestOutput, name: str) -> list[int]:
    if name not in parts.footers:
        reading.refuse(f"its histogram has no line '# {name}:': file truncated, or cyclictest was killed")
    return parts.footers[name]


def _check_all_column(reading: LineReader, parts: _CyclictestOutput, columns: int, there: bool) -> None:
    """With -H a further column holds the sum of all threads, the greatest maximum and all overflows."""
    if there and any(sum(row[1:-1]) != row[-1] for row in parts.rows):
        reading.refuse("its total column is not the sum of the threads: file modified")
    expected = columns + there
    for name, joined in (("Total", sum), ("Max Latencies", max), ("Histogram Overflows", sum)):
        values = parts.footers.get(name)
        if values is None:
            continue
        if not parts.rows and len(values) == columns + 1 and joined(values[:-1]) == values[-1]:
            continue
        if len(values) != expected or (there and joined(values[:-1]) != values[-1]):
            reading.refuse(f"# {name} does not match its columns: file truncated or modified")


def _events(source: Source, parts: _CyclictestOutput, threads: int) -> Iterator[Event]:
    if parts.spikes_reported is None and not parts.spikes:
        return
    if parts.spikes_reported is None or len(parts.spikes) > parts.spikes_reported:
        source.refuse(f"it lists {len(parts.spikes)} spikes but reports {parts.spikes_reported}: file truncated")
    if len(parts.spikes) < parts.spikes_reported:
        parts.facts["spikes"] = f"{parts.spikes_reported}, of which it lists {len(parts.spikes)} (--spike-nodes)"
    for thread, value, at_us in parts.spikes:
        if thread >= threads:
            source.refuse(f"a spike belongs to thread {thread}, which is missing")
        yield Event("threshold", Instant(at_us * 1000, 0), series=thread, value=value)
