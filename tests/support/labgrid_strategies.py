# SPDX-License-Identifier: GPL-2.0-or-later
"""Strategies as a lab writes them, imported by its environment file: power, and a boot loader at the console.

labgrid runs this file, not the tests.  Both talk on standard output, as such code does.
"""

from __future__ import annotations

import enum
import time

import attr
from labgrid import step, target_factory
from labgrid.strategy import GraphStrategy, Strategy
from labgrid.strategy.common import never_retry

_BINDINGS = {"power": "PowerProtocol", "console": "ConsoleProtocol"}
_ANSWER_S = 8


class Status(enum.Enum):
    unknown = 0
    off = 1
    stock = 2
    rt = 3
    burnt = 4
    stuck = 5


def switch_off(strategy: Strategy) -> None:
    print("off")
    strategy.target.deactivate(strategy.console)
    strategy.target.activate(strategy.power)
    strategy.power.off()


def boot(strategy: Strategy, kernel: str) -> None:
    print(f"booting {kernel}")
    strategy.power.on()
    strategy.target.activate(strategy.console)
    strategy.console.expect("boot> ", timeout=_ANSWER_S)
    strategy.console.sendline(kernel)
    strategy.console.expect(f"{kernel} is up", timeout=_ANSWER_S)


@target_factory.reg_driver
@attr.s(eq=False)
class BootStrategy(Strategy):
    """``burnt`` never comes up, ``stuck`` waits for ever."""

    bindings = _BINDINGS
    status: Status = attr.ib(default=Status.unknown)

    @never_retry
    @step(args=["status"])
    def transition(self, status: str | Status) -> None:
        wanted = Status[status] if isinstance(status, str) else status
        if wanted == Status.stuck:
            time.sleep(3600)
        switch_off(self)
        if wanted != Status.off:
            boot(self, wanted.name)
        self.status = wanted


@target_factory.reg_driver
@attr.s(eq=False)
class BootGraph(GraphStrategy):
    bindings = _BINDINGS

    def state_unknown(self) -> None:
        """Where it begins."""

    @GraphStrategy.depends("unknown")
    def state_off(self) -> None:
        switch_off(self)

    @GraphStrategy.depends("off")
    def state_rt(self) -> None:
        boot(self, "rt")


@target_factory.reg_driver
@attr.s(eq=False)
class MuteStrategy(Strategy):
    """It does not say its states."""

    bindings = _BINDINGS
    status: str = attr.ib(default="unknown")
