# SPDX-License-Identifier: GPL-2.0-or-later
"""A resumed campaign keeps no runs of a configuration that its plan now describes in another way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from fastenough.board import Board, Booted, open_board
from fastenough.board.configuration import ConfigurationChange, SwitchableBoard
from fastenough.campaign import parse_plan
from fastenough.campaign.expand import PLAN_FILE
from fastenough.campaign.stop import StopRequest
from fastenough.link import LocalLink
from fastenough.model import BadInput, Configuration
from fastenough.store import Store
from fastenough.store.campaign import require_kept_configurations
from tests.support import recordings as made

BOARD = "ssh://board"
PLAN = f"""
name = "kept"
board = "{BOARD}"
configurations = ["stock", "rt"]
duration = "1s"
[[run]]
probe = "timer"
"""
TABLE = '[[configuration]]\nname = "stock"\n'
KNOWN = {BOARD: {"stock": Configuration("stock", "6.1.0-9-amd64")}}


def _board(name: str) -> Board:
    return SwitchableBoard(open_board(name), {}, lambda board, configuration, why: None, StopRequest().sleep)


@pytest.mark.parametrize(
    ("stored", "resumed", "refused"),
    [
        ("", "", False),
        ("", 'kernel = "*"\n', False),
        ("", 'kernel = "6.1.*"\n', False),
        ("", 'kernel = "6.12*"\n', True),
        ('kernel = "6.1.*"\n', 'kernel = "6.12*"\n', True),
        ('kernel = "6.1.*"\n', "", False),
        ('select = ["grub-reboot", "0"]\n', 'select = ["grub-reboot", "0"]\n', False),
        ('select = ["grub-reboot", "0"]\n', 'select = ["grub-reboot", "1"]\n', True),
        ('select = ["grub-reboot", "0"]\n', "", False),
        ("", 'select = ["grub-reboot", "1"]\n', False),
    ],
)
def test_kept_runs_are_of_the_configuration_of_the_plan(
    tmp_path: Path, stored: str, resumed: str, refused: bool
) -> None:
    """The run in the first configuration is kept; the second one has no run yet."""
    store = Store(tmp_path / "store")
    writer = store.begin({"campaign": "kept-1", "position": 0, "positions": 2})
    writer.attach(PLAN_FILE, (PLAN + (TABLE + stored if stored else "")).encode())
    content = made.write(tmp_path / "made", made.Plan([], writer.id)).read_bytes()
    for line in content.splitlines(keepends=True):
        writer.line(line)
    writer.end()
    plan = parse_plan((PLAN + (TABLE + resumed if resumed else "")).encode(), "the plan")
    if refused:
        with pytest.raises(BadInput, match=r"the plan:.* stock: 1 kept run .* used") as caught:
            require_kept_configurations(plan, store, {0: writer.id}, KNOWN, _board)
        assert "\n" not in str(caught.value)
    else:
        require_kept_configurations(plan, store, {0: writer.id}, KNOWN, _board)
    require_kept_configurations(plan, store, {}, {}, _board)
    require_kept_configurations(plan, store, {0: writer.id}, KNOWN, open_board)


@pytest.mark.parametrize(
    ("running", "difference"),
    [
        (("6.1.0-9-amd64", "aa", "quiet"), ""),
        (("6.1.0-9-amd64", None, None), ""),
        (("6.12.0-1-amd64", "aa", "quiet"), "6.12.0-1-amd64"),
        (("6.1.0-9-amd64", "bb", "quiet"), "configuration bb"),
        (("6.1.0-9-amd64", "aa", "quiet isolcpus=3"), "quiet isolcpus=3"),
    ],
)
def test_a_person_is_asked_again_until_the_system_is_that_of_the_kept_runs(
    running: tuple[str, str | None, str | None], difference: str
) -> None:
    """A manual boot of another kernel, configuration or command line; the second boot is right."""
    kept = Configuration("stock", "6.1.0-9-amd64", "aa", "quiet")
    systems, reasons = [Configuration("stock", *running), kept], list[str]()

    class Manual:
        name = BOARD

        @contextmanager
        def boot(self, configuration: str) -> Iterator[Booted]:
            yield Booted(LocalLink(), systems[len(reasons) - 1], "probe")

    board = SwitchableBoard(
        cast(Board, Manual()),
        {"stock": ConfigurationChange(kernel="*")},
        lambda board, configuration, why: reasons.append(why),
        StopRequest().sleep,
        {"stock": kept},
    )
    with board.boot("stock") as booted:
        assert booted.configuration == systems[len(reasons) - 1]
    assert len(reasons) == (2 if difference else 1)
    assert difference in reasons[-1]
