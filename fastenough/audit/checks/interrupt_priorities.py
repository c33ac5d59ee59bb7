# SPDX-License-Identifier: GPL-2.0-or-later
"""Interrupt threads that all have one priority."""

from __future__ import annotations

from fastenough import words
from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, done, fine


def _look(facts: Facts) -> Seen:
    threads = [each for each in facts.interrupt_threads() if str(each["comm"]).startswith("irq/")]
    priorities = {int(each["priority"]) for each in threads if each["policy"] in ("fifo", "rr")}
    if len(threads) < 2 or len(priorities) > 1:
        return fine(
            f"{words.counted(len(threads), 'interrupt thread')}, of "
            f"{words.counted(len(priorities), 'priority').replace('prioritys', 'priorities')}"
        )
    return costs(
        f"all {len(threads)} interrupt threads have priority {min(priorities, default=0)}",
        done("chrt -f -p PRIORITY the thread of the interrupt that a task waits for (setting irq-threads)"),
    )


CHECK = Check(
    "interrupt-priorities",
    "priorities of interrupt threads",
    Group.INTERRUPTS,
    Severity.LOW,
    _look,
    why="The thread of the interrupt that a task waits for queues behind those of all other devices, in the order in "
    "which they came.",
    source="Brown and Martin, section 3.6; kernel: kernel/irq/manage.c (sched_set_fifo)",
    elsewhere="the other devices are served later",
)
