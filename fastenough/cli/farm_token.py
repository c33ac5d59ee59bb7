# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm token``: upload tokens."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from fastenough.cli.commands import Group
from fastenough.cli.options import json_option
from fastenough.cli.output import print_json, print_table
from fastenough.farm.tokens import UPLOADS_AN_HOUR, Tokens

tokens_option = click.option(
    "--tokens",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("fastenough-data/tokens.json"),
    show_default=True,
    help="File with the hashes of the tokens.",
)


@click.group(cls=Group)
def command() -> None:
    """Manage upload tokens.

    A token permits one bench to upload recordings of named boards to the website of a farm.
    """


@command.command(example="fastenough farm token add bench1 --board rpi4")
@click.argument("name")
@click.option(
    "--board",
    "boards",
    multiple=True,
    required=True,
    metavar="BOARD",
    help="Board whose recordings may be uploaded; may be repeated.",
)
@click.option(
    "--per-hour",
    type=click.IntRange(1, 100_000),
    default=UPLOADS_AN_HOUR,
    show_default=True,
    help="Maximum number of uploads per hour.",
)
@tokens_option
@json_option
def add(name: str, boards: tuple[str, ...], per_hour: int, path: Path, as_json: bool) -> None:
    """Create a token for a bench and print it.

    The token for NAME cannot be printed again; only its hash is stored.
    """
    token = Tokens(path).add(name, boards, per_hour)
    if as_json:
        print_json({"name": name, "token": token})
    else:
        print(token)


@command.command("list", example="fastenough farm token list")
@tokens_option
@json_option
def list_command(path: Path, as_json: bool) -> None:
    """List the tokens.

    Their secrets are not stored.
    """
    tokens = Tokens(path).listed()
    if as_json:
        print_json({"tokens": [token.grants for token in tokens]})
    elif tokens:
        print_table(
            "",
            ("name", "id", "boards", "created", "per hour"),
            [
                (
                    token.name,
                    token.id,
                    ", ".join(token.boards),
                    f"{datetime.fromtimestamp(token.created_s, UTC):%Y-%m-%d %H:%MZ}",
                    str(token.per_hour),
                )
                for token in tokens
            ],
            texts=4,
        )
    else:
        print(f"no tokens in {path}; uploads are refused")


@command.command(example="fastenough farm token revoke bench1")
@click.argument("token")
@tokens_option
@json_option
def revoke(token: str, path: Path, as_json: bool) -> None:
    """Revoke a token.

    TOKEN is a name or an id.  The token is invalid at once.
    """
    revoked = Tokens(path).revoke(token)
    if as_json:
        print_json({"revoked": revoked.grants})
    else:
        print(f"{revoked.name}: token revoked")
