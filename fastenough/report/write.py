# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on disk: one page that needs nothing else, and its figures, tables and numbers as files beside it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from fastenough import __version__
from fastenough.analysis import Assessment
from fastenough.analysis.advice import Advice
from fastenough.analysis.task_set import TaskAnswer
from fastenough.files import Untrusted
from fastenough.folder import Folder
from fastenough.model import Verdict
from fastenough.recording import Recording
from fastenough.recording.lines import printable
from fastenough.reference import Reference
from fastenough.report.context import Context, make_context
from fastenough.report.document import Picture, Section, Table, Text
from fastenough.report.files import csv_of, data_link
from fastenough.report.note import Note, chapters
from fastenough.report.overview import Overview, make_overview
from fastenough.report.place import FILES, FOLDERS, refusing, require_replaceable
from fastenough.report.sections import SECTIONS
from fastenough.report.texts import latex, markdown, unbroken, with_units
from fastenough.report.theme import themed

OnShare = Callable[[float], None]

_HERE = Path(__file__).parent
_ODD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a part of the report may raise over recordings that no program of ours wrote."""


def _page(sections: Sequence[Section], context: Context, overview: Overview) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"unbroken": unbroken, "with_units": with_units}
    style = Markup((_HERE / "style.css").read_text().replace("RUN-IDENTITY", _css_text(overview.identity)))
    return printable(
        environment.get_template("page.html.j2").render(
            chapters=chapters(sections, context.note),
            note=context.note,
            banner=_banner(context),
            overview=overview,
            style=style,
            version=__version__,
            svg=_drawing,
            data_link=data_link,
        )
    )


_REASONS_FIRST = 2
"""As many stand beside the verdict; all of them are in its chapter."""


@dataclasses.dataclass(frozen=True)
class _Banner:
    """What the page says first: the verdict, or where advice ended; ``why``: what made data useless."""

    word: str
    hue: str
    headline: str
    why: str
    life_safety: str


def _banner(context: Context) -> _Banner:
    verdict = context.assessment.verdict
    if context.advice is not None:
        return _Banner(context.advice.ending, "ADVICE", context.advice.text, "", context.advice.life_safety)
    why = "; ".join(context.assessment.reasons[:_REASONS_FIRST]) if verdict is Verdict.BROKEN else ""
    return _Banner(verdict, verdict.name, context.assessment.headline, why, context.assessment.life_safety)


def _drawing(picture: Picture) -> Markup:
    """A figure inside the page, in its colours and named by its caption."""
    named = f'<svg role="img" aria-labelledby="caption-figure-{picture.name}" '
    return Markup(themed(picture.svg).replace("<svg ", named, 1))


def _css_text(text: str) -> str:
    """A text of a recording inside a style sheet's string: nothing that could end it is left."""
    return re.sub(r"[^A-Za-z0-9 .,:_-]", "?", text)


def _as_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value.item() if hasattr(value, "item") else str(value)


def _first_screen(context: Context) -> Overview:
    """What can be shown on it; where odd recordings do not let it be made, it says so, and the rest stands."""
    try:
        return make_overview(context)
    except _ODD as error:
        return Overview(
            f"These recordings hold what the first screen cannot show ({type(error).__name__}: {error}).",
            (),
            "",
            None,
            None,
        )


def _made(make: Callable[[Context], Section | None], context: Context) -> Section | None:
    """A section; one that trips over what odd recordings hold says so, and the others stand."""
    try:
        return make(context)
    except _ODD as error:
        name = make.__module__.rpartition(".")[2]
        return Section(
            f"unmade-{name}",
            f"Not made: {name.replace('_', ' ')}",
            f"These recordings hold what this part cannot show ({type(error).__name__}: {error}).",
        )


def _sections(context: Context, on_share: OnShare) -> Iterator[Section]:
    """All that have something to say; before each it is told how much is made, of them and the page they make."""
    for position, make in enumerate(SECTIONS):
        on_share(position / (len(SECTIONS) + 1))
        section = _made(make, context)
        if section is not None:
            yield section
    on_share(len(SECTIONS) / (len(SECTIONS) + 1))


