# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough export``: runs of the store in formats of other programs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fastenough.cli.commands import Command
from fastenough.cli.options import existing_store, store_option
from fastenough.cli.output import write_raw
from fastenough.exchange import EXPORTERS, export
from fastenough.files import Untrusted, replacing
from fastenough.model import BadInput


def _write_new(path: Path, content: bytes) -> None:
    """Write a new file; raises BadInput if it exists or cannot be written."""
    if path.is_symlink() or path.exists():
        raise BadInput(f"{path} exists; name a new file")
    try:
        with replacing(path) as target:
            target.write(content)
    except Untrusted as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise BadInput(f"{error.filename or path}: {error.strerror}; name a new file in a writable folder") from error


@click.command(cls=Command, example="fastenough export last --to csv --out run.csv")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--to", "form", type=click.Choice(list(EXPORTERS)), help="Format.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="New file to write  [default: standard output]",
)
@store_option
@click.option("--json", "as_json", is_flag=True, help="The same as --to json.")
def command(runs: tuple[str, ...], form: str | None, out: Path | None, store_path: Path, as_json: bool) -> None:
    """Export runs for other programs.

    RUN is an id, the beginning of an id, or 'last'.  Writes the runs in a format of other programs to standard output
    or a new file.
    """
    form = form or ("json" if as_json else None)
    if form is None or (as_json and form != "json"):
        raise BadInput(f"give one format: --to {'|'.join(EXPORTERS)}")
    if out is None and form == "parquet" and sys.stdout.isatty():
        raise BadInput("parquet is a binary format; name a file with --out")
    store = existing_store(store_path)
    chosen = list(dict.fromkeys(map(store.find, runs)))
    content = export([store.load(run) for run in chosen], form)
    if out is not None:
        _write_new(out, content)
        return
    write_raw(content)
