# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough hunt``: search for the load with the highest latency, and write it as a load file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from fastenough.analysis import words
from fastenough.board import Board, is_deterministic
from fastenough.campaign import Entry, Plan
from fastenough.campaign.plan_check import check_plan
from fastenough.campaign.toml import read_toml
from fastenough.cli.commands import Command, Option
from fastenough.cli.options import DURATION, json_option, store_option
from fastenough.cli.output import print_json, readable, say
from fastenough.cli.privileges import as_granted_option, boards_for
from fastenough.cli.progress import Display, Work
from fastenough.cli.run import parse_parameters
from fastenough.files import Untrusted, refusal_text
from fastenough.folder import Folder
from fastenough.hunt.extent import HuntExtent, SearchTime, TrialCount
from fastenough.hunt.recipes import as_file, description_of
from fastenough.hunt.stressors import STRESSORS
from fastenough.hunt.trials import TrialRequest
from fastenough.implementations.catalogue import in_parameters
from fastenough.implementations.task import Refused
from fastenough.jobs.hunt import BLOCK, FIXED, Hunt, HuntResult, make_hunt
from fastenough.jobs.hunt_report import MonitoredRun, conclude_hunt, monitor_load, report_hunt
from fastenough.loads import LOADS, Load
from fastenough.model import BadInput, ExitStatus, FastenoughError
from fastenough.report import require_writable
from fastenough.store import Store

_REPORT = "report"
_BUDGET_S, _TRIALS = 1800.0, 60
_WARM_UP_S = 0.5
"""Warm-up of each trial."""
_ADVICE = "name a file in an existing, writable folder"


def progress_note(ask: TrialRequest) -> str:
    """Purpose and stressors of the current trial; only the number of the stressors of several recipes in turns."""
    names = [] if isinstance(ask.subject, str) else sorted({part.stressor for recipe in ask.subject for part in recipe})
    listed = ", ".join(names) if len(ask.subject) == 1 else words.counted(len(names), "stressor")
    best = f", highest typical maximum so far {readable(ask.found_ns)}" if ask.found_ns else ""
    return f"{ask.phase}{f': {listed}' if names else ''}{best}"


