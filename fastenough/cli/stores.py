# SPDX-License-Identifier: GPL-2.0-or-later
"""The store of a command."""

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
    """The store to read from; raises BadInput if there is none."""
    try:
        there = (path / "runs").is_dir()
    except OSError as error:
        raise BadInput(f"{path}: cannot read the store: {error.strerror}") from error
    if not there:
        raise BadInput(f"{path}: no store; 'fastenough assess' creates one, --store names another")
    store = Store(path)
    if store.index_fault is not None:
        print(f"fastenough: reading the runs without the index: {store.index_fault}", file=sys.stderr)
    return store
