# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough fleet``: a statement about a type of board, from all boards of the type in the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from fastenough import words
from fastenough.analysis import fleet
from fastenough.analysis.fleet import SHARE, BoardResult, FleetEvidence
from fastenough.cli.commands import Command
from fastenough.cli.options import (
    FRACTION,
    RequirementOptions,
    existing_store,
    json_option,
    only_these_option,
    requirement_options,
    store_option,
)
from fastenough.cli.output import print_json, print_table, readable, say, say_list
from fastenough.cli.progress import Work
from fastenough.cli.report import probe_of
from fastenough.jobs.assess import read_runs
from fastenough.jobs.fleet import FleetQuestion, FleetResult, judge_fleet
from fastenough.model import VERDICT_EXIT_STATUS, BadInput, ExitStatus
from fastenough.recording import Recording
from fastenough.recording.wakeups import is_monitor
from fastenough.store import Store
from fastenough.store.campaign import newest_campaign


def _examples(store: Store, names: tuple[str, ...], probe: str | None) -> list[Recording]:
    """The named runs; without names those of the newest campaign, or the newest run.  All are of one probe."""
    campaign = None if names else newest_campaign(store)
    ids = campaign.runs if campaign else store.find_all(names or ("last",))
    recordings = [
        recording for recording in read_runs(store, ids) if recording.damage is None and not is_monitor(recording.head)
    ]
    if not recordings:
        raise BadInput(f"{store.path}: no readable run among those named; name a run (see fastenough list)")
    judged = probe_of(recordings, probe)
    return [recording for recording in recordings if recording.head.probe == judged]


def _result_text(board: BoardResult) -> str:
    return "exceeds" if board.refuses else "within" if board.within else "not shown"


def _print_boards(evidence: FleetEvidence) -> None:
    print_table(
        "Boards, each judged by itself",
        ("board", "result", "runs", "activations", "above", "disturbances", "maximum [µs]"),
        [
            (
                board.board,
                _result_text(board),
                words.number(len(board.runs)),
                words.number(board.n),
                words.number(board.exceeded),
                words.number(board.disturbances),
                words.microseconds(board.maximum_ns),
            )
            for board in evidence.boards
        ],
        texts=2,
    )


def _rate_lines(evidence: FleetEvidence) -> Iterator[str]:
    """The rate of disturbances of the type and of a new board, on the CPU and load with the weakest evidence."""
    weakest = fleet.weakest(evidence)
    if weakest is None or weakest.new_board_every_ns is None:
        return
    sure, limit = words.percent(evidence.requirement.confidence), words.exact_time(evidence.requirement.limit_ns)
    counts = f"{words.counted(weakest.disturbances, 'disturbance')} above {limit} in {readable(weakest.measured_ns)}"
    yield f"{fleet.place(weakest)}: {counts} on {words.counted(weakest.boards, 'board')}"
    variation = weakest.detectable_variation
    power = (
        "too few disturbances to find any difference"
        if variation is None
        else f"finds a coefficient of variation of {variation:g} or more in 80 % of cases"
    )
    yield f"homogeneity of boards: p = {weakest.homogeneity:.2g}; {power}"
    if weakest.every_ns is not None:
        yield f"these boards together: at most 1 disturbance in {words.at_least(weakest.every_ns)} ({sure} confidence)"
    yield (
        f"a new board: at most 1 disturbance in {words.at_least(weakest.new_board_every_ns)} with a probability of "
        f"{sure}, if rates are gamma-distributed over boards; allowed is one in "
        f"{words.duration(weakest.allowed_every_ns)}"
    )


def _print(result: FleetResult) -> None:
    evidence = result.evidence
    say(f"{result.verdict}: {result.headline}")
    say(f"Requirement of each board: {fleet.requirement_text(evidence.requirement)}")
    print()
    _print_boards(evidence)
    say_list("Rate of disturbances", tuple(_rate_lines(evidence)))
    say_list("Reasons", result.reasons)
    say_list("Next steps", result.next_steps)
    say_list("Caveats", result.cautions)
    print("Conditions (IEC 61508-7, D.2.1):")
    for condition in result.conditions:
        say(f"- {condition.assumption}: {condition.result}; {condition.check}", "  ")
        for finding in condition.findings:
            say(f"- {finding}", "    ")


@click.command(cls=Command, example="fastenough fleet --limit 100us --miss-rate 1e-6 --longest-burst 10")
@click.argument("runs", nargs=-1)
@requirement_options
@click.option(
    "--share",
    type=FRACTION,
    default=f"{SHARE:.0%}",
    show_default=True,
    help="Share of all boards of the type that must keep the limit.",
)
@click.option("--probe", metavar="PROBE", help="Probe whose runs --limit applies to, if the runs have several.")
@only_these_option
@store_option
@json_option
def command(
    *,
    runs: tuple[str, ...],
    limit_options: RequirementOptions,
    share: float,
    probe: str | None,
    only_these: bool,
    store_path: Path,
    as_json: bool,
) -> ExitStatus:
    """Judge a type of board by all its boards.

    RUNS, by default the newest campaign, select a type of board, a version, a configuration and loads.  All runs of the
    store that agree in these are judged, of every board.  The verdict is about all boards of the type, measured or not;
    its conditions are listed.
    """
    required = limit_options.requirement()
    if required is None:
        raise BadInput("fleet requires --limit; add --miss-rate if the limit may be exceeded")
    if not 0.5 <= share < 1:
        raise BadInput(f"--share {words.percent(share)} must be at least 50 % and less than 100 %; 90% is usual")
    if only_these and not runs:
        raise BadInput("--only-these requires RUNS")
    store = existing_store(store_path)
    examples = _examples(store, runs, probe)
    with Work("reading the runs") as work:
        result = judge_fleet(store, examples, FleetQuestion(required, share, only_these), work.step)
    if as_json:
        print_json(result)
    else:
        _print(result)
    return VERDICT_EXIT_STATUS[result.verdict]
