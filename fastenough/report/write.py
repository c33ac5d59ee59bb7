# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on disk: one page that needs nothing else, and its figures, tables and numbers as files beside it."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from fastenough import __version__
from fastenough.analysis import Assessment
from fastenough.model import BadInput
from fastenough.recording import Recording
from fastenough.report.context import Context, make_context
from fastenough.report.document import Picture, Section, Table
from fastenough.report.sections import SECTIONS

_HERE = Path(__file__).parent
_FOLDERS = ("figures", "tables")


def _page(sections: Sequence[Section], context: Context) -> str:
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(_HERE), autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    style = Markup((_HERE / "style.css").read_text())
    return environment.get_template("page.html.j2").render(
        sections=sections, assessment=context.assessment, conditions=context.conditions, style=style,
        version=__version__, svg=Markup)


def _csv(table: Table) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table.csv_rows())
    return text.getvalue().encode()


def _as_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value.item() if hasattr(value, "item") else str(value)


def _documents(recordings: Sequence[Recording], assessment: Assessment) -> Iterable[tuple[str, bytes]]:
    """(name, content) of every file but report.json, which lists them."""
    context = make_context(recordings, assessment)
    sections = [section for make in SECTIONS if (section := make(context)) is not None]
    leaves = [leaf for section in sections for leaf in section.leaves()]
    tables = [leaf for leaf in leaves if isinstance(leaf, Table)]
    yield "index.html", _page(sections, context).encode()
    for leaf in leaves:
        if isinstance(leaf, Picture):
            yield f"figures/{leaf.name}.svg", leaf.svg.encode()
            yield f"figures/{leaf.name}.png", leaf.png
    for table in tables:
        yield f"tables/{table.name}.csv", _csv(table)
    numbers = {"version": 1, "fastenough": __version__, "assessment": assessment,
               "runs": [recording.run_id for recording in recordings],
               "tables": {table.name: {"caption": table.caption, "rows": table.csv_rows()} for table in tables}}
    yield "report.json", json.dumps(numbers, default=_as_json, indent=1).encode()


def _forget_former(out_dir: Path) -> None:
    """Remove figures and tables of a report that stood here before; nothing that a report did not write."""
    if not (out_dir / "report.json").is_file():
        return
    for folder, kinds in (("figures", ("*.svg", "*.png")), ("tables", ("*.csv",))):
        for kind in kinds:
            for former in (out_dir / folder).glob(kind):
                former.unlink()


def write_report(recordings: Sequence[Recording], assessment: Assessment, out_dir: Path) -> list[Path]:
    """Write index.html, report.json, figures/ and tables/ into ``out_dir``; returns their paths, the page first.

    Raises BadInput where it cannot write there.
    """
    documents = list(_documents(recordings, assessment))
    written = []
    try:
        _forget_former(out_dir)
        for folder in _FOLDERS:
            (out_dir / folder).mkdir(parents=True, exist_ok=True)
        for name, content in documents:
            (out_dir / name).write_bytes(content)
            written.append(out_dir / name)
    except OSError as error:
        raise BadInput(f"{out_dir}: the report cannot be written there: {error.strerror}; "
                       "name another directory") from error
    return written
