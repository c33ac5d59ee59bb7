# SPDX-License-Identifier: GPL-2.0-or-later
"""The worked example prints what its page shows: every figure, and the hash of the measured values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.documented import documented_commands, is_incomplete
from tests.support.worked_example import PAGE, Reader, Step, other_versions, short_steps, steps, write_files

pytestmark = pytest.mark.untimed

SHOWN = Step("fastenough show last", "run 20260101T000000000Z-00000a\n…\nmaximum 3,763 µs, …\n")
PRINTED = "run 20261128T115323938Z-25016c\nn = 300\nmaximum 3,763 µs, or beyond\n"


def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    if other := other_versions():
        pytest.skip(f"the page shows figures of other versions: {'; '.join(other)}")
    write_files(tmp_path)
    reader = Reader(tmp_path)
    for step in short_steps():
        output = reader.output(step)
        assert reader.agrees(step, output), f"$ {step.line}\n{output}\nthe page shows:\n{step.shown}"


@pytest.mark.check
def test_each_command_of_the_page_is_compared() -> None:
    """Also those within the text; only commands for a board of the reader's are not."""
    shown = {step.words for step in steps()}
    documented = {words for page, words in documented_commands() if page == PAGE and not is_incomplete(words)}
    assert {words for words in documented if "ssh://" not in words} <= shown
    assert len(list(short_steps())) > 10
    assert [step.words.split()[0] for step in steps() if step.is_long] == ["run", "hunt", "run"]


@pytest.mark.check
@pytest.mark.parametrize(
    ("old", "new", "agrees"),
    [("", "", True), ("3,763", "3,764", False), ("n = 300\n", "", True), ("maximum", "minimum", False)],
)
def test_only_ids_and_omissions_may_differ(old: str, new: str, agrees: bool, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    assert reader.agrees(SHOWN, PRINTED.replace(old, new) if old else PRINTED) is agrees
    assert reader.ids == ({SHOWN.ids[0]: "20261128T115323938Z-25016c"} if agrees else {})


@pytest.mark.check
def test_an_id_of_the_page_stands_for_the_printed_one(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    assert reader.agrees(SHOWN, PRINTED)
    assert reader.output(replace(SHOWN, line=f"echo {SHOWN.ids[0]}")) == "20261128T115323938Z-25016c\n"
