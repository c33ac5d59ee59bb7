# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough assess``: from nothing to a verdict on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from fastenough.analysis import Assessment, judge
from fastenough.campaign import Entry, Plan, run_campaign
from fastenough.cli.live import Display
from fastenough.cli.output import print_json
from fastenough.cli.parameters import DURATION, DurationText, Names, json_option
from fastenough.cli.privileges import as_granted_option, board_for
from fastenough.cli.requirement import requirement, requirement_options
from fastenough.cli.stores import store_option
from fastenough.loads import LOADS
from fastenough.model import VERDICT_EXIT_STATUS, BadInput, ExitStatus
from fastenough.recording import Recording
from fastenough.report import require_writable, write_report
from fastenough.store import Store

MATRIX = "none,cpu,io,vm,hdd,full"
SHORTEST_RUN_NS = 10**9


def _plan(loads: list[str], duration_ns: int, interval: str, priority: int) -> Plan:
    each_ns = duration_ns // len(loads)
    if each_ns < SHORTEST_RUN_NS:
        raise BadInput(f"--duration is shared by {len(loads)} loads and leaves less than a second for each; "
                       f"give at least {len(loads)}s")
    parameters: dict[str, tuple[str | int, ...]] = {"interval": (interval,), "priority": (priority,)}
    return Plan("assess", (Entry("timer", tuple(loads), each_ns / 1e9, parameters),))


def print_assessment(assessment: Assessment) -> None:
    """The verdict, why, and what would settle it."""
    print(f"\n{assessment.verdict}: {assessment.headline}")
    for title, lines in (("because", assessment.reasons), ("what would settle it", assessment.settle),
                         ("mind", assessment.cautions)):
        if lines:
            print(f"{title}:")
            for line in lines:
                print(f"  - {line}")
    print(assessment.life_safety)


def tell(assessment: Assessment, recordings: list[Recording], out: Path, as_json: bool) -> ExitStatus:
    """Write the report, say the verdict, and give the status that stands for it."""
    documents = write_report(recordings, assessment, out)
    if as_json:
        print_json({"assessment": assessment, "report": [str(document) for document in documents]})
    else:
        print_assessment(assessment)
        print(f"report: {out / 'index.html'}")
    return ExitStatus.NOT_APPLICABLE if assessment.all_not_applicable else VERDICT_EXIT_STATUS[assessment.verdict]


@click.command()
@requirement_options
@click.option("--duration", "duration_ns", type=DURATION, default="2m", show_default=True,
              help="Measuring time, shared by the loads.")
@click.option("--loads", type=Names("load", list(LOADS)), default=MATRIX, show_default=True,
              help="Loads to measure under, comma-separated.")
@click.option("--interval", type=DurationText(), default="500us", show_default=True,
              help="Period of the measuring threads.")
@click.option("--priority", type=click.IntRange(1, 99), default=98, show_default=True, help="Their FIFO priority.")
@click.option("--board", default="local", show_default=True, help="Which board to assess.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("report"), show_default=True,
              help="Directory of the report.")
@click.option("--resume", is_flag=True, help="Go on with an unfinished assessment of the same kind.")
@as_granted_option
@store_option
@json_option
def command(
    *, limit_ns: int | None, miss_rate: float, confidence: float, duration_ns: int, loads: list[str], interval: str,
    priority: int, board: str, out: Path, resume: bool, as_granted: bool, store_path: Path, as_json: bool,
) -> int:
    """Measure how this Linux wakes up real-time tasks under load, and judge it.

    With --limit the verdict is about that limit; without, it is about the hardest requirement the data support.
    """
    required = requirement(limit_ns, miss_rate, confidence)
    plan = _plan(loads, duration_ns, interval, priority)
    require_writable(out)
    store = Store(store_path)
    with Display() as display:
        link, plan = board_for(board, plan, as_granted, display.tell)
        campaign = run_campaign(link, plan, store, display, resume=resume, tell=display.tell)
    if campaign.signal and not campaign.runs:
        return 128 + campaign.signal
    recordings = [store.load(run) for run in campaign.runs]
    status = tell(judge(recordings, required, confidence=confidence, loads=loads), recordings, out, as_json)
    return 128 + campaign.signal if campaign.signal else status
