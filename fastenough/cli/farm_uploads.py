# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm token`` and ``farm push``: upload tokens, and uploads to the website of a farm."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from fastenough.cli.commands import Command, Group
from fastenough.cli.options import existing_store, json_option, store_option
from fastenough.cli.output import clean, print_json, print_table
from fastenough.farm.push import parse_goal, push
from fastenough.farm.tokens import UPLOADS_AN_HOUR, Tokens
from fastenough.files import Untrusted, read_regular
from fastenough.model import BadInput

tokens_option = click.option(
    "--tokens",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("fastenough-data/tokens.json"),
    show_default=True,
    help="File with the hashes of the tokens.",
)


@click.group("token", cls=Group)
def farm_token_command() -> None:
    """Manage upload tokens.

    A token permits one bench to upload recordings of named boards to the website of a farm.
    """


@farm_token_command.command(example="fastenough farm token add bench1 --board rpi4")
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


@farm_token_command.command("list", example="fastenough farm token list")
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


@farm_token_command.command(example="fastenough farm token revoke bench1")
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


TOKEN_SETTING = "FASTENOUGH_TOKEN"
_MOST_TOKEN_BYTES = 4096


def _token(file: Path | None) -> str:
    """The token, from a file or the environment; every user of the machine can read arguments."""
    if file is None:
        token = os.environ.get(TOKEN_SETTING, "")
    else:
        try:
            token = read_regular(file, _MOST_TOKEN_BYTES).decode()
        except (OSError, Untrusted, UnicodeDecodeError) as error:
            raise BadInput(f"--token-file {file}: cannot read the token: {error}") from error
    token = token.strip()
    if not token.isascii() or not token.isprintable() or not token:
        raise BadInput(
            f"no token; pass the token that 'fastenough farm token add' printed, by --token-file FILE or as "
            f"{TOKEN_SETTING} in the environment"
        )
    return token


@click.command("push", cls=Command, example="fastenough farm push last --to https://farm.example --token-file token")
@click.argument("runs", nargs=-1, required=True)
@click.option("--to", required=True, metavar="URL", help="Address of the farm's website, as in https://HOST.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"File with the token  [default: {TOKEN_SETTING} in the environment]",
)
@store_option
@json_option
def farm_push_command(runs: tuple[str, ...], to: str, token_file: Path | None, store_path: Path, as_json: bool) -> None:
    """Send runs to the website of a farm.

    RUNS are ids, beginnings of ids, or 'last'.  The website stores each run once.
    """
    goal, token = parse_goal(to), _token(token_file)
    store = existing_store(store_path)
    stored: dict[str, bool] = {}
    for run in store.find_all(runs):
        with store.opened(run) as recording:
            stored[run] = push(goal, token, run, recording, os.fstat(recording.fileno()).st_size)
        if not as_json:
            print(f"{run}: {'stored' if stored[run] else 'already stored'} at {clean(goal.host)}")
    if as_json:
        print_json({"stored": stored})
