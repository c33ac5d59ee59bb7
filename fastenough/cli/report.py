# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough report``: a report on stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from fastenough.analysis.excluded_runs import Selection
from fastenough.cli.assess import print_answer
from fastenough.cli.commands import Command, Option
from fastenough.cli.options import (
    Names,
    RequirementOptions,
    existing_store,
    json_option,
    only_these_option,
    requirement_options,
    store_option,
)
from fastenough.cli.progress import Work
from fastenough.jobs.assess import Question, judge_and_report, read_runs
from fastenough.model import BadInput, ExitStatus, FastenoughError
from fastenough.recording import Recording
from fastenough.recording.wakeups import is_monitor
from fastenough.reference import NAMES, find_reference
from fastenough.report import require_writable
from fastenough.report.context import Note, note_of
from fastenough.store import Store
from fastenough.store.campaign import StoredCampaign, newest_campaign, plan_of


def choose_runs(store: Store, names: tuple[str, ...]) -> StoredCampaign:
    """The runs named, each once, as a campaign without an id; without names, the newest campaign."""
    if names:
        return StoredCampaign("", tuple(store.find_all(names)), ())
    campaign = newest_campaign(store)
    if campaign is None:
        raise BadInput(f"{store.path}: no campaign in this store; name runs (see fastenough list)")
    return campaign


def _find_campaign(store: Store, names: tuple[str, ...]) -> StoredCampaign:
    """The chosen runs; all runs of a store that has no campaign."""
    runs = () if names or newest_campaign(store) else tuple(run.id for run in store.runs())
    return StoredCampaign("", runs, ()) if runs else choose_runs(store, names)


def _note(store: Store, campaign: StoredCampaign) -> Note | None:
    """The text of the campaign's plan; None without a plan file, or if it cannot be read."""
    try:
        return note_of(*plan_of(store, campaign.id)) if campaign.id else None
    except FastenoughError:
        return None


def probe_of(recordings: Sequence[Recording], named: str | None) -> str | None:
    """The probe that the limit applies to; raises BadInput if that is ambiguous or no run has it."""
    probes = list(
        dict.fromkeys(
            recording.head.probe
            for recording in recordings
            if recording.damage is None and not is_monitor(recording.head)
        )
    )
    if named is not None and named not in probes:
        raise BadInput(f"--probe {named}: no run of this probe; the runs are of {', '.join(probes)}")
    if named is None and len(probes) > 1:
        raise BadInput(
            f"--limit applies to one probe, and these runs are of {', '.join(probes)}; add --probe {probes[0]}"
        )
    return named or next(iter(probes), None)


@click.command(cls=Command, example="fastenough report --limit 100us")
@click.argument("runs", nargs=-1)
@requirement_options
@click.option("--probe", metavar="PROBE", help="Probe whose runs --limit applies to, if the runs have several.")
@click.option(
    "--beside",
    type=Names("reference system", list(NAMES)),
    help="Comma-separated published systems to show beside these runs (see fastenough reference).",
)
@only_these_option
@click.option(
    "--out-dir",
    "out",
    cls=Option,
    former_names=["--out"],
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("report"),
    show_default=True,
    metavar="DIR",
    help="Directory of the report.",
)
@store_option
@json_option
def command(
    *,
    runs: tuple[str, ...],
    limit_options: RequirementOptions,
    probe: str | None,
    beside: list[str] | None,
    only_these: bool,
    out: Path,
    store_path: Path,
    as_json: bool,
) -> ExitStatus:
    """Write a report on stored runs.

    RUNS are ids or beginnings of ids; the default is the newest campaign, or all runs of a store without a campaign.
    Runs are judged by --limit, else by the requirement of their plan.  Other runs of the store that answer the same
    question are listed; a PASS without them requires --only-these.
    """
    required = limit_options.requirement()
    if probe is not None and required is None:
        raise BadInput("--probe requires --limit")
    require_writable(out)
    store = existing_store(store_path)
    chosen = _find_campaign(store, runs)
    with Work("reading the runs") as work:
        recordings = read_runs(store, chosen.runs, work.step)
        judged = None if required is None else probe_of(recordings, probe)
        question = Question(
            required,
            limit_options.confidence,
            probe=judged,
            missing=chosen.missing,
            beside=tuple(map(find_reference, beside or ())),
            note=_note(store, chosen),
            selection=Selection.of(chosen=bool(runs), only_these=only_these),
            planned=bool(chosen.id),
        )
        answer = judge_and_report(recordings, question, store, out, on_step=work.step)
    return print_answer(answer, out, as_json)
