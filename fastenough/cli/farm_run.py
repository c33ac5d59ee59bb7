# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm run``: the farm at work."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from fastenough.cli.output import say
from fastenough.cli.parameters import json_option
from fastenough.farm.config import read_farm
from fastenough.farm.run import FarmRun

farm_argument: Callable[[Any], Any] = click.argument(
    "file", type=click.Path(path_type=Path, dir_okay=False), metavar="FARM.toml"
)


def _say(line: str) -> None:
    say(line)
    sys.stdout.flush()


def _say_json(line: str) -> None:
    """One object on a line."""
    print(json.dumps({"at_s": time.time(), "said": line}), flush=True)


def line_printer(as_json: bool) -> Callable[[str], None]:
    """What a farm says, line by line, for a person or for a program."""
    return _say_json if as_json else _say


async def _run(farm: FarmRun) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, farm.end)
    await farm.run()


@click.command("run")
@farm_argument
@json_option
def command(file: Path, as_json: bool) -> None:
    """Switch, measure and pull the boards of FARM.toml for as long as this runs.

    Each act on a board is a process of its own that is killed when its time is up, so that one board never holds up
    another.  A line each minute says how the boards stand.  Ctrl-C or SIGTERM ends it in order: places are released,
    and boards go on recording by themselves.
    """
    asyncio.run(_run(FarmRun(read_farm(file), line_printer(as_json))))
