# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm token``: who may upload recordings."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from fastenough.cli.output import print_json, print_table
from fastenough.cli.parameters import json_option
from fastenough.farm.tokens import UPLOADS_AN_HOUR, Tokens

tokens_option = click.option(
    "--tokens",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("fastenough-data/tokens.json"),
    show_default=True,
    help="File of the tokens' hashes.",
)


@click.group()
def command() -> None:
    """Say which benches may upload recordings, and of which boards."""


@command.command()
@click.argument("name")
@click.option(
    "--board",
    "boards",
    multiple=True,
    required=True,
    metavar="BOARD",
    help="Whose recordings it may upload; may be given several times.",
)
@click.option(
    "--per-hour",
    type=click.IntRange(1, 100_000),
    default=UPLOADS_AN_HOUR,
    show_default=True,
    help="How many recordings in an hour.",
)
@tokens_option
@json_option
def add(name: str, boards: tuple[str, ...], per_hour: int, path: Path, as_json: bool) -> None:
    """Make a token for the bench NAME, and print it: it cannot be shown again."""
    token = Tokens(path).add(name, boards, per_hour)
    if as_json:
        print_json({"name": name, "token": token})
    else:
        print(token)


@command.command("list")
@tokens_option
@json_option
def list_command(path: Path, as_json: bool) -> None:
    """The tokens there are; their secrets are not kept."""
    tokens = Tokens(path).listed()
    if as_json:
        print_json({"tokens": [token.grants for token in tokens]})
    elif tokens:
        print_table(
            "",
            ("name", "id", "boards", "made", "an hour"),
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
        print(f"no token is in {path}: nobody may upload")


@command.command()
@click.argument("token")
@tokens_option
@json_option
def revoke(token: str, path: Path, as_json: bool) -> None:
    """Make TOKEN, a name or an id, worthless at once."""
    revoked = Tokens(path).revoke(token)
    if as_json:
        print_json({"revoked": revoked.grants})
    else:
        print(f"{revoked.name} may upload no more")
