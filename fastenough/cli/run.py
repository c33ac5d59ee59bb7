# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough run``: one probe under one or more loads, or a whole plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from fastenough.campaign import Campaign, Entry, Plan, read_plan, run_campaign
from fastenough.campaign.catalogue import check_entry, in_parameters
from fastenough.campaign.runner import ProbeRefused
from fastenough.cli.live import Display
from fastenough.cli.output import print_json
from fastenough.cli.parameters import DURATION, Names, json_option
from fastenough.cli.privileges import as_granted_option, board_for
from fastenough.cli.probes import catalogue, takes
from fastenough.cli.stores import store_option
from fastenough.experiment.plan import is_experiment
from fastenough.experiment.runner import run_experiment
from fastenough.loads import LOADS
from fastenough.model import BadInput, ExitStatus, FastenoughError, NotApplicable, Outcome
from fastenough.store import Store

OUTCOME_STATUS = {
    Outcome.COMPLETED: ExitStatus.DONE,
    Outcome.NOT_APPLICABLE: ExitStatus.NOT_APPLICABLE,
    Outcome.FAILED: ExitStatus.BROKEN,
    Outcome.ABORTED: ExitStatus.BROKEN,
}


def parse_parameters(words: tuple[str, ...]) -> dict[str, tuple[str | bool, ...]]:
    """``name=value`` and bare ``name``, each name once."""
    parameters: dict[str, tuple[str | bool, ...]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or name.startswith("-"):
            raise BadInput(f"'{word}' is no parameter; write name=value, as in interval=200us "
                           "(names: fastenough list-probes PROBE)")
        if name in parameters:
            raise BadInput(f"{name} is given twice; give each parameter once")
        parameters[name] = (value if equals else True,)
    return parameters


def _chosen(
    probe: str | None, words: tuple[str, ...], plan_path: Path | None, entry: Callable[..., Entry],
) -> Plan | Path:
    """What to run: a plan, or the file of an experiment, which names its own board."""
    if (probe is None) == (plan_path is None):
        raise BadInput("name either a probe or a plan: fastenough run timer, or fastenough run --plan FILE")
    if plan_path is not None:
        return plan_path if is_experiment(plan_path) else read_plan(plan_path)
    assert probe is not None
    return Plan(probe, (entry(probe, parameters=parse_parameters(words)),))


def _check(plan: Plan, board: str, plan_path: Path | None) -> None:
    """What the probe would refuse is refused before anything is done; a far board's probe is its own judge."""
    try:
        known = catalogue()
    except NotApplicable:
        if board == "local":
            raise
        return
    where = f"{plan_path}: " if plan_path else ""
    for entry in plan.entries:
        try:
            check_entry(entry, known)
        except BadInput as error:
            raise BadInput(f"{where}{error}") from error


class _Run(click.Command):
    """Its help names the probes and loads as they are."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        try:
            known = catalogue()
        except FastenoughError as reason:
            known = {}
            formatter.write(f"\nProbes: {reason}\n")
        if known:
            with formatter.section("Probes"):
                formatter.write_dl([(probe.name, probe.summary) for probe in known.values()])
            with formatter.section("Parameters of every probe (each probe's own: fastenough list-probes PROBE)"):
                common = next(iter(known.values())).common
                formatter.write_dl([(f"{each.name}=" if each.kind != "flag" else each.name,
                                     f"{takes(each)}: {each.help}") for each in common])
        with formatter.section("Loads"):
            formatter.write_text(", ".join(LOADS))


def worst_status(store: Store, campaign: Campaign) -> int:
    """The status that says how the campaign's runs ended: by a signal, broken, not applicable, done."""
    if campaign.signal:
        return 128 + campaign.signal
    if campaign.stopped:
        return ExitStatus.BROKEN
    outcomes = [store.load(run).outcome for run in campaign.runs]
    statuses = {ExitStatus.BROKEN if outcome is None else OUTCOME_STATUS[outcome] for outcome in outcomes}
    if ExitStatus.BROKEN in statuses:
        return ExitStatus.BROKEN
    return ExitStatus.DONE if ExitStatus.DONE in statuses else ExitStatus.NOT_APPLICABLE


@click.command(cls=_Run)
@click.argument("probe", required=False)
@click.argument("parameters", nargs=-1)
@click.option("--plan", "plan_path", type=click.Path(path_type=Path, dir_okay=False),
              help="A plan file (see campaigns/).")
@click.option("--loads", type=Names("load", list(LOADS)), default="none", show_default=True,
              help="Comma-separated loads; one run under each.")
@click.option("--duration", "duration_ns", type=DURATION, default="10s", show_default=True, help="Of each run.")
@click.option("--board", default="local", show_default=True, help="Which board to measure.")
@click.option("--resume", is_flag=True, help="Go on with an unfinished campaign of the same plan.")
@as_granted_option
@store_option
@json_option
def command(
    *, probe: str | None, parameters: tuple[str, ...], plan_path: Path | None, loads: list[str], duration_ns: int,
    board: str, resume: bool, as_granted: bool, store_path: Path, as_json: bool,
) -> int:
    """Run PROBE with PARAMETERS such as interval=200us priority=98, or a whole --plan."""
    entry = partial(Entry, loads=tuple(loads), duration_s=duration_ns / 1e9)
    chosen = _chosen(probe, parameters, plan_path, entry)
    if isinstance(chosen, Plan):
        _check(chosen, board, plan_path)
    store = Store(store_path)
    with Display() as display:
        if isinstance(chosen, Path):
            campaign = run_experiment(chosen, store, display, tell=display.tell)
        else:
            try:
                link, chosen = board_for(board, chosen, as_granted, display.tell)
                campaign = run_campaign(link, chosen, store, display, resume=resume, tell=display.tell)
            except ProbeRefused as error:
                raise BadInput(in_parameters(str(error))) from error
    if as_json:
        print_json({"campaign": campaign.id, "stopped": campaign.stopped,
                    "runs": [run for run in store.runs() if run.id in campaign.runs]})
    else:
        print("\n".join(campaign.runs))
        print(f"see: fastenough show {campaign.runs[-1]}" if campaign.runs else "nothing was run")
    return worst_status(store, campaign)
