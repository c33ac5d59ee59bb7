# SPDX-License-Identifier: GPL-2.0-or-later
"""Conversion of an imported run to the lines of a recording (docs/format.md, docs/exchange.md)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from fastenough.exchange.imported import ImportedRun, ImportedSeries, TimedValues
from fastenough.exchange.source import Source
from fastenough.model import IMPORTED, BadInput, Outcome, Series, SourceSummary
from fastenough.recording import End, Head, Histogram, Instant, read_from
from fastenough.recording.building import (
    end_line,
    event_line,
    head_line,
    interval_line,
    interval_series,
    line_bytes,
    series_end,
)
from fastenough.recording.head import Origin, Tool
from fastenough.recording.histogram import bucket_of
from fastenough.recording.lines import JsonLine

K = 16
"""Exact up to 131,072 units: other tools' histograms hold whole microseconds."""
_MOST_TEXT = 4 << 20
_MOST_INTERVALS = 600
_SECOND_NS = 10**9


def recording_lines(imported: ImportedRun, source: Source, run_id: str) -> Iterator[JsonLine]:
    """The lines of the recording: head, intervals, events, end."""
    head = _head(imported, source, run_id)
    yield head_line(head)
    totals: list[list[Histogram]] = [[] for _ in imported.series]
    at = head.begin
    for seq, (begin, end, held) in enumerate(_intervals(imported, head.begin)):
        lost = [_lost(series) if seq == 0 else 0 for series in imported.series]
        missed = [series.missed if seq == 0 else 0 for series in imported.series]
        for of_series, histogram in zip(totals, held, strict=True):
            of_series.append(histogram)
        yield interval_line(
            seq,
            begin,
            end,
            [interval_series(number, *values) for number, values in enumerate(zip(held, lost, missed, strict=True))],
            {},
        )
        at = end
    for event in imported.events:
        yield event_line(event)
    ends = {
        number: series_end(Histogram.merged(of_series, K), _lost(series), series.missed)
        for number, (of_series, series) in enumerate(zip(totals, imported.series, strict=True))
    }
    outcome, reasons = (Outcome.ABORTED, (imported.aborted,)) if imported.aborted else (Outcome.COMPLETED, ())
    yield end_line(End(outcome, reasons, at, ends))


def _head(imported: ImportedRun, source: Source, run_id: str) -> Head:
    begin_mono_ns = min(
        (
            *(int(sample.mono_ns[0]) for sample in imported.samples if sample.value.size),
            *(event.at.mono_ns for event in imported.events),
        ),
        default=0,
    )
    text = source.text if len(source.content) <= _MOST_TEXT else ""
    return Head(
        tool=Tool(imported.tool, imported.version or "unknown"),
        run_id=run_id,
        probe=imported.probe or imported.tool,
        implementation=imported.implementation,
        parameters=imported.parameters,
        series=tuple(_series(number, series) for number, series in enumerate(imported.series)),
        settings=imported.settings,
        cost_ns={},
        interval_ns=max(_SECOND_NS, 0 if imported.samples else imported.duration_ns or 0),
        begin=Instant(begin_mono_ns, imported.begin_wall_ns or 0),
        marks=frozenset({IMPORTED}),
        board=imported.board,
        load=imported.load,
        configuration=imported.configuration,
        profile=imported.profile,
        origin=Origin(source.path.rpartition("/")[2], source.sha256, len(source.content), imported.facts, text or None),
    )


def _series(number: int, imported: ImportedSeries) -> Series:
    stated = SourceSummary(
        imported.count,
        imported.minimum,
        imported.maximum,
        None if imported.mean is None else float(imported.mean),
        imported.overflow,
    )
    return Series(
        id=number,
        name=imported.name,
        unit="ns" if imported.unit_ns == 1 else "ticks",
        clock=imported.clock,
        from_event=imported.from_event,
        to_event=imported.to_event,
        k=K,
        role=imported.role,
        cpu=imported.cpu,
        period_ns=imported.period_ns,
        tick_ps=None if imported.unit_ns == 1 else imported.unit_ns * 1000,
        labels=dict(imported.labels),
        source_summary=stated,
    )


def _lost(series: ImportedSeries) -> int:
    """Number of values without a known range."""
    if series.overflow is None and series.minimum is None:
        return max(0, (series.count or 0) - (series.maximum is not None))
    return (series.overflow or 0) if series.maximum is None else 0


