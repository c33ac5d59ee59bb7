# SPDX-License-Identifier: GPL-2.0-or-later
"""Render pages as HTML and JSON from the same data."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from fastenough import __version__, words
from fastenough.history import is_declared
from fastenough.recording.lines import printable
from fastenough.report.document import Section, stored_form
from fastenough.report.formats import data_link, unbroken, with_units
from fastenough.web.addresses import path_part
from fastenough.web.site import HTML, JSON, STALE_S, Page, Site

_HERE = Path(__file__).parent
_REPORT = _HERE.parent / "report"
_SPARK_HIGH = 16


def as_json(value: Any) -> bytes:
    return json.dumps(value, default=_plain, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)


def instant(at_s: int | None) -> str:
    """An instant for people, to the minute."""
    return "never" if at_s is None else f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M}"


def since(seconds: float) -> str:
    """Age in one unit."""
    for unit, size_s in (("days", 2 * 86400), ("h", 2 * 3600), ("min", 60)):
        if seconds >= size_s:
            return f"{int(seconds / {'days': 86400, 'h': 3600, 'min': 60}[unit])} {unit} ago"
    return f"{max(0, int(seconds))} s ago"


def spark(daily_ns: Sequence[int | None], limit_ns: int | None) -> str:
    """SVG path with a bar per day, as high as its maximum; no bar without data."""
    highest = max([*filter(None, daily_ns), limit_ns or 0, 1])
    return "".join(
        f"M{3 * day + 1} {_SPARK_HIGH}V{_SPARK_HIGH - max(1, round(_SPARK_HIGH * value / highest))}"
        for day, value in enumerate(daily_ns)
        if value is not None
    )


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_HERE / "templates", _REPORT]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters |= {
        "us": words.microseconds,
        "latency": words.latency,
        "limit": words.exact_time,
        "instant": instant,
        "iso": words.iso,
        "number": words.number,
        "about": words.about,
        "duration": words.duration,
        "counted": words.counted,
        "part": path_part,
        "unbroken": unbroken,
        "with_units": with_units,
    }
    made.globals |= {"spark": spark, "version": __version__, "data_link": data_link, "svg": _no_figure, "menu": _menu}
    return made


def _no_figure(_: Any) -> Markup:
    """The browser draws the figures; the tables hold their values."""
    return Markup()


def _menu() -> list[Page]:
    """The pages that every page links to, in the order of the table of pages."""
    from fastenough.web.pages import PAGES  # noqa: PLC0415 - the pages import this module

    return [page for page in PAGES if page.menu]


def render(
    site: Site, template: str, root: str, view: Any, newest_s: int | None, *, beside: str = "index.json"
) -> bytes:
    """A page.  ``root``: relative address of the first page; ``newest_s``: end of its data; ``beside``: its JSON."""
    age_s, scheduled = 0 if newest_s is None else site.now_s - newest_s, is_declared(site.history)
    doubt = "STALE" if scheduled and age_s > STALE_S else "CLOCK AHEAD" if age_s < -STALE_S else ""
    page = (
        _environment()
        .get_template(template)
        .render(
            view=view,
            root=root,
            newest_s=newest_s,
            doubt=doubt,
            scheduled=scheduled,
            now_s=site.now_s,
            since=since,
            note=site.note,
            served=site.served,
            beside=beside,
        )
    )
    return printable(page).encode()


def message(title: str, text: str) -> bytes:
    """A page with one message and a reason, without any text of the request."""
    return printable(_environment().get_template("message.html.j2").render(title=title, text=text)).encode()


def page_with_json(
    pattern: str,
    template: str,
    ask: Callable[..., Any],
    *,
    facts: Callable[..., bytes] | None = None,
    asks: bool = False,
    published: bool = True,
    menu: str = "",
) -> list[Page]:
    """A page and its facts as JSON.

    ``ask`` returns a view with ``newest_s``.  ``facts`` returns the JSON if the view holds more than facts.  ``menu``:
    title of its link on every page.
    """
    root = "../" * (pattern.count("/") - 1) or "./"

    def html(site: Site, **named: Any) -> bytes:
        view = ask(site, **named)
        return render(site, template, root, view, view.newest_s, beside=beside.rpartition("/")[2])

    def document(site: Site, **named: Any) -> bytes:
        return as_json(ask(site, **named))

    beside = f"{pattern}index.json" if pattern.endswith("/") else f"{pattern}.json"
    return [Page(pattern, HTML, html, asks, published, menu), Page(beside, JSON, facts or document, asks, published)]


@dataclass(frozen=True)
class SectionView:
    """The view of a page with one section."""

    newest_s: int | None
    section: Section


def page_of_section(pattern: str, make: Callable[..., Section], *, menu: str = "") -> list[Page]:
    """A page with one section, and the section as JSON.

    ``make`` takes the site and the named parts of the address.  Tables and texts look as in reports, so the page needs
    no template.
    """

    def ask(site: Site, **named: Any) -> SectionView:
        return SectionView(None, make(site, **named))

    def facts(site: Site, **named: Any) -> bytes:
        return as_json(stored_form(make(site, **named)))

    return page_with_json(pattern, "section.html.j2", ask, facts=facts, menu=menu)
