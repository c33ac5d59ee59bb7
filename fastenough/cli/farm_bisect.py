# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm bisect``: the first of ordered configurations that makes a board too slow."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from fastenough import words
from fastenough.campaign import Plan, StopRequest
from fastenough.campaign.plan_check import check_plan
from fastenough.cli.commands import Command, Option
from fastenough.cli.options import (
    DURATION,
    FRACTION,
    DurationText,
    RequirementOptions,
    json_option,
    requirement_options,
    store_option,
)
from fastenough.cli.output import print_json, print_table, say, say_list
from fastenough.cli.plan_runs import Loads, ManualBoot, loads_of_files
from fastenough.cli.privileges import boards_for
from fastenough.cli.progress import Display
from fastenough.farm.bisect import (
    BisectInterrupted,
    Bisection,
    BisectSetup,
    BisectStep,
    bisect,
    measure_function,
    most_judged,
    with_install_command,
)
from fastenough.farm.criteria import Criterion, RequirementCriterion, SlowdownCriterion
from fastenough.jobs.assess import assessment_plan
from fastenough.jobs.limits import grown_by
from fastenough.loads import Load
from fastenough.model import BadInput, ExitStatus, Requirement
from fastenough.store import Store


def _step_line(step: BisectStep) -> str:
    return (
        f"{step.configuration}: {step.rating} after {words.counted(step.measurements, 'measurement')} "
        f"({words.duration(step.measured_ns)}): {step.reasons[0]}"
    )


def _print(bisection: Bisection) -> None:
    print()
    if bisection.emulated:
        say("caveat: emulated: timing is not meaningful")
    say(
        f"{bisection.conclusion}; {words.counted(bisection.measurements, 'measurement')} of "
        f"{words.counted(len(bisection.steps), 'configuration')}, overall confidence "
        f"{words.percent(bisection.confidence)}"
    )
    print_table(
        "",
        ("configuration", "result", "time", "measurements", "runs"),
        [
            (
                step.configuration,
                step.rating,
                words.duration(step.measured_ns),
                str(step.measurements),
                f"{step.runs[0]} … {step.runs[-1]}" if len(step.runs) > 1 else "".join(step.runs),
            )
            for step in bisection.steps
        ],
        texts=2,
    )
    settle = [
        f"{step.configuration}: {line}"
        for step in bisection.steps
        if step.configuration in bisection.undecided
        for line in step.next_steps
    ]
    say_list("Next steps for undecided configurations", settle)
    say_list("Differences between the last good and the first bad configuration", bisection.differences)


def _requirement_criterion(required: Requirement | None, loads: tuple[str, ...]) -> RequirementCriterion:
    if required is None:
        raise BadInput(
            "no criterion: give --limit (with --miss-rate and --longest-burst), or --slower-by to compare with the "
            "first configuration"
        )
    return RequirementCriterion(required, loads)


def _criterion(
    required: Requirement | None, loads: tuple[str, ...], confidence: float, slower_by: str, quantile: float
) -> Criterion:
    """Limit or comparison with the first; raises BadInput unless exactly one is given."""
    if not slower_by:
        return _requirement_criterion(required, loads)
    if required is not None:
        raise BadInput("--limit and --slower-by exclude each other; give one of them")
    if not 0 < quantile < 1:
        raise BadInput(
            f"--at {quantile:.0%} is not between 0% and 100%; use for example 99% (no bound exists for maxima)"
        )
    try:
        return SlowdownCriterion(grown_by(slower_by, quantile, confidence))
    except ValueError as error:
        raise BadInput(f"--slower-by: {error}") from error


def _bisect(
    plan: Plan, question: BisectSetup, configurations: Sequence[str], store: Store
) -> Bisection | BisectInterrupted:
    with Display() as display:
        stopping = StopRequest()
        opened, plan = boards_for(plan, False, display.tell)
        measure = measure_function(
            plan,
            store,
            display,
            opened=opened,
            ask=ManualBoot(display, stopping, None),
            stopping=stopping,
            tell=display.tell,
        )
        display.tell(
            f"{words.counted(len(configurations), 'configuration')}; at most "
            f"{most_judged(len(configurations))} of them are judged, each measured for at most "
            f"{words.duration(question.most_ns)}"
        )
        try:
            return bisect(configurations, measure, question, lambda step: display.tell(_step_line(step)))
        except BisectInterrupted as stopped:
            return stopped


