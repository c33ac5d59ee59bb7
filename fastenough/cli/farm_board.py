# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm board``: retire, rename and withdraw boards of a farm."""

from __future__ import annotations

from pathlib import Path

import click

from fastenough.cli.farm_run import farm_argument
from fastenough.cli.output import say
from fastenough.farm.board_edits import rename_board, retire_board, withdraw_board

_name_argument = click.argument("name", metavar="BOARD")


@click.group("board")
def command() -> None:
    """Retire, rename or withdraw a board of FARM.toml.

    Each changes the file and the history. The farm must not run meanwhile: stop its service, and start it again after.
    """


@command.command("retire")
@farm_argument
@_name_argument
def retire(file: Path, name: str) -> None:
    """Stop measuring BOARD; its pages stay."""
    retire_board(file, name)
    say(f"{name} is retired: nothing is done with it any more, and its pages stay")


@command.command("rename")
@farm_argument
@_name_argument
@click.argument("new")
def rename(file: Path, name: str, new: str) -> None:
    """Call BOARD by the name NEW, with all that it has recorded."""
    rename_board(file, name, new)
    say(f"{name} is called {new} now; upload tokens are for named boards: add new ones where {name} had any")


@command.command("withdraw")
@farm_argument
@_name_argument
def withdraw(file: Path, name: str) -> None:
    """Take BOARD off all public pages; it is measured on."""
    withdraw_board(file, name)
    say(f"{name} is public no more; publish files anew where the site is published as files")
