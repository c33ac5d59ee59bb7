# SPDX-License-Identifier: GPL-2.0-or-later
"""Who delays real-time tasks: the culprits of the worst wake-ups, load by load."""

from __future__ import annotations

from fastenough.analysis import words
from fastenough.analysis.stations import Blamed, blamed, worst_wakeups
from fastenough.report.context import Context, Group
from fastenough.report.document import Column, Section, Table, Text
from fastenough.report.sections.stations import named

_MOST = 15
_RULE = (
    "To blame is what took at least half of the longest station (an interrupt, a soft-IRQ), else the task itself "
    "(it was not done when its next timer was due), else the task that had the CPU, else the idle state that was "
    "left. What a hypervisor or system management interrupts took is known of whole intervals only: it is told, "
    "and not blamed."
)
_LOST = {
    "monitor_unmatched": "could not be followed to their end",
    "monitor_dropped": "found no room",
    "monitor_suppressed": "were not seen, since the kernel suppressed tracing meanwhile",
    "monitor_no_return": "have no return to user space that the kernel told of, and count in the stations before",
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
    """What the monitor itself says it did not see."""
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
            Column("to blame", numeric=False),
            Column("station", numeric=False),
            Column("wake-ups"),
            Column("longest [µs]", words.microseconds),
            Column("delayed", numeric=False),
            Column("the worst of them", numeric=False),
        )
        rest = f" {len(rows) - _MOST} more are not shown." if len(rows) > _MOST else ""
        parts.append(
            Table(
                "culprits",
                "Who is to blame for the wake-ups that were recorded one by one",
                columns,
                rows[:_MOST],
                note=f"{_RULE}{rest}",
            )
        )
    else:
        parts.append(Text("No wake-up was recorded with its culprit."))
    if lost:
        parts.append(Text("What the monitor did not see:", lost))
    return Section("culprits", "Who is to blame", "", parts)
