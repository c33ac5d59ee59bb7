# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm run``: the farm at work."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from fastenough.cli.output import say
from fastenough.farm.config import read_farm
from fastenough.farm.run import FarmRun

farm_argument: Callable[[Any], Any] = click.argument(
    "file", type=click.Path(path_type=Path, dir_okay=False), metavar="FARM.toml")


def _say(line: str) -> None:
    say(line)
    sys.stdout.flush()


async def _run(farm: FarmRun) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, farm.end)
    await farm.run()


@click.command("run")
@farm_argument
def command(file: Path) -> None:
    """Switch, measure and pull the boards of FARM.toml for as long as this runs.

    Each act on a board is a process of its own that is killed when its time is up, so that one board never holds up
    another.  A line each minute says how the boards stand.  Ctrl-C or SIGTERM ends it in order: places are released,
    and boards go on recording by themselves.
    """
    asyncio.run(_run(FarmRun(read_farm(file), _say)))
