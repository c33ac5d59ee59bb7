# SPDX-License-Identifier: GPL-2.0-or-later
"""Measuring the configurations that are bisected: each booted on its board, a timer measured under the loads."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import replace

from fastenough.board import Board
from fastenough.board.changed import Ask, Change
from fastenough.campaign import Plan, Progress, Stopping, run_campaign
from fastenough.campaign.changing import changing
from fastenough.farm.bisect import Measure
from fastenough.model import BadInput
from fastenough.recording import Recording
from fastenough.store import Store


class Stopped(Exception):
    """A signal ended it; ``signal``: its number."""

    def __init__(self, signal: int) -> None:
        super().__init__(f"interrupted by signal {signal}")
        self.signal = signal


def installing(plan: Plan, configurations: Sequence[str], install: Sequence[str], kernel: str = "") -> Plan:
    """The plan with these configurations, each installed on the board by a command whose words ``{}`` are its name.

    Without a command the board boots them itself, or a person does.  No shell is in between: a name is one word.
    ``kernel``: pattern of the kernel's release then, in which ``{}`` is the name too; empty: it must be another one.
    Raises BadInput for a command that names no configuration.
    """
    if install and "{}" not in install:
        raise BadInput(
            "--install does not contain {}, the placeholder of the configuration; write it as a word, such as "
            "--install 'install-kernel {}'"
        )
    if kernel and not install:
        raise BadInput("--kernel requires --install; remove --kernel or add --install")
    changes = {
        name: Change(tuple(name if word == "{}" else word for word in install), kernel.replace("{}", glob.escape(name)))
        for name in configurations
    }
    return replace(plan, configurations=tuple(configurations), changes=changes if install else {})


def measuring(
    plan: Plan,
    store: Store,
    on_progress: Callable[[Progress], None],
    *,
    opened: Callable[[str], Board],
    ask: Ask,
    stopping: Stopping,
    tell: Callable[[str], None],
) -> Measure:
    """What measures one of the plan's configurations for a given time, shared by the entries' loads.

    Raises Stopped where a signal ends it.
    """
    brought = changing(plan, opened, ask, {})

    def measure(configuration: str, duration_ns: int) -> list[Recording]:
        loads = sum(len(entry.loads) for entry in plan.entries)
        entries = tuple(replace(entry, duration_s=duration_ns / loads / 1e9) for entry in plan.entries)
        done = run_campaign(
            replace(plan, configurations=(configuration,), entries=entries),
            store,
            on_progress,
            opened=brought,
            stopping=stopping,
            tell=tell,
        )
        if done.stopped:
            raise Stopped(done.signal)
        return [store.load(run) for run in done.runs]

    return measure
