# SPDX-License-Identifier: GPL-2.0-or-later
"""A resumed campaign keeps no runs of a configuration that its plan now describes in another way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from fastenough.board import Board, Booted, open_board
from fastenough.board.configuration import ConfigurationChange, SwitchableBoard, system_parts
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
KNOWN = {BOARD: {"stock": system_parts(Configuration("stock", "6.1.0-9-amd64"), {})}}
BUILD = {"version": "#1 SMP", "build_id": "ab12"}


def _board(name: str) -> Board:
    return SwitchableBoard(open_board(name), {}, lambda board, configuration, why: None, StopRequest().sleep)


@dataclass
class _ManualBoard:
    """A board that a person boots, each time into the next of these systems."""

    systems: Sequence[tuple[Configuration, Mapping[str, str | None]]]
    reasons: list[str]
    name: str = BOARD

    def ask(self, board: str, configuration: str, why: str) -> None:
        self.reasons.append(why)

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        booted, kernel = self.systems[len(self.reasons) - 1]
        yield Booted(LocalLink(), booted, "probe", kernel=kernel)


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
    ("running", "kernel", "difference"),
    [
        (("6.1.0-9-amd64", "aa", "quiet"), BUILD, ""),
        (("6.1.0-9-amd64", None, None), BUILD, ""),
        (("6.1.0-9-amd64", "aa", "quiet"), {}, ""),
        (("6.1.0-9-amd64", "aa", "quiet"), {**BUILD, "build_id": None}, ""),
        (("6.12.0-1-amd64", "aa", "quiet"), BUILD, "6.12.0-1-amd64"),
        (("6.1.0-9-amd64", "bb", "quiet"), BUILD, "configuration bb"),
        (("6.1.0-9-amd64", "aa", "quiet isolcpus=3"), BUILD, "quiet isolcpus=3"),
        (("6.1.0-9-amd64", "aa", "quiet"), {**BUILD, "build_id": "cd34"}, "build ID cd34, .* used ab12"),
        (("6.1.0-9-amd64", "aa", "quiet"), {**BUILD, "version": "#2 SMP"}, "version #2 SMP, .* used #1 SMP"),
    ],
)
def test_a_person_is_asked_again_until_the_system_is_that_of_the_kept_runs(
    running: tuple[str, str | None, str | None], kernel: dict[str, str | None], difference: str
) -> None:
    """A manual boot of another kernel, build, configuration or command line; the second boot is right."""
    kept = Configuration("stock", "6.1.0-9-amd64", "aa", "quiet")
    reasons = list[str]()
    manual = _ManualBoard([(Configuration("stock", *running), kernel), (kept, BUILD)], reasons)
    board = SwitchableBoard(
        cast(Board, manual),
        {"stock": ConfigurationChange(kernel="*")},
        manual.ask,
        StopRequest().sleep,
        {"stock": system_parts(kept, BUILD)},
    )
    with board.boot("stock") as booted:
        assert booted.configuration == manual.systems[len(reasons) - 1][0]
    assert len(reasons) == (2 if difference else 1)
    assert re.search(difference, reasons[-1])


@pytest.mark.parametrize(
    ("kernel", "asked"),
    [({**BUILD, "build_id": "cd34"}, 2), (BUILD, 3), ({**BUILD, "build_id": None}, 3), ({}, 3)],
)
def test_another_build_of_one_release_is_another_configuration(kernel: dict[str, str | None], asked: int) -> None:
    """Without a pattern of the kernel; the system that is booted at last has another command line."""
    stock = Configuration("stock", "6.1.0-9-amd64", "aa", "quiet")
    reasons = list[str]()
    manual = _ManualBoard(
        [(stock, BUILD), (stock, kernel), (Configuration("x", "6.1.0-9-amd64", "aa", ""), kernel)], reasons
    )
    changes = {"stock": ConfigurationChange(), "patched": ConfigurationChange()}
    board = SwitchableBoard(cast(Board, manual), changes, manual.ask, StopRequest().sleep)
    for configuration in changes:
        with board.boot(configuration):
            pass
    assert len(reasons) == asked
