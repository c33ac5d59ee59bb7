# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough run``: one probe under one or more loads, or a whole plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
from click.core import ParameterSource

from fastenough.board import AS_BOOTED, named_plainly
from fastenough.campaign import Entry, Plan, on_board, read_plan
from fastenough.campaign.plan import BREAK
from fastenough.cli.loads_option import Loads, written
from fastenough.cli.making import Begin, make_runs
from fastenough.cli.parameters import DURATION, Names, json_option
from fastenough.cli.plan_file import PlanFile
from fastenough.cli.privileges import as_granted_option
from fastenough.cli.probes import catalogue, probe_names, takes
from fastenough.cli.stores import store_option
from fastenough.implementations import DEFAULT, IMPLEMENTATIONS
from fastenough.loads import LOADS, Load
from fastenough.model import BadInput, FastenoughError

_GIVEN = ParameterSource.COMMANDLINE
MONITOR_HELP = "Record beside each run where in the kernel the time goes, and who delays it (docs/monitor.md)."
_NOT_BESIDE_PLAN = ("loads", "duration_ns", "configuration", "implementation", "break_ns")


def parse_parameters(words: tuple[str, ...]) -> dict[str, tuple[str | bool, ...]]:
    """``name=value`` and bare ``name``, each name once."""
    parameters: dict[str, tuple[str | bool, ...]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or name.startswith("-"):
            raise BadInput(
                f"'{word}' is no parameter; write name=value, as in interval=200us "
                "(names: fastenough list-probes PROBE)"
            )
        if name in parameters:
            raise BadInput(f"{name} is given twice; give each parameter once")
        parameters[name] = (value if equals else True,)
    return parameters


def breaking(parameters: dict[str, tuple[str | bool, ...]], break_ns: int | None) -> dict[str, tuple[str | bool, ...]]:
    """The parameters with the threshold of ``--break``."""
    if break_ns is None:
        return parameters
    if BREAK in parameters:
        raise BadInput(f"--break and {BREAK} are the same; give one of them")
    return parameters | {BREAK: (f"{break_ns}ns",)}


def _chosen(probe: str | None, plan_path: Path | None, entry: Entry, configuration: str, board: str) -> Plan:
    """What to run: the plan of a file, or one made of what the command says."""
    if (probe is None) == (plan_path is None):
        raise BadInput("name either a probe or a plan: fastenough run timer, or fastenough run --plan FILE")
    if plan_path is None:
        return Plan(entry.probe, (entry,), boards=(board,), configurations=(named_plainly(configuration),))
    context = click.get_current_context()
    beside = next(
        (name.removesuffix("_ns") for name in _NOT_BESIDE_PLAN if context.get_parameter_source(name) is _GIVEN), None
    )
    if beside is not None:
        raise BadInput(f"--{beside} cannot stand beside --plan: the plan says it (see docs/plans.md)")
    plan = read_plan(plan_path)
    return on_board(plan, board) if context.get_parameter_source("board") is _GIVEN or not plan.boards else plan


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
                formatter.write_dl(
                    [
                        (f"{each.name}=" if each.kind != "flag" else each.name, f"{takes(each)}: {each.help}")
                        for each in common
                    ]
                )
        with formatter.section("Loads"):
            formatter.write_text(", ".join(LOADS))


@click.command(cls=_Run)
@click.argument("probe", required=False, shell_complete=probe_names)
@click.argument("parameters", nargs=-1)
@click.option(
    "--plan", "plan_path", type=PlanFile(), help="A plan file, or the name of a plan that comes with fastenough."
)
@click.option(
    "--loads",
    type=Loads(),
    default="none",
    show_default=True,
    help="Comma-separated loads, or files of your own (docs/loads.md); one run under each.",
)
@click.option("--duration", "duration_ns", type=DURATION, default="10s", show_default=True, help="Of each run.")
@click.option("--board", default="local", show_default=True, help="Which board to measure.")
@click.option(
    "--configuration", default=AS_BOOTED, show_default=True, help="What to boot on it, such as rt on the board virtual."
)
@click.option(
    "--implementation",
    type=Names("implementation", list(IMPLEMENTATIONS)),
    default=DEFAULT,
    show_default=True,
    help="Who does the timed act; comma-separated, one run by each.",
)
@click.option("--monitor", is_flag=True, help=MONITOR_HELP)
@click.option(
    "--break",
    "break_ns",
    type=DURATION,
    metavar="DURATION",
    help="End the run at the first value above, and keep a trace of what the kernel did before it.",
)
@click.option("--resume", is_flag=True, help="Go on with an unfinished campaign of the same plan.")
@as_granted_option
@store_option
@json_option
def command(
    *,
    probe: str | None,
    parameters: tuple[str, ...],
    plan_path: Path | None,
    loads: dict[str, Load],
    duration_ns: int,
    board: str,
    configuration: str,
    implementation: list[str],
    monitor: bool,
    break_ns: int | None,
    resume: bool,
    as_granted: bool,
    store_path: Path,
    as_json: bool,
) -> int:
    """Run PROBE with PARAMETERS such as interval=200us priority=98, or a whole --plan."""
    given = breaking(parse_parameters(parameters), break_ns)
    entry = Entry(probe or "", tuple(loads), duration_ns / 1e9, given, implementations=tuple(implementation))
    plan = _chosen(probe, plan_path, entry, configuration, board)
    plan = replace(plan, monitor=plan.monitor or monitor, loads={**plan.loads, **written(loads)})
    begin = Begin.EITHER if resume else Begin.NEW
    return make_runs(plan, store_path, begin, as_granted=as_granted, as_json=as_json)
