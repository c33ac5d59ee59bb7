# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough assess --task``: what is said of an application's tasks."""

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
    "A task of your application, as in 'name=loop period=1ms compute=200us deadline=800us priority=80 cpu=0'; "
    "once for each task. The answer is whether all keep their deadlines with what is measured, never PASS."
)
_INSTEAD = {"limit_ns": "each task has a deadline of its own", "interval": "each task has a period of its own"}
_COLUMNS = ("task", "CPU", "priority", "period", "compute", "deadline", "response", "left")

task_option = click.option("--task", "tasks", multiple=True, metavar="TASK", help=_HELP)


def stated_tasks(texts: Sequence[str]) -> TaskSet | None:
    """The tasks; None where none is stated.  Raises BadInput for options that mean nothing beside them."""
    if not texts:
        return None
    context = click.get_current_context()
    for name, why in _INSTEAD.items():
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise BadInput(f"--{name.removesuffix('_ns')} cannot stand beside --task: {why}; leave it out")
    return task_set_of(texts)


def tell_impossible(reasons: Sequence[str], as_json: bool) -> ExitStatus:
    """That no measurement is needed: no machine keeps these deadlines."""
    if as_json:
        print_json({"verdict": Verdict.FAIL, "answer": NEVER, "reasons": reasons})
    else:
        say(f"{Verdict.FAIL}: {NEVER}; nothing was measured")
        for reason in reasons:
            say(f"- {reason}", "  ")
    return VERDICT_EXIT_STATUS[Verdict.FAIL]


def print_tasks(answer: TaskAnswer) -> None:
    """Each task's longest response, and what each CPU would bear beyond it."""
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
        print_table("longest responses, every term at its worst at once [µs]", _COLUMNS, rows)
    for on in answer.cpus:
        say(f"{words.cpus([on.measured.cpu])} {_bears(on.margin)}")


def _bears(margin: Margin) -> str:
    """What a CPU would bear; the factor was rounded down to the digits shown."""
    if not margin.factor:
        return "leaves no time to compute: what was measured alone outlasts a deadline"
    later = (
        "no later wake-up"
        if margin.added_ns is None
        else f"every wake-up {words.microseconds_down(margin.added_ns)} µs later"
    )
    return f"bears all compute times {margin.factor:.4f} times as long, or {later}"