def _intervals(imported: ImportedRun, begin: Instant) -> Iterator[tuple[Instant, Instant, list[Histogram]]]:
    """One interval for a file of totals; one for each second if the time of each value is known."""
    if imported.samples:
        yield from _by_second(imported.samples, begin)
        return
    length_ns = imported.duration_ns or 0
    end = Instant(begin.mono_ns + length_ns, begin.wall_ns + length_ns if begin.wall_ns else 0)
    yield begin, end, [histogram_of(series) for series in imported.series]


def _by_second(samples: Sequence[TimedValues], begin: Instant) -> Iterator[tuple[Instant, Instant, list[Histogram]]]:
    """Intervals of a second, or longer ones to stay below _MOST_INTERVALS."""
    last_ns = max(int(sample.mono_ns[-1]) for sample in samples if sample.value.size) + 1
    step_ns = _SECOND_NS * max(1, -(-(last_ns - begin.mono_ns) // (_SECOND_NS * _MOST_INTERVALS)))
    edges = [*range(begin.mono_ns, last_ns, step_ns), last_ns]
    for first_ns, end_ns in pairwise(edges):
        held = []
        for sample in samples:
            low, high = np.searchsorted(sample.mono_ns, [first_ns, end_ns])
            held.append(Histogram.from_values(sample.value[low:high], K))
        yield replace(begin, mono_ns=first_ns), replace(begin, mono_ns=end_ns), held


def histogram_of(series: ImportedSeries) -> Histogram:
    """Each value in the bucket of its greatest possible value; if it may be less, the bucket is wide."""
    places = _places(series)
    if not places:
        return Histogram(K)
    counts: dict[int, int] = {}
    least: dict[int, int] = {}
    for low, high, count in places:
        place = bucket_of(high, K)
        counts[place] = counts.get(place, 0) + count
        least[place] = min(low, least.get(place, low))
    index = np.array(sorted(counts), dtype=np.int64)
    narrow = Histogram(
        K,
        index,
        np.array([counts[i] for i in index.tolist()], dtype=np.int64),
        min(low for low, _, _ in places),
        max(high for _, high, _ in places),
    )
    wide = tuple(
        (i, least[i]) for i, low in zip(index.tolist(), narrow.lowest().tolist(), strict=True) if least[i] < low
    )
    total = _sum(series, places)
    return replace(narrow, wide=wide, sum=total, sum_sq=_sum_sq(places, total))


def _places(series: ImportedSeries) -> list[tuple[int, int, int]]:
    """(least, greatest, count) of all values, none of them empty; the first begins with the minimum."""
    low, high = series.minimum, series.maximum
    places = [
        (a if low is None else max(a, low), b if high is None else min(b, high), n) for a, b, n in series.buckets if n
    ]
    if series.overflow is None and not series.buckets:
        places = _extremes(series)
    elif series.overflow and high is not None:
        places.append((max(series.overflow_from or 0, low or 0), high, series.overflow))
    if low is not None and places and places[0][1] > low:
        first_low, first_high, count = places[0]
        places[:1] = [(low, low, 1)] + [(first_low, first_high, count - 1)] * (count > 1)
    return places


def _extremes(series: ImportedSeries) -> list[tuple[int, int, int]]:
    """Places of a source without a histogram: the extremes are values, all others are between them."""
    low, high = series.minimum, series.maximum
    count = series.count
    if high is None or count == 0:
        return []
    if low is None:
        return [(high, high, 1)]
    if low == high:
        return [(low, high, count or 1)]
    return [(low, low, 1), (low, high, max(1, (2 if count is None else count) - 1))]


def _sum(series: ImportedSeries, places: Sequence[tuple[int, int, int]]) -> int:
    """The sum: exact if each place is one value; else from the mean, limited to the possible range."""
    least, most = (sum(place[side] * place[2] for place in places) for side in (0, 1))
    n = sum(count for _, _, count in places)
    stated = most if series.mean is None else round(series.mean * n)
    return min(max(least, stated), most)


def _sum_sq(places: Sequence[tuple[int, int, int]], total: int) -> int:
    """The sum of squares: exact if each place is one value; else the minimum for this sum and these places."""
    n = sum(count for _, _, count in places)
    least = sum(min(low * low, high * high) * count for low, high, count in places)
    return max(least, -(-total * total // n))


def require_recordable(run: ImportedRun, source: Source) -> None:
    """Raises BadInput if the reader would reject the recording, before it is stored."""
    with tempfile.TemporaryFile() as stream:
        for line in recording_lines(run, source, "import"):
            stream.write(line_bytes(line))
        stream.seek(0)
        try:
            read_from(stream, "its recording")
        except BadInput as error:
            source.refuse(str(error))
