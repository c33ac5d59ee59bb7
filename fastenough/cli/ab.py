# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough ab``: effect of a setting, from pairs of runs without and with it in random order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click
from click.core import ParameterSource

from fastenough.analysis import words
from fastenough.analysis.compare import GREATER, OPEN, SMALLER, finding, rate_text, significant_quantiles
from fastenough.analysis.machine import emulation_cautions
from fastenough.analysis.paired import (
    LEAST_PAIRS,
    LEAST_ROUNDS,
    SEQUENTIAL,
    Effects,
    Pair,
    evidence_required,
    paired,
)
from fastenough.board import AS_BOOTED, is_deterministic, open_board
from fastenough.campaign import Entry, Plan
from fastenough.campaign.plan_check import check_plan
from fastenough.cli.ab_deterministic import print_result
from fastenough.cli.commands import Command
from fastenough.cli.options import DURATION, Names, json_option, store_option
from fastenough.cli.output import micros, print_json, print_table, say
from fastenough.cli.privileges import as_granted_option, boards_for
from fastenough.cli.progress import Display
from fastenough.cli.run import parse_parameters
from fastenough.implementations.catalogue import in_parameters
from fastenough.implementations.task import Refused
from fastenough.jobs.ab import AbResult, AbRounds, AbRuns, AbTest, make_ab_test
from fastenough.jobs.ab_deterministic import make_deterministic_test
from fastenough.loads import LOADS
from fastenough.model import BadInput, ExitStatus
from fastenough.store import Store


def parse_settings(arguments: Sequence[str]) -> dict[str, str]:
    """``name=value``, each name once; raises BadInput."""
    change: dict[str, str] = {}
    for argument in arguments:
        name, _, value = argument.partition("=")
        if not name or not value:
            raise BadInput(
                f"--set {argument} is not NAME=VALUE; write it as governor=performance (names: docs/settings.md)"
            )
        if name in change:
            raise BadInput(f"--set {name} is given twice; give it once")
        change[name] = value
    return change


def conclusion(effects: Effects, change: str) -> str:
    """The effect on the quantiles and on the rate above a limit, in one sentence."""
    phrases = [phrase for phrase in (_of_quantiles(effects), _of_rate(effects)) if phrase]
    if phrases:
        return f"with {change}, {effects.series}: {'; '.join(phrases)}"
    if effects.effects:
        widest = effects.effects[-1]
        return (
            f"no significant effect of {change} on {effects.series} (at {words.percent(widest.quantile)}: "
            f"{words.microseconds_interval(widest.lower_ns, widest.upper_ns)} µs, "
            f"{words.percent(effects.confidence)} interval)"
        )
    if effects.tail is not None:
        return (
            f"no significant effect of {change} on the rate of values above {micros(effects.tail.limit_ns)} µs of "
            f"{effects.series}; its quantiles lie among missed periods without a value"
        )
    return f"no conclusion about {change}: the runs are too short for any quantile"


def _of_quantiles(effects: Effects) -> str:
    significant = significant_quantiles(effects.effects)
    if significant is None:
        return ""
    phrase, tail = significant
    interval = words.microseconds_interval(tail.lower_ns, tail.upper_ns)
    return (
        f"{phrase} (at {words.percent(tail.quantile)} by {micros(tail.effect_ns)} µs, "
        f"{words.percent(effects.confidence)} interval {interval} µs)"
    )


def _of_rate(effects: Effects) -> str:
    tail = effects.tail
    if tail is None or not tail.direction:
        return ""
    return rate_text(f"{micros(tail.limit_ns)} µs", tail.direction > 0, tail.without, tail.with_change)


