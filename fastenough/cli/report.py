# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough report``: a report on runs measured before."""

from __future__ import annotations

from pathlib import Path

import click

from fastenough.analysis import judge
from fastenough.cli.assess import tell
from fastenough.cli.parameters import json_option
from fastenough.cli.requirement import requirement, requirement_options
from fastenough.cli.stores import existing_store, store_option
from fastenough.model import BadInput, ExitStatus
from fastenough.store import Store


def choose_runs(store: Store, names: tuple[str, ...]) -> list[str]:
    """The runs named; without names, those of the newest campaign."""
    if names:
        return [store.find(name) for name in names]
    ended = [run for run in store.runs() if run.campaign]
    if not ended:
        raise BadInput(f"{store.path}: no campaign in there to report on; name runs (see fastenough list)")
    return [run.id for run in ended if run.campaign == ended[-1].campaign]


@click.command()
@click.argument("runs", nargs=-1)
@requirement_options
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("report"), show_default=True,
              help="Directory of the report.")
@store_option
@json_option
def command(
    *, runs: tuple[str, ...], limit_ns: int | None, miss_rate: float, confidence: float, out: Path, store_path: Path,
    as_json: bool,
) -> ExitStatus:
    """Report on RUNS (ids, or the beginnings of ids); without any, on the newest campaign."""
    required = requirement(limit_ns, miss_rate, confidence)
    store = existing_store(store_path)
    recordings = [store.load(run) for run in choose_runs(store, runs)]
    return tell(judge(recordings, required, confidence=confidence), recordings, out, as_json)
