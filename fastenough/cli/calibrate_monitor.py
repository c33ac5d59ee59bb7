# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough calibrate --monitor``: delay each station and check that the monitor detects the delays there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fastenough import words
from fastenough.analysis.station_delays import STATIONS, StationAgreement, StationResult
from fastenough.board import Board
from fastenough.cli.output import micros, print_json, print_table, replace_file
from fastenough.cli.progress import Work
from fastenough.jobs.calibrate_monitor import AGREEMENT_S, StationTrial, calibrate_monitor
from fastenough.jobs.injectors import InjectionPlan
from fastenough.model import BadInput, ExitStatus

if TYPE_CHECKING:
    from fastenough.report.calibration import Panel

_SIZES_NS, _EACH, _PERIOD_NS, _LEAD_NS = (200_000, 500_000, 1_000_000), 200, 2_000_000, 300_000
_EMULATED = InjectionPlan((10_000_000, 30_000_000), 20, period_ns=50_000_000, lead_ns=10_000_000)
"""Emulation adds milliseconds of latency."""
_OVERHEAD_S = 6.0
"""Time of a trial beyond the injections."""
_NAMED = 3
"""Causes printed for each size."""
_FIGURE_SUFFIXES = {".svg", ".png"}


def station_plan(sizes_ns: tuple[int, ...] | None, per_size: int | None, cpu: int, emulated: bool) -> InjectionPlan:
    """The injections at each station, with defaults."""
    if emulated:
        return replace(
            _EMULATED, sizes_ns=sizes_ns or _EMULATED.sizes_ns, per_size=per_size or _EMULATED.per_size, cpu=cpu
        )
    return InjectionPlan(sizes_ns or _SIZES_NS, per_size or _EACH, cpu, _PERIOD_NS, _LEAD_NS)


def calibrate_stations(
    board: Board, configuration: str, plan: InjectionPlan, figure: Path | None, as_json: bool
) -> ExitStatus:
    """Run and print the trial of each station, then the agreement of task and monitor."""
    if figure is not None and figure.suffix not in _FIGURE_SUFFIXES:
        raise BadInput(f"--figure {figure}: use a name that ends in {' or '.join(sorted(_FIGURE_SUFFIXES))}")
    done: list[StationTrial] = []
    agreed: list[StationAgreement] = []
    for trial in _with_progress(calibrate_monitor(board, configuration, plan), plan):
        if isinstance(trial, StationTrial):
            done.append(trial)
        else:
            agreed.append(trial)
        if not as_json:
            _show(trial)
    if as_json:
        print_json(
            {
                "board": board.name,
                "stations": list(map(_plain, done)),
                "agreement": [asdict(trial) | {"unexplained": trial.unexplained} for trial in agreed],
            }
        )
    if figure is not None:
        _draw(done, figure)
    return _status(done, agreed)


def _with_progress(
    trials: Iterator[StationTrial | StationAgreement], plan: InjectionPlan
) -> Iterator[StationTrial | StationAgreement]:
    """The trials, with the remaining time shown during each."""
    doing = [*(f"delaying {station}" for station in STATIONS), "comparing task and monitor"]
    for position, what in enumerate(doing):
        seconds = plan.seconds if position < len(STATIONS) else AGREEMENT_S
        with Work(what, seconds + _OVERHEAD_S):
            trial = next(trials, None)
        if trial is None:
            return
        yield trial


def _status(done: list[StationTrial], agreed: list[StationAgreement]) -> ExitStatus:
    if any(trial.missed for trial in done) or not all(agreement.later for agreement in agreed):
        return ExitStatus.BROKEN
    if not any(trial.applicable for trial in done):
        return ExitStatus.NOT_APPLICABLE
    unclear = any(trial.shortfall for trial in done) or any(agreement.unexplained for agreement in agreed)
    return ExitStatus.INCONCLUSIVE if unclear else ExitStatus.DONE


