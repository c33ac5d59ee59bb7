# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a report: one self-contained page, and its figures, tables and numbers as files beside it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jinja2
from markupsafe import Markup

from fastenough import __version__
from fastenough.analysis import Assessment
from fastenough.analysis.advice import Advice
from fastenough.analysis.longer_runs import LongerRecording
from fastenough.analysis.task_set import TaskAnswer
from fastenough.analysis.uncertainty import budget_of
from fastenough.files import Untrusted
from fastenough.folder import Folder
from fastenough.recording import Recording
from fastenough.recording.lines import printable
from fastenough.reference import Reference
from fastenough.report.context import Context, Note, make_context
from fastenough.report.document import Picture, ReportTable, Section, Text
from fastenough.report.formats import csv_of, data_link, latex, markdown, unbroken, with_units
from fastenough.report.output import FILES, FOLDERS, REPORT_FILE, refusing, require_replaceable
from fastenough.report.overview import Overview, make_overview, summary_lists
from fastenough.report.plot import themed
from fastenough.report.sections import PARTS, SECTIONS, MakeSection

OnShare = Callable[[float], None]

_HERE = Path(__file__).parent
_ODD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a section may raise on recordings that another program wrote."""
_MOST_REPORT_BYTES = 1 << 28
"""Maximum size of the former report's numbers that are read."""
_LISTED = re.compile(r"figures/[^/\0]+\.(svg|pdf|png|csv)|tables/[^/\0]+\.(csv|md|tex)")
"""Files that a report may list: a former one may have been edited."""


@dataclasses.dataclass(frozen=True)
class PagePart:
    """A part of the page below the summary.  ``folded``: shown on request, and on paper."""

    id: str
    title: str
    folded: bool
    sections: tuple[Section, ...]


_FOLDED = {"evidence": False, "details": True, "appendix": True}


def _page(parts: Sequence[PagePart], context: Context, overview: Overview) -> str:
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
            parts=parts,
            lists=summary_lists(context),
            note=context.note,
            banner=_banner(context),
            overview=overview,
            style=style,
            version=__version__,
            svg=_drawing,
            data_link=data_link,
        )
    )


@dataclasses.dataclass(frozen=True)
class _Banner:
    """The verdict, or the end of the path of advice."""

    label: str
    hue: str
    headline: str
    life_safety: str


def _banner(context: Context) -> _Banner:
    verdict = context.assessment.verdict
    if context.advice is not None:
        return _Banner(context.advice.ending, "ADVICE", context.advice.text, context.advice.life_safety)
    return _Banner(verdict, verdict.name, context.assessment.headline, context.assessment.life_safety)


def _drawing(picture: Picture) -> Markup:
    """The SVG of a figure in the colours of the page, labelled by its caption."""
    named = f'<svg role="img" aria-labelledby="caption-figure-{picture.name}" '
    return Markup(themed(picture.svg).replace("<svg ", named, 1))


def _css_text(text: str) -> str:
    """Text of a recording that cannot end a string of the style sheet."""
    return re.sub(r"[^A-Za-z0-9 .,:_-]", "?", text)


def _as_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value.item() if hasattr(value, "item") else str(value)


def _first_screen(context: Context) -> Overview:
    """Table and figure of the summary; the reason if they cannot be made of these recordings."""
    try:
        return make_overview(context)
    except _ODD as error:
        return Overview(
            f"The summary could not be made from these recordings ({type(error).__name__}: {error}).",
            (),
            "",
            None,
            None,
        )


def _make_section(make: MakeSection, context: Context) -> Section | None:
    """A section; the reason if it cannot be made of these recordings."""
    try:
        return make(context)
    except _ODD as error:
        name = make.__module__.rpartition(".")[2] if make.__name__ == "section" else make.__name__
        return Section(
            f"unmade-{name}",
            f"Not available: {name.replace('_', ' ')}",
            f"This section could not be made from these recordings ({type(error).__name__}: {error}).",
        )


def _page_parts(context: Context, on_share: OnShare) -> Iterator[PagePart]:
    """The parts that have sections.  Before each section ``on_share`` gets the share of the report that is made."""
    position = 0
    for part, makes in PARTS.items():
        sections = list(context.answers) if part == "evidence" else []
        for make in makes:
            on_share(position / (len(SECTIONS) + 1))
            position += 1
            section = _make_section(make, context)
            if section is not None:
                sections.append(section)
        if sections:
            yield PagePart(part, part.capitalize(), _FOLDED[part], tuple(sections))
    on_share(position / (len(SECTIONS) + 1))


