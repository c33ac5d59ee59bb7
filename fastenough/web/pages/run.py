# SPDX-License-Identifier: GPL-2.0-or-later
"""A run: is this evidence sound?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from fastenough import exchange, words
from fastenough.analysis import Assessment, judge, measure, merge_samples
from fastenough.files import Untrusted
from fastenough.history import BoardInfo, Buckets, Distribution, board_of
from fastenough.model import BadInput, FastenoughError, Requirement
from fastenough.recording import Recording
from fastenough.recording.histogram import bucket_highest, bucket_lowest
from fastenough.registry import listed
from fastenough.report.context import Context, SeriesEntry, make_context
from fastenough.report.document import Section
from fastenough.report.overview import summary_lists
from fastenough.store import RunSummary, Store
from fastenough.store.conclusions import Conclusion
from fastenough.web.pages.figures import distribution_document
from fastenough.web.rendering import as_json, page_with_json, render
from fastenough.web.site import CSV, JSON, PARQUET, ZSTD, NotFound, Page, Site, SiteRole, conclusions_of, summary_of

_SECTIONS = (
    "stations:causes",
    "percentiles:percentiles",
    "bounds:tightest_limits",
    "methods:data_checks",
    "events",
    "system:settings",
    "system:activity",
    "system:system_audit",
    "system:profile",
)
"""Sections of a report on the page of a run: soundness of the evidence, causes named by the monitor, audit of the
facts."""
_PLOT_K = 4
_CACHED_RUNS = 16
_MOST_ATTEMPTS = 50
_TEMPLATE = "run.html.j2"
_RECORDING = "recording.jsonl.zst"


@dataclass(frozen=True)
class RunView:
    """``title``: probe, load, duration and outcome.  ``plotted``: the series of the figure, with ``n`` values.
    ``conclusions``: those from this run and others."""

    newest_s: int | None
    summary: RunSummary
    board: BoardInfo
    title: str
    began_s: int | None
    lasted_ns: int
    assessment: Assessment
    sections: tuple[Section, ...]
    plotted: str
    n: int
    conclusions: tuple[Conclusion, ...]


@dataclass(frozen=True)
class _RunData:
    """A run as its pages see it."""

    recording: Recording
    assessment: Assessment
    context: Context


def _run_data(recording: Recording, required: Requirement | None) -> _RunData:
    """The run, judged by the requirement in its head, else by that of its board."""
    assessment = judge([recording], required if recording.head.requirement is None else None)
    return _RunData(recording, assessment, make_context([recording], assessment))


@lru_cache(maxsize=_CACHED_RUNS)
def _sealed(store: Store, run: str, sha256: str, required: Requirement | None) -> _RunData:
    """A sealed run, cached: it does not change, and its pages are read one after the other."""
    return _run_data(store.load(run), required)


def _visible_run(site: Site, run: str) -> tuple[RunSummary, BoardInfo, _RunData]:
    """Raises NotFound."""
    summary = summary_of(site, run)
    assert site.store is not None and summary.board is not None
    board = board_of(site.history, site.viewer, summary.board)
    if summary.sha256 is None:
        return summary, board, _run_data(site.store.load(summary.id), board.farm_requirement)
    return summary, board, _sealed(site.store, summary.id, summary.sha256, board.farm_requirement)


def prepare(site: Site) -> None:
    """Render the newest visible run, so that the first request for a run does not wait a second for imports and
    templates."""
    for run in reversed(site.store.runs(last=_MOST_ATTEMPTS, brief=True)) if site.store is not None else ():
        with suppress(LookupError, FastenoughError):
            render(site, _TEMPLATE, "./", view(site, run.id), None)
            return


def sections_of(context: Context) -> Iterator[Section]:
    """Sections of the report that the page of a run shows."""
    if lists := summary_lists(context):
        yield Section("reasons", "Reasons and next steps", "", lists)
    for make in listed("fastenough.report.sections", "section", _SECTIONS):
        section: Section | None = make(context)
        if section is not None:
            yield section


def _title(recording: Recording) -> str:
    head = recording.head
    load = head.load.name if head.load else "not recorded"
    outcome = recording.outcome or ("in progress or interrupted" if recording.damage is None else "damaged")
    return f"{head.probe} ({head.implementation}), load {load}, {words.duration(recording.duration_ns)}, {outcome}"


def view(site: Site, run: str) -> RunView:
    summary, board, data = _visible_run(site, run)
    began_ns = data.recording.head.begin.wall_ns
    plotted = _plotted(data.context)
    return RunView(
        None,
        summary,
        board,
        _title(data.recording),
        began_ns // 10**9 if began_ns else None,
        data.recording.duration_ns,
        data.assessment,
        tuple(sections_of(data.context)),
        plotted.kind.name if plotted else "",
        plotted.kind.all_cpus.n if plotted else 0,
        tuple(conclusion for conclusion in conclusions_of(site) if run in conclusion.runs),
    )


def _facts(site: Site, run: str) -> bytes:
    _, board, data = _visible_run(site, run)
    recording = data.recording
    measured = [
        {"series": series, "measures": measure(merge_samples([(recording, series)]))}
        for series in recording.series
        if series.refused is None
    ]
    return as_json(
        {
            "run": recording.run_id,
            "board": board.name,
            "title": _title(recording),
            "assessment": data.assessment,
            "measured": measured,
        }
    )


def _buckets(histogram: Any, unit_ns: float) -> Buckets:
    folded = histogram.folded(_PLOT_K) if histogram.k > _PLOT_K else histogram
    lower, upper = (edges(folded.index, folded.k).astype("int64") for edges in (bucket_lowest, bucket_highest))
    maximum = None if histogram.maximum is None else round(histogram.maximum * unit_ns)
    return Buckets(
        (lower * unit_ns).round().astype("int64"), (upper * unit_ns).round().astype("int64"), folded.count, maximum
    )


def _plotted(context: Context) -> SeriesEntry | None:
    """The series of the figure: that of the limit, or the longest path of a wake-up that the monitor watched."""
    return next(iter((*context.entries, *context.ways)), None)


def _plot(site: Site, run: str) -> bytes:
    """The latency plot, by CPU."""
    _, board, data = _visible_run(site, run)
    plotted, recording = _plotted(data.context), data.recording
    begin_s = (recording.head.begin.wall_ns or 0) // 10**9
    cpus = {
        values.cpus[0] if values.cpus else 0: _buckets(values.histogram, values.unit_ns)
        for values in (plotted.kind.per_cpu if plotted else ())
    }
    plot = Distribution(begin_s, begin_s + recording.duration_ns // 10**9, cpus)
    return as_json(distribution_document(plot, board))


def _exported(form: str, site: Site, run: str) -> bytes:
    return exchange.export([_visible_run(site, run)[2].recording], form)


def _recording(site: Site, run: str) -> bytes:
    """The sealed recording file; raises BadInput if its owner is not that of the store."""
    summary = summary_of(site, run)
    assert site.store is not None
    if summary.sha256 is None:
        raise NotFound(run)
    try:
        return site.store.sealed(summary.id)
    except Untrusted as error:
        raise BadInput(f"run {run}: the recording file is not owned by the owner of the store") from error


_AT = "/run/{run}/"
PAGES = [
    *page_with_json(_AT, _TEMPLATE, view, facts=_facts),
    Page(_AT + "plot.json", JSON, _plot),
    Page(_AT + "run.csv", CSV, partial(_exported, "csv"), role=SiteRole.OPERATOR),
    Page(_AT + "run.parquet", PARQUET, partial(_exported, "parquet"), role=SiteRole.OPERATOR),
    Page(_AT + _RECORDING, ZSTD, _recording, role=SiteRole.OPERATOR),
]
