# SPDX-License-Identifier: GPL-2.0-or-later
"""What follows from several runs is kept, and said again as it was said: by reports, and by pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from fastenough.jobs.bound import bounds_of, section_of
from fastenough.jobs.job_store import store_conclusion, stored_conclusions
from fastenough.model import BadInput
from fastenough.report.conclusions import hunt_section
from fastenough.report.document import ReportTable, Section, read_section, stored_form
from fastenough.store import Store
from fastenough.store.conclusions import CONCLUSIONS, chapter_of, conclude, conclusions
from tests.support.farm_data import FarmData, told
from tests.support.hunt_machines import searched
from tests.support.websites import Served
from tests.unit.analysis.test_bound_composed import Kernel

pytestmark = pytest.mark.untimed


def _said(section: Section) -> Sequence[object]:
    """All that a reader sees, and what the files of its tables hold."""
    return [
        section.id,
        section.title,
        section.lead,
        *(
            (
                part.name,
                part.caption,
                part.over,
                part.note,
                [(one.title, one.numeric) for one in part.columns],
                [[(cell.text, cell.below) for cell in part.cells(row)] for row in part.rows],
                json.loads(json.dumps(part.csv_rows(), default=str)),
            )
            if isinstance(part, ReportTable)
            else part
            for part in section.leaves()
        ),
    ]


def _hunt() -> Section:
    search, made = searched()
    return hunt_section(search, made, "something was found", 'name = "hunt-1"\n', "who it was")


def _bound() -> Section:
    return section_of(bounds_of(Kernel(4, 1, 2, 2, False, 5, [(6, 3)]).run().lines), "what it means")


def test_what_is_kept_is_said_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for section in (_hunt(), _bound(), told("b")):
        made = conclude(store, "b", ("run-1", "run-2"), stored_form(section))
        said = chapter_of(store, made.id)
        assert said is not None and _said(read_section(said)) == _said(section)
        assert next(conclusions(store)) == made


def test_a_report_says_what_was_concluded_from_its_runs_and_of_each_the_newest(tmp_path: Path, farm: FarmData) -> None:
    store, mine = farm.store, [run.id for run in farm.store.runs(board=farm.injected.board)]
    other = farm.store.runs(board=farm.changed)[0].id
    assert [section.lead for section in stored_conclusions(store, mine[:1])] == [told(farm.injected.board).lead]
    assert stored_conclusions(store, [mine[0], other]) == stored_conclusions(store, []) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"{}\n",
        b"{}\n{}\n",
        b"[]\n[]\n",
        b"\xff\n{}\n",
        b"{}\n{}\n{}\n",
        b"[" * 10**6,
        b'{"format": "fastenough-conclusion", "version": 2}\n{}\n',
    ],
)
def test_a_file_that_is_none_is_passed_over(tmp_path: Path, wrong: bytes) -> None:
    store = Store(tmp_path)
    made = conclude(store, "b", ("r",), stored_form(told("b")))
    (tmp_path / CONCLUSIONS / "20270101T000000000Z-abcdef.jsonl").write_bytes(wrong)
    (tmp_path / CONCLUSIONS / "a folder.jsonl").mkdir()
    (tmp_path / CONCLUSIONS / "link.jsonl").symlink_to(tmp_path / CONCLUSIONS / f"{made.id}.jsonl")
    assert list(conclusions(store)) == [made]
    assert chapter_of(store, f"../{CONCLUSIONS}/{made.id}") is None


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("id",), "../x"),
        (("parts",), 1),
        (("parts", 0, "name"), "../../evil"),
        (("parts", 0, "rows", 0), []),
        (("parts", 0, "rows", 0, 0), [1]),
        (("parts", 0, "kind"), "picture"),
        (("parts", 0, "columns"), []),
        (("parts", 1, "parts", 0), {"kind": "folded", "title": "", "parts": [], "printed": True}),
    ],
)
def test_a_chapter_that_is_none_is_refused(place: tuple[str | int, ...], value: object) -> None:
    said = json.loads(json.dumps(stored_form(told("b"))))
    at = said
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    with pytest.raises(BadInput, match="not valid"):
        read_section(said)


def test_pages_of_board_and_run_lead_to_it(website: Served, farm: FarmData) -> None:
    one = next(one for one in conclusions(farm.store) if one.board == farm.injected.board)
    link = f'href="../../conclusion/{one.id}/"'
    assert link in website.get(f"/board/{one.board}/").text and link in website.get(f"/run/{one.runs[0]}/").text
    assert "/conclusion/" not in website.get(f"/board/{farm.changed}/").text
    page = website.get(f"/conclusion/{one.id}/")
    assert "vm &amp; fork" in page.text and all(run in page.text for run in one.runs)
    facts = website.get(f"/conclusion/{one.id}/index.json").json
    assert _said(read_section(facts["chapter"])) == _said(told(one.board))


def test_nothing_is_kept_of_what_no_run_was_made_for(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store_conclusion(store, (), told("b"))
    assert list(conclusions(store)) == []
