# SPDX-License-Identifier: GPL-2.0-or-later
"""``python -m fastenough``, and what the installed command starts."""

from __future__ import annotations

import os
import signal
from types import FrameType


def _leave(number: int, frame: FrameType | None) -> None:
    """Nothing is open yet: end at once, with the status that stands for the signal."""
    os._exit(128 + number)


def main() -> None:
    """The command line; signals have their exit statuses also while it is being loaded."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    from fastenough.cli import main as command_line  # noqa: PLC0415 - loading it takes time, in which signals come

    command_line()


if __name__ == "__main__":
    main()
