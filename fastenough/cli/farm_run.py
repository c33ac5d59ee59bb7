# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm run``: a running farm."""

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

from fastenough.cli.commands import Command
from fastenough.cli.options import json_option
from fastenough.cli.output import say
from fastenough.farm.config import read_farm
from fastenough.farm.run import FarmRun

farm_argument: Callable[[Any], Any] = click.argument(
    "file", type=click.Path(path_type=Path, dir_okay=False), metavar="FARM.toml"
)


def _say(line: str) -> None:
    say(line)
    sys.stdout.flush()


def _say_json(line: str) -> None:
    """Print one JSON object per line."""
    print(json.dumps({"at_s": time.time(), "said": line}), flush=True)


def line_printer(as_json: bool) -> Callable[[str], None]:
    """A printer of the lines of a farm, as text or JSON."""
    return _say_json if as_json else _say


async def _run(farm: FarmRun) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, farm.end)
    await farm.run()


@click.command("run", cls=Command, example="fastenough farm run FARM.toml")
@farm_argument
@json_option
def command(file: Path, as_json: bool) -> None:
    """Run a farm: switch, measure and pull its boards.

    Runs until Ctrl-C or SIGTERM, with a status line each minute.  Each action on a board is a process of its own with
    a time limit, so that no board delays another.  At the end places are released; boards continue to record.
    """
    asyncio.run(_run(FarmRun(read_farm(file), line_printer(as_json))))
