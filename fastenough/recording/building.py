# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of a recording as Python writes them: gauge runs, imports, tests.  The probe writes its own in C.

No other room knows their keys (docs/format.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from fastenough import __version__
from fastenough.model import Configuration, Outcome, Requirement, Series
from fastenough.recording.content import Recording
from fastenough.recording.head import (
    VERSION,
    End,
    Event,
    Head,
    Instant,
    LimitCount,
    LoadProof,
    LoadStated,
    LoadUse,
    RecordedSetting,
    SeriesEnd,
    Tool,
)
from fastenough.recording.histogram import Histogram
from fastenough.recording.lines import JsonLine
from fastenough.recording.rises import Rises

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class HeadAdditions:
    """Data of a run that the bench adds to the probe's head.

    ``address``: by which the bench reached the board.  ``planned_ns``: planned duration of the run.  ``phase_ns``: of
    one of several runs of a deterministic board that differ only in it.
    """

    board: str | None = None
    configuration: Configuration | None = None
    load: LoadStated | None = None
    profile: Mapping[str, Any] | None = None
    profile_sha256: str | None = None
    settings: tuple[RecordedSetting, ...] = ()
    marks: tuple[str, ...] = ()
    instrument: Mapping[str, Any] | None = None
    requirement: Requirement | None = None
    planned_ns: int | None = None
    address: str | None = None
    phase_ns: int | None = None


def line_bytes(line: Mapping[str, Any]) -> bytes:
    """A line as JSON bytes with its newline."""
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _without_none(entry: Mapping[str, Any]) -> JsonLine:
    return {name: value for name, value in entry.items() if value is not None}


def head_line(head: Head) -> JsonLine:
    """The head, in the version that is written."""
    return (
        {
            "type": "head",
            "format": "fastenough-recording",
            "version": VERSION,
            "tool": _without_none(asdict(head.tool)),
            "run_id": head.run_id,
            "probe": head.probe,
            "implementation": head.implementation,
            "parameters": dict(head.parameters),
            "series": [series_line(series) for series in head.series],
            "settings": [setting_line(setting) for setting in head.settings],
            "cost": dict(head.cost_ns),
            "interval_ns": head.interval_ns,
            "begin": asdict(head.begin),
            "marks": sorted(head.marks),
        }
        | _added_line(head)
        | _without_none(
            {
                "boot_id": head.boot_id,
                "planned_n": head.planned_n,
                "origin": None if head.origin is None else _without_none(asdict(head.origin)),
            }
        )
    )


def _added_line(added: Head | HeadAdditions) -> JsonLine:
    """The keys that the bench adds to a probe's head; unknown ones are omitted."""
    return _without_none(
        {
            "board": added.board,
            "address": added.address,
            "profile": added.profile,
            "profile_sha256": added.profile_sha256,
            "configuration": None if added.configuration is None else asdict(added.configuration),
            "load": None if added.load is None else _without_none(asdict(added.load)),
            "instrument": added.instrument,
            "phase_ns": added.phase_ns,
            "requirement": None if added.requirement is None else _without_none(asdict(added.requirement)),
        }
    )


def series_line(series: Series) -> JsonLine:
    """One entry of the head's ``series``."""
    entry = _without_none(asdict(series))
    for field, key in (("source_summary", "said"), ("from_event", "from"), ("to_event", "to")):
        if field in entry:
            entry[key] = entry.pop(field)
    if not series.labels:
        del entry["labels"]
    return entry | {"role": series.role.value}


def setting_line(setting: RecordedSetting) -> JsonLine:
    """One entry of the head's ``settings``."""
    return {
        "name": setting.name,
        **_whose(setting),
        "requested": setting.requested,
        "in_effect": setting.in_effect,
        **({} if setting.reason is None else {"reason": setting.reason}),
    }


def _whose(setting: RecordedSetting) -> JsonLine:
    return _without_none({"cpu": setting.cpu, "thread": setting.thread})


def interval_series(
    series_id: int,
    histogram: Histogram,
    lost: int = 0,
    missed: int = 0,
    *,
    rises: Rises | None = None,
    limit: LimitCount | None = None,
    order_unknown: int = 0,
) -> JsonLine:
    """One entry of an interval's ``series``."""
    entry: JsonLine = {"id": series_id, "count": histogram.total, "lost": lost, "missed": missed}
    if histogram.total:
        entry |= {"min": histogram.minimum, "max": histogram.maximum}
    buckets = np.column_stack([histogram.index, histogram.count]).tolist()
    entry |= {"sum": histogram.sum, "sum_sq": str(histogram.sum_sq), "buckets": buckets}
    if histogram.wide:
        entry["wide"] = [list(wide_bucket) for wide_bucket in histogram.wide]
    return entry | _order_line(None if rises is None else rises.entries(), limit, order_unknown)


def _order_line(rises: Sequence[Sequence[int]] | None, limit: LimitCount | None, order_unknown: int) -> JsonLine:
    """The entries about the order of values."""
    return _without_none(
        {
            "rises": None if rises is None else [list(rise) for rise in rises],
            "limit": None if limit is None else asdict(limit) | {"sum_sq_runs": str(limit.sum_sq_runs)},
            "order_unknown": order_unknown or None,
        }
    )


def interval_line(
    seq: int,
    begin: Instant,
    end: Instant,
    series: Sequence[Mapping[str, Any]],
    counters: Mapping[str, int | None],
    *,
    load: LoadUse | None = None,
) -> JsonLine:
    """One interval, its series as ``interval_series`` makes them."""
    return {
        "type": "interval",
        "seq": seq,
        "begin": asdict(begin),
        "end": asdict(end),
        "series": list(series),
        "counters": dict(counters),
    } | ({} if load is None else {"load": _use_line(load)})


def _use_line(use: LoadUse) -> JsonLine:
    entry = asdict(use)
    if use.window_ns is None:
        del entry["window_ns"]
    return entry


def with_load(interval: bytes, use: LoadUse | None) -> bytes:
    """An interval line with the use of the load added, without parsing its buckets."""
    if use is None:
        return interval
    return interval.rstrip()[:-1] + b',"load":' + json.dumps(_use_line(use), separators=(",", ":")).encode() + b"}\n"


def series_end(
    total: Histogram,
    lost: int = 0,
    missed: int = 0,
    *,
    rises: Rises | None = None,
    limit: LimitCount | None = None,
    order_unknown: int = 0,
) -> SeriesEnd:
    """The end of a series, from its totals."""
    pairs = None if rises is None else tuple((edge, delta) for edge, delta in rises.entries())
    return SeriesEnd(
        total.total + lost,
        total.total,
        lost,
        missed,
        total.minimum,
        total.maximum,
        total.sum,
        total.sum_sq,
        pairs,
        limit,
        order_unknown,
    )


def end_series(series_id: int, totals: SeriesEnd) -> JsonLine:
    """One entry of the end's ``series``."""
    entry: JsonLine = {
        "id": series_id,
        "taken": totals.taken,
        "stored": totals.stored,
        "lost": totals.lost,
        "missed": totals.missed,
    }
    if totals.stored:
        entry |= {"min": totals.minimum, "max": totals.maximum}
    if totals.k is not None:
        entry |= {"k": totals.k, "buckets": [list(bucket) for bucket in zip(*totals.buckets, strict=True)]}
    return (
        entry
        | {"sum": totals.sum, "sum_sq": str(totals.sum_sq)}
        | _order_line(totals.rises, totals.limit, totals.order_unknown)
    )


def end_line(end: End) -> JsonLine:
    """The end, in the version that is written."""
    line: JsonLine = {
        "type": "end",
        "outcome": end.outcome.value,
        "reasons": list(end.reasons),
        "at": asdict(end.at),
        "series": [end_series(number, totals) for number, totals in end.series.items()],
        "counters": dict(end.counters),
        "events_dropped": end.events_dropped,
    }
    if end.settings is not None:
        line["settings"] = list(map(_setting_after, end.settings))
    if end.samples is not None:
        line["samples"] = {"kept": end.samples.stored, "lost": end.samples.lost}
    return line if end.load is None else line | {"load": proof_line(end.load)}


def _setting_after(setting: RecordedSetting) -> JsonLine:
    """One entry of the end's ``settings``."""
    return {"name": setting.name, **_whose(setting), "in_effect": setting.in_effect}


def with_settings(line: JsonLine, after: Sequence[RecordedSetting]) -> JsonLine:
    """An end with more settings, as read back after the run."""
    return line | {"settings": [*(line.get("settings") or ()), *map(_setting_after, after)]} if after else line


def event_line(event: Event) -> JsonLine:
    """One event."""
    return {"type": "event", **_without_none(asdict(event))}


def proof_line(proof: LoadProof) -> JsonLine:
    """The ``load`` of the end."""
    entry = _without_none(asdict(proof)) | {"reasons": list(proof.reasons)}
    if not proof.stated:
        del entry["stated"]
    return entry


def completed_head(line: JsonLine, run_id: str, added: HeadAdditions) -> JsonLine:
    """A probe's head of version 2 with the additions of the bench: lists are joined, other keys added."""
    additional = [entry for entry in map(setting_line, added.settings) if entry not in line["settings"]]
    return (
        line
        | _added_line(added)
        | _without_none({"planned_n": _planned_n(line, added.planned_ns)})
        | {
            "run_id": run_id,
            "settings": [*line["settings"], *additional],
            "marks": [*line["marks"], *(mark for mark in added.marks if mark not in line["marks"])],
        }
    )


def _planned_n(line: JsonLine, planned_ns: int | None) -> int | None:
    """Planned periods of a periodic act; None if nothing is periodic, if loops end the run, or if none is complete."""
    periods = [int(series["period_ns"]) for series in line["series"] if "period_ns" in series]
    if planned_ns is None or not periods or line["parameters"].get("loops"):
        return None
    return planned_ns // max(periods) or None


def completed_end(line: JsonLine, proof: LoadProof) -> JsonLine:
    """A probe's end with the load's proof; a completed run whose load did not run has failed."""
    failed = line["outcome"] == Outcome.COMPLETED and not proof.ran
    return line | {
        "load": proof_line(proof),
        "reasons": [*line["reasons"], *proof.reasons],
        "outcome": Outcome.FAILED.value if failed else line["outcome"],
    }


def unmeasured_head(
    probe: str, implementation: str, parameters: Mapping[str, Any], added: HeadAdditions, run_id: str = ""
) -> Head:
    """The head of a run without a measurement."""
    return Head(
        tool=Tool("fastenough", __version__),
        run_id=run_id,
        probe=probe,
        implementation=implementation,
        parameters=parameters,
        series=(),
        settings=added.settings,
        cost_ns={},
        interval_ns=_SECOND_NS,
        begin=Instant.now(),
        marks=frozenset(added.marks),
        load=added.load,
        profile=added.profile,
        profile_sha256=added.profile_sha256,
        board=added.board,
        address=added.address,
        configuration=added.configuration,
        instrument=added.instrument,
        requirement=added.requirement,
        phase_ns=added.phase_ns,
    )


def unmeasured_end(outcome: Outcome, *reasons: str) -> End:
    """The end of a run without a measurement."""
    return End(outcome, reasons, Instant.now())


def end_of_recording(recording: Recording, outcome: Outcome, reasons: Sequence[str]) -> End:
    """A new end for a recording, from its totals."""
    series = {
        series_head.id: series_end(
            recording.totals[series_head.id],
            recording.lost(series_head.id),
            recording.missed(series_head.id),
            rises=recording.rises(series_head.id),
            limit=recording.limit(series_head.id),
            order_unknown=recording.order_unknown(series_head.id),
        )
        for series_head in recording.series
    }
    return End(outcome, tuple(reasons), recording.stopped, series)


class LineStream(Protocol):
    """Where a recording is written: a binary file, or an object that takes its lines one by one."""

    def write(self, raw: bytes, /) -> int:
        """Take one whole line; return its length."""

    def flush(self) -> None:
        """Pass on what was written."""


class RecordingWriter:
    """Writes one whole line per write, so that an interruption truncates at most the last line."""

    def __init__(self, stream: LineStream) -> None:
        self._stream = stream

    def line(self, line: Mapping[str, Any]) -> None:
        """Append one line and flush it to the operating system."""
        self._stream.write(line_bytes(line))
        self._stream.flush()
