# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough assess``: measure a machine under loads, judge it, write a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from fastenough import words
from fastenough.analysis import Assessment, requirement_name
from fastenough.analysis.excluded_runs import Selection
from fastenough.analysis.response_time import Margin
from fastenough.analysis.task_set import NEVER, TaskAnswer, TaskSet, impossible
from fastenough.cli.commands import Command, Option
from fastenough.cli.options import (
    DURATION,
    DurationText,
    RequirementOptions,
    json_option,
    only_these_option,
    requirement_options,
    store_option,
)
from fastenough.cli.output import print_json, print_table, say, say_list
from fastenough.cli.plan_runs import Loads, loads_of_files
from fastenough.cli.privileges import as_granted_option, boards_for
from fastenough.cli.progress import Display
from fastenough.cli.run import MONITOR_HELP
from fastenough.jobs.assess import ASSESSED, AssessmentResult, Question, assess, assessment_plan
from fastenough.jobs.task_set import task_plan, task_set_of
from fastenough.loads import Load
from fastenough.model import VERDICT_EXIT_STATUS, BadInput, ExitStatus, Verdict
from fastenough.report import require_writable
from fastenough.store import Store

MATRIX = "none,cpu,io,vm,hdd,full"


def print_answer(answer: AssessmentResult, out: Path, as_json: bool) -> ExitStatus:
    """Print the verdict and the place of the report; returns the exit status of the verdict."""
    assessment = answer.assessment
    if as_json:
        tasks = {} if answer.tasks is None else {"conclusion": answer.tasks.conclusion, "tasks": answer.tasks}
        print_json({"assessment": assessment, "report": [str(document) for document in answer.documents]} | tasks)
    else:
        print_assessment(assessment)
        if answer.tasks is not None:
            print_tasks(answer.tasks)
        print(f"report: {out / 'index.html'}")
    return ExitStatus.NOT_APPLICABLE if assessment.all_not_applicable else VERDICT_EXIT_STATUS[assessment.verdict]


def requirement_lines(assessment: Assessment) -> list[str]:
    """The verdict on each of several requirements; empty for one or none."""
    several = len({result.probe for result in assessment.requirement_results}) > 1
    return [
        f"{f'{result.probe}: ' if several else ''}{requirement_name(result.requirement)}: {result.verdict}"
        for result in assessment.requirement_results
    ]


def print_assessment(assessment: Assessment) -> None:
    """Print the verdict, its reasons, next steps and caveats."""
    print()
    say(f"{assessment.verdict}: {assessment.headline}")
    say_list("Requirements", requirement_lines(assessment))
    say_list("Reasons", assessment.reasons)
    say_list("Next steps", assessment.next_steps)
    say_list("Caveats", assessment.cautions)
    say(assessment.life_safety)


_HELP = (
    "Task of your application, as in 'name=loop period=1ms compute=200us deadline=800us priority=80 cpu=0'; "
    "once for each task. The result says whether all tasks meet their deadlines; it is never PASS."
)
_INSTEAD = {"limit_ns": "each task has its own deadline", "interval": "each task has its own period"}
_COLUMNS = ("task", "CPU", "priority", "period", "compute", "deadline", "response", "slack")

task_option = click.option("--task", "tasks", multiple=True, metavar="TASK", help=_HELP)


def stated_tasks(texts: Sequence[str]) -> TaskSet | None:
    """The tasks, None without any; raises BadInput for options that cannot be used with them."""
    if not texts:
        return None
    context = click.get_current_context()
    for name, why in _INSTEAD.items():
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise BadInput(f"--{name.removesuffix('_ns')} cannot be used with --task: {why}; omit it")
    return task_set_of(texts)


def print_impossible(reasons: Sequence[str], as_json: bool) -> ExitStatus:
    """Print that no machine meets these deadlines, so that no measurement is needed."""
    if as_json:
        print_json({"verdict": Verdict.FAIL, "conclusion": NEVER, "reasons": reasons})
    else:
        say(f"{Verdict.FAIL}: {NEVER}; nothing was measured")
        for reason in reasons:
            say(f"- {reason}", "  ")
    return VERDICT_EXIT_STATUS[Verdict.FAIL]


