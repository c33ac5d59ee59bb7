# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough list``: the runs in the store."""

from __future__ import annotations

from pathlib import Path

import click

from fastenough import words
from fastenough.cli.output import print_json, print_table, wall_text
from fastenough.cli.parameters import json_option
from fastenough.cli.stores import existing_store, store_option
from fastenough.store import RunSummary

_WIDTH = 10_000
"""In a file or pipe no cell is folded, whatever the runs are called."""


def _row(run: RunSummary) -> tuple[str, ...]:
    return (
        run.id, wall_text(run.begin_wall_ns), run.board or "–", run.probe or "–", run.load or "–",
        run.state if run.state == "damaged" else run.outcome or run.state,
        "–" if run.samples is None else words.number(run.samples), words.latency(run.worst_ns),
    )


@click.command()
@click.option("--last", type=click.IntRange(min=1), help="Only so many runs, the newest.")
@store_option
@json_option
def command(last: int | None, store_path: Path, as_json: bool) -> None:
    """List the runs in the store, oldest first."""
    store = existing_store(store_path)
    runs = store.runs(last=last, brief=not as_json)
    if as_json:
        print_json(runs)
    elif runs:
        columns = ("run", "begin", "board", "probe", "load", "outcome", "samples", "worst")
        print_table("", columns, map(_row, runs), texts=6, file_width=_WIDTH)
    else:
        print(f"no runs in {store.path}; make some with: fastenough assess")
