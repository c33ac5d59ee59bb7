# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm``: one line here for each command."""

from __future__ import annotations

import click

from fastenough.cli.commands import LazyGroup

SECTIONS = {
    "Commands": {
        "run": ("fastenough.cli.farm_boards:farm_run_command", "Run a farm: switch, measure and pull its boards."),
        "status": ("fastenough.cli.farm_boards:farm_status_command", "Show the state of each board of a farm."),
        "try": ("fastenough.cli.farm_try", "Show a farm with its website, or a fleet, without hardware."),
        "take": ("fastenough.cli.farm_take", "Store the recordings that boards publish."),
        "quarantine": ("fastenough.cli.farm_quarantine", "List and lift quarantines."),
        "user": ("fastenough.cli.farm_user", "Manage the users of the NATS server of a fleet."),
        "order": ("fastenough.cli.farm_order", "Send a signed order to a board that publishes."),
        "compact": ("fastenough.cli.farm_compact", "Merge the files of closed months in the archive."),
        "judge": ("fastenough.cli.farm_judge", "Judge every board of an archive by a limit."),
        "first-change": ("fastenough.cli.farm_first_change", "Find the first board of an archive that changed."),
        "causes": ("fastenough.cli.farm_causes", "Rank the causes of long latencies over all boards."),
        "kernels": ("fastenough.cli.farm_kernels", "Compare kernels over the boards of an archive."),
        "board": ("fastenough.cli.farm_boards:farm_board_command", "Retire, rename or withdraw a board of a farm."),
        "rebuild": ("fastenough.cli.farm_boards:farm_rebuild_command", "Rebuild the history of a farm from its store."),
        "alert": ("fastenough.cli.farm_alert", "Send alerts on the boards of a farm."),
        "bisect": ("fastenough.cli.farm_bisect", "Find the first configuration that makes a board too slow."),
        "token": ("fastenough.cli.farm_uploads:farm_token_command", "Manage upload tokens."),
        "push": ("fastenough.cli.farm_uploads:farm_push_command", "Send runs to the website of a farm."),
    }
}
"""Heading to commands: name to module and attribute, and the first sentence of its help."""


@click.group(cls=LazyGroup, sections=SECTIONS, example="fastenough farm try")
def command() -> None:
    """Measure and watch many boards.

    A farm switches, measures and pulls the boards that FARM.toml names, for years (docs/farm.md).
    """
