# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough bisect``: the first commit of a kernel's repository whose path is too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from fastenough.analysis.gate import Budget
from fastenough.analysis.instructions import FIGURES, LEAST_PHASES, NO_LOAD
from fastenough.campaign import Entry, Plan, StopRequest
from fastenough.campaign.plan_check import check_plan
from fastenough.cli.bench_kernel import kernel_options
from fastenough.cli.commands import Command
from fastenough.cli.options import DURATION, json_option, store_option
from fastenough.cli.output import print_json, print_table, say, say_list
from fastenough.cli.plan_runs import Loads, loads_of_files
from fastenough.cli.privileges import boards_for
from fastenough.cli.progress import Display
from fastenough.cli.run import parse_parameters
from fastenough.implementations.catalogue import in_parameters
from fastenough.implementations.task import Refused
from fastenough.jobs.bisect import (
    BisectionSetup,
    BisectionStopped,
    CommitBench,
    CommitBisection,
    CommitResult,
    LengthCriterion,
    LimitCriterion,
    RiseCriterion,
    bisect_commits,
)
from fastenough.jobs.limits import parse_budget
from fastenough.loads import Load
from fastenough.model import BadInput, ExitStatus
from fastenough.store import Store
from fastenough.virtual.commit_kernels import CommitKernels
from fastenough.virtual.custom_kernels import find_kernel
from fastenough.virtual.deterministic import DeterministicGuest, emulator_of
from fastenough.virtual.git_repository import open_repository
from fastenough.virtual.kernel_build import require_packages
from fastenough.virtual.kernel_config import all_options
from fastenough.virtual.machines import MACHINES

_BOARD = "deterministic"
_WARM_UP_S = 0.1
"""Under load, a second of a deterministic guest takes up to some minutes."""


def _criterion(limit: int | None, longer_by: str, figure: str) -> LengthCriterion:
    """Raises BadInput unless exactly one of limit and increase is given."""
    if (limit is None) == (not longer_by):
        raise BadInput(
            "give one criterion: --limit with the greatest allowed latency, or --longer-by with the greatest allowed "
            "increase of a path over the good commit"
        )
    if limit is not None:
        return LimitCriterion(limit)
    try:
        budget: Budget = parse_budget(figure, longer_by)
    except ValueError as error:
        raise BadInput(f"--longer-by {longer_by}: {error}") from error
    return RiseCriterion(budget)


def guest_sha256(kernel: str) -> str:
    """Return the hash of the guest of a kernel (``DeterministicGuest``)."""
    return DeterministicGuest(find_kernel(kernel)).sha256


def _plan(probe: str, parameters: Sequence[str], loads: dict[str, Load], duration_ns: int, phases: int | None) -> Plan:
    if len(loads) != 1:
        raise BadInput("--load: commits are compared under one load; give one name")
    (load,) = loads
    values = parse_parameters(tuple(parameters) or ("interval=1ms",) * (probe == "timer"))
    entry = Entry(
        probe,
        (load,),
        duration_ns / 1e9,
        values,
        warm_up_s=_WARM_UP_S,
        phases=phases or (1 if load in NO_LOAD else LEAST_PHASES),
    )
    return Plan("bisect", (entry,), boards=(_BOARD,), loads=loads_of_files(loads))


def _figures(result: CommitResult) -> list[str]:
    """Minimum, median and maximum of the series with the greatest maximum; those of maxima under load."""
    if result.paths:
        path = max(result.paths, key=lambda series: series.figure("maximum").second)
        return [f"{path.figure(name).second:,.0f}" for name in ("minimum", "median", "maximum")]
    if result.maxima:
        maxima = max((series.maxima[1] for series in result.maxima), key=lambda phases: phases[-1])
        return [f"{maxima[0]:,}", f"{maxima[len(maxima) // 2]:,}", f"{maxima[-1]:,}"]
    return ["", "", ""]


