# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough assess --task``: the tasks of an application and their response times."""

from __future__ import annotations

from collections.abc import Sequence

import click

from fastenough import words
from fastenough.analysis.response_time import Margin
from fastenough.analysis.task_set import NEVER, TaskAnswer, TaskSet
from fastenough.cli.output import print_json, print_table, say
from fastenough.jobs.task_set import task_set_of
from fastenough.model import VERDICT_EXIT_STATUS, BadInput, ExitStatus, Verdict

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
        print_json({"verdict": Verdict.FAIL, "answer": NEVER, "reasons": reasons})
    else:
        say(f"{Verdict.FAIL}: {NEVER}; nothing was measured")
        for reason in reasons:
            say(f"- {reason}", "  ")
    return VERDICT_EXIT_STATUS[Verdict.FAIL]


def print_tasks(answer: TaskAnswer) -> None:
    """Print the longest response time of each task, and the margin of each CPU."""
    rows = [
        (
            one.task.name,
            str(on.measured.cpu),
            str(one.task.priority),
            words.microseconds(one.task.period_ns),
            words.microseconds(one.task.compute_ns),
            words.microseconds(one.task.deadline_ns),
            words.microseconds(one.response_ns),
            words.microseconds_down(one.slack_ns),
        )
        for on in answer.cpus
        for one in on.responses
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
