# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm try``: a farm on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from fastenough.cli.commands import Command
from fastenough.cli.farm_run import line_printer
from fastenough.cli.options import json_option
from fastenough.farm.lab import free_ports
from fastenough.link import LocalLink
from fastenough.model import FastenoughError
from fastenough.words import said_lines


@click.command("try", cls=Command, example="fastenough farm try --boards 5")
@click.option(
    "--boards", type=click.IntRange(1, 100), default=20, show_default=True, help="Number of simulated boards."
)
@click.option(
    "--guests",
    type=click.IntRange(0, 4),
    default=3,
    show_default=True,
    help="Number of guests of the virtual bench, each with its own kernel, if memory suffices.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the website on 127.0.0.1  [default: a free port]")
@json_option
def command(boards: int, guests: int, port: int | None, as_json: bool) -> None:
    """Show a farm with its website, without hardware.

    Runs until Ctrl-C, on loopback and in one temporary directory: a labgrid coordinator and exporter, simulated boards
    with a power switch and consoles, guests, a private PostgreSQL if installed, the farm and its website.  Everything
    is removed at the end.  Recordings of simulated boards are marked as emulated.
    """
    link, tell = LocalLink(), line_printer(as_json)
    folder = link.scratch_name()
    os.environ["PYTHONPATH"] = os.pathsep.join(
        (str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")]))
    )
    process = link.start(
        [
            sys.executable,
            "-m",
            "fastenough.farm.trial",
            folder,
            str(boards),
            str(guests),
            str(port or free_ports(1)[0]),
        ],
        scratch=folder,
    )
    try:
        for line in process.lines():
            tell("; ".join(said_lines(line)))
        status = process.wait()
    finally:
        if process.running:
            process.stop()
    why = (said_lines(process.stderr()) or [f"status {status}"])[-1]
    raise FastenoughError(f"the farm has ended: {why}")
