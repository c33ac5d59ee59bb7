# SPDX-License-Identifier: GPL-2.0-or-later
"""A run: is this evidence sound?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from fastenough import exchange, words
from fastenough.analysis import Assessment, judge, measure, merge_samples
from fastenough.history import Board, Buckets, Distribution, board_of
from fastenough.model import Requirement
from fastenough.recording import Recording
from fastenough.recording.histogram import bucket_highest, bucket_lowest
from fastenough.report.context import Context, make_context
from fastenough.report.document import Section
from fastenough.store import RunSummary
from fastenough.web.evidence import recording_of, summary_of
from fastenough.web.pages.figures import distribution_facts
from fastenough.web.rendering import as_json, shown
from fastenough.web.site import CSV, JSON, PARQUET, ZSTD, Nowhere, Page, Site

_SECTIONS = ("checks", "percentiles", "supported", "events", "settings", "machine", "profile")
"""Of those that a report has: what says whether the evidence is sound, in tables and words."""
_PLOT_K = 4
_RECORDING = "recording.jsonl.zst"


@dataclass(frozen=True)
class RunView:
    """``state``: of the run in the store; ``title``: what was measured, in one line."""

    newest_s: int | None
    summary: RunSummary
    board: Board
    title: str
    began_s: int | None
    lasted_ns: int
    assessment: Assessment
    sections: tuple[Section, ...]
    n: int


def _judged(site: Site, recording: Recording) -> tuple[Board, Assessment]:
    """By what its head states, or by the limit that is stated for its board."""
    board = board_of(site.history, site.viewer, recording.head.board or "")
    stated = recording.head.requirement is None and board.limit_ns
    return board, judge([recording], Requirement(board.limit_ns) if stated and board.limit_ns else None)


def _sections(context: Context) -> Iterator[Section]:
    for name in _SECTIONS:
        section: Section | None = import_module(f"fastenough.report.sections.{name}").section(context)
        if section is not None:
            yield section


def _title(recording: Recording) -> str:
    head = recording.head
    load = head.load.name if head.load else "not stated"
    outcome = recording.outcome or ("under way or cut off" if recording.damage is None else "not believed")
    return f"{head.probe} ({head.implementation}), load {load}, {words.duration(recording.duration_ns)}, {outcome}"


def view(site: Site, run: str) -> RunView:
    summary, recording = summary_of(site, run), recording_of(site, run)
    board, assessment = _judged(site, recording)
    context = make_context([recording], assessment)
    began_ns = recording.head.begin.wall_ns
    return RunView(None, summary, board, _title(recording), began_ns // 10**9 if began_ns else None,
                   recording.duration_ns, assessment, tuple(_sections(context)),
                   sum(entry.kind.all_cpus.n for entry in context.entries))


def _facts(site: Site, run: str) -> bytes:
    recording = recording_of(site, run)
    board, assessment = _judged(site, recording)
    measured = [{"series": series, "measures": measure(merge_samples([(recording, series)]))}
                for series in recording.series if series.refused is None]
    return as_json({"run": recording.run_id, "board": board.name, "title": _title(recording),
                    "assessment": assessment, "measured": measured})


def _buckets(histogram: Any, unit_ns: float) -> Buckets:
    folded = histogram.folded(_PLOT_K) if histogram.k > _PLOT_K else histogram
    lower, upper = (edges(folded.index, folded.k).astype("int64") for edges in (bucket_lowest, bucket_highest))
    maximum = None if histogram.maximum is None else round(histogram.maximum * unit_ns)
    return Buckets((lower * unit_ns).round().astype("int64"), (upper * unit_ns).round().astype("int64"), folded.count,
                   maximum)


def _plot(site: Site, run: str) -> bytes:
    """The latency plot of what a limit is for, by CPU."""
    recording = recording_of(site, run)
    board, assessment = _judged(site, recording)
    entries = make_context([recording], assessment).entries
    begin_s = (recording.head.begin.wall_ns or 0) // 10**9
    cpus = {values.cpus[0] if values.cpus else 0: _buckets(values.histogram, values.unit_ns)
            for values in (entries[0].kind.per_cpu if entries else ())}
    found = Distribution(begin_s, begin_s + recording.duration_ns // 10**9, cpus)
    return as_json(distribution_facts(found, board.limit_ns))


def _exported(form: str, site: Site, run: str) -> bytes:
    return exchange.export([recording_of(site, run)], form)


def _recording(site: Site, run: str) -> bytes:
    """The recording itself, as it was sealed."""
    summary = summary_of(site, run)
    assert site.store is not None
    path = site.store.path / "runs" / summary.id / _RECORDING
    if summary.state == "running" or not path.is_file():
        raise Nowhere(run)
    return path.read_bytes()


_AT = "/run/{run}/"
PAGES = [
    *shown(_AT, "run.html.j2", view, facts=_facts),
    Page(_AT + "plot.json", JSON, _plot),
    Page(_AT + "run.csv", CSV, partial(_exported, "csv")),
    Page(_AT + "run.parquet", PARQUET, partial(_exported, "parquet")),
    Page(_AT + _RECORDING, ZSTD, _recording),
]
