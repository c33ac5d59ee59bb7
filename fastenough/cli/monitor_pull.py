# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough monitor pull``: recordings of the service on a board, into the store."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fastenough import words
from fastenough.board import AS_BOOTED, open_board
from fastenough.board.local import LocalBoard
from fastenough.cli.commands import Command
from fastenough.cli.output import print_json
from fastenough.cli.parameters import json_option
from fastenough.cli.stores import store_option
from fastenough.jobs.pull import Gap, Pulled, Stored, Told, pull
from fastenough.jobs.seen_board import SeenBoard
from fastenough.model import BadInput, ExitStatus
from fastenough.store import Store

RING = "/var/lib/fastenough/ring"
"""Directory of the ring of the service."""


def _stored(one: Stored) -> str:
    how = one.outcome or "interrupted"
    intervals = words.counted(one.intervals, "interval")
    unknown = "" if one.profile else "; profile of the machine unknown (the board was rebooted since)"
    return f"stored {one.run_id}: {intervals} in {words.duration(one.duration_ns)}, {how}{unknown}"


def _gap(gap: Gap) -> str:
    length = "of unknown length" if gap.ns is None else f"of {words.duration(gap.ns)}"
    dropped = f" ({words.number(gap.dropped)} dropped)" if gap.dropped else ""
    return f"gap {length} between {gap.after} and {gap.before}: {gap.reason}{dropped}"


def _tell(pulled: Pulled) -> None:
    for one in pulled.stored:
        print(_stored(one))
    for growing in pulled.under_way:
        print(f"in progress: {growing.run_id}, {words.number(growing.bytes)} bytes; stored after it ends")
    for gap in pulled.gaps:
        print(_gap(gap))
    for refused in pulled.refused:
        print(f"refused {refused.name}: {refused.reason}", file=sys.stderr)
    if not pulled.stored and not pulled.refused:
        print("no new complete recording")


def _tell_wait() -> None:
    print("fastenough: waiting for another pull of this ring to end", file=sys.stderr, flush=True)


@click.command("pull", cls=Command, example="fastenough monitor pull --board ssh://root@host")
@click.option("--board", default="local", show_default=True, help="Board to fetch from, such as ssh://root@host.")
@click.option("--ring", default=RING, show_default=True, help="Directory of the ring on the board.")
@store_option
@json_option
def pull_command(board: str, ring: str, store_path: Path, as_json: bool) -> ExitStatus:
    """Fetch recordings of the service on a board.

    Stores each recording once, also after an interrupted pull.  Reports gaps: time without a recording, and
    recordings that the ring deleted before they were pulled.
    """
    opened = LocalBoard(probe="") if board == LocalBoard.name else open_board(board)  # to read files needs none
    if opened.configurations() != (AS_BOOTED,):
        raise BadInput(f"board {board} is booted for each measurement; pull from a running board: local or ssh://…")
    with opened.boot(AS_BOOTED) as booted:
        told = Told(board, SeenBoard(board, booted).added)
        pulled = pull(booted.link.raised, ring, Store(store_path), told, _tell_wait)
    if as_json:
        print_json(pulled)
    else:
        _tell(pulled)
    return ExitStatus.BROKEN if pulled.refused else ExitStatus.DONE
