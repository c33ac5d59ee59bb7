# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands on a farm: run, status, try, board, rebuild."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from fastenough import words
from fastenough.cli.commands import Command, Group
from fastenough.cli.options import existing_store, json_option
from fastenough.cli.output import print_json, print_table, say
from fastenough.cli.progress import Work
from fastenough.farm.board_edits import rename_board, retire_board, withdraw_board
from fastenough.farm.config import Farm, read_farm
from fastenough.farm.history_update import declaration_of
from fastenough.farm.judging import verdicts_on
from fastenough.farm.run import FarmRun
from fastenough.farm.state_file import Beat, board_states, read_state
from fastenough.farm.state_machine import BoardState
from fastenough.history import History, declare, rebuild
from fastenough.history.tail import TailWatch
from fastenough.model import ExitStatus

farm_argument: Callable[[Any], Any] = click.argument(
    "file", type=click.Path(path_type=Path, dir_okay=False), metavar="FARM.toml"
)


def _say(line: str) -> None:
    say(line)
    sys.stdout.flush()


def _say_json(line: str) -> None:
    """Print one JSON object per line."""
    print(json.dumps({"at_s": time.time(), "message": line}), flush=True)


def line_printer(as_json: bool) -> Callable[[str], None]:
    """A printer of the lines of a farm, as text or JSON."""
    return _say_json if as_json else _say


async def _run(farm: FarmRun) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, farm.end)
    await farm.run()


@click.command("run", cls=Command, example="fastenough farm run FARM.toml")
@farm_argument
@json_option
def farm_run_command(file: Path, as_json: bool) -> None:
    """Run a farm: switch, measure and pull its boards.

    Runs until Ctrl-C or SIGTERM, with a status line each minute.  Each action on a board is a process of its own with
    a time limit, so that no board delays another.  At the end places are released; boards continue to record.
    """
    asyncio.run(_run(FarmRun(read_farm(file), line_printer(as_json))))


def _alive(beat: Beat | None) -> bool:
    if beat is None:
        return False
    try:
        os.kill(beat.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _age_text(at_s: float, now_s: float) -> str:
    return words.duration(max(0.0, now_s - at_s) * 1e9)


def _board_document(name: str, state: BoardState) -> dict[str, object]:
    return {
        "board": name,
        "state": state.activity,
        "since_s": state.since_s,
        "reason": state.reason,
        "failures": state.failures,
        "new_at_s": state.fresh_s or None,
        "refused": state.refused,
    }


@click.command("status", cls=Command, example="fastenough farm status FARM.toml")
@farm_argument
@json_option
def farm_status_command(file: Path, as_json: bool) -> None:
    """Show the state of each board of a farm.

    Reads the stored state of the farm of FARM.toml; the farm need not run.
    """
    beat, states = read_state(read_farm(file).state)
    alive, now_s = _alive(beat), time.time()
    if as_json:
        print_json(
            {
                "running": alive,
                "status": beat.status_line if beat else None,
                "status_at_s": beat.at_s if beat else None,
                "boards": [_board_document(name, state) for name, state in sorted(states.items())],
            }
        )
        return
    rows = [
        [
            name,
            state.activity,
            _age_text(state.since_s, now_s),
            _age_text(state.fresh_s, now_s) if state.fresh_s else "never",
            "; ".join(filter(None, (state.reason, state.refused))),
        ]
        for name, state in sorted(states.items())
    ]
    print_table("", ["board", "state", "for", "new data", "reason"], rows)
    say(f"{_age_text(beat.at_s, now_s)} ago: {beat.status_line}" if beat else "no status line yet")
    say("the farm is running" if alive else "the farm is not running; this is its last state")


_name_argument = click.argument("name", metavar="BOARD")


def _print_result(document: dict[str, str], as_json: bool, text: str) -> None:
    if as_json:
        print_json(document)
    else:
        say(text)


@click.group("board", cls=Group)
def farm_board_command() -> None:
    """Retire, rename or withdraw a board of a farm.

    Each command changes FARM.toml and the history.  Stop the service of the farm before, and start it afterwards.
    """


@farm_board_command.command("retire", example="fastenough farm board retire FARM.toml rpi4")
@farm_argument
@_name_argument
@json_option
def retire(file: Path, name: str, as_json: bool) -> None:
    """Stop measuring a board.

    The pages of BOARD stay.
    """
    retire_board(file, name)
    _print_result({"board": name, "change": "retired"}, as_json, f"{name} is retired; its pages stay")


@farm_board_command.command("rename", example="fastenough farm board rename FARM.toml rpi4 rpi4-lab2")
@farm_argument
@_name_argument
@click.argument("new")
@json_option
def rename(file: Path, name: str, new: str, as_json: bool) -> None:
    """Rename a board.

    Renames BOARD to NEW, with all of its recordings.
    """
    rename_board(file, name, new)
    _print_result(
        {"board": new, "change": "renamed"},
        as_json,
        f"{name} is renamed to {new}; if {name} had upload tokens, add new ones for {new}",
    )


@farm_board_command.command("withdraw", example="fastenough farm board withdraw FARM.toml rpi4")
@farm_argument
@_name_argument
@json_option
def withdraw(file: Path, name: str, as_json: bool) -> None:
    """Remove a board from all public pages.

    BOARD is still measured.
    """
    withdraw_board(file, name)
    _print_result(
        {"board": name, "change": "withdrawn"},
        as_json,
        f"{name} is no longer public; if the site is published as files, publish it again",
    )


def _declare(history: History, farm: Farm, known: Mapping[str, BoardState]) -> None:
    """Write the boards of the farm's file to the history."""
    for board in farm.boards:
        declare(history, **declaration_of(board, known.get(board.name, BoardState()), farm.id))


@click.command("rebuild", cls=Command, example="fastenough farm rebuild FARM.toml")
@farm_argument
@json_option
def farm_rebuild_command(file: Path, as_json: bool) -> ExitStatus:
    """Rebuild the history of a farm from its store.

    Afterwards the history contains the runs of the store and the boards of FARM.toml; boards that the file no longer
    names are not public.  A running farm continues, and boards of other farms in the same database are not changed.
    Damaged runs are listed and excluded.
    """
    farm = read_farm(file)
    store = existing_store(farm.store)
    known = board_states(farm.state)
    with closing(History.of(store, farm.database)) as history, Work("reading the recordings"):
        _declare(history, farm, known)
        caught = rebuild(history, store, [board.name for board in farm.boards], farm.id)
        _declare(history, farm, known)
        for board in farm.boards:
            required = None if board.requirement is None else asdict(board.requirement)
            declare(
                history,
                board.name,
                **verdicts_on(store, board.name, required, former_names=board.former_names, history=history),
            )
        TailWatch([board.name for board in farm.boards], farm.false_changes).look(history)
    count = len(store.own_runs())
    if as_json:
        print_json({"runs": count, "intervals": caught.intervals, "excluded": caught.faults})
    else:
        say(f"{words.counted(caught.intervals, 'interval')} of {words.counted(count, 'run')}")
        for run, reason in caught.faults.items():
            say(f"excluded: {run}: {reason}")
    return ExitStatus.BROKEN if caught.faults else ExitStatus.DONE
