# SPDX-License-Identifier: GPL-2.0-or-later
"""Manual boot: asks a person to boot a board in another configuration, and waits."""

from __future__ import annotations

import select
import sys
from dataclasses import dataclass

from fastenough.campaign import Stopping
from fastenough.cli.live import Display
from fastenough.cli.output import clean
from fastenough.model import BadInput

_LOOK_S = 0.2


@dataclass
class ManualBoot:
    """``booted``: the configuration that is booted already, for which there is no prompt."""

    display: Display
    stopping: Stopping
    booted: str | None = None

    def __call__(self, board: str, configuration: str, why: str) -> None:
        """Returns when the person has pressed Enter; raises BadInput without a terminal, KeyboardInterrupt to end."""
        if self.booted == configuration and not why:
            self.booted = None
            return
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            because = f"{why}; " if why else ""
            raise BadInput(
                f"{because}{board} must be booted manually as {configuration}, and there is no terminal for a "
                f"prompt; boot it, then run: fastenough campaign resume --booted {configuration}"
            )
        with self.display.still():
            if why:
                self.display.tell(why)
            self.display.tell(
                f"boot {board} as {configuration}, then press Enter (Ctrl-C stops; "
                "resume later with: fastenough campaign resume)"
            )
            self._wait()

    def _wait(self) -> None:
        while not select.select([sys.stdin], [], [], _LOOK_S)[0]:
            if self.stopping.asked:
                raise KeyboardInterrupt
        if not clean(sys.stdin.readline()):
            raise BadInput("no answer: standard input is closed; resume with: fastenough campaign resume")