def print_tasks(answer: TaskAnswer) -> None:
    """Print the longest response time of each task, and the margin of each CPU."""
    rows = [
        (
            response.task.name,
            str(on.measured.cpu),
            str(response.task.priority),
            words.microseconds(response.task.period_ns),
            words.microseconds(response.task.compute_ns),
            words.microseconds(response.task.deadline_ns),
            words.microseconds(response.response_ns),
            words.microseconds_down(response.slack_ns),
        )
        for on in answer.cpus
        for response in on.responses
    ]
    if rows:
        print_table("Longest response times, all terms at their maximum at once [µs]", _COLUMNS, rows)
    for on in answer.cpus:
        say(f"{words.cpus([on.measured.cpu])} {_bears(on.margin)}")


def _bears(margin: Margin) -> str:
    """The margin of a CPU; the factor is rounded down."""
    if not margin.factor:
        return "has no time left to compute: the measured latency alone exceeds a deadline"
    later = (
        "no additional wake-up latency"
        if margin.added_ns is None
        else f"{words.microseconds_down(margin.added_ns)} µs more latency at every wake-up"
    )
    return f"tolerates compute times {margin.factor:.4f} times as long, or {later}"


@click.command(cls=Command, example="fastenough assess --limit 100us")
@requirement_options
@task_option
@click.option(
    "--duration",
    "duration_ns",
    type=DURATION,
    default="2m",
    show_default=True,
    help="Total measuring time, divided among the loads.",
)
@click.option(
    "--load",
    "loads",
    cls=Option,
    former_names=["--loads"],
    type=Loads(),
    metavar="NAMES",
    default=MATRIX,
    show_default=True,
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
@click.option("--board", default="local", show_default=True, metavar="BOARD", help="Board to measure (docs/boards.md).")
@click.option(
    "--out-dir",
    "out",
    cls=Option,
    former_names=["--out"],
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("report"),
    show_default=True,
    metavar="DIR",
    help="Directory of the report.",
)
@click.option("--monitor", is_flag=True, help=MONITOR_HELP)
@click.option("--resume", is_flag=True, help="Resume the latest interrupted assessment with the same arguments.")
@click.option(
    "--any-verdict", is_flag=True, help="Exit with status 0 when the report is written, whatever the verdict."
)
@only_these_option
@as_granted_option
@store_option
@json_option
def command(
    *,
    limit_options: RequirementOptions,
    tasks: tuple[str, ...],
    duration_ns: int,
    loads: dict[str, Load],
    interval: str,
    priority: int,
    board: str,
    out: Path,
    monitor: bool,
    resume: bool,
    any_verdict: bool,
    only_these: bool,
    as_granted: bool,
    store_path: Path,
    as_json: bool,
) -> int:
    """Measure this machine under load and report.

    Measures the wake-up latency of real-time threads under several loads.  With --limit the result is a verdict;
    without --limit there is no verdict.  With --task the result says whether the tasks of an application meet their
    deadlines at the measured latencies; it is never PASS.
    """
    task_set = stated_tasks(tasks)
    if task_set is not None and (reasons := impossible(task_set)):
        return print_impossible(reasons, as_json)
    question = Question(
        None,
        limit_options.confidence,
        tuple(loads),
        ASSESSED,
        tasks=task_set,
        selection=Selection.of(chosen=False, only_these=only_these),
    )
    if task_set is None:
        required = limit_options.requirement()
        question = replace(question, required=required)
        plan = assessment_plan(
            board, tuple(loads), duration_ns, interval, priority, requirement=required, monitor=monitor
        )
    else:
        plan = task_plan(
            board,
            task_set,
            tuple(loads),
            duration_ns,
            priority,
            monitor=monitor,
            required=limit_options.of_limit,
        )
    require_writable(out)
    store, plan = Store(store_path), replace(plan, loads=loads_of_files(loads))
    with Display() as display:
        opened, plan = boards_for(plan, as_granted, display.tell)
        answer = assess(
            plan, question, store, out, display, resume=resume, opened=opened, tell=display.tell, on_step=display.step
        )
    if isinstance(answer, int):
        return 128 + answer
    status = print_answer(answer, out, as_json)
    if answer.signal:
        return 128 + answer.signal
    return ExitStatus.DONE if any_verdict else status
