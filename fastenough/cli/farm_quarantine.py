# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm quarantine``: machine ids that two boards use."""

from __future__ import annotations

import getpass
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime

import click

from fastenough.cli.commands import Command, Group
from fastenough.cli.farm_take import database_option
from fastenough.cli.options import json_option
from fastenough.cli.output import clean, print_json, print_table, say
from fastenough.fleet import quarantine, tables
from fastenough.model import BadInput


@click.group("quarantine", cls=Group)
def command() -> None:
    """List and lift quarantines.

    Takers quarantine a machine id when two boards publish under it, and refuse the recordings of both.
    """


@command.command("list", cls=Command, example="fastenough farm quarantine list")
@database_option
@json_option
def list_command(database: str, as_json: bool) -> None:
    """List quarantined machine ids and lifted quarantines.

    A machine id is quarantined if two boards publish under it: their recordings are not stored.
    """
    with closing(tables.opened(database)) as history:
        machines, lifted = quarantine.quarantined(history), quarantine.lifted(history)
    if as_json:
        print_json(
            {"quarantined": [asdict(machine) for machine in machines], "lifted": [asdict(entry) for entry in lifted]}
        )
        return
    if machines:
        print_table(
            "Quarantined",
            ("Machine", "Type", "Reason"),
            [(machine.machine, machine.type, machine.fault) for machine in machines],
            texts=3,
        )
    else:
        say("No machine id is quarantined.")
    if lifted:
        print_table(
            "Lifted",
            ("Machine", "Time", "By", "Reason"),
            [
                (one.machine, f"{datetime.fromtimestamp(one.at_s, UTC):%Y-%m-%d %H:%MZ}", one.by, one.reason)
                for one in lifted
            ],
            texts=4,
        )


def _user_name() -> str:
    """Name of the user; raises BadInput if it has none, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise BadInput("this user has no name; write one with --by NAME") from None


@command.command(
    cls=Command, example='fastenough farm quarantine lift MACHINE --reason "the copy has a new machine id"'
)
@click.argument("machine")
@click.option("--reason", required=True, metavar="TEXT", help="Recorded reason.")
@click.option("--by", metavar="NAME", help="Recorded name of the operator  [default: the user's name]")
@database_option
@json_option
def lift(machine: str, reason: str, by: str | None, database: str, as_json: bool) -> None:
    """Accept the recordings of a quarantined board again.

    Give one of the two boards a new machine id first.  Name, time and reason are recorded.  If two boards still
    publish under MACHINE, it is quarantined again.
    """
    with closing(tables.opened(database)) as history:
        done = quarantine.lift(history, machine, by or _user_name(), reason)
    if as_json:
        print_json({"lifted": asdict(done)})
    else:
        say(clean(f"{done.machine}: quarantine lifted by {done.by}"))
