# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm take``: store the recordings that boards publish."""

from __future__ import annotations

import asyncio
import re
import signal
from typing import TypedDict, Unpack

import click

from fastenough.cli.commands import Command
from fastenough.cli.farm_boards import line_printer
from fastenough.cli.options import DURATION, json_option
from fastenough.fleet import tables
from fastenough.fleet.archive import FleetArchive
from fastenough.fleet.chunk import SHARDS
from fastenough.fleet.stream import ChunkStream, shards_of
from fastenough.fleet.taker import Shard, Taker
from fastenough.model import BadInput

_DEFAULT_GATHER_NS = 30 * 10**9


def _part_of(text: str) -> tuple[int, int]:
    """Index of a taker, from 0, and the number of takers, from a text such as ``1/2``; raises BadInput."""
    match = re.fullmatch(r"(\d{1,2})/(\d{1,2})", text)
    number, takers = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= takers <= SHARDS:
        raise BadInput(f"--part {text}: write the number of this taker and of all takers, at most {SHARDS}, as in 1/2")
    return number - 1, takers


archive_option = click.option(
    "--archive",
    required=True,
    metavar="DIR|URL",
    help="Directory of the Parquet files, or an object store as in s3://BUCKET/FOLDER.",
)
database_option = click.option(
    "--database",
    default="sqlite:///history.sqlite",
    show_default=True,
    metavar="URL",
    help="URL of the history's database.",
)


class _Taking(TypedDict):
    archive: str
    part: str
    site: str
    gather_ns: int


@click.command("take", cls=Command, example="fastenough farm take --nats nats://127.0.0.1:4222 --archive archive")
@click.option(
    "--nats", "server", required=True, metavar="URL", help="URL of the NATS server, as in nats://127.0.0.1:4222."
)
@archive_option
@database_option
@click.option(
    "--part",
    default="1/1",
    show_default=True,
    metavar="N/ALL",
    help="Number of this taker and of all takers, as in 1/2.",
)
@click.option("--site", default="", metavar="NAME", help="Site of these boards, as in the file of web --access.")
@click.option(
    "--gather",
    "gather_ns",
    type=DURATION,
    default=_DEFAULT_GATHER_NS,
    help="Time for which chunks are collected into one Parquet file  [default: 30s]",
)
@json_option
def command(server: str, database: str, as_json: bool, **taking: Unpack[_Taking]) -> None:
    """Store the recordings that boards publish.

    Reads the chunks in a NATS JetStream until Ctrl-C or SIGTERM, and stores each interval once, in the database and the
    archive.  It may be killed at any time.  Several takers share the boards, each with its own --part.
    """
    number, takers = _part_of(taking["part"])
    archive, history = FleetArchive(taking["archive"]), tables.opened(database)

    async def run() -> None:
        stream = await ChunkStream.opened(server)
        shards = [Shard(history, archive, shard, taking["site"]) for shard in shards_of(number, takers)]
        work = asyncio.ensure_future(Taker(stream, shards, taking["gather_ns"] / 1e9, line_printer(as_json)).run())
        for end in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(end, work.cancel)
        try:
            await work
        except asyncio.CancelledError:
            await stream.close()

    asyncio.run(run())
