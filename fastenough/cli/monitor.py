# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough monitor``: what the service on boards records."""

from __future__ import annotations

import click

from fastenough.cli.monitor_pull import pull_command


@click.group()
def command() -> None:
    """Fetch what the service on a board has recorded."""


command.add_command(pull_command)
