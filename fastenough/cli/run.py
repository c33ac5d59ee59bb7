# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough run``: one probe under one or more loads, or a whole plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
from click.core import ParameterSource

from fastenough.board import AS_BOOTED, valid_configuration_name
from fastenough.campaign import Entry, Plan, on_board, read_plan
from fastenough.campaign.plan import BREAK
from fastenough.cli.commands import Command, Option
from fastenough.cli.options import DURATION, Names, json_option, store_option
from fastenough.cli.plan_runs import Begin, Loads, PlanFile, loads_of_files, make_runs
from fastenough.cli.privileges import as_granted_option
from fastenough.cli.probes import probe_names, takes
from fastenough.implementations import DEFAULT, IMPLEMENTATIONS
from fastenough.implementations.catalogue import local_catalogue
from fastenough.loads import LOADS, Load
from fastenough.model import BadInput, FastenoughError

_GIVEN = ParameterSource.COMMANDLINE
MONITOR_HELP = "Also record where in the kernel each wake-up spends its time, and its cause (docs/monitor.md)."
_NOT_BESIDE_PLAN = {
    "loads": "load",
    "duration_ns": "duration",
    "configuration": "configuration",
    "implementation": "implementation",
    "break_ns": "break",
    "phases": "phases",
}


def parse_parameters(arguments: tuple[str, ...]) -> dict[str, tuple[str | bool, ...]]:
    """``name=value`` and bare ``name``, each name once."""
    parameters: dict[str, tuple[str | bool, ...]] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not name or name.startswith("-"):
            raise BadInput(
                f"'{argument}' is not a parameter; write name=value, as in interval=200us "
                "(fastenough list-probes PROBE lists the names)"
            )
        if name in parameters:
            raise BadInput(f"parameter {name} is given twice; give it once")
        parameters[name] = (value if equals else True,)
    return parameters


def breaking(parameters: dict[str, tuple[str | bool, ...]], break_ns: int | None) -> dict[str, tuple[str | bool, ...]]:
    """The parameters, with the threshold of ``--break``."""
    if break_ns is None:
        return parameters
    if BREAK in parameters:
        raise BadInput(f"--break and {BREAK} have the same meaning; give only one of them")
    return parameters | {BREAK: (f"{break_ns}ns",)}


def _choose_plan(probe: str | None, plan_path: Path | None, entry: Entry, configuration: str, board: str) -> Plan:
    """The plan of a file, or a plan made from the arguments."""
    if (probe is None) == (plan_path is None):
        raise BadInput("give either a probe or a plan: fastenough run timer, or fastenough run --plan FILE")
    if plan_path is None:
        return Plan(entry.probe, (entry,), boards=(board,), configurations=(valid_configuration_name(configuration),))
    context = click.get_current_context()
    beside = next(
        (option for name, option in _NOT_BESIDE_PLAN.items() if context.get_parameter_source(name) is _GIVEN), None
    )
    if beside is not None:
        raise BadInput(f"--{beside} cannot be used with --plan; state it in the plan (docs/plans.md)")
    plan = read_plan(plan_path)
    return on_board(plan, board) if context.get_parameter_source("board") is _GIVEN or not plan.boards else plan


class _RunCommand(Command):
    """A command whose help lists the probes and loads of this installation."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        try:
            known = local_catalogue()
        except FastenoughError as reason:
            known = {}
            formatter.write(f"\nProbes: {reason}\n")
        if known:
            with formatter.section("Probes"):
                formatter.write_dl([(probe.name, probe.summary) for probe in known.values()])
            with formatter.section("Parameters of every probe (others: fastenough list-probes PROBE)"):
                common = next(iter(known.values())).common
                formatter.write_dl(
                    [
                        (
                            f"{parameter.name}=" if parameter.kind != "flag" else parameter.name,
                            f"{takes(parameter)}: {parameter.help}",
                        )
                        for parameter in common
                    ]
                )
        with formatter.section("Loads"):
            formatter.write_text(", ".join(LOADS))
        super().format_epilog(ctx, formatter)


@click.command(cls=_RunCommand, example="fastenough run timer interval=200us --load none,full")
@click.argument("probe", required=False, shell_complete=probe_names)
@click.argument("parameters", nargs=-1)
@click.option("--plan", "plan_path", type=PlanFile(), help="Plan file, or name of a plan that comes with fastenough.")
@click.option(
    "--load",
    "loads",
    cls=Option,
    former_names=["--loads"],
    type=Loads(),
    metavar="NAMES",
    default="none",
    show_default=True,
    help="Comma-separated loads, or load files (docs/loads.md); one run under each.",
)
@click.option("--duration", "duration_ns", type=DURATION, default="10s", show_default=True, help="Length of each run.")
@click.option(
    "--phases",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="On a deterministic board: number of runs under each load, each beginning at another phase.",
)
@click.option("--board", default="local", show_default=True, metavar="BOARD", help="Board to measure (docs/boards.md).")
@click.option(
    "--configuration",
    default=AS_BOOTED,
    show_default=True,
    metavar="NAME",
    help="Configuration to boot on the board, such as rt on the board virtual.",
)
@click.option(
    "--implementation",
    type=Names("implementation", list(IMPLEMENTATIONS)),
    default=DEFAULT,
    show_default=True,
    help="Where the measured task runs; comma-separated, one run for each.",
)
@click.option("--monitor", is_flag=True, help=MONITOR_HELP)
@click.option(
    "--break",
    "break_ns",
    type=DURATION,
    metavar="DURATION",
    help="Stop at the first latency above DURATION, and store a kernel trace of the time before it.",
)
@click.option("--resume", is_flag=True, help="Resume the latest interrupted campaign of the same plan.")
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
    phases: int,
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
    """Run one probe, or the runs of a plan.

    PROBE is a name of list-probes, PARAMETERS are words such as interval=200us priority=98.  Makes one run for each
    load and implementation, or all runs of --plan, and stores them.
    """
    values = breaking(parse_parameters(parameters), break_ns)
    entry = Entry(
        probe or "", tuple(loads), duration_ns / 1e9, values, implementations=tuple(implementation), phases=phases
    )
    plan = _choose_plan(probe, plan_path, entry, configuration, board)
    plan = replace(plan, monitor=plan.monitor or monitor, loads={**plan.loads, **loads_of_files(loads)})
    begin = Begin.EITHER if resume else Begin.NEW
    return make_runs(plan, store_path, begin, as_granted=as_granted, as_json=as_json)
