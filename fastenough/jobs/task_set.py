# SPDX-License-Identifier: GPL-2.0-or-later
"""The requirement of an application: its tasks as text, and the measurements they require."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from fastenough.analysis.response_time import PeriodicTask
from fastenough.analysis.task_set import TaskSet
from fastenough.campaign import Entry, Plan
from fastenough.jobs.assess import ASSESSED, SHORTEST_RUN_NS
from fastenough.model import BadInput, Requirement
from fastenough.units import parse_duration_ns

MOST_TASKS = 32
_TIMES = {
    "period": "period_ns",
    "compute": "compute_ns",
    "deadline": "deadline_ns",
    "jitter": "jitter_ns",
    "blocking": "blocking_ns",
}
_NUMBERS = {"priority": (1, 99), "cpu": (0, 4095)}
_KEYS = ("name", *_TIMES, *_NUMBERS)
_NAME = re.compile(r"[\w.+-]{1,32}", re.ASCII)
_SHORTEST_PERIOD_NS, _LONGEST_PERIOD_NS = 5_000, 10 * 10**9
"""Range of the timer of the probe."""
_STRETCH = "20ms"
"""Window of the probe `spin` in which gaps are counted; all gaps of a window may be adjacent."""
_EXAMPLE = "period=1ms compute=200us deadline=800us"


# --- tasks as people write them


def task_set_of(texts: Sequence[str]) -> TaskSet:
    """Parse one text per task; raises BadInput.

    Example: ``name=loop period=1ms compute=200us deadline=800us priority=80 cpu=2``.
    """
    if len(texts) > MOST_TASKS:
        raise BadInput(f"--task: {len(texts)} tasks given; at most {MOST_TASKS} are supported")
    pairs = [_pairs(text, place) for place, text in enumerate(texts, 1)]
    tasks = tuple(_task(task_pairs) for task_pairs in pairs)
    doubled = sorted({task.name for task in tasks if sum(task.name == other.name for other in tasks) > 1})
    if doubled:
        raise BadInput(f"--task: two tasks have the name {doubled[0]}; give each task a unique name=NAME")
    for key in _NUMBERS:
        if len({key in task_pairs for task_pairs in pairs}) > 1:
            without = next(task_pairs["name"] for task_pairs in pairs if key not in task_pairs)
            raise BadInput(f"--task: {key}= is missing for {without}; give it for all tasks, or for none")
    return TaskSet(
        tasks,
        tuple(_number(task_pairs, "cpu") for task_pairs in pairs if "cpu" in task_pairs),
        "priority" not in pairs[0],
    )


def _pairs(text: str, place: int) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for assignment in re.split(r"[\s,]+", text.strip()):
        key, equals, value = assignment.partition("=")
        if not equals or not value or key not in _KEYS:
            raise BadInput(
                f"--task: '{assignment[:40]}' is not one of {'=, '.join(_KEYS)}=; write a task as '{_EXAMPLE}'"
            )
        if key in pairs:
            raise BadInput(f"--task: {key}= is given twice in one task; use one --task per task")
        pairs[key] = value
    for needed in ("period", "compute"):
        if needed not in pairs:
            raise BadInput(f"--task: a task requires {needed}=, as in '{_EXAMPLE}'")
    return {"name": f"task{place}"} | pairs


def _task(pairs: dict[str, str]) -> PeriodicTask:
    name = pairs["name"]
    if not _NAME.fullmatch(name):
        raise BadInput("--task: name= must be up to 32 letters, digits and . _ + -")
    times = {field: _time_ns(name, key, pairs[key]) for key, field in _TIMES.items() if key in pairs}
    task = PeriodicTask(
        name,
        times["period_ns"],
        times["compute_ns"],
        times.get("deadline_ns", times["period_ns"]),
        _number(pairs, "priority") if "priority" in pairs else 0,
        times.get("jitter_ns", 0),
        times.get("blocking_ns", 0),
    )
    if not _SHORTEST_PERIOD_NS <= task.period_ns <= _LONGEST_PERIOD_NS:
        raise BadInput(f"--task: period={pairs['period']} of {name} must be between 5us and 10s")
    if task.deadline_ns > 100 * task.period_ns:
        raise BadInput(
            f"--task: deadline={pairs['deadline']} of {name} is longer than 100 periods; use a shorter deadline"
        )
    return task


def _time_ns(name: str, key: str, text: str) -> int:
    if key in ("jitter", "blocking") and text in ("0", "0s", "0ns", "0us", "0ms"):
        return 0
    try:
        return parse_duration_ns(text)
    except ValueError as error:
        raise BadInput(f"--task: {key}= of {name}: {error}") from error


def _number(pairs: dict[str, str], key: str) -> int:
    low, high = _NUMBERS[key]
    text = pairs[key]
    if not re.fullmatch(r"[0-9]{1,4}", text) or not low <= int(text) <= high:
        raise BadInput(f"--task: {key}={text[:40]} of {pairs['name'][:32]} must be a number from {low} to {high}")
    return int(text)


# --- what is measured


def task_plan(
    board: str,
    task_set: TaskSet,
    loads: Sequence[str],
    duration_ns: int,
    priority: int,
    *,
    required: Callable[[int], Requirement],
    monitor: bool = False,
) -> Plan:
    """The runs to make: a timer per period and a busy loop, under each load, on the CPUs of the tasks.

    ``required``: what must hold of a latency with this limit; of each period it is what the least patient task of it
    can wait before it computes.  ``priority``: of tasks that state none.  Raises BadInput where the time is too short.
    """
    groups: dict[tuple[int, int, int | None], list[PeriodicTask]] = {}
    for place, task in enumerate(task_set.tasks):
        where = task_set.cpus[place] if task_set.cpus else None
        groups.setdefault((task.period_ns, task.priority or priority, where), []).append(task)
    parts = len(loads) * (len(groups) + 1)
    each_ns = duration_ns // parts
    if each_ns < SHORTEST_RUN_NS:
        raise BadInput(
            f"--duration is split among {parts} runs, which leaves less than 1 s for each; use at least {parts}s"
        )
    timers = tuple(
        Entry(
            ASSESSED,
            tuple(loads),
            each_ns / 1e9,
            {"interval": (f"{period_ns}ns",), "priority": (level,), **_on(() if cpu is None else (cpu,))},
            requirement=required(max(1, min(task.deadline_ns - task.compute_ns for task in tasks))),
        )
        for (period_ns, level, cpu), tasks in groups.items()
    )
    lowest = min((level for _, level, _ in groups), default=priority)
    busy = Entry(
        "spin", tuple(loads), each_ns / 1e9, {"priority": (lowest,), "report": (_STRETCH,), **_on(task_set.cpus)}
    )
    return Plan("assess-tasks", (*timers, busy), boards=(board,), monitor=monitor)


def _on(cpus: Sequence[int]) -> dict[str, tuple[str, ...]]:
    return {"affinity": (",".join(map(str, sorted(set(cpus)))),)} if cpus else {}