def _row(row: StationResult) -> tuple[str, ...]:
    return (
        micros(row.requested_ns),
        str(row.injected),
        str(row.too_late),
        str(row.unrecorded),
        str(row.detected),
        str(row.at_other_station),
        micros(row.injected_median_ns),
        micros(row.undisturbed_median_ns),
        micros(row.station_median_ns),
        micros(row.excess_ns),
        micros(row.tolerated_ns),
    )


def _show(trial: StationTrial | StationAgreement) -> None:
    if isinstance(trial, StationAgreement):
        _show_agreement(trial)
        return
    if not trial.applicable:
        click.echo(f"{trial.station}: not applicable: {trial.reason}\n")
        return
    print_table(
        f"{trial.station}, CPU {trial.cpu}, injected by {trial.injector}: counts, and medians in µs",
        (
            "size",
            "injected",
            "too late",
            "unrecorded",
            "detected",
            "other station",
            "injected µs",
            "undisturbed",
            "measured µs",
            "excess",
            "tolerated",
        ),
        map(_row, trial.rows),
        texts=0,
    )
    for row in trial.rows:
        named = ", ".join(f"{who} {times} times" for who, times in row.culprits[:_NAMED])
        click.echo(f"causes named for {micros(row.requested_ns)} µs: {named or 'none'}")
    click.echo(
        "all detected at this station, with the injected size\n"
        if trial.passed
        else f"inconclusive: {trial.shortfall}\n"
        if trial.shortfall
        else "MISSED: not every injected delay was detected at its station\n"
    )


def _show_agreement(agreement: StationAgreement) -> None:
    counted = (
        ", ".join(
            f"{words.number(count)} {reason.removeprefix('monitor_').replace('_', ' ')}"
            for reason, count in agreement.unrecorded_by_reason
        )
        or "none lost"
    )
    click.echo(
        f"Samples of the task matched with the monitor by their exact expiry: {words.number(agreement.matched)} of "
        f"{words.number(agreement.activations)} ({words.percent(math.floor(agreement.share * 1e4) / 1e4)} of those "
        f"with a sleeping task); {words.number(agreement.awake)} expired while the task was awake; {counted}; "
        f"{words.number(agreement.unexplained)} unexplained."
    )
    if agreement.remainder_ns:
        least, median, high, most = map(micros, agreement.remainder_ns)
        click.echo(
            f"Latency of the task minus the sum of its stations, in µs: minimum {least}, median {median}, "
            f"99 % {high}, maximum {most}."
        )


def _plain(trial: StationTrial) -> dict[str, object]:
    rows = [asdict(row) | {"excess_ns": row.excess_ns, "tolerated_ns": row.tolerated_ns} for row in trial.rows]
    return {
        "station": trial.station,
        "cpu": trial.cpu,
        "injector": trial.injector,
        "rows": rows,
        "reason": trial.reason,
        "passed": trial.passed if trial.applicable else None,
        "shortfall": trial.shortfall,
        "unrecorded_by_reason": trial.unrecorded_by_reason,
    }


def _panel(trial: StationTrial) -> Panel:
    from fastenough.report.calibration import Panel  # noqa: PLC0415 - matplotlib takes seconds

    assert trial.quiet is not None and trial.delayed is not None
    here = trial.delayed.by_station[trial.station]
    return Panel(
        trial.station,
        tuple(row.requested_ns for row in trial.rows),
        trial.quiet.by_station[trial.station],
        here,
        trial.delayed.sum_ns - here,
    )


def _draw(done: list[StationTrial], place: Path) -> None:
    from fastenough.report.calibration import calibration_picture  # noqa: PLC0415

    panels = [_panel(trial) for trial in done if trial.applicable]
    if not panels:
        return
    picture = calibration_picture(panels)
    replace_file(place, picture.png if place.suffix == ".png" else picture.svg.encode())
    click.echo(f"figure: {place}", err=True)
