# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough export``: runs of the store in a form that other programs read."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fastenough.cli.output import write_raw
from fastenough.cli.stores import existing_store, store_option
from fastenough.exchange import EXPORTERS, export
from fastenough.files import Untrusted, replacing
from fastenough.model import BadInput


def _write_new(path: Path, content: bytes) -> None:
    """Into a file that is not there yet; raises BadInput."""
    if path.is_symlink() or path.exists():
        raise BadInput(f"{path} is there already; name a new file")
    try:
        with replacing(path) as target:
            target.write(content)
    except Untrusted as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise BadInput(
            f"{error.filename or path}: {error.strerror}; name a new file in a folder that you may write"
        ) from error


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--to", "form", type=click.Choice(list(EXPORTERS)), help="The form.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A new file to write; without it, standard output, but for parquet on a terminal.",
)
@store_option
@click.option("--json", "as_json", is_flag=True, help="The same as --to json.")
def command(runs: tuple[str, ...], form: str | None, out: Path | None, store_path: Path, as_json: bool) -> None:
    """Write RUNS (ids, or the beginnings of ids) in a form that other programs read."""
    form = form or ("json" if as_json else None)
    if form is None or (as_json and form != "json"):
        raise BadInput(f"say one form: --to {'|'.join(EXPORTERS)}")
    if out is None and form == "parquet" and sys.stdout.isatty():
        raise BadInput("parquet is no text for a terminal; name a file with --out")
    store = existing_store(store_path)
    chosen = list(dict.fromkeys(map(store.find, runs)))
    content = export([store.load(run) for run in chosen], form)
    if out is not None:
        _write_new(out, content)
        return
    write_raw(content)
