# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough store``: look after the runs on disk and their index."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from fastenough import words
from fastenough.cli.output import print_json
from fastenough.cli.parameters import json_option
from fastenough.cli.stores import existing_store, store_option
from fastenough.files import Untrusted, replacing
from fastenough.model import BadInput, ExitStatus


def _tell(faults: dict[str, str], as_json: bool, fine: str) -> ExitStatus:
    if as_json:
        print_json({"faults": faults})
    elif faults:
        for run, fault in faults.items():
            print(f"{run}: {fault}")
    else:
        print(fine)
    return ExitStatus.BROKEN if faults else ExitStatus.DONE


def _tell_wait() -> None:
    print(
        "fastenough: another rebuild of this store is at work; waiting until it has ended", file=sys.stderr, flush=True
    )


@click.group()
def command() -> None:
    """Rebuild the index, verify that no recording has changed, or export every sample."""


@command.command()
@store_option
@json_option
def rebuild(store_path: Path, as_json: bool) -> ExitStatus:
    """Make the index again from the runs; damaged runs are named, the others go on."""
    store = existing_store(store_path)
    faults = store.rebuild(_tell_wait)
    return _tell(faults, as_json, f"index of {words.counted(len(store.runs()), 'run')} rebuilt")


@command.command()
@store_option
@json_option
def verify(store_path: Path, as_json: bool) -> ExitStatus:
    """Check every sealed recording against its hash."""
    store = existing_store(store_path)
    runs = words.counted(len(store.runs()), "run")
    return _tell(store.verify(), as_json, f"{runs}: every sealed recording is as it was recorded")


@command.command("export-samples")
@click.argument("samples", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("parquet", type=click.Path(path_type=Path, dir_okay=False))
@json_option
def export(samples: Path, parquet: Path, as_json: bool) -> ExitStatus:
    """Write every sample in SAMPLES, which fastenough-probe --samples made, into the new Parquet file PARQUET."""
    if parquet.is_symlink() or parquet.exists():
        raise BadInput(f"{parquet} is there already; name a new file")
    exporting = import_module("fastenough.recording.samples_parquet")  # which loads pyarrow
    try:
        with replacing(parquet) as target:
            told = exporting.export_samples(samples, target)
    except Untrusted as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise BadInput(
            f"{error.filename or parquet}: {error.strerror}; name a file of samples and a new file in a "
            "folder that you may write"
        ) from error
    if as_json:
        print_json(told)
    else:
        for series in sorted(told.kept):
            print(
                f"series {series}: {words.counted(told.kept[series], 'sample')}, {words.number(told.lost[series])} lost"
            )
        if not told.complete:
            print(f"{samples} was cut off: what it holds is whole all the same")
    return ExitStatus.DONE
