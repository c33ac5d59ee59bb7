# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough store``: the index and the integrity of the runs on disk."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from fastenough import words
from fastenough.cli.commands import Group
from fastenough.cli.options import existing_store, json_option, store_option
from fastenough.cli.output import print_json
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
    print("fastenough: waiting for another rebuild of this store to end", file=sys.stderr, flush=True)


@click.group(cls=Group)
def command() -> None:
    """Rebuild the index, verify recordings, export samples.

    The store is the directory of all runs (docs/commands.md).
    """


@command.command(example="fastenough store rebuild")
@store_option
@json_option
def rebuild(store_path: Path, as_json: bool) -> ExitStatus:
    """Rebuild the index from the runs.

    Damaged runs are listed; all others are indexed.
    """
    store = existing_store(store_path)
    faults = store.rebuild(_tell_wait)
    return _tell(faults, as_json, f"index of {words.counted(len(store.runs()), 'run')} rebuilt")


@command.command(example="fastenough store verify")
@store_option
@json_option
def verify(store_path: Path, as_json: bool) -> ExitStatus:
    """Check every sealed recording against its hash.

    Lists each recording that has changed; the exit status is then 4.
    """
    store = existing_store(store_path)
    runs = words.counted(len(store.runs()), "run")
    return _tell(store.verify(), as_json, f"{runs}: all sealed recordings are unchanged")


@command.command("export-samples", example="fastenough store export-samples samples.bin samples.parquet")
@click.argument("samples", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("parquet", type=click.Path(path_type=Path, dir_okay=False))
@json_option
def export(samples: Path, parquet: Path, as_json: bool) -> ExitStatus:
    """Convert a file of samples to Parquet.

    SAMPLES is a file written by fastenough-probe --samples; PARQUET is a new file.
    """
    if parquet.is_symlink() or parquet.exists():
        raise BadInput(f"{parquet} exists; name a new file")
    exporting = import_module("fastenough.recording.samples_parquet")  # which loads pyarrow
    try:
        with replacing(parquet, new=True) as target:
            exported = exporting.export_samples(samples, target)
    except FileExistsError as error:
        raise BadInput(f"{parquet} exists; name a new file") from error
    except Untrusted as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise BadInput(
            f"{error.filename or parquet}: {error.strerror}; name a file of samples, and a new file in a writable "
            "folder"
        ) from error
    if as_json:
        print_json(exported)
    else:
        for series in sorted(exported.written):
            print(
                f"series {series}: {words.counted(exported.written[series], 'sample')}, "
                f"{words.number(exported.lost[series])} lost"
            )
        if not exported.complete:
            print(f"{samples} is truncated; all complete samples were converted")
    return ExitStatus.DONE
