# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough plan-test``: how long to measure until a verdict is likely, before anything is measured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from fastenough import words
from fastenough.analysis.power import NO_PASS_WITHOUT_MISSES, POWERS, PlannedVerdict
from fastenough.cli.commands import Command
from fastenough.cli.options import (
    DURATION,
    RequirementOptions,
    existing_store,
    json_option,
    requirement_options,
    store_option,
)
from fastenough.cli.output import print_json, print_table, readable, say, say_list
from fastenough.jobs.plan_test import DurationPlan, SeenMisses, plan_assumed, plan_from_run
from fastenough.model import BadInput, Requirement, Verdict

_NONE = "–"
_BEGINNING = re.compile(r"\d{4,}", re.ASCII)
"""The beginning of the id of a run, from its year on."""
_DATE_DIGITS = 8
"""Digits of its date."""


def _required_text(required: Requirement) -> str:
    limit = words.exact_time(required.limit_ns)
    allowed = (
        f"no latency above {limit}, within a return time of {words.exact_time(required.return_time_ns)}"
        if required.miss_rate == 0
        else f"at most {words.rate_of(required.miss_rate, 'activations')} above {limit}"
    )
    declared = required.longest_burst
    burst = "" if declared is None else f", longest burst {words.counted(declared, 'activation')} (declared)"
    return f"{allowed}, {words.percent(required.confidence)} confidence{burst}"


def _per_hour(planned: PlannedVerdict, required: Requirement) -> str:
    """Expected misses per hour; their rate in units of the allowed one."""
    rate = planned.misses_per_hour
    if not rate:
        return "0"
    figure = words.number(round(rate)) if rate >= 1000 else f"{rate:.3g}"
    return f"{figure} ({planned.misses.rate / required.miss_rate:.3g} × allowed)" if required.miss_rate else figure


def _burst(planned: PlannedVerdict) -> str:
    return words.counted(planned.misses.burst, "activation") if planned.misses.rate else _NONE


def _verdict(planned: PlannedVerdict) -> str:
    return planned.verdict.value if any(duration.n for duration in planned.durations) else _NONE


def _durations(planned: PlannedVerdict, boards: int) -> list[str]:
    times = "" if boards == 1 else f"{words.number(boards)} × "
    return [
        _NONE if duration.duration_ns is None else f"{times}{readable(duration.duration_ns)}"
        for duration in planned.durations
    ]


def _basis_text(basis: SeenMisses) -> str:
    where = "" if basis.cpu is None else f", {words.cpus([basis.cpu])}"
    return (
        f"Expected misses are those of run {basis.run} ({basis.probe}{where}): "
        f"{words.number(basis.misses)} {'miss' if basis.misses == 1 else 'misses'} in "
        f"{words.counted(basis.n, 'activation')}, {words.counted(basis.disturbances, 'disturbance')} at most"
    )


def _notes(plan: DurationPlan) -> Iterator[str]:
    required = plan.requirement
    if plan.basis is not None:
        yield from plan.basis.cautions
    if any(planned.verdict is Verdict.FAIL for planned in plan.verdicts):
        yield "more misses are expected than allowed: no duration gives a PASS, and the likely verdict is FAIL"
    without_misses = any(not planned.misses.rate for planned in plan.verdicts)
    if required.miss_rate and required.longest_burst is None and without_misses:
        yield NO_PASS_WITHOUT_MISSES
    durations = [duration for planned in plan.verdicts if planned.misses.rate for duration in planned.durations]
    if any(duration.duration_ns is None for duration in durations):
        yield (
            f"{_NONE}: the expected rate is too close to the allowed rate for a verdict with this probability, or the "
            "verdict takes more than a century"
        )
    yield (
        "each CPU under each load on each board is judged by itself and needs the whole duration; the probabilities "
        "are those of one CPU under one load, and the same verdict for several is less likely"
    )
    if plan.boards > 1:
        chances = " and ".join(_chance(power**plan.boards) for power in POWERS)
        yield (
            f"one CPU under one load gets this verdict on all {words.number(plan.boards)} boards in {chances} of cases "
            "if the boards are independent"
        )


def _chance(probability: float) -> str:
    return "less than 1 %" if probability < 0.01 else words.percent(round(probability, 2))


def _print(plan: DurationPlan) -> None:
    say(f"Requirement: {_required_text(plan.requirement)}")
    say(f"One activation every {words.exact_time(plan.period_ns)}")
    if plan.basis is not None:
        say(_basis_text(plan.basis))
    print()
    print_table(
        "Measuring time until the verdict, by its probability",
        ("misses per hour", "disturbance", "verdict", *(words.percent(power) for power in POWERS)),
        [
            (
                _per_hour(planned, plan.requirement),
                _burst(planned),
                _verdict(planned),
                *_durations(planned, plan.boards),
            )
            for planned in plan.verdicts
        ],
        texts=3,
    )
    print()
    say_list("Notes", tuple(_notes(plan)))


def _make_plan(
    required: Requirement, expected: str | None, period_ns: int, boards: int, store_path: Path
) -> DurationPlan:
    """``expected``: misses per hour, or a run of the store, which has a period of its own."""
    if expected is not None and _names_run(expected, store_path):
        source = click.get_current_context().get_parameter_source("period_ns")
        if source is click.core.ParameterSource.COMMANDLINE:
            raise BadInput("--interval cannot be used with a run: the run has its own period; omit it")
        return plan_from_run(required, existing_store(store_path).load(expected), boards)
    return plan_assumed(required, period_ns, boards, None if expected is None else float(expected))


def _names_run(expected: str, store_path: Path) -> bool:
    """Whether this is a run, not a number; raises BadInput for digits that may be either."""
    try:
        float(expected)
    except ValueError:
        return True
    if not _BEGINNING.fullmatch(expected) or not (store_path / "runs").is_dir():
        return False
    if not any(run.id.startswith(expected) for run in existing_store(store_path).runs(brief=True)):
        return False
    if len(expected) < _DATE_DIGITS:
        raise BadInput(
            f"--expect {expected} is ambiguous: misses per hour, or the beginning of a run id; write {expected}.0 for "
            "the number, or more of the id"
        )
    return True


@click.command(cls=Command, example="fastenough plan-test --limit 100us --miss-rate 1e-6 --longest-burst 10")
@requirement_options
@click.option(
    "--expect",
    "expected",
    metavar="MISSES_PER_HOUR|RUN",
    help="Expected misses: a number per hour, or a run of the store that had them  [default: none, and half of the "
    "allowed ones]",
)
@click.option(
    "--interval",
    "period_ns",
    type=DURATION,
    default="500us",
    show_default=True,
    help="Period of the measuring threads.",
)
@click.option("--boards", type=click.IntRange(1, 100_000), default=1, show_default=True, help="Boards to be measured.")
@store_option
@json_option
def command(
    *,
    limit_options: RequirementOptions,
    expected: str | None,
    period_ns: int,
    boards: int,
    store_path: Path,
    as_json: bool,
) -> None:
    """Compute how long to measure for a verdict.

    Prints, before anything is measured, the time after which a requirement gets a PASS with a probability of 80 % and
    of 95 %.  Measurements are simulated and judged as real ones.  If more misses are expected than allowed, the time
    until a FAIL is printed.
    """
    required = limit_options.requirement()
    if required is None:
        raise BadInput("plan-test requires --limit; add --miss-rate if the limit may be exceeded")
    plan = _make_plan(required, expected, period_ns, boards, store_path)
    if as_json:
        print_json(plan)
    else:
        _print(plan)
