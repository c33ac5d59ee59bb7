# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough report``: a report on runs measured before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from fastenough.cli.assess import tell
from fastenough.cli.live import Work
from fastenough.cli.parameters import json_option
from fastenough.cli.requirement import requirement, requirement_options
from fastenough.cli.stores import existing_store, store_option
from fastenough.jobs.assess import Question, judge_and_report
from fastenough.model import BadInput, ExitStatus
from fastenough.recording import Recording
from fastenough.report import require_writable
from fastenough.store import Store
from fastenough.store.campaign import newest_campaign


def choose_runs(store: Store, names: tuple[str, ...]) -> tuple[Sequence[str], Sequence[str]]:
    """The runs named; without names, those of the newest campaign and in words what is missing of it."""
    if names:
        return [store.find(name) for name in names], ()
    campaign = newest_campaign(store)
    if campaign is None:
        raise BadInput(f"{store.path}: no campaign in there to report on; name runs (see fastenough list)")
    return campaign.runs, campaign.missing


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
    require_writable(out)
    store = existing_store(store_path)
    chosen, missing = choose_runs(store, runs)
    question = Question(required, confidence, missing=tuple(missing))
    recordings: list[Recording] = []
    with Work("reading the runs", share=lambda: len(recordings) / len(chosen)) as work:
        for run in chosen:
            recordings.append(store.load(run))
        work.step("judging, and making the report")
        answer = judge_and_report(recordings, question, out)
    return tell(answer, out, as_json)
