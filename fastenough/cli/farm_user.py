# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm user``: users of the NATS server of a fleet."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from fastenough.cli.commands import Command, Group
from fastenough.cli.options import json_option
from fastenough.cli.output import print_json, print_table
from fastenough.fleet.access import FleetUsers, Role, configuration

_users_option = click.option(
    "--users",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("fastenough-data/fleet-users.json"),
    show_default=True,
    help="File with the users and the hashes of their passwords.",
)


@click.group("user", cls=Group)
def command() -> None:
    """Manage the users of the NATS server of a fleet.

    Each board has a user of its own, which can use only the topics of its machine id.  Each site is an account: its
    users see nothing of other sites.
    """


@command.command(cls=Command, example="fastenough farm user add taker1 --role taker --site lab")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--site", required=True, help="Site of the users.")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    default=Role.BOARD.value,
    show_default=True,
    help="Boards publish, takers store, operators send orders.",
)
@_users_option
@json_option
def add(names: tuple[str, ...], site: str, role: str, path: Path, as_json: bool) -> None:
    """Create users and print their passwords.

    The NAME of a board is its machine id.  The passwords cannot be printed again; only their hashes are stored.
    """
    passwords = FleetUsers(path).add(names, Role(role), site)
    if as_json:
        print_json({"passwords": passwords})
    else:
        for name, password in passwords.items():
            print(f"{name} {password}")


@command.command("list", cls=Command, example="fastenough farm user list")
@_users_option
@json_option
def list_command(path: Path, as_json: bool) -> None:
    """List the users.

    Their passwords are not stored.
    """
    users = FleetUsers(path).listed()
    if as_json:
        print_json({"users": [user.grants for user in users]})
    elif users:
        print_table(
            "",
            ("name", "role", "site", "created"),
            [
                (user.name, user.role, user.site, f"{datetime.fromtimestamp(user.created_s, UTC):%Y-%m-%d %H:%MZ}")
                for user in users
            ],
            texts=4,
        )
    else:
        print(f"no users in {path}")


@command.command(cls=Command, example="fastenough farm user revoke taker1")
@click.argument("name")
@_users_option
@json_option
def revoke(name: str, path: Path, as_json: bool) -> None:
    """Remove a user.

    NAME loses access when the server has read the new configuration (farm user conf).
    """
    revoked = FleetUsers(path).revoke(name)
    if as_json:
        print_json({"revoked": revoked.grants})
    else:
        print(f"{revoked.name}: removed; update users.conf (fastenough farm user conf) and send SIGHUP to the server")


@command.command(cls=Command, example="fastenough farm user conf > users.conf")
@_users_option
@json_option
def conf(path: Path, as_json: bool) -> None:
    """Print the accounts of the server's configuration.

    nats.conf includes them.  A running server reads them again after SIGHUP.
    """
    text = configuration(FleetUsers(path).listed())
    if as_json:
        print_json({"configuration": text})
    else:
        print(text, end="")
