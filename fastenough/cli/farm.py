# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm``: one file per command, one line here for each."""

from __future__ import annotations

import click

from fastenough.cli.lazy import LazyGroup

COMMANDS = {
    "run": ("fastenough.cli.farm_run", "Switch, measure and pull the boards of FARM.toml for as long as this runs."),
    "status": ("fastenough.cli.farm_status", "Say how each board of FARM.toml stands, and why."),
    "try": ("fastenough.cli.farm_try", "Show a whole farm with its website on this machine, without hardware, until "
            "Ctrl-C."),
    "rebuild": ("fastenough.cli.farm_rebuild", "Make the history of FARM.toml anew from its store."),
}
"""Subcommand name to its module and the first sentence of its help."""


@click.group(cls=LazyGroup, lazily=COMMANDS)
def command() -> None:
    """Many boards, watched for years: switched, measured and pulled by themselves."""
