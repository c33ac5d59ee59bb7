# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm rebuild``: the history, rebuilt from the store."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import click

from fastenough import words
from fastenough.cli.commands import Command
from fastenough.cli.farm_run import farm_argument
from fastenough.cli.options import existing_store, json_option
from fastenough.cli.output import print_json, say
from fastenough.cli.progress import Work
from fastenough.farm.config import Farm, read_farm
from fastenough.farm.history_update import declaration_of
from fastenough.farm.judging import verdicts_on
from fastenough.farm.state_file import board_states
from fastenough.farm.state_machine import BoardState
from fastenough.history import History, declare, rebuild
from fastenough.model import ExitStatus


def _declare(history: History, farm: Farm, known: Mapping[str, BoardState]) -> None:
    """Write the boards of the farm's file to the history."""
    for board in farm.boards:
        declare(history, **declaration_of(board, known.get(board.name, BoardState()), farm.id))


@click.command("rebuild", cls=Command, example="fastenough farm rebuild FARM.toml")
@farm_argument
@json_option
def command(file: Path, as_json: bool) -> ExitStatus:
    """Rebuild the history of a farm from its store.

    Afterwards the history contains the runs of the store and the boards of FARM.toml; boards that the file no longer
    names are not public.  A running farm continues, and boards of other farms in the same database are not changed.
    Damaged runs are listed and excluded.
    """
    farm = read_farm(file)
    store = existing_store(farm.store)
    known = board_states(farm.state)
    with closing(History.of(store, farm.database)) as history, Work("reading the recordings"):
        _declare(history, farm, known)
        caught = rebuild(history, store, [board.name for board in farm.boards], farm.id)
        _declare(history, farm, known)
        for board in farm.boards:
            required = None if board.requirement is None else asdict(board.requirement)
            declare(history, board.name, **verdicts_on(store, board.name, required, formerly=board.formerly))
    count = len(store.runs(brief=True))
    if as_json:
        print_json({"runs": count, "intervals": caught.intervals, "left_out": caught.faults})
    else:
        say(f"{words.counted(caught.intervals, 'interval')} of {words.counted(count, 'run')}")
        for run, why in caught.faults.items():
            say(f"excluded: {run}: {why}")
    return ExitStatus.BROKEN if caught.faults else ExitStatus.DONE