def _print(bisection: CommitBisection, load: str) -> None:
    print()
    say(bisection.conclusion)
    say("caveat: emulated: instructions of the kernel's path, without caches and hardware; no verdict on a machine")
    about = "no load" if load in NO_LOAD else f"load {load}: of the maxima of the phases"
    print_table(
        f"\nin instructions, {about}",
        ("commit", "result", "minimum", "median", "maximum", "subject"),
        [(result.commit[:12], result.rating, *_figures(result), result.subject) for result in bisection.results],
        texts=2,
    )
    near = [result for result in bisection.results if result.commit in (*bisection.neighbours, *bisection.suspects)]
    say_list("First bad commit and those before it", [_line(result) for result in near])


def _line(result: CommitResult) -> str:
    runs = f"; runs: {result.campaign}" if result.campaign else ""
    return f"{result.commit} {result.rating}: {result.reason}{runs}"


@click.command(
    cls=Command, example="fastenough bisect ~/linux --good v6.12 --bad HEAD --longer-by 1% --fragment my.config"
)
@click.argument("git", type=click.Path(path_type=Path))
@click.argument("probe", default="timer")
@click.argument("parameters", nargs=-1)
@click.option("--good", required=True, metavar="REVISION", help="Revision without the increase.")
@click.option("--bad", required=True, metavar="REVISION", help="Revision with the increase.")
@click.option(
    "--limit",
    "limit",
    type=DURATION,
    metavar="DURATION",
    help="A commit is bad if its maximum is above this (1 ns is 1 instruction).",
)
@click.option(
    "--longer-by",
    default="",
    metavar="NUMBER|SHARE",
    help="Instead of --limit: a commit is bad if its path exceeds that of the good one by more than this number of "
    "instructions, or by more than this share, as in 100 or 1%.",
)
@click.option(
    "--path",
    "figure",
    type=click.Choice(FIGURES),
    default="median",
    show_default=True,
    help="Figure of the path that --longer-by compares.",
)
@click.option(
    "--load", "loads", type=Loads(), default="none", show_default=True, metavar="NAME", help="Load, or load file."
)
@click.option(
    "--duration", "duration_ns", type=DURATION, default="300ms", show_default=True, help="Length of each run."
)
@click.option(
    "--phases",
    type=click.IntRange(min=1),
    help=f"Number of runs of each commit, each at another phase  [default: 1, under load {LEAST_PHASES}]",
)
@kernel_options
@store_option
@json_option
def command(
    *,
    git: Path,
    probe: str,
    parameters: tuple[str, ...],
    good: str,
    bad: str,
    limit: int | None,
    longer_by: str,
    figure: str,
    loads: dict[str, Load],
    duration_ns: int,
    phases: int | None,
    fragments: tuple[Path, ...],
    rt: bool,
    arch: str,
    store_path: Path,
    as_json: bool,
) -> int:
    """Find the kernel commit that made a path longer.

    Builds commits of the repository GIT, measures each with PROBE on a deterministic board, and halves the range
    between a good and a bad revision.  A commit that does not build or boot is skipped.  Measured commits are stored:
    to resume an interrupted search, repeat the command.
    """
    setup = BisectionSetup(_plan(probe, parameters, loads, duration_ns, phases), _criterion(limit, longer_by, figure))
    check_plan(setup.plan)
    repository = open_repository(git)
    kernels = CommitKernels(repository, arch, all_options(arch, rt, fragments))
    require_packages(arch)
    with Display() as display:
        opened, plan = boards_for(setup.plan, False, display.tell)
        bench = CommitBench(
            lambda commit: kernels.build(commit, lambda step: display.step(f"commit {commit[:12]}: {step}")),
            emulator_of(MACHINES[arch]),
            guest_sha256,
            opened,
            Store(store_path),
            display,
            StopRequest(),
            display.tell,
        )
        try:
            bisection = bisect_commits(repository, good, bad, replace(setup, plan=plan), bench)
        except Refused as error:
            raise BadInput(in_parameters(str(error))) from error
        except BisectionStopped as stopped:
            display.tell("stopped; measured commits are stored; repeat the command to resume the search")
            return 128 + stopped.signal
    if as_json:
        print_json(bisection)
    else:
        _print(bisection, *setup.plan.entries[0].loads)
    return ExitStatus.INCONCLUSIVE if bisection.first_bad is None else ExitStatus.DONE
