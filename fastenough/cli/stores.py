# SPDX-License-Identifier: GPL-2.0-or-later
"""The store that a command works on."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fastenough.model import BadInput
from fastenough.store import Store

store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path),
    default=Path("fastenough-data"),
    show_default=True,
    help="Directory of the store.",
)


def existing_store(path: Path) -> Store:
    """A store to read from; raises BadInput where there is none, rather than making an empty one."""
    try:
        there = (path / "runs").is_dir()
    except OSError as error:
        raise BadInput(f"{path}: no store can be read there: {error.strerror}") from error
    if not there:
        raise BadInput(f"{path}: no store there; 'fastenough assess' makes one, --store names another")
    store = Store(path)
    if store.index_fault is not None:
        print(f"fastenough: the runs are read without their index: {store.index_fault}", file=sys.stderr)
    return store
