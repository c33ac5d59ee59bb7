# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough calibrate``: inject known latencies and check that the probe detects them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import count
from pathlib import Path

import click

from fastenough.analysis.injections import InjectionResult
from fastenough.board import AS_BOOTED, Board, open_board
from fastenough.cli.calibrate_monitor import calibrate_stations, station_plan
from fastenough.cli.commands import Command
from fastenough.cli.options import json_option
from fastenough.cli.output import micros, print_json, print_table
from fastenough.cli.progress import Work
from fastenough.implementations import DEFAULT, user_space_implementations
from fastenough.jobs.calibrate import Output, WitnessResult, calibrate
from fastenough.jobs.injectors import InjectionPlan
from fastenough.model import BadInput, ExitStatus
from fastenough.units import parse_duration_ns

_LOCAL_SIZES = "200us,1ms,3ms,10ms"
_EMULATED_SIZES = "20ms,40ms,80ms"
"""Emulation adds milliseconds of latency."""
_EMULATED_PERIOD_NS = 10_000_000
_EMULATED_LEAD_NS = 5_000_000
_EACH = 10
_OVERHEAD_S = 2.0
"""Time of a trial beyond the injections."""
_IN_USER_SPACE = tuple(user_space_implementations())


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(parse_duration_ns(size) for size in text.split(","))
    except ValueError as error:
        raise BadInput(f"--sizes: {error}") from error


def _row(result: InjectionResult) -> tuple[str, ...]:
    return (
        micros(result.requested_ns),
        str(result.injected),
        str(result.too_late),
        str(result.detected),
        micros(result.injected_median_ns),
        micros(result.measured_median_ns),
        micros(result.excess_median_ns),
    )


def _show(calibration: WitnessResult) -> None:
    title = f"{calibration.injector} → {calibration.witness}"
    if not calibration.applicable:
        click.echo(f"{title}: not applicable: {calibration.reason}\n")
        return
    print_table(
        f"{title}: counts, and medians in µs",
        ("size", "injected", "too late", "detected", "injected µs", "measured µs", "difference µs"),
        map(_row, calibration.rows),
        texts=0,
    )
    for row in calibration.rows:
        for reason in row.reasons:
            click.echo(f"not detected: {reason}")
    click.echo(
        "all detected, in order\n"
        if calibration.passed
        else f"inconclusive: {calibration.shortfall}\n"
        if calibration.shortfall
        else "MISSED: not every injected latency was detected\n"
    )


def _with_progress(trials: Iterator[WitnessResult], plan: InjectionPlan) -> Iterator[WitnessResult]:
    """The trials, with the remaining time shown during each."""
    for number in count(1):
        with Work(f"trial {number}: injecting and measuring", plan.seconds + _OVERHEAD_S):
            trial = next(trials, None)
        if trial is None:
            return
        yield trial


def _plain(calibration: WitnessResult) -> dict[str, object]:
    return asdict(calibration) | {
        "passed": calibration.passed if calibration.applicable else None,
        "shortfall": calibration.shortfall,
    }


def _output(text: str | None) -> Output | None:
    if text is None:
        return None
    chip, _, line = text.rpartition("/")
    if not chip or not line.isdecimal():
        raise BadInput(f"--pin: {text!r} is not a line of a GPIO chip; write CHIP/LINE, such as gpiochip0/27")
    return chip, int(line)


def _to_boot(board: Board, emulated: bool) -> str:
    """The configuration to boot: a separate guest if the board has guests, so that injections disturb nothing else."""
    _, *guests = board.configurations()
    return guests[0] if emulated else AS_BOOTED


@click.command(cls=Command, example="fastenough calibrate --sizes 200us,1ms")
@click.option(
    "--board", "name", default="local", show_default=True, metavar="BOARD", help="Board to measure, such as virtual:rt."
)
@click.option(
    "--configuration",
    metavar="NAME",
    help="Configuration to boot  [default: as booted; on the board virtual, a separate guest]",
)
@click.option(
    "--gauge",
    metavar="PORT",
    help="Port or serial number of the gauge that watches a pin of the board  "
    "[default: in a separate guest, the simulated gauge]",
)
@click.option(
    "--pin",
    metavar="CHIP/LINE",
    help="The board's output that the gauge watches  [default: wiring of the virtual board]",
)
@click.option(
    "--sizes",
    metavar="DURATIONS",
    help=f"Latencies to inject, ascending  [default: {_LOCAL_SIZES}; {_EMULATED_SIZES} on a virtual board]",
)
@click.option(
    "--each",
    "per_size",
    type=click.IntRange(1, 1000),
    help=f"Number of injections of each size  [default: {_EACH}; with --monitor 200, on a virtual board 20]",
)
@click.option("--cpu", type=click.IntRange(0), default=0, show_default=True, help="CPU to delay.")
@click.option(
    "--implementation",
    default=DEFAULT,
    show_default=True,
    help=f"Where the delayed task runs: {', '.join(_IN_USER_SPACE[:-1])} or {_IN_USER_SPACE[-1]}.",
)
@click.option(
    "--monitor",
    "stations",
    is_flag=True,
    help="Delay wake-ups within each station of the kernel, and check that the monitor detects the delays there.",
)
@click.option(
    "--figure",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --monitor: write a figure of the result to this file, .svg or .png.",
)
@json_option
def command(
    *,
    name: str,
    configuration: str | None,
    gauge: str | None,
    pin: str | None,
    sizes: str | None,
    per_size: int | None,
    cpu: int,
    implementation: str,
    stations: bool,
    figure: Path | None,
    as_json: bool,
) -> ExitStatus:
    """Inject known latencies and check they are detected.

    Delays a task by known times and checks that the probe, and a gauge or the monitor, detect each delay.  The exit
    status is 4 if one was missed, 3 if the test is incomplete (docs/calibrate.md).
    """
    board, output, emulated = open_board(name), _output(pin), name.partition(":")[0] == "virtual"
    if stations and implementation != DEFAULT:
        raise BadInput("--monitor observes wake-ups by Linux; omit --implementation")
    if stations:
        sizes_ns = None if sizes is None else _sizes(sizes)
        return calibrate_stations(
            board,
            configuration or _to_boot(board, emulated),
            station_plan(sizes_ns, per_size, cpu, emulated),
            figure,
            as_json,
        )
    if figure is not None:
        raise BadInput("--figure requires --monitor")
    per_size = per_size or _EACH
    plan = (
        InjectionPlan(_sizes(sizes or _EMULATED_SIZES), per_size, cpu, _EMULATED_PERIOD_NS, _EMULATED_LEAD_NS)
        if emulated
        else InjectionPlan(_sizes(sizes or _LOCAL_SIZES), per_size, cpu)
    )
    trials = calibrate(
        board, configuration or _to_boot(board, emulated), plan, gauge, output, implementation=implementation
    )
    done = []
    for calibration in _with_progress(trials, plan):
        done.append(calibration)
        if not as_json:
            _show(calibration)
    if as_json:
        print_json({"board": name, "calibrations": [_plain(calibration) for calibration in done]})
    if any(calibration.missed for calibration in done):
        return ExitStatus.BROKEN
    return ExitStatus.INCONCLUSIVE if any(calibration.shortfall for calibration in done) else ExitStatus.DONE
