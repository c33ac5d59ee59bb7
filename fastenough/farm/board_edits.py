# SPDX-License-Identifier: GPL-2.0-or-later
"""Retire, withdraw and rename boards, in the farm file and in the history at the same time."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from fastenough.farm.alerts import rename_alerts
from fastenough.farm.config import FORMER_KEYS, BoardEntry, Farm, read_farm
from fastenough.farm.history_update import declaration_of
from fastenough.farm.state_file import FarmState
from fastenough.farm.state_machine import BoardState
from fastenough.history import History, declare
from fastenough.history import rename as rename_in_history
from fastenough.model import BadInput
from fastenough.store import Store

_BOARD = re.compile(r"\s*\[\[\s*board\s*\]\]\s*(#.*)?")
_TABLE = re.compile(r"\s*\[")
_KEY = re.compile(r"\s*(?P<key>[A-Za-z-]+)\s*=")
_NEW = ".new"


def retire_board(file: Path, name: str) -> None:
    """Stop using a board; its pages stay.  Raises BadInput."""
    _change(file, name, {"retired": "true"}, lambda farm, board: replace(board, retired=True))


def withdraw_board(file: Path, name: str) -> None:
    """Make a board private.  Raises BadInput."""
    _change(file, name, {"public": "false"}, lambda farm, board: replace(board, public=False))


def rename_board(file: Path, name: str, new: str) -> None:
    """Rename a board together with its recordings.  Raises BadInput."""
    former_names = (*_board(read_farm(file), name).former_names, name)
    names = ", ".join(f'"{name}"' for name in former_names)
    _change(
        file,
        name,
        {"name": f'"{new}"', "former-names": f"[{names}]"},
        lambda farm, board: replace(board, name=new, former_names=former_names),
    )


def _board(farm: Farm, name: str) -> BoardEntry:
    """Raises BadInput."""
    entry = next((board for board in farm.boards if board.name == name), None)
    if entry is None:
        raise BadInput(
            f"no board {name!r} in the farm file; its boards are {', '.join(board.name for board in farm.boards)}"
        )
    return entry


def _change(
    file: Path, name: str, values: Mapping[str, str], changed: Callable[[Farm, BoardEntry], BoardEntry]
) -> None:
    """Write values of a board into the farm file, check the file against the intended board, and update the history."""
    farm = read_farm(file)
    expected = changed(farm, _board(farm, name))
    with closing(FarmState(farm.state)) as farm_state:  # which refuses where the farm is at work
        new = file.with_name(file.name + _NEW)
        try:
            new.write_text(_with_values(file.read_text(), name, values))
            shutil.copymode(file, new)
            if expected not in read_farm(new).boards:
                raise BadInput(
                    f"{file}: the [[board]] table of {name} has an unsupported layout; edit it by hand: "
                    f"{'; '.join(f'{key} = {value}' for key, value in values.items())}"
                )
            with closing(Store(farm.store)) as store, closing(History.of(store, farm.database)) as history:
                if expected.name != name:
                    rename_in_history(history, name, expected.name, expected.former_names)
                    rename_alerts(history, name, expected.name)
                    farm_state.rename(name, expected.name)
                state = farm_state.boards().get(expected.name, BoardState())
                declare(history, **declaration_of(expected, state, farm.id))
            new.replace(file)
        except OSError as error:
            raise BadInput(f"{file}: cannot write the file: {error.strerror}; run this command as its owner") from error
        finally:
            new.unlink(missing_ok=True)


def _with_values(text: str, name: str, values: Mapping[str, str]) -> str:
    """The text with these values of a board in place of its present ones."""
    lines = text.splitlines(keepends=True)
    begins = [number for number, line in enumerate(lines) if _BOARD.fullmatch(line.rstrip())]
    for begin in begins:
        end = next((number for number in range(begin + 1, len(lines)) if _TABLE.match(lines[number])), len(lines))
        keys = {
            FORMER_KEYS.get(match["key"], match["key"]): number
            for number in range(begin + 1, end)
            if (match := _KEY.match(lines[number]))
        }
        if "name" in keys and re.search(rf"""=\s*["']{re.escape(name)}["']\s*(#.*)?$""", lines[keys["name"]].rstrip()):
            for key, value in values.items():
                lines[keys.get(key, begin)] = (
                    f"{key} = {value}\n" if key in keys else lines[begin].rstrip("\n") + f"\n{key} = {value}\n"
                )
            break
    return "".join(lines)
