# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough store``: look after the runs on disk and their index."""

from __future__ import annotations

from pathlib import Path

import click

from fastenough import words
from fastenough.cli.output import print_json
from fastenough.cli.parameters import json_option
from fastenough.cli.stores import existing_store, store_option
from fastenough.model import ExitStatus


def _tell(faults: dict[str, str], as_json: bool, fine: str) -> ExitStatus:
    if as_json:
        print_json({"faults": faults})
    elif faults:
        for run, fault in faults.items():
            print(f"{run}: {fault}")
    else:
        print(fine)
    return ExitStatus.BROKEN if faults else ExitStatus.DONE


@click.group()
def command() -> None:
    """Rebuild the index, or verify that no recording has changed."""


@command.command()
@store_option
@json_option
def rebuild(store_path: Path, as_json: bool) -> ExitStatus:
    """Make the index again from the runs; damaged runs are named, the others go on."""
    store = existing_store(store_path)
    faults = store.rebuild()
    return _tell(faults, as_json, f"index of {words.counted(len(store.runs()), 'run')} rebuilt")


@command.command()
@store_option
@json_option
def verify(store_path: Path, as_json: bool) -> ExitStatus:
    """Check every sealed recording against its hash."""
    store = existing_store(store_path)
    runs = words.counted(len(store.runs()), "run")
    return _tell(store.verify(), as_json, f"{runs}: every sealed recording is as it was recorded")
