# SPDX-License-Identifier: GPL-2.0-or-later
"""Causes of the worst wake-ups by load."""

from __future__ import annotations

from fastenough.analysis import words
from fastenough.analysis.stations import Blamed, blamed, worst_wakeups
from fastenough.report.context import Context, Group
from fastenough.report.document import Column, Section, Table, Text
from fastenough.report.sections.stations import named

_MOST = 15
_RULE = (
    "The cause is the interrupt or soft-IRQ that took at least half of the longest station; else the task itself, "
    "if it was still busy when its next timer was due; else the task that had the CPU; else the idle state that was "
    "left. The time of hypervisor and system management interrupts is known for whole intervals only: it is reported, "
    "but never named as the cause."
)
_LOST = {
    "monitor_unmatched": "were not followed to their end",
    "monitor_dropped": "were lost because a buffer was full",
    "monitor_suppressed": "were lost because the kernel suppressed tracing",
    "monitor_no_return": "have no traced return to user space; they count in the earlier stations only",
}


def _row(group: Group, found: Blamed) -> tuple[object, ...]:
    task = found.worst.culprit.get("task")
    return (
        group.title.removeprefix("load "),
        found.who,
        named(found.station) or "–",
        found.times,
        found.worst.delay_ns,
        "–" if task is None else str(task),
        found.worst.said or "–",
    )


def _lost(groups: tuple[Group, ...]) -> list[str]:
    """The losses that the monitor counted."""
    ends = [recording.end.counters for group in groups for recording in group.recordings if recording.end]
    counts = {name: sum(counters.get(name) or 0 for counters in ends) for name in _LOST}
    return [f"{words.counted(count, 'event')} {_LOST[name]}" for name, count in counts.items() if count]


def section(context: Context) -> Section | None:
    if not context.watched:
        return None
    rows = [_row(group, found) for group in context.watched for found in blamed(worst_wakeups(group.recordings))]
    lost = _lost(context.watched)
    parts: list[Table | Text] = []
    if rows:
        columns = (
            Column("load", numeric=False),
            Column("cause", numeric=False),
            Column("station", numeric=False),
            Column("wake-ups"),
            Column("longest [µs]", words.microseconds),
            Column("delayed task", numeric=False),
            Column("worst case", numeric=False),
        )
        rest = f" {len(rows) - _MOST} more are not shown." if len(rows) > _MOST else ""
        parts.append(
            Table(
                "culprits",
                "Causes of the individually recorded wake-ups",
                columns,
                rows[:_MOST],
                note=f"{_RULE}{rest}",
            )
        )
    else:
        parts.append(Text("No cause identified: no wake-up was recorded individually."))
    if lost:
        parts.append(Text("Events that the monitor missed", lost))
    return Section("culprits", "Causes", "", parts)