@click.command(
    cls=Command,
    example="fastenough farm bisect --board labgrid:rpi --install 'install-kernel {}' --limit 100us "
    "--miss-rate 1e-6 --longest-burst 10 6.6 6.12",
)
@click.argument("configurations", nargs=-1, required=True)
@click.option(
    "--board", required=True, metavar="BOARD", help="Board to measure, such as labgrid:PLACE or ssh://USER@HOST."
)
@click.option(
    "--install",
    default="",
    metavar="COMMAND",
    help="Command to run on the board before each reboot; {} is replaced by the configuration.",
)
@click.option(
    "--kernel",
    default="",
    metavar="PATTERN",
    help="Expected uname -r after the reboot, with {} for the configuration; '*' for any  "
    "[default: kernel, kernel configuration or command line must change]",
)
@requirement_options
@click.option(
    "--slower-by",
    default="",
    metavar="DURATION|SHARE",
    help="Instead of --limit: a configuration is bad if it is slower than the first by more than this, as in "
    "50us or 20%.",
)
@click.option(
    "--at", "quantile", type=FRACTION, default="99%", show_default=True, help="Quantile that --slower-by compares."
)
@click.option(
    "--load",
    "loads",
    cls=Option,
    former_names=["--loads"],
    type=Loads(),
    default="cpu",
    show_default=True,
    metavar="NAMES",
    help="Comma-separated loads to measure under, or load files (docs/loads.md).",
)
@click.option(
    "--interval", type=DurationText(), default="500us", show_default=True, help="Period of the measuring threads."
)
@click.option(
    "--priority",
    type=click.IntRange(1, 99),
    default=98,
    show_default=True,
    help="SCHED_FIFO priority of the measuring threads.",
)
@click.option(
    "--duration",
    "first_ns",
    type=DURATION,
    default="1m",
    show_default=True,
    help="First measuring time of each configuration, divided among the loads.",
)
@click.option(
    "--longest",
    "most_ns",
    type=DURATION,
    default="1h",
    show_default=True,
    help="Longest measuring time of each configuration.",
)
@store_option
@json_option
def command(
    *,
    configurations: tuple[str, ...],
    board: str,
    install: str,
    kernel: str,
    limit_options: RequirementOptions,
    slower_by: str,
    quantile: float,
    loads: dict[str, Load],
    interval: str,
    priority: int,
    first_ns: int,
    most_ns: int,
    store_path: Path,
    as_json: bool,
) -> int:
    """Find the first configuration that makes a board too slow.

    The first of CONFIGURATIONS must be good, the last bad.  Each step is judged by confidence bounds, not by maxima;
    undecided configurations are measured longer.  --limit requires a --miss-rate above 0 and --longest-burst.  With
    --slower-by each configuration is compared with the first instead.
    """
    required = limit_options.requirement()
    question = BisectSetup(
        _criterion(required, tuple(loads), limit_options.confidence, slower_by, quantile), first_ns, most_ns
    )
    plan = assessment_plan(board, tuple(loads), first_ns, interval, priority, requirement=required)
    plan = with_install_command(
        replace(plan, name="bisect", loads=loads_of_files(loads)), configurations, _words(install), kernel
    )
    check_plan(plan)
    bisection = _bisect(plan, question, configurations, Store(store_path))
    if isinstance(bisection, BisectInterrupted):
        return 128 + bisection.signal
    if as_json:
        print_json({"bisection": bisection, "measurements": bisection.measurements})
    else:
        _print(bisection)
    return ExitStatus.DONE if bisection.decided else ExitStatus.INCONCLUSIVE


def _words(command_text: str) -> list[str]:
    try:
        return shlex.split(command_text)
    except ValueError as error:
        raise BadInput(f"--install: {error}; write a command, as in --install 'install-kernel {{}}'") from error
