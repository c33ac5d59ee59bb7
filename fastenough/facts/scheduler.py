# SPDX-License-Identifier: GPL-2.0-or-later
"""Scheduler: fair server, available preemption models (debugfs), isolated partitions (control groups)."""

from __future__ import annotations

import re
from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs

_DEBUG = "/sys/kernel/debug/sched/"
_FAIR = _DEBUG + "fair_server/cpu*/{}"
_PARTITIONS = "/sys/fs/cgroup/cpuset.cpus.isolated"


class SchedulerDebugFact(TypedDict):
    """Values of debugfs.

    ``fair_server``: ``runtime_ns`` and ``period_ns`` by CPU; ``nr_migrate``: tasks moved at once, None if unknown;
    ``preemption``: the models available at run time.
    """

    fair_server: dict[str, dict[str, int]]
    nr_migrate: int | None
    preemption: list[str]


def _debugfs(inputs: Inputs) -> SchedulerDebugFact:
    choices = inputs.get(_DEBUG + "preempt")
    fair = {cpu: {"runtime_ns": int(text)} for (cpu,), text in inputs.matching(_FAIR.format("runtime"))}
    for (cpu,), text in inputs.matching(_FAIR.format("period")):
        fair.setdefault(cpu, {})["period_ns"] = int(text)
    migrated = inputs.number(_DEBUG + "nr_migrate")
    if choices is None and not fair and migrated is None:
        raise Absent("debugfs cannot be read here (not mounted, or only for root)")
    return {"fair_server": fair, "nr_migrate": migrated, "preemption": re.findall(r"\w+", choices or "")}


def _partitions(inputs: Inputs) -> str:
    """The CPUs of isolated cpuset partitions, in the kernel's list form."""
    return inputs.text(_PARTITIONS)


FACTS = (
    Fact(
        "scheduler_debug",
        _debugfs,
        files=(_DEBUG + "preempt", _DEBUG + "nr_migrate", _FAIR.format("runtime"), _FAIR.format("period")),
    ),
    Fact("isolated_partitions", _partitions, files=(_PARTITIONS,)),
)
