# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm``: one file per command, one line here for each."""

from __future__ import annotations

import click

from fastenough.cli.lazy import LazyGroup

COMMANDS = {
    "run": ("fastenough.cli.farm_run", "Switch, measure and pull the boards of FARM.toml for as long as this runs."),
    "status": ("fastenough.cli.farm_status", "Say how each board of FARM.toml stands, and why."),
    "try": (
        "fastenough.cli.farm_try",
        "Show a whole farm with its website on this machine, without hardware, until Ctrl-C.",
    ),
    "board": ("fastenough.cli.farm_board", "Retire, rename or withdraw a board of FARM.toml."),
    "rebuild": ("fastenough.cli.farm_rebuild", "Make the history of FARM.toml anew from its store."),
    "alert": (
        "fastenough.cli.farm_alert",
        "Tell of each new maximum, changed tail, FAIL and silent board of FARM.toml, once, until it is accepted.",
    ),
    "bisect": (
        "fastenough.cli.farm_bisect",
        "Find the first of CONFIGURATIONS with which a board is too slow: the first is good, the last is bad.",
    ),
    "token": ("fastenough.cli.farm_token", "Say which benches may upload recordings, and of which boards."),
    "push": (
        "fastenough.cli.farm_push",
        "Send RUNS (ids, the beginnings of ids, or 'last') to a farm's website; each is stored there once.",
    ),
}
"""Subcommand name to its module and the first sentence of its help."""


@click.group(cls=LazyGroup, lazily=COMMANDS)
def command() -> None:
    """Many boards, watched for years: switched, measured and pulled by themselves."""
