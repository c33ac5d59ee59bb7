# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm push``: send recordings to the website of a farm."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fastenough.cli.commands import Command
from fastenough.cli.options import existing_store, json_option, store_option
from fastenough.cli.output import clean, print_json
from fastenough.farm.push import parse_goal, push
from fastenough.files import Untrusted, read_regular
from fastenough.model import BadInput

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


@click.command(cls=Command, example="fastenough farm push last --to https://farm.example.org --token-file token")
@click.argument("runs", nargs=-1, required=True)
@click.option("--to", required=True, metavar="URL", help="Address of the farm's website, as in https://HOST.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"File with the token  [default: {TOKEN_SETTING} in the environment]",
)
@store_option
@json_option
def command(runs: tuple[str, ...], to: str, token_file: Path | None, store_path: Path, as_json: bool) -> None:
    """Send runs to the website of a farm.

    RUNS are ids, beginnings of ids, or 'last'.  The website stores each run once.
    """
    goal, token = parse_goal(to), _token(token_file)
    store = existing_store(store_path)
    stored: dict[str, bool] = {}
    for run in dict.fromkeys(map(store.find, runs)):
        with store.opened(run) as recording:
            stored[run] = push(goal, token, run, recording, os.fstat(recording.fileno()).st_size)
        if not as_json:
            print(f"{run}: {'stored' if stored[run] else 'already stored'} at {clean(goal.host)}")
    if as_json:
        print_json({"stored": stored})
