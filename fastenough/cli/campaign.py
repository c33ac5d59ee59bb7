# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough campaign``: the runs of a plan: listed, made, resumed, and their states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from fastenough import words
from fastenough.board import listed_configuration
from fastenough.campaign import Plan, expand, on_board, read_plan
from fastenough.campaign.expand import recordings_of
from fastenough.campaign.plan_check import check_plan
from fastenough.campaign.progress import Matrix, Row, matrix_of
from fastenough.cli.commands import Group
from fastenough.cli.options import existing_store, json_option, store_option
from fastenough.cli.output import print_json, print_table, say
from fastenough.cli.plan_runs import Begin, PlanFile, make_runs
from fastenough.cli.privileges import LOCAL, as_granted_option
from fastenough.cli.progress_wording import clock
from fastenough.model import NotApplicable, Requirement
from fastenough.store.campaign import STATES, PlannedRun, find_campaign, plan_of, planned_runs

_MATRIX = ("measured", "loads", "limit", "each", "repeat", "runs", "time")
_STATUS = ("run", "state", "what", "recording", "reason")

_plan_argument = click.argument("plan_path", metavar="PLAN", type=PlanFile())
_board_option = click.option("--board", metavar="BOARD", help="Board to measure, if the plan names none.")
_booted_option = click.option(
    "--booted", metavar="CONFIGURATION", help="Configuration that is already booted; you are not asked to boot it."
)


@click.group(cls=Group)
def command() -> None:
    """Plan, run, inspect and resume sets of runs.

    A campaign is the set of runs of a plan.  PLAN is a file, or the name of a plan that comes with fastenough
    (docs/plans.md).
    """


def _on_board(plan: Plan, board: str | None) -> Plan:
    """The plan on the board of the option, else of the plan, else this machine."""
    return plan if board is None and plan.boards else on_board(plan, board or LOCAL)


@command.command("plan", example="fastenough campaign plan quick")
@_plan_argument
@_board_option
@json_option
def plan_command(plan_path: Path, board: str | None, as_json: bool) -> None:
    """Show the runs of PLAN and how long they take.

    Nothing is measured.
    """
    plan = _on_board(read_plan(plan_path), board)
    with suppress(NotApplicable):  # where the probe is yet to be built
        check_plan(plan)
    specs = expand(plan)
    matrix = matrix_of(specs)
    if as_json:
        print_json(
            {
                "name": plan.name,
                "title": plan.title,
                "question": plan.question,
                "settings": plan.settings,
                "runs": [asdict(spec) | {"title": spec.title} for spec in specs],
                "recordings": recordings_of(plan),
                "measured_s": matrix.measured_s,
                "expected_s": matrix.expected_s,
            }
        )
    else:
        _print_plan(plan, matrix)


def _print_plan(plan: Plan, matrix: Matrix) -> None:
    print(f"{plan.name}: {plan.title}" if plan.title else plan.name)
    if plan.question:
        say(plan.question)
    for board in dict.fromkeys(board for board, _ in matrix.places):
        booted = ", ".join(listed_configuration(on, name) for on, name in matrix.places if on == board)
        say(f"board {board}: {booted}")
    if plan.settings:
        say(f"settings: {', '.join(f'{name}={value}' for name, value in plan.settings.items())}")
    if plan.instrument:
        say(f"instrument: {plan.instrument.port}")
    print_table("", _MATRIX, map(_row, matrix.rows), texts=3, spare=("repeat", "limit"))
    say(
        f"{words.counted(matrix.runs, 'run')}: measuring time {clock(matrix.measured_s * 1e9)}, total about "
        f"{clock(matrix.expected_s * 1e9)}"
    )


def _row(row: Row) -> tuple[str, ...]:
    return (
        row.what,
        ", ".join(row.loads),
        _limit(row.requirement),
        clock(row.each_s * 1e9),
        words.number(row.repeat),
        words.number(row.runs),
        clock(row.measured_s * 1e9),
    )


def _limit(requirement: Requirement | None) -> str:
    if requirement is None:
        return "–"
    rate = f", allowed misses {words.rate(requirement.miss_rate)}" if requirement.miss_rate else ""
    return f"{words.exact_time(requirement.limit_ns)}{rate}"


def _making(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of the commands that make runs."""
    for option in (json_option, store_option, as_granted_option, _booted_option, _board_option):
        command = option(command)
    return command


@command.command("run", example="fastenough campaign run quick")
@_plan_argument
@_making
def run_command(plan_path: Path, board: str | None, store_path: Path, **options: Any) -> int:
    """Make all runs of PLAN as a new campaign.

    Stores the runs and prints their ids.
    """
    return make_runs(_on_board(read_plan(plan_path), board), store_path, Begin.NEW, **options)


@command.command("resume", example="fastenough campaign resume")
@click.argument("plan_path", metavar="[PLAN]", required=False, type=PlanFile())
@_making
def resume_command(plan_path: Path | None, board: str | None, store_path: Path, **options: Any) -> int:
    """Resume a campaign.

    Resumes the newest campaign of PLAN.  Without PLAN, resumes the newest campaign that was made from a file, by the
    plan stored with its runs.  Makes the runs that are open, failed or interrupted; runs that are done or not
    applicable are not repeated.
    """
    plan = plan_of(existing_store(store_path))[1] if plan_path is None else read_plan(plan_path)
    return make_runs(_on_board(plan, board), store_path, Begin.RESUMED, **options)


@command.command("status", example="fastenough campaign status")
@click.argument("campaign", required=False)
@store_option
@json_option
def status_command(campaign: str | None, store_path: Path, as_json: bool) -> None:
    """Show the state of each run of a campaign.

    A run is done, not applicable, failed, interrupted, damaged, running or open.  CAMPAIGN is an id or the beginning of
    one; the default is the newest campaign.
    """
    store = existing_store(store_path)
    campaign_id = find_campaign(store, campaign)
    runs = planned_runs(store, campaign_id)
    count = Counter(run.state for run in runs)
    counted = {state: count[state] for state in STATES if count[state]}
    if as_json:
        print_json({"campaign": campaign_id, "states": counted, "runs": runs})
    else:
        _print_status(campaign_id, runs, ", ".join(f"{n:,} {state}" for state, n in counted.items()))
        if not all(run.settled for run in runs):
            print("resume with: fastenough campaign resume")


def _print_status(campaign: str, runs: Sequence[PlannedRun], counted: str) -> None:
    rows = [(f"{run.position}", run.state, run.title, run.run or "–", _reason(run)) for run in runs]
    columns = _STATUS if any(row[-1] for row in rows) else _STATUS[:-1]
    print_table(campaign, columns, [row[: len(columns)] for row in rows], texts=len(columns), spare=("recording",))
    print(f"{words.counted(len(runs), 'run')}: {counted}")


def _reason(run: PlannedRun) -> str:
    again = f"started {run.interrupted + 1} times" if run.interrupted else ""
    return "; ".join(filter(None, (run.reason, again)))
