# SPDX-License-Identifier: GPL-2.0-or-later
"""The status of a board for other websites and for CI: a badge, JUnit XML, Markdown.

Each states the number of values and the time of the newest one.  A verdict on data that ended more than a day ago is
STALE.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.sax.saxutils import escape

from fastenough import words
from fastenough.exchange.junit import Case, SuiteContext, suite
from fastenough.history import BoardInfo, BoardStatus, board_status, distribution, is_declared
from fastenough.history.schema import CYCLE_S
from fastenough.model import Verdict
from fastenough.recording.lines import printable
from fastenough.web.site import Page, Site

SVG = "image/svg+xml; charset=utf-8"
XML = "application/xml"
MARKDOWN = "text/markdown; charset=utf-8"
_OLD_S = 86400
_CHAR_PX = 6.6
_SHAPES = {"PASS": "✓", "FAIL": "✕", "INCONCLUSIVE": "?", "BROKEN": "✕", "STALE": "■"}
_COLOURS = {"PASS": "#1a7f37", "FAIL": "#b3261e", "BROKEN": "#b3261e", "INCONCLUSIVE": "#8a5a00", "STALE": "#8a5a00"}
_NEUTRAL = "#57606a"
_MARKED_DOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|&~-])")


@dataclass(frozen=True)
class Summary:
    """``label``: the verdict, STALE, "no verdict" or "no data".  ``n``: number of values in the 12 hours before
    ``until``, the date of ``seen_s``."""

    board: BoardInfo
    label: str
    why: str
    n: int
    until: str
    maximum_ns: int | None
    seen_s: int | None = None

    @property
    def text(self) -> str:
        limit = "" if self.board.limit_ns is None else f" ≤ {words.exact_time(self.board.limit_ns)}"
        return f"{self.label}{limit}, maximum {words.latency(self.maximum_ns)}, n = {words.about(self.n)}, {self.until}"


def summary_of(site: Site, name: str) -> Summary:
    """Raises UnknownBoard."""
    status = board_status(site.history, site.viewer, name, site.now_s)
    seen_s = status.main_seen_s
    if seen_s is None:
        return Summary(status.board, "no data", status.reason, 0, "never", None)
    plot = distribution(site.history, site.viewer, name, status.board.main, seen_s - CYCLE_S, seen_s)
    greatest = [buckets.max_ns for buckets in plot.cpus.values() if buckets.max_ns is not None]
    label, why = _verdict(status, site.now_s, due=is_declared(site.history))
    if plot.missing:
        return Summary(
            status.board,
            label,
            "the data of the last 12 hours is in an archive that pages do not read",
            0,
            f"{datetime.fromtimestamp(seen_s, UTC):%Y-%m-%d}",
            None,
            seen_s,
        )
    return Summary(
        status.board,
        label,
        why,
        sum(buckets.n for buckets in plot.cpus.values()),
        f"{datetime.fromtimestamp(seen_s, UTC):%Y-%m-%d}",
        max(greatest, default=None),
        seen_s,
    )


def _verdict(status: BoardStatus, now_s: int, *, due: bool) -> tuple[str, str]:
    """``due``: a farm measures its boards on a schedule."""
    if due and status.verdict and _is_old(status, now_s):
        return "STALE", f"no judged data for more than a day; the last verdict was {status.verdict}"
    if status.verdict:
        return status.verdict, status.verdict_reason
    return "no verdict", status.verdict_reason or (
        "no limit" if status.board.limit_ns is None else "no cycle has a verdict yet"
    )


def _is_old(status: BoardStatus, now_s: int) -> bool:
    """Whether the newest judged data are old; judged series come first, unless they have ended."""
    first, *others = status.board.series
    have_ended = not first.judged and any(series.judged for series in others)
    return have_ended or (status.main_seen_s is not None and now_s - status.main_seen_s > _OLD_S)


def badge(site: Site, name: str) -> bytes:
    """An SVG without script or style."""
    summary = summary_of(site, name)
    left, right = printable(summary.board.name), f"{_SHAPES.get(summary.label, '○')} {summary.text}"
    first, second = (round(len(text) * _CHAR_PX) + 12 for text in (left, right))
    title, colour = escape(f"{left}: {summary.text}"), _COLOURS.get(summary.label, _NEUTRAL)
    texts = "".join(
        f'<text x="{at + width / 2:g}" y="14" textLength="{width - 12}">{escape(text)}</text>'
        for at, width, text in ((0, first, left), (first, second, right))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{first + second}" height="20" role="img" '
        f'aria-label={_quoted(title)}><title>{title}</title><rect width="{first}" height="20" fill="#24292f"/>'
        f'<rect x="{first}" width="{second}" height="20" fill="{colour}"/><g fill="#fff" text-anchor="middle" '
        f'font-family="DejaVu Sans,Verdana,sans-serif" font-size="11">{texts}</g></svg>\n'
    ).encode()


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "&quot;") + '"'


def junit(site: Site, name: str) -> bytes:
    """One test case: only a PASS is one that passed."""
    board_summary = summary_of(site, name)
    verdict = (
        Verdict(board_summary.label)
        if board_summary.label in set(Verdict)
        else (Verdict.NO_LIMIT if board_summary.board.limit_ns is None else Verdict.INCONCLUSIVE)
    )
    return suite(
        [Case("board", board_summary.board.name, verdict, [board_summary.why], board_summary.text)],
        SuiteContext([board_summary.board.name], board_summary.seen_s),
    )


def _plain(text: str) -> str:
    return _MARKED_DOWN.sub(r"\\\1", " ".join(printable(text).split()))


def markdown(site: Site, name: str) -> bytes:
    """A table of one row and the reason, for the summary of a CI job."""
    board_summary = summary_of(site, name)
    board = board_summary.board
    limit = "none" if board.limit_ns is None else words.exact_time(board.limit_ns)
    cells = (
        board.name,
        board_summary.label,
        limit,
        words.latency(board_summary.maximum_ns),
        words.number(board_summary.n),
        board.kernel,
        board_summary.until,
    )
    return (
        f"| board | verdict | limit | maximum of 12 h | n | kernel | data until |\n|---|---|---|---|---|---|---|\n"
        f"| {' | '.join(map(_plain, cells))} |\n\n{_plain(board_summary.why)}\n"
    ).encode()


PAGES = [
    Page("/board/{name}/badge.svg", SVG, badge),
    Page("/board/{name}/junit.xml", XML, junit),
    Page("/board/{name}/summary.md", MARKDOWN, markdown),
]
