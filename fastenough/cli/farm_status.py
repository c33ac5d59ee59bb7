# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm status``: the state of the boards of a farm."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from fastenough import words
from fastenough.cli.commands import Command
from fastenough.cli.farm_run import farm_argument
from fastenough.cli.options import json_option
from fastenough.cli.output import print_json, print_table, say
from fastenough.farm.config import read_farm
from fastenough.farm.state_file import Beat, read_state
from fastenough.farm.state_machine import BoardState


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


def _elapsed(at_s: float, now_s: float) -> str:
    return words.duration(max(0.0, now_s - at_s) * 1e9)


def _board_document(name: str, state: BoardState) -> dict[str, Any]:
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
def command(file: Path, as_json: bool) -> None:
    """Show the state of each board of a farm.

    Reads the stored state of the farm of FARM.toml; the farm need not run.
    """
    beat, states = read_state(read_farm(file).state)
    alive, now_s = _alive(beat), time.time()
    if as_json:
        print_json(
            {
                "running": alive,
                "said": beat.said if beat else None,
                "said_at_s": beat.at_s if beat else None,
                "boards": [_board_document(name, state) for name, state in sorted(states.items())],
            }
        )
        return
    rows = [
        [
            name,
            state.label,
            _elapsed(state.since_s, now_s),
            _elapsed(state.fresh_s, now_s) if state.fresh_s else "never",
            "; ".join(filter(None, (state.reason, state.refused))),
        ]
        for name, state in sorted(states.items())
    ]
    print_table("", ["board", "state", "for", "new data", "reason"], rows)
    say(f"{_elapsed(beat.at_s, now_s)} ago: {beat.said}" if beat else "no status line yet")
    say("the farm is running" if alive else "the farm is not running; this is its last state")
