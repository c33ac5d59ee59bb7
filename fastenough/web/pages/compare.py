# SPDX-License-Identifier: GPL-2.0-or-later
"""The page that compares runs with a base run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastenough import words
from fastenough.analysis import Comparison, compare
from fastenough.analysis.compare import (
    ORDINALS,
    QuantileDifference,
    cautions,
    conclusion,
    finding,
    interval,
    judged_names,
    significance_note,
)
from fastenough.analysis.merged import judged_series, merge_samples
from fastenough.history import board_statuses
from fastenough.history.board_status import boards_of_runs
from fastenough.model import BadInput, FastenoughError
from fastenough.recording import Recording
from fastenough.report import plot
from fastenough.report.document import Column, Picture, ReportTable
from fastenough.report.latency import HistogramLine, Scale, counted_note, latency_data, latency_figure
from fastenough.web.rendering import as_json, page_with_json
from fastenough.web.site import NotFound, Site, recording_of

_MOST_OFFERED = 100
_MOST_NAMED = 10_000
"""Greatest number of boards that one search in the index of the store can name."""


@dataclass(frozen=True)
class ComparedRun:
    """One of the compared runs; ``which``: its name on the page."""

    which: str
    run: str
    board: str
    kernel: str
    load: str


@dataclass(frozen=True)
class RunDifferences:
    """Other differences of a run from the base, each a possible cause."""

    which: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class CompareView:
    """``refused``: the reason why these runs cannot be compared, else empty.  ``offered``: newest runs."""

    newest_s: int | None
    names: tuple[str, ...]
    offered: tuple[str, ...]
    refused: str = ""
    runs: tuple[ComparedRun, ...] = ()
    conclusion: str = ""
    cautions: tuple[str, ...] = ()
    differences: tuple[RunDifferences, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    how: str = ""
    picture: Picture | None = None

    @property
    def image(self) -> str:
        """The picture as an address: pages allow no styles in their text, which a drawing has."""
        svg = b"" if self.picture is None else self.picture.svg.encode()
        return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def _named(query: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The base run and the others; empty without a base."""
    base = [value for key, value in query if key == "base" and value]
    others = [value for key, value in query if key == "other" and value]
    if not base:
        return ()
    if len(base) > 1 or len(others) > len(ORDINALS):
        raise BadInput(f"name one base run and up to {len(ORDINALS)} other runs")
    if len({*base, *others}) <= len(others):
        raise BadInput("a run is named twice; name each run once")
    return (*base, *others)


def _offered(site: Site) -> tuple[str, ...]:
    """The newest runs of the boards that may be seen."""
    if site.store is None:
        return ()
    visible = {status.board.name for status in board_statuses(site.history, site.viewer, site.now_s)}
    # the newest runs of these boards, even if other boards have many newer ones
    named = {"board": visible} if len(visible) <= _MOST_NAMED else {}
    newest = site.store.runs(last=_MOST_OFFERED, brief=True, **named)
    boards = boards_of_runs(site.history, [run.id for run in newest])  # a board may have the former name of another one
    return tuple(
        run.id for run in reversed(newest) if boards.get(run.id, run.board if site.viewer.sees_all else None) in visible
    )


def _row(quantile: QuantileDifference) -> tuple[Any, ...]:
    return (
        words.percent(quantile.quantile),
        quantile.first_ns,
        quantile.second_ns,
        quantile.difference_ns,
        interval(quantile),
        finding(quantile),
    )


def _table(place: int, comparison: Comparison, which: str) -> ReportTable:
    us = words.nearest_microseconds
    columns = (
        Column("quantile", numeric=False),
        Column("base [µs]", us),
        Column(f"{which} [µs]", us),
        Column("difference [µs]", us),
        Column(f"{words.percent(comparison.confidence)} interval [µs]", numeric=False),
        Column(f"{which} is", numeric=False),
    )
    maxima = " and ".join(words.latency_or_least(*maximum) for maximum in comparison.maxima)
    n = f"n = {words.number(comparison.n[0])} (base) and {words.number(comparison.n[1])} ({which})"
    return ReportTable(
        f"compare-{place}",
        f"{comparison.series}: {which} minus base, {n}",
        columns,
        [_row(quantile) for quantile in comparison.quantiles],
        note=f"Maxima {maxima} (base first). Two maxima cannot be tested for a difference.",
    )


