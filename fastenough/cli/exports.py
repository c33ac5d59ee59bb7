# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough export``: runs of the store in formats of other programs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fastenough.cli.commands import Command
from fastenough.cli.options import existing_store, store_option
from fastenough.cli.output import new_file, write_raw
from fastenough.exchange import EXPORTERS, export
from fastenough.model import BadInput


@click.command(cls=Command, example="fastenough export last --to csv --out run.csv")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--to", "form", type=click.Choice(list(EXPORTERS)), help="Format of the output; required unless --json is given."
)
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
    content = export([store.load(run) for run in store.find_all(runs)], form)
    if out is not None:
        with new_file(out) as target:
            target.write(content)
        return
    write_raw(content)