def _space(path: Path | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Stressors and fixed loads of a file; raises BadInput."""
    if path is None:
        return (), FIXED
    table = read_toml(path, "docs/hunt.md for an example")
    stressors, fixed = table.texts("stressors", (), STRESSORS), table.texts("fixed", FIXED, LOADS)
    table.finish(("stressors", "fixed"))
    return stressors, fixed


def _require_place(out: Path | None) -> None:
    """Raises BadInput, before the hunt, for a file that cannot be written."""
    if out is None:
        return
    if out.suffix != ".toml":
        raise BadInput(f"--out {out}: the name of a load file must end in .toml")
    try:
        with Folder.at(out.parent) as folder:
            folder.require_replaceable(out.name)
            folder.require_room()
    except (OSError, Untrusted) as error:
        raise BadInput(f"--out {out}: cannot be written: {refusal_text(error, _ADVICE)}") from error


def _write(out: Path | None, load: Load | None) -> Path | None:
    """Write the load file; returns its path, or None if it was not written and is to be printed."""
    if out is None or load is None:
        return None
    try:
        with Folder.at(out.parent) as folder:
            folder.replace(out.name, as_file(load).encode())
    except (OSError, Untrusted) as error:
        click.echo(f"{out}: cannot be written: {refusal_text(error, _ADVICE)}", err=True)
        return None
    return out


def as_argument(load_file: Path) -> str:
    """Argument of --load for a file.  It contains a slash; names of loads do not."""
    return str(load_file) if load_file.is_absolute() else f"./{load_file}"


def _extent(board: str, budget_ns: int | None, trials: int | None) -> HuntExtent:
    """The extent that these options request; raises BadInput."""
    if is_deterministic(board):
        if budget_ns is not None:
            raise BadInput("--budget is not supported on a deterministic board; use --trials NUMBER")
        return TrialCount(trials or _TRIALS)
    if trials is not None:
        raise BadInput("--trials is supported on a deterministic board only; use --budget DURATION")
    return SearchTime(_BUDGET_S if budget_ns is None else budget_ns / 1e9)


def _plan(probe: str, parameters: tuple[str, ...], trial_s: float, board: str) -> Plan:
    values = parse_parameters(parameters)
    if _REPORT in values:
        raise BadInput(f"{_REPORT}: a hunt always uses blocks of {BLOCK}; omit the parameter")
    return Plan(
        "hunt",
        (Entry(probe, ("none",), trial_s, {**values, _REPORT: (BLOCK,)}, warm_up_s=_WARM_UP_S),),
        boards=(board,),
    )


def conclusion(hunted: HuntResult) -> str:
    """The result in one sentence."""
    search = hunted.search
    failed = f"; every trial failed with {', '.join(search.failed_fixed)}" if search.failed_fixed else ""
    if search.result is None:
        return f"{_without_result(hunted)}{failed}"
    found = search.result
    reference = f"load {found.reference}" if isinstance(found.reference, str) else "the previous result"
    return (
        f"worse than {reference}: {description_of(search.space, found.recipe)}; the typical maximum in {BLOCK} is "
        f"{readable(found.typical_ns)}, with {reference} {readable(found.reference_ns)} (p = {found.p_value:.2g})"
        f"{failed}"
    )


def _without_result(hunted: HuntResult) -> str:
    search, trials = hunted.search, words.counted(len(hunted.runs), "trial")
    if search.failed_fixed and not search.worst_fixed:
        return "no conclusion: no fixed load could be measured"
    if not search.worst_fixed:
        return "no conclusion: the hunt ended before all fixed loads were tried"
    if not search.confirmations:
        return (
            f"no conclusion: the hunt ended after {trials}, before a load was compared with the fixed loads; use a "
            "longer --budget, or more --trials"
        )
    return f"no load worse than the fixed loads in {trials}; the worst fixed load is {search.worst_fixed}"


def _monitored(
    hunted: HuntResult, plan: Plan, store: Store, display: Display, opened: Callable[[str], Board]
) -> tuple[MonitoredRun | None, FastenoughError | OSError | None]:
    """The run with the monitor, or the error that ended it; neither if the hunt found no load or was stopped.

    The worst load can make a board unreachable.  That does not change the result of the hunt.
    """
    if hunted.load is None or hunted.signal:
        return None, None
    try:
        culprit = monitor_load(
            plan,
            hunted.load,
            store,
            lambda progress: display(progress, "the result, with the monitor"),
            opened=opened,
            tell=display.tell,
        )
    except (FastenoughError, OSError) as error:
        return None, error
    return culprit, None


def _signal_of(hunted: HuntResult, culprit: MonitoredRun | None) -> int:
    """Number of the signal that stopped the hunt or its run with the monitor, or 0."""
    return hunted.signal or (culprit.signal if culprit else 0)


def _print_result(hunted: HuntResult, culprit: MonitoredRun | None, out: Path | None, as_json: bool) -> int:
    search, load = hunted.search, culprit.load if culprit else hunted.load
    written = _write(out, load)
    if as_json:
        print_json(
            {
                "conclusion": conclusion(hunted),
                "cautions": hunted.cautions,
                "campaign": hunted.campaign,
                "runs": hunted.runs,
                "failed": hunted.failed,
                "worst_fixed": search.worst_fixed or None,
                "result": search.result,
                "load": load,
                "culprit": None
                if culprit is None
                else {"load": culprit.load, "runs": culprit.runs, "cause": culprit.cause},
            }
        )
    else:
        say(conclusion(hunted))
        for text in hunted.cautions:
            say(f"caveat: {text}")
        if culprit is not None:
            say(f"cause: {culprit.cause}")
        if load is not None:
            say(
                f"load file: {written}; use it with: fastenough run PROBE --load none,{as_argument(written)}"
                if written
                else "load file (write it with --out FILE.toml):"
            )
            print("" if written else as_file(load), end="")
        if hunted.failed:
            say(f"{words.counted(hunted.failed, 'trial')} failed and {'was' if hunted.failed == 1 else 'were'} ignored")
        say(f"runs: {hunted.campaign} (fastenough list)")
    if signal := _signal_of(hunted, culprit):
        return 128 + signal
    return ExitStatus.DONE if search.confirmations else ExitStatus.INCONCLUSIVE


@click.command(cls=Command, example="fastenough hunt timer interval=1ms --budget 30m --out worst.toml")
@click.argument("probe")
@click.argument("parameters", nargs=-1)
@click.option(
    "--budget",
    "budget_ns",
    type=DURATION,
    help="Search time; 15 minutes give only a first impression  [default: 30m]",
)
@click.option(
    "--trials",
    type=click.IntRange(1),
    metavar="NUMBER",
    help=f"Number of trials on a deterministic board, instead of --budget  [default: {_TRIALS}]",
)
@click.option(
    "--load-space",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File that names the stressors and fixed loads to use (docs/hunt.md).",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Load file to write the result to.")
@click.option(
    "--out-dir",
    "report_path",
    cls=Option,
    former_names=["--report"],
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Directory of a report: trials, result and cause.",
)
@click.option("--board", default="local", show_default=True, metavar="BOARD", help="Board to measure (docs/boards.md).")
@click.option("--resume", is_flag=True, help="Resume the latest interrupted hunt with the same arguments.")
@as_granted_option
@store_option
@json_option
def command(
    *,
    probe: str,
    parameters: tuple[str, ...],
    budget_ns: int | None,
    trials: int | None,
    load_space: Path | None,
    out: Path | None,
    report_path: Path | None,
    board: str,
    resume: bool,
    as_granted: bool,
    store_path: Path,
    as_json: bool,
) -> int:
    """Search for the load that causes the worst latency.

    Tries stressors of stress-ng in groups, repeats the worst combinations, confirms that one is worse than the worst
    published load, and removes stressors that it does not need.  --out stores the result as a load file.  On a
    deterministic board, each trial begins at another phase, and the same hunt makes the same trials.
    """
    _require_place(out)
    if report_path is not None:
        require_writable(report_path)
    only, fixed = _space(load_space)
    extent = _extent(board, budget_ns, trials)
    plan = _plan(probe, parameters, extent.trial_s, board)
    check_plan(plan)
    with Display() as display:
        opened, granted = boards_for(plan, as_granted, display.tell)
        hunt, store = Hunt(granted, extent, only, fixed), Store(store_path)
        try:
            hunted = make_hunt(
                hunt,
                store,
                lambda progress, ask: display(progress, progress_note(ask)),
                opened=opened,
                resume=resume,
                tell=display.tell,
            )
        except Refused as error:
            raise BadInput(in_parameters(str(error))) from error
        out = _write(out, hunted.load)
        culprit, failure = _monitored(hunted, granted, store, display, opened)
        if _signal_of(hunted, culprit):
            display.tell("stopped; all trials are stored; resume with the same command and --resume")
    status = _print_result(hunted, culprit, out, as_json)
    section = conclude_hunt(hunted, culprit, conclusion(hunted), store)
    if report_path is not None and hunted.runs:
        with Work("writing the report"):
            report_hunt(hunted, culprit, section, store, report_path)
    if failure is not None:
        raise failure
    return status
