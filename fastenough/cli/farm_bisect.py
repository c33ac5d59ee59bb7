# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm bisect``: the first configuration, of several in order, with which a board is too slow."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from fastenough import words
from fastenough.campaign import Plan, Stopping
from fastenough.cli.by_hand import ByHand
from fastenough.cli.live import Display
from fastenough.cli.loads_option import Loads, written
from fastenough.cli.making import check_plan
from fastenough.cli.output import print_json, print_table, say
from fastenough.cli.parameters import DURATION, FRACTION, DurationText, json_option
from fastenough.cli.privileges import boards_for
from fastenough.cli.requirement import requirement, requirement_options
from fastenough.cli.stores import store_option
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


def _told(step: BisectStep) -> str:
    return (
        f"{step.configuration}: {step.found} after {words.counted(step.measurements, 'measurement')} "
        f"({words.duration(step.measured_ns)}): {step.reasons[0]}"
    )


def _print(found: Bisection) -> None:
    print()
    if found.emulated:
        say("emulated: it says which configuration brought what is seen in emulation, and nothing of speed")
    say(
        f"{found.conclusion}; {words.counted(found.measurements, 'measurement')} of "
        f"{words.counted(len(found.steps), 'configuration')}, right at {words.percent(found.confidence)} confidence "
        "in all"
    )
    print_table(
        "",
        ("configuration", "is", "measured", "times", "runs"),
        [
            (
                step.configuration,
                step.found,
                words.duration(step.measured_ns),
                str(step.measurements),
                f"{step.runs[0]} … {step.runs[-1]}" if len(step.runs) > 1 else "".join(step.runs),
            )
            for step in found.steps
        ],
        texts=2,
    )
    settle = [
        f"{step.configuration}: {line}"
        for step in found.steps
        if step.configuration in found.undecided
        for line in step.settle
    ]
    for title, lines in (
        ("what would settle the undecided ones", settle),
        ("what differs between the last good one and the first bad one", found.differs),
    ):
        if lines:
            print(f"{title}:")
            for line in lines:
                say(f"- {line}", "  ")


def _required(required: Requirement | None, loads: tuple[str, ...]) -> RequirementCriterion:
    if required is None:
        raise BadInput(
            "a configuration is good or bad by a limit: give --limit, --miss-rate and --longest-burst; or "
            "beside the first one: give --slower-by"
        )
    return RequirementCriterion(required, loads)


def _criterion(
    required: Requirement | None, loads: tuple[str, ...], confidence: float, slower_by: str, quantile: float
) -> Criterion:
    """Raises BadInput where what was asked is none, or two."""
    if not slower_by:
        return _required(required, loads)
    if required is not None:
        raise BadInput("--limit stands by itself, and --slower-by looks at the first configuration; give one of them")
    if not 0 < quantile < 1:
        raise BadInput("--at must lie between 0% and 100%, as in 99%; no bound tells whether two maxima differ")
    try:
        return SlowdownCriterion(grown_by(slower_by, quantile, confidence))
    except ValueError as error:
        raise BadInput(f"--slower-by: {error}") from error


def _bisect(
    plan: Plan, question: BisectSetup, configurations: Sequence[str], store: Store
) -> Bisection | BisectInterrupted:
    with Display() as display:
        stopping = Stopping()
        opened, plan = boards_for(plan, False, display.tell)
        measure = measure_function(
            plan,
            store,
            display,
            opened=opened,
            ask=ByHand(display, stopping, None),
            stopping=stopping,
            tell=display.tell,
        )
        display.tell(
            f"{words.counted(len(configurations), 'configuration')}; at most "
            f"{most_judged(len(configurations))} of them are judged, each measured for at most "
            f"{words.duration(question.most_ns)}"
        )
        try:
            return bisect(configurations, measure, question, lambda step: display.tell(_told(step)))
        except BisectInterrupted as stopped:
            return stopped


@click.command()
@click.argument("configurations", nargs=-1, required=True)
@click.option("--board", required=True, help="The board, such as labgrid:PLACE or ssh://USER@HOST.")
@click.option(
    "--install",
    default="",
    metavar="COMMAND",
    help="Run on the board before it is rebooted; the word {} stands for the configuration.",
)
@click.option(
    "--kernel",
    default="",
    metavar="PATTERN",
    help="What uname -r says then, {} standing for the configuration; '*' where something else differs. "
    "Left out: kernel, kernel configuration or command line must be another one.",
)
@requirement_options
@click.option(
    "--slower-by",
    default="",
    metavar="DURATION|SHARE",
    help="In place of a limit: bad is what is slower than the first configuration by more than this, as in "
    "50us or 20%.",
)
@click.option(
    "--at", "quantile", type=FRACTION, default="99%", show_default=True, help="The quantile that --slower-by is for."
)
@click.option("--loads", type=Loads(), default="cpu", show_default=True, help="Loads to measure under.")
@click.option(
    "--interval", type=DurationText(), default="500us", show_default=True, help="Period of the measuring threads."
)
@click.option("--priority", type=click.IntRange(1, 99), default=98, show_default=True, help="Their FIFO priority.")
@click.option(
    "--duration",
    "first_ns",
    type=DURATION,
    default="1m",
    show_default=True,
    help="How long each configuration is measured at first, shared by the loads.",
)
@click.option(
    "--longest",
    "most_ns",
    type=DURATION,
    default="1h",
    show_default=True,
    help="How long each is measured at most, until it is decided.",
)
@store_option
@json_option
def command(
    *,
    configurations: tuple[str, ...],
    board: str,
    install: str,
    kernel: str,
    limit_ns: int | None,
    miss_rate: float,
    confidence: float,
    longest_burst: int | None,
    return_time_ns: int,
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
    """Find the first of CONFIGURATIONS with which a board is too slow: the first is good, the last is bad.

    Each step is judged by bounds, never by a maximum; what is not decided is measured longer. With --slower-by the
    first configuration is what the others are held against, and no verdict is needed.
    """
    required = requirement(limit_ns, miss_rate, confidence, longest_burst, return_time_ns)
    question = BisectSetup(_criterion(required, tuple(loads), confidence, slower_by, quantile), first_ns, most_ns)
    plan = assessment_plan(board, tuple(loads), first_ns, interval, priority, requirement=required)
    plan = with_install_command(
        replace(plan, name="bisect", loads=written(loads)), configurations, _words(install), kernel
    )
    check_plan(plan)
    found = _bisect(plan, question, configurations, Store(store_path))
    if isinstance(found, BisectInterrupted):
        return 128 + found.signal
    if as_json:
        print_json({"bisection": found, "measurements": found.measurements})
    else:
        _print(found)
    return ExitStatus.DONE if found.decided else ExitStatus.INCONCLUSIVE


def _words(command_text: str) -> list[str]:
    try:
        return shlex.split(command_text)
    except ValueError as error:
        raise BadInput(
            f"--install: {error}; write a command and its words, as in --install 'install-kernel {{}}'"
        ) from error
