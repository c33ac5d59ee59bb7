# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm rebuild``: the history anew from the store."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from fastenough import words
from fastenough.cli.farm_run import farm_argument
from fastenough.cli.live import Work
from fastenough.cli.output import print_json, say
from fastenough.cli.parameters import json_option
from fastenough.cli.stores import existing_store
from fastenough.farm.config import read_farm
from fastenough.history import History, rebuild
from fastenough.model import ExitStatus


@click.command("rebuild")
@farm_argument
@json_option
def command(file: Path, as_json: bool) -> ExitStatus:
    """Make the history of FARM.toml anew from its store.

    The store is the truth; the history is only read from it.  A farm that runs meanwhile goes on, and boards of another
    farm that shares the database stay as they are.  Runs that are damaged are named, and left out.
    """
    farm = read_farm(file)
    store = existing_store(farm.store)
    with closing(History.of(store, farm.database)) as history, Work("reading the recordings"):
        caught = rebuild(history, store, [board.name for board in farm.boards])
    count = len(store.runs(brief=True))
    if as_json:
        print_json({"runs": count, "intervals": caught.intervals, "left_out": caught.faults})
    else:
        say(f"{words.counted(caught.intervals, 'interval')} of {words.counted(count, 'run')}")
        for run, why in caught.faults.items():
            say(f"left out: {run}: {why}")
    return ExitStatus.BROKEN if caught.faults else ExitStatus.DONE