def _documents(context: Context, on_share: OnShare) -> Iterable[tuple[str, bytes]]:
    """(name, content) of every file."""
    overview = _first_screen(context)
    parts = list(_page_parts(context, on_share))
    leaves = [part for part in (overview.requirements, overview.table, overview.figure) if part is not None]
    sections = [section for part in parts for section in part.sections]
    leaves += [leaf for section in sections for leaf in section.leaves() if not isinstance(leaf, Text)]
    tables = [leaf for leaf in leaves if isinstance(leaf, ReportTable)]
    yield "index.html", _page(parts, context, overview).encode()
    files = dict(_leaf_files(leaf for leaf in leaves if not isinstance(leaf, Text)))
    yield from files.items()
    numbers = {
        "version": 2,
        "fastenough": __version__,
        "assessment": context.assessment,
        "advice": context.advice,
        "tasks": context.tasks,
        "campaign": _campaign(context.note),
        "runs": [recording.run_id for recording in context.recordings],
        "uncertainty": [budget_of(entry.kind.all_cpus) for entry in context.entries],
        "tables": {table.name: {"caption": table.caption, "rows": table.csv_rows()} for table in tables},
        "files": sorted(files),
    }
    yield REPORT_FILE, json.dumps(numbers, default=_as_json, indent=1).encode()


def _leaf_files(leaves: Iterable[Picture | ReportTable]) -> Iterator[tuple[str, bytes]]:
    """(name, content) of the files of figures and tables."""
    for leaf in leaves:
        if isinstance(leaf, Picture):
            yield f"figures/{leaf.name}.svg", leaf.svg.encode()
            yield f"figures/{leaf.name}.pdf", leaf.pdf
            yield f"figures/{leaf.name}.png", leaf.png
            yield f"figures/{leaf.name}.csv", csv_of(leaf)
        else:
            yield f"tables/{leaf.name}.csv", csv_of(leaf)
            yield f"tables/{leaf.name}.md", markdown(leaf).encode()
            yield f"tables/{leaf.name}.tex", latex(leaf).encode()


def _campaign(note: Note | None) -> dict[str, str] | None:
    return None if note is None else {"id": note.campaign, "title": note.title, "question": note.question}


def _former_files(folder: Folder) -> set[str]:
    """The figures and tables that the report in this folder lists; none if there is no report of ours."""
    try:
        former = json.loads(folder.read(REPORT_FILE, _MOST_REPORT_BYTES))
        return {name for name in former["files"] if _LISTED.fullmatch(name)} if former["fastenough"] else set()
    except (OSError, Untrusted, ValueError, RecursionError, LookupError, TypeError):
        return set()


def _forget(folder: Folder, files: Iterable[str]) -> None:
    """Remove files of the report that was here before."""
    for former in files:
        with contextlib.suppress(Untrusted, FileNotFoundError):
            folder.require_replaceable(former)
            folder.remove(former)


def ignore_share(share: float) -> None:
    """Progress callback that does nothing."""


def write_report(
    recordings: Sequence[Recording],
    assessment: Assessment,
    out_dir: Path,
    on_share: OnShare = ignore_share,
    *,
    references: Sequence[Reference] = (),
    advice: Advice | None = None,
    note: Note | None = None,
    tasks: TaskAnswer | None = None,
    answers: tuple[Section, ...] = (),
    longer: Mapping[str, LongerRecording] = MappingProxyType({}),
) -> list[Path]:
    """Write index.html, report.json, figures/ and tables/ into ``out_dir``; returns their paths, the page first.

    ``references``: published systems to compare with.  ``advice``: the path to draw.  ``note``: title and question
    of a campaign.  ``tasks``: the analysis of a task set.  ``answers``: sections of the command that made the runs;
    they come first.  ``longer``: a longer run of the same kind, by the id of the first run of each group.  Each file
    is written under another name and renamed, the page last: no partial file is ever visible.  Raises BadInput if it
    cannot write there.  ``on_share`` gets the share that is made, 0 to 1, before each section.
    """
    context = dataclasses.replace(
        make_context(recordings, assessment, references, advice, note),
        tasks=tasks,
        answers=answers,
        longer=longer,
    )
    documents = dict(_documents(context, on_share))
    with refusing(out_dir), Folder.at(out_dir, make=True) as folder:
        former = _former_files(folder) - set(documents)
        require_replaceable(folder)
        for name in FOLDERS:
            with folder.below(name, make=True) as below:
                for path, content in documents.items():
                    if path.startswith(f"{name}/"):
                        below.replace(path.removeprefix(f"{name}/"), content)
                _forget(below, [path.removeprefix(f"{name}/") for path in former if path.startswith(f"{name}/")])
        for name in reversed(FILES):
            folder.replace(name, documents[name])
    return [out_dir / name for name in documents]