def _print(effects: Effects) -> None:
    print_table(
        f"\n{effects.series}: difference with − without in µs, means over the runs of {effects.pairs} pairs in random "
        f"order; "
        f"n = {words.number(effects.n[0])} without and {words.number(effects.n[1])} with",
        ("quantile", "without", "with", "effect", f"{words.percent(effects.confidence)} interval", "with it"),
        [
            (
                words.percent(effect.quantile),
                words.microseconds(effect.without_ns),
                words.microseconds(effect.with_ns),
                micros(effect.effect_ns),
                words.microseconds_interval(*effect.ends),
                finding(effect),
            )
            for effect in effects.effects
        ],
    )
    if effects.tail is not None:
        tail = effects.tail
        say(
            f"rate of values above {micros(tail.limit_ns)} µs: {words.rate(tail.without)} without, "
            f"{words.rate(tail.with_change)} with: {finding(tail)}"
        )
    for which, maxima in zip(("without", "with"), effects.maxima_ns, strict=True):
        say(f"maxima of the runs {which}, in µs: {', '.join(map(words.microseconds, maxima))}")
    say("no test can show that maxima differ")
    print()
    say(
        f"The intervals come from the pairs and include the variation between runs; they are valid after every pair. "
        f'"{GREATER}" and "{SMALLER}" are significant for all {len(effects.effects)} quantiles and the rate together; '
        f'"{OPEN}" does not prove equality'
    )
    if effects.period_runs is not None:
        say(
            f"warning: latencies vary periodically, every {effects.period_runs:.2g} runs. The random order keeps this "
            "out of the effect, but it widens the intervals. Stop the periodic activity, or use a --duration of "
            "several of its periods"
        )
    for text in effects.excluded:
        say(f"excluded: {text}")
    say("differences between runs without and with the setting:")
    for text in effects.differences:
        say(text, "  ")


def how_ended(effects: Effects, done: int, planned: int) -> str:
    """The number of rounds after which the test ended, and the evidence of an effect on the tail."""
    rounds = f"{done} of at most {words.counted(planned, 'round')}"
    if effects.evidence is None:
        return f"ended after {rounds}"
    amount = f"evidence {effects.evidence:,.1f}; {evidence_required(effects.confidence):,.0f} decides"
    if effects.is_decided:
        return f"decided after {rounds}: the tail differs ({amount})"
    return f"undecided after {rounds}: whether the tail differs is open ({amount})"


def _effects(pairs: Sequence[Pair], trial: AbTest) -> Effects | None:
    return paired(pairs, trial.change, method=SEQUENTIAL)


def _is_decided(trial: AbTest) -> Callable[[Sequence[Pair]], bool]:
    def decided(pairs: Sequence[Pair]) -> bool:
        effects = _effects(pairs, trial)
        return effects is not None and effects.is_decided

    return decided


def _print_result(trial: AbTest, made: AbRuns, store: Store, as_json: bool) -> ExitStatus:
    pairs = made.pairs(store.load)
    effects = _effects(pairs, trial)
    cautions = emulation_cautions([recording for pair in pairs for recording in (pair.without, pair.with_change)])
    enough = effects is not None and (bool(effects.effects) or effects.tail is not None)
    result = (
        conclusion(effects, trial.name)
        if effects is not None
        else f"no conclusion about {trial.name}: fewer than {LEAST_PAIRS} valid pairs"
    )
    if as_json:
        print_json(
            AbResult(
                result,
                made.campaign,
                None,
                trial.change,
                runs=made.runs,
                order=made.order[: len(made.runs)],
                rounds=AbRounds(made.rounds, trial.rounds),
                decided=effects is not None and effects.is_decided,
                effects=effects,
                cautions=cautions,
            )
        )
        return ExitStatus.DONE if enough else ExitStatus.INCONCLUSIVE
    say(result)
    for text in cautions:
        say(f"caveat: {text}")
    if effects is not None:
        say(how_ended(effects, made.rounds, trial.rounds))
        _print(effects)
    print(f"runs: {made.campaign} (fastenough list); the setting was restored after each")
    return ExitStatus.DONE if enough else ExitStatus.INCONCLUSIVE


def _plan(probe: str, parameters: tuple[str, ...], load: Sequence[str], duration_ns: int, board: str) -> Plan:
    if len(load) != 1:
        raise BadInput("--load: a trial has one load; give one name")
    entry = Entry(probe, tuple(load), duration_ns / 1e9, parse_parameters(parameters))
    return Plan("ab", (entry,), boards=(board,))


