# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm board``: retire, rename and withdraw boards of a farm."""

from __future__ import annotations

from pathlib import Path

import click

from fastenough.cli.farm_run import farm_argument
from fastenough.cli.output import print_json, say
from fastenough.cli.parameters import json_option
from fastenough.farm.changing import rename_board, retire_board, withdraw_board

_name_argument = click.argument("name", metavar="BOARD")


def _print(result: dict[str, str], text: str, as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        say(text)


@click.group("board")
def command() -> None:
    """Retire, rename or withdraw a board of FARM.toml.

    Each changes the file and the history. The farm must not run meanwhile: stop its service, and start it again after.
    """


@command.command("retire")
@farm_argument
@_name_argument
@json_option
def retire(file: Path, name: str, as_json: bool) -> None:
    """Stop measuring BOARD; its pages stay."""
    retire_board(file, name)
    _print({"retired": name}, f"{name} is retired: it is no longer measured, and its pages stay", as_json)


@command.command("rename")
@farm_argument
@_name_argument
@click.argument("new")
@json_option
def rename(file: Path, name: str, new: str, as_json: bool) -> None:
    """Call BOARD by the name NEW, with all that it has recorded."""
    rename_board(file, name, new)
    text = f"{name} is now called {new}. Upload tokens are bound to names: add new ones if {name} had any"
    _print({"renamed": name, "name": new}, text, as_json)


@command.command("withdraw")
@farm_argument
@_name_argument
@json_option
def withdraw(file: Path, name: str, as_json: bool) -> None:
    """Take BOARD off all public pages; it is measured on."""
    withdraw_board(file, name)
    text = f"{name} is no longer public. If the site is published as files, publish them again"
    _print({"withdrawn": name}, text, as_json)
