# SPDX-License-Identifier: GPL-2.0-or-later
"""The tasks of an application: their responses with the measured terms, and these terms."""

from __future__ import annotations

from fastenough.analysis import words
from fastenough.analysis.task_set import OnCpu, TaskAnswer
from fastenough.report.document import Column, Section, Table

_NS = words.microseconds
_LEFT = words.microseconds_down


def _responses(answer: TaskAnswer) -> Table:
    rows = [
        (
            one.task.name,
            on.measured.cpu,
            one.task.priority,
            one.task.period_ns,
            one.task.compute_ns,
            one.task.deadline_ns,
            one.response_ns,
            one.slack_ns,
            str(one.kept),
        )
        for on in answer.cpus
        for one in on.responses
    ]
    columns = (
        Column("task", numeric=False),
        Column("CPU"),
        Column("priority"),
        Column("period [µs]", _NS),
        Column("compute [µs]", _NS),
        Column("deadline [µs]", _NS),
        Column("longest response [µs]", _NS),
        Column("left [µs]", _LEFT),
        Column("deadline", numeric=False),
    )
    chosen = "; the priorities were chosen (Audsley), the highest number first" if answer.task_set.chosen else ""
    return Table(
        "task-responses",
        f"The longest response of each task, with every term at its worst at once{chosen}",
        columns,
        rows,
        note="Where a deadline is missed, the first response found that is too long.",
    )


def _margins(answer: TaskAnswer) -> Table:
    rows = [(f"CPU {on.measured.cpu}", on.margin.factor, on.margin.added_ns) for on in answer.cpus]
    columns = (
        Column("on", numeric=False),
        Column("all compute times may be times", lambda factor: f"{factor:.4f}"),
        Column("every wake-up may be later by [µs]", _LEFT),
    )
    return Table("task-margins", "What each CPU bears until the first deadline is missed", columns, rows)


def _terms(answer: TaskAnswer) -> Table:
    rows = [row for on in answer.cpus for row in _terms_of(on)]
    columns = (
        Column("term", numeric=False),
        Column("CPU"),
        Column("seen"),
        Column("each time [µs]", _NS),
        Column("at most together"),
    )
    return Table("task-terms", "The measured terms: the worst under any load", columns, rows)


def _terms_of(on: OnCpu) -> list[tuple[object, ...]]:
    measured, terms = on.measured, on.measured.terms
    return [
        ("longest wake-up: each release is so much later", measured.cpu, measured.wakeups, terms.release_ns, None),
        (
            "median wake-up: what each job costs beside its compute time",
            measured.cpu,
            measured.wakeups,
            terms.dispatch_ns,
            None,
        ),
        *(
            (f"taken from a busy loop: {one.name}", measured.cpu, None, one.cost_ns, one.most_together)
            for one in terms.interference
        ),
    ]


def tasks_section(answer: TaskAnswer) -> Section | None:
    """None where nothing was measured that it could be of."""
    if not answer.cpus:
        return None
    return Section(
        "tasks",
        "The tasks of the application",
        f"{answer.word[0].upper()}{answer.word[1:]}. Response-time analysis of fixed priorities with what "
        "was measured here; measured terms are no bounds, so that this is never a PASS.",
        [_responses(answer), _margins(answer), _terms(answer)],
    )
