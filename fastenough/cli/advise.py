# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough advise``: a kernel and an implementation for a limit, by the flowchart of Brown and Martin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from fastenough import words
from fastenough.analysis.advice import Advice, Ending, Step
from fastenough.analysis.approach_rating import MARGINAL_TIMES
from fastenough.analysis.excluded_runs import Selection
from fastenough.cli.commands import Command, Option
from fastenough.cli.options import (
    FiniteRange,
    RequirementOptions,
    existing_store,
    json_option,
    requirement_options,
    store_option,
)
from fastenough.cli.output import print_json, say
from fastenough.cli.progress import Work
from fastenough.jobs.advise import (
    AdviceRequest,
    advise_by_reference,
    advise_by_runs,
    current_runs,
    probe_of,
    report_advice,
)
from fastenough.jobs.assess import read_runs
from fastenough.model import BadInput, ExitStatus
from fastenough.reference import NAMES, find_reference
from fastenough.report import require_writable


def _print_step(step: Step, last: bool) -> None:
    say(f"[ {step.approach.title} ]  {step.rating.grade}", "  ")
    for line in step.rating.reasons:
        say(line, "    |  ")
    say(f"cost: {step.approach.cost}", "    |  ")
    how_bad = step.rating.grade.partition(": ")[2] if not last else ""
    say(f"v  {how_bad}".rstrip(), "    ")


def _print(advice: Advice) -> None:
    required = advice.requirement
    say(advice.text)
    say(f"Basis: {advice.basis}")
    say(
        f"{advice.side} (limit {words.exact_time(required.limit_ns)}, {words.percent(required.confidence)} "
        f"confidence); an approach that only meets {words.exact_time(advice.marginal_ns)} is marginal, others are awful"
    )
    print()
    say(f"start: how hard? {advice.side.partition(':')[0]}", "  ")
    say("v", "    ")
    for step in advice.steps:
        _print_step(step, step is advice.steps[-1])
    say(f"( {advice.ending} )", "  ")
    cost = (advice.cost,) if advice.ending is Ending.HARDWARE else ()
    for title, lines in (
        ("Next steps", advice.next),
        ("Cost of meeting the limit", cost),
        ("Not on the path", [f"{name}: {rating.grade}" for name, rating in advice.off_path]),
        ("Caveats", advice.cautions),
    ):
        if lines:
            print()
            say(title)
        for line in lines:
            say(line, "  ")
    print()
    say(advice.life_safety)


def _is_decided(advice: Advice) -> bool:
    return advice.ending in (Ending.DELIVER, Ending.HARDWARE)


def _by_reference(name: str, runs: Sequence[str], out: Path | None, request: AdviceRequest) -> Advice:
    if runs or out is not None:
        raise BadInput("--reference uses published figures; omit RUNS and --out-dir")
    reference = find_reference(name)
    return advise_by_reference(reference, replace(request, probe=probe_of(reference.probes, request.probe or None)))


def _by_runs(names: Sequence[str], out: Path | None, store_path: Path, request: AdviceRequest) -> Advice:
    if out is not None:
        require_writable(out)
    store = existing_store(store_path)
    chosen = store.find_all(names)
    runs = [run for run in current_runs(store) if run.id in chosen or not chosen]
    probes = list(dict.fromkeys(run.probe for run in reversed(runs) if run.probe))
    probe = probe_of(probes[:1], request.probe or None)
    fitting = [run for run in runs if run.probe in (None, probe)]
    with Work("reading the runs") as work:
        recordings = read_runs(store, [run.id for run in fitting], work.step)
        work.step("judging each approach")
        request = replace(request, probe=probe, selection=Selection.of(chosen=bool(chosen), only_these=False))
        advice = advise_by_runs(recordings, request, store)
        others = [name for name in probes if name != probe]
        if others:
            caution = f"Only runs of the probe {probe} are used; there are also runs of {', '.join(others)} (--probe)"
            advice = replace(advice, cautions=(*advice.cautions, caution))
        if out is not None:
            work.step("writing the report")
            report_advice(advice, recordings, request, out)
    return advice


@click.command(cls=Command, example="fastenough advise --limit 200us")
@click.argument("runs", nargs=-1)
@requirement_options
@click.option("--probe", metavar="PROBE", help="Probe whose runs decide  [default: that of the newest run]")
@click.option("--board", metavar="BOARD", help="Board whose runs decide, if there are several.")
@click.option(
    "--marginal",
    "times",
    type=FiniteRange(1, 1000, min_open=True),
    default=MARGINAL_TIMES,
    show_default=True,
    help="An approach that exceeds the limit, but meets this multiple of it, counts as marginal.",
)
@click.option(
    "--reference",
    "name",
    type=click.Choice(NAMES),
    help="Use published figures, taken as exact, instead of runs.",
)
@click.option(
    "--out-dir",
    "out",
    cls=Option,
    former_names=["--out"],
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Directory of a report with the path through the flowchart.",
)
@store_option
@json_option
def command(
    *,
    runs: tuple[str, ...],
    limit_options: RequirementOptions,
    probe: str | None,
    board: str | None,
    times: float,
    name: str | None,
    out: Path | None,
    store_path: Path,
    as_json: bool,
) -> ExitStatus:
    """Choose a kernel and an implementation for a limit.

    Follows the flowchart of Brown and Martin (docs/advice.md) with RUNS, by default all runs of the store.  The answer
    is a kernel with a user-space program or a kernel module, or dedicated hardware.  The exit status is 0 if there is
    an answer, 3 if data are missing.
    """
    required = limit_options.requirement()
    if required is None:
        raise BadInput("advise requires --limit; add --miss-rate if the limit may be exceeded")
    if name is not None:
        advice = _by_reference(name, runs, out, AdviceRequest(required, probe or "", board, times))
    else:
        advice = _by_runs(runs, out, store_path, AdviceRequest(required, probe or "", board, times))
    if as_json:
        print_json(advice)
    else:
        _print(advice)
        if out is not None:
            print(f"report: {out / 'index.html'}")
    return ExitStatus.DONE if _is_decided(advice) else ExitStatus.INCONCLUSIVE