def _boot_names(names: str, board: str) -> tuple[str, str]:
    """The configurations of ``--boot`` without and with the change; as booted and none without the option."""
    if not names:
        return AS_BOOTED, ""
    if open_board(board).configurations() == (AS_BOOTED,):
        raise BadInput(f"--boot: board {board} does not boot by itself")
    without, _, with_change = (name.strip() for name in names.partition(","))
    if not without or not with_change or without == with_change:
        raise BadInput(f'--boot {names}: give two configurations of the board, as in "stock,stock skew_tick=1"')
    return without, with_change


def _require_useful_options(board: str, *, resume: bool) -> None:
    """Raises BadInput for options that make no difference on a deterministic board."""
    rounds = click.get_current_context().get_parameter_source("rounds") is ParameterSource.COMMANDLINE
    if is_deterministic(board) and (rounds or resume):
        raise BadInput(f"--{'rounds' if rounds else 'resume'} is not supported on a deterministic board; remove it")


@click.command(cls=Command, example="fastenough ab --set transparent-huge-pages=never -- timer interval=1ms")
@click.argument("probe")
@click.argument("parameters", nargs=-1)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Setting to test (docs/settings.md); several are tested as one change.",
)
@click.option(
    "--boot",
    default="",
    metavar="CONFIGURATIONS",
    help='For a board that boots by itself: the configurations to compare, as in "stock,stock skew_tick=1".',
)
@click.option(
    "--rounds",
    type=click.IntRange(min=LEAST_ROUNDS),
    default=8,
    show_default=True,
    help="Maximum number of rounds. A round is two pairs of runs, each without and with the setting in random order.",
)
@click.option("--duration", "duration_ns", type=DURATION, default="10s", show_default=True, help="Length of each run.")
@click.option(
    "--load",
    type=Names("load", list(LOADS)),
    default="none",
    show_default=True,
    metavar="NAME",
    help="Load in the background.",
)
@click.option("--board", default="local", show_default=True, metavar="BOARD", help="Board to measure (docs/boards.md).")
@click.option("--resume", is_flag=True, help="Resume the latest interrupted trial with the same arguments.")
@as_granted_option
@store_option
@json_option
def command(
    *,
    probe: str,
    parameters: tuple[str, ...],
    settings: tuple[str, ...],
    boot: str,
    rounds: int,
    duration_ns: int,
    load: list[str],
    board: str,
    resume: bool,
    as_granted: bool,
    store_path: Path,
    as_json: bool,
) -> int:
    """A/B-test a setting.

    Makes pairs of runs of PROBE without and with the setting, in random order, and restores the setting after each
    run.  The trial ends after the first round that shows an effect on the tail, at the latest after --rounds.  The same
    command with --resume resumes an interrupted trial from its last complete pair.  On a deterministic board, one run
    without and one with the setting show the effect; under load, 30 of each in different phases do.
    """
    change: Mapping[str, str] = parse_settings(settings)
    if not change and not boot:
        raise BadInput("no change to test; give --set NAME=VALUE, or --boot with two configurations")
    _require_useful_options(board, resume=resume)
    without, with_change = _boot_names(boot, board)
    plan = replace(_plan(probe, parameters, load, duration_ns, board), configurations=(without,))
    check_plan(plan)
    trial = AbTest(plan, change, rounds, booted=with_change)
    with Display() as display:
        opened, granted = boards_for(trial.with_change(), as_granted, display.tell)
        trial = trial.measured_by(granted)
        store = Store(store_path)
        try:
            if is_deterministic(board):
                sets = make_deterministic_test(trial, store, display, opened=opened, tell=display.tell)
                status = print_result(trial, sets, store, as_json)
                return 128 + sets.signal if sets.signal else status
            made = make_ab_test(
                trial, store, display, opened=opened, decided=_is_decided(trial), resume=resume, tell=display.tell
            )
        except Refused as error:
            raise BadInput(in_parameters(str(error))) from error
    if made.signal:
        display.tell(
            f"stopped after {words.counted(len(made.runs), 'run')} of {trial.runs}, which are stored; resume with the "
            "same command and --resume"
        )
        if len(made.runs) < 2 * LEAST_PAIRS:
            return 128 + made.signal
    status = _print_result(trial, made, store, as_json)
    return 128 + made.signal if made.signal else status
