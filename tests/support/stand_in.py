# SPDX-License-Identifier: GPL-2.0-or-later
"""An implementation whose tasks need no pins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fastenough.board import Booted
from fastenough.implementations import Act, Counted, Tally, TaskKind
from fastenough.implementations.linux_user import probe_arguments
from fastenough.implementations.task import Task
from fastenough.settings import Settings


class StandIn:
    """Any task of this machine, in the place of one that follows a pin."""

    name = "stand-in"
    kind = TaskKind.LINUX_USER
    line_thread = ""

    def check(self, probe: str, parameters: object, known: object) -> None:
        """It can do everything."""

    def needs(self, booted: Booted) -> None:
        """It needs nothing."""

    @contextmanager
    def start(self, booted: Booted, act: Act, settings: Settings) -> Iterator[Task]:
        supported = ("interval", "report", "allow-difference")
        parameters = {name: value for name, value in act.parameters.items() if name in supported}
        with Task(booted.link, [booted.probe, *probe_arguments(Act("timer", parameters))], act.limit_s) as task:
            yield task

    def counted(self, booted: Booted, act: Act, tally: Tally) -> Counted:
        return Counted(tally.stored, tally.stored, tally.lost)