def _compared(which: str, recording: Recording) -> ComparedRun:
    head = recording.head
    kernel = (head.profile or {}).get("kernel") or {}
    return ComparedRun(
        which,
        recording.run_id,
        head.board or "–",
        str(kernel.get("release", "–")),
        head.load.name if head.load else "not recorded",
    )


def _picture(recordings: Sequence[Recording]) -> Picture | None:
    """The latency plots of all runs on one pair of axes, of their first judged kind of series, all CPUs together."""
    lines = []
    for name, recording in zip(("base", *ORDINALS), recordings, strict=False):
        judged = judged_series(recording)
        values = (
            merge_samples([(recording, series) for series in judged if series.name == judged[0].name])
            if judged
            else None
        )
        if values is not None and values.n:
            lines.append(HistogramLine(name, values))
    if len(lines) < 2:
        return None
    together = [line.values for line in lines]
    axis = plot.linear_axis if plot.fits_linear(together) else plot.log_axis
    figure = latency_figure("Latency plots of the compared runs", lines, Scale.over(together, axis))
    counts = "; ".join(f"{line.name}: n = {line.values.n:,}" for line in lines)
    caption = f"All CPUs of each run combined. {counts}. Triangles mark maxima.{counted_note(together)}"
    return plot.picture(figure, "compare-plot", caption, latency_data(lines))


def _differing(comparisons: Sequence[Comparison], which: dict[str, str]) -> tuple[RunDifferences, ...]:
    texts_by_run: dict[str, dict[str, None]] = {name: {} for name in which.values()}
    for comparison in comparisons:
        texts_by_run[which[comparison.second_id]] |= dict.fromkeys(comparison.differences)
    return tuple(RunDifferences(name, tuple(texts)) for name, texts in texts_by_run.items())


def _view(site: Site, names: tuple[str, ...]) -> CompareView:
    recordings = [recording_of(site, run) for run in names]
    try:
        comparisons = compare(*recordings)
    except FastenoughError as error:
        return CompareView(None, names, _offered(site), str(error))
    which = dict(zip(names[1:], ORDINALS, strict=False))
    return CompareView(
        None,
        names,
        _offered(site),
        "",
        tuple(_compared(name, recording) for name, recording in zip(("base", *ORDINALS), recordings, strict=False)),
        conclusion(comparisons, judged_names(recordings)),
        tuple(cautions(recordings)),
        _differing(comparisons, which),
        tuple(
            _table(place, comparison, which[comparison.second_id]) for place, comparison in enumerate(comparisons, 1)
        ),
        tuple(comparisons),
        significance_note(comparisons[0].tested_differences, comparisons[0].confidence),
        _picture(recordings),
    )


def view(site: Site, query: Sequence[tuple[str, str]]) -> CompareView:
    """Raises BadInput for an invalid query.  A run that is missing or not visible to the viewer is reported as
    unknown."""
    names = _named(query)
    if len(names) < 2:
        return CompareView(None, names, _offered(site))
    try:
        return _view(site, names)
    except NotFound as error:
        raise BadInput(f"no run {error} exists; board pages list the runs") from error


def _facts(site: Site, query: Sequence[tuple[str, str]]) -> bytes:
    comparison = view(site, query)
    return as_json(
        {
            "runs": comparison.runs,
            "refused": comparison.refused,
            "conclusion": comparison.conclusion,
            "cautions": comparison.cautions,
            "differences": comparison.differences,
            "comparisons": comparison.comparisons,
            "how": comparison.how,
        }
    )


PAGES = page_with_json("/compare", "compare.html.j2", view, facts=_facts, asks=True, published=False, menu="Compare")