def _documents(context: Context, on_share: OnShare) -> Iterable[tuple[str, bytes]]:
    """(name, content) of every file."""
    overview = _first_screen(context)
    sections = [*context.answers, *_sections(context, on_share)]
    leaves = [part for part in (overview.table, overview.figure) if part is not None]
    leaves += [leaf for section in sections for leaf in section.leaves() if not isinstance(leaf, Text)]
    tables = [leaf for leaf in leaves if isinstance(leaf, Table)]
    yield "index.html", _page(sections, context, overview).encode()
    for leaf in leaves:
        if isinstance(leaf, Picture):
            yield f"figures/{leaf.name}.svg", leaf.svg.encode()
            yield f"figures/{leaf.name}.pdf", leaf.pdf
            yield f"figures/{leaf.name}.png", leaf.png
            yield f"figures/{leaf.name}.csv", csv_of(leaf)
    for table in tables:
        yield f"tables/{table.name}.csv", csv_of(table)
        yield f"tables/{table.name}.md", markdown(table).encode()
        yield f"tables/{table.name}.tex", latex(table).encode()
    numbers = {
        "version": 1,
        "fastenough": __version__,
        "assessment": context.assessment,
        "advice": context.advice,
        "tasks": context.tasks,
        "campaign": _stated(context.note),
        "runs": [recording.run_id for recording in context.recordings],
        "tables": {table.name: {"caption": table.caption, "rows": table.csv_rows()} for table in tables},
    }
    yield "report.json", json.dumps(numbers, default=_as_json, indent=1).encode()


def _stated(note: Note | None) -> dict[str, str] | None:
    return None if note is None else {"id": note.campaign, "title": note.title, "question": note.question}


def _forget_former(folder: Folder, name: str, written: set[str]) -> None:
    """Remove figures and tables of a report that stood here before; nothing that a report does not write."""
    for former in folder.names():
        if f"{name}/{former}" not in written and former.endswith(FOLDERS[name]):
            with contextlib.suppress(Untrusted):
                folder.require_replaceable(former)
                folder.remove(former)


def nobody_waits(share: float) -> None:
    """Nobody wants to know how much of it is made."""


def write_report(
    recordings: Sequence[Recording],
    assessment: Assessment,
    out_dir: Path,
    on_share: OnShare = nobody_waits,
    *,
    references: Sequence[Reference] = (),
    advice: Advice | None = None,
    note: Note | None = None,
    tasks: TaskAnswer | None = None,
    answers: tuple[Section, ...] = (),
) -> list[Path]:
    """Write index.html, report.json, figures/ and tables/ into ``out_dir``; returns their paths, the page first.

    ``references``: published systems to set beside what was measured.  ``advice``: the path to be drawn, first of all.
    ``note``: what the plan of a campaign says; the page is then ordered as an application note.
    ``tasks``: what follows for a task set.  ``answers``: chapters of whoever had the runs made, which stand first.
    Each file is written beside its place and renamed, the page last, so that no half of one is ever found.  Raises
    BadInput where it cannot write there.  ``on_share`` is told how much is made, 0 to 1, section by section.
    """
    context = dataclasses.replace(
        make_context(recordings, assessment, references, advice, note), tasks=tasks, answers=answers
    )
    documents = dict(_documents(context, on_share))
    with refusing(out_dir), Folder.at(out_dir, make=True) as folder:
        had_report = "report.json" in folder.names()
        require_replaceable(folder)
        for name in FOLDERS:
            with folder.below(name, make=True) as below:
                for path, content in documents.items():
                    if path.startswith(f"{name}/"):
                        below.replace(path.removeprefix(f"{name}/"), content)
                if had_report:
                    _forget_former(below, name, set(documents))
        for name in reversed(FILES):
            folder.replace(name, documents[name])
    return [out_dir / name for name in documents]
