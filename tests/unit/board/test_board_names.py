# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of boards: the forms of docs/boards.md, and no others."""

from __future__ import annotations

import pytest

from fastenough.board import open_board
from fastenough.model import BadInput


@pytest.mark.parametrize(
    "name",
    [
        "",
        "local:",
        "local://",
        "ssh",
        "ssh:board",
        "ssh:root@board",
        "virtual:",
        "virtual://rt",
        "labgrid://place",
        "x:y",
    ],
)
def test_other_forms_are_refused_with_those_that_exist(name: str) -> None:
    with pytest.raises(BadInput, match=r"unknown board .*ssh://\[USER@\]HOST\[:PORT\], labgrid:PLACE") as refusal:
        open_board(name)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["local", "ssh://root@board:22", "virtual", "labgrid:place"])
def test_a_board_has_the_name_that_opened_it(name: str) -> None:
    assert open_board(name).name == name
