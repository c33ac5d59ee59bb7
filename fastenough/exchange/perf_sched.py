# SPDX-License-Identifier: GPL-2.0-or-later
"""``perf sched latency``: mean and maximum wait for a CPU in ms, for each task.

The number of switches is not that of waits, so the number of values and the weight of their mean are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from fastenough.exchange.imported import ImportedRun, ImportedSeries
from fastenough.exchange.source import LineReader, Source
from fastenough.model import Role

_TITLE = re.compile(
    r"\s*Task\s*\|\s*Runtime ms\s*\|\s*(?:Switches|Count)\s*\|\s*(?:Avg|Average) delay ms\s*\|\s*"
    r"(?:Max|Maximum) delay(?: ms)?\s*\|.*"
)
_ROW = re.compile(
    r"\s{2}(.{1,40}?):(\((\d+)\)|\d+)\s*\|\s*(\d+\.\d{3}) ms \|\s*(\d+) \|"
    r"\s*(?:avg:)?\s*(\d+\.\d{3}) ms \|\s*(?:max:)?\s*(\d+\.\d{3}) ms \|(.*)"
)
_TOTAL = re.compile(r"\s*TOTAL:\s*\|\s*(\d+\.\d{3}) ms \|\s*(\d+) \|\s*")
_LOST = re.compile(r"\s*INFO: .*")
_RULE = re.compile(r"\s*-+\s*")


class _Task(NamedTuple):
    name: str
    runtime_us: int
    switches: int
    mean_us: int
    most_us: int


class _PerfSched:
    what = "perf: sched latency"

    def recognises(self, source: Source) -> bool:
        return any(_TITLE.fullmatch(line) for line in source.lines[:50])

    def read(self, source: Source) -> ImportedRun:
        source.whole()
        tasks, facts = _tasks(LineReader(source))
        return ImportedRun("perf-sched", None, "linux-kernel", tuple(_series(tasks)), facts=facts)


IMPORTER = _PerfSched()


def _us(text: str) -> int:
    return int(text.replace(".", ""))


def _tasks(reading: LineReader) -> tuple[list[_Task], dict[str, str]]:
    tasks: list[_Task] = []
    facts: dict[str, str] = {}
    titled, ended = False, False
    for line in reading:
        if _TITLE.fullmatch(line):
            titled = True
        elif (match := _ROW.fullmatch(line)) and titled and not ended:
            tasks.append(
                _Task(
                    f"{match[1]}:{match[2]}",
                    _us(match[4]),
                    reading.count(match[5], "Switches"),
                    _us(match[6]),
                    _us(match[7]),
                )
            )
            if tasks[-1].mean_us > tasks[-1].most_us:
                reading.refuse("its mean is above its maximum: file modified")
        elif match := _TOTAL.fullmatch(line):
            ended = True
            if (
                int(match[2]) != sum(task.switches for task in tasks)
                or abs(_us(match[1]) - sum(task.runtime_us for task in tasks)) > len(tasks) + 1
            ):
                reading.refuse("its tasks do not add up to its TOTAL: file truncated or modified")
        elif _LOST.fullmatch(line):
            facts[f"note {len(facts) + 1}"] = line.strip()[:200]
        elif line.strip() and not _RULE.fullmatch(line) and titled:
            reading.refuse(f"not a line of perf: {line[:60]!r}")
    if not ended or not tasks:
        reading.refuse("it has no TOTAL line or no task: file truncated")
    return tasks, facts


def _series(tasks: list[_Task]) -> Iterator[ImportedSeries]:
    """Tasks with the same name and number are numbered in order.  A task that never waited is printed with 0."""
    count_by_name: dict[str, int] = {}
    for task in tasks:
        count_by_name[task.name] = count_by_name.get(task.name, 0) + 1
        labels = {"task": task.name} | ({"row": count_by_name[task.name]} if count_by_name[task.name] > 1 else {})
        waited = task.most_us > 0
        yield ImportedSeries(
            "runqueue",
            "the task becomes runnable",
            "it runs",
            1000,
            None,
            None,
            task.most_us if waited else None,
            None,
            labels=labels,
            role=Role.DIAGNOSTIC,
        )
