# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm board``: retire, rename and withdraw boards of a farm."""

from __future__ import annotations

from pathlib import Path

import click

from fastenough.cli.commands import Group
from fastenough.cli.farm_run import farm_argument
from fastenough.cli.options import json_option
from fastenough.cli.output import print_json, say
from fastenough.farm.board_edits import rename_board, retire_board, withdraw_board

_name_argument = click.argument("name", metavar="BOARD")


def _print_result(document: dict[str, str], as_json: bool, text: str) -> None:
    if as_json:
        print_json(document)
    else:
        say(text)


@click.group("board", cls=Group)
def command() -> None:
    """Retire, rename or withdraw a board of a farm.

    Each command changes FARM.toml and the history.  Stop the service of the farm before, and start it afterwards.
    """


@command.command("retire", example="fastenough farm board retire FARM.toml rpi4")
@farm_argument
@_name_argument
@json_option
def retire(file: Path, name: str, as_json: bool) -> None:
    """Stop measuring a board.

    The pages of BOARD stay.
    """
    retire_board(file, name)
    _print_result({"board": name, "change": "retired"}, as_json, f"{name} is retired; its pages stay")


@command.command("rename", example="fastenough farm board rename FARM.toml rpi4 rpi4-lab2")
@farm_argument
@_name_argument
@click.argument("new")
@json_option
def rename(file: Path, name: str, new: str, as_json: bool) -> None:
    """Rename a board.

    Renames BOARD to NEW, with all of its recordings.
    """
    rename_board(file, name, new)
    _print_result(
        {"board": new, "change": "renamed"},
        as_json,
        f"{name} is renamed to {new}; if {name} had upload tokens, add new ones for {new}",
    )


@command.command("withdraw", example="fastenough farm board withdraw FARM.toml rpi4")
@farm_argument
@_name_argument
@json_option
def withdraw(file: Path, name: str, as_json: bool) -> None:
    """Remove a board from all public pages.

    BOARD is still measured.
    """
    withdraw_board(file, name)
    _print_result(
        {"board": name, "change": "withdrawn"},
        as_json,
        f"{name} is no longer public; if the site is published as files, publish it again",
    )
