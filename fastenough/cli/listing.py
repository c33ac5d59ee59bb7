# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough list``: the runs in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from fastenough import words
from fastenough.cli.commands import Command
from fastenough.cli.options import existing_store, json_option, store_option
from fastenough.cli.output import leave_out, print_json, print_table, readable, wall_text
from fastenough.store import RunSummary, Store

_WIDTH = 10_000
"""In a file or pipe each run is one line, for grep and awk."""
_FEW = 20
"""Up to so many campaigns are queried one by one."""
_COLUMNS = ("run", "begin", "board", "probe", "variant", "load", "outcome", "samples", "maximum")
_SPARE = ("begin", "board", "samples")
"""Columns that a narrow terminal omits: the id begins with the time, ``fastenough show`` has the others."""


def _traits(run: RunSummary, planned: Sequence[str] | None) -> dict[str, str | None]:
    """Traits in which a run may differ from others of its probe, as named in its plan."""
    title = planned[run.position] if planned and run.position is not None and run.position < len(planned) else ""
    settings = (setting.partition("=") for setting in title.partition(", ")[0].split(" ") if "=" in setting)
    traits = {"implementation": run.implementation, "configuration": run.configuration}
    return traits | {name: value for name, _, value in settings}


def variants(runs: Sequence[RunSummary], planned: Sequence[Sequence[str] | None]) -> list[str]:
    """For each run, the parameters in which it differs from other runs of its probe."""
    texts = [""] * len(runs)
    for probe in {run.probe for run in runs}:
        places = [place for place, run in enumerate(runs) if run.probe == probe and run.state != "damaged"]
        apart = differing([_traits(runs[place], planned[place]) for place in places])
        for place, traits in zip(places, apart, strict=True):
            texts[place] = in_words({name: value for name, value in traits.items() if value is not None})
    return texts


def _plans_of(store: Store, runs: Sequence[RunSummary]) -> list[Sequence[str] | None]:
    """For each run, the plan of its campaign; each run of a campaign states it."""
    campaigns = {run.campaign: run.id for run in runs if run.campaign is not None}
    examples = (
        store.runs(position=0)
        if len(campaigns) > _FEW
        else [run for run_id in campaigns.values() for run in store.runs(id=run_id)]
    )
    known = {run.campaign: run.planned for run in examples}
    return [known.get(run.campaign) for run in runs]


def _row(run: RunSummary, variant: str) -> tuple[str, ...]:
    return (
        run.id,
        wall_text(run.begin_wall_ns),
        run.board or "–",
        run.probe or "–",
        variant or "–",
        run.load or "–",
        run.state if run.state == "damaged" else run.outcome or run.state,
        "–" if run.samples is None else words.number(run.samples),
        readable(run.worst_ns),
    )


@click.command(cls=Command, example="fastenough list --last 20")
@click.option("--last", type=click.IntRange(min=1), help="Number of runs to list, newest only.")
@store_option
@json_option
def command(last: int | None, store_path: Path, as_json: bool) -> None:
    """List the runs in the store, oldest first.

    Prints one line per run: id, board, probe, load, outcome, number of samples and maximum.
    """
    store = existing_store(store_path)
    runs = store.runs(last=last, brief=not as_json)
    if as_json:
        print_json(runs)
    elif runs:
        apart = variants(runs, _plans_of(store, runs))
        rows = [_row(run, variant) for run, variant in zip(runs, apart, strict=True)]
        nothing = () if any(apart) else ("variant",)
        columns, cells = leave_out(_COLUMNS, rows, nothing, 0)
        print_table("", columns, cells, texts=7 - len(nothing), file_width=_WIDTH, spare=_SPARE)
    else:
        print(f"no runs in {store.path}; make some with: fastenough assess")


def shared(items: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """The traits that all items have with the same value."""
    first = items[0] if items else {}
    return {name: value for name, value in first.items() if all(name in item and item[name] == value for item in items)}


def differing(items: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Of each item, the traits that are not common to all."""
    common = shared(items)
    return [{name: value for name, value in item.items() if name not in common} for item in items]


def in_words(item: Mapping[str, object]) -> str:
    """``CPU 0 size=4096 relative``: a CPU by its number, a flag by its name, the rest with its value."""
    return " ".join(_word(name, value) for name, value in item.items())


def _word(name: str, value: Any) -> str:
    if name == "cpu":
        return f"CPU {value}"
    return name if value is True else f"{name}={value}"
