# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm status``: how the boards stand, from another shell."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from fastenough import words
from fastenough.cli.farm_run import farm_argument
from fastenough.cli.output import print_json, print_table, say
from fastenough.cli.parameters import json_option
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


def _since(at_s: float, now_s: float) -> str:
    return words.duration(max(0.0, now_s - at_s) * 1e9)


def _told(name: str, state: BoardState) -> dict[str, Any]:
    return {
        "board": name,
        "state": state.activity,
        "since_s": state.since_s,
        "reason": state.reason,
        "failures": state.failures,
        "new_at_s": state.fresh_s or None,
        "refused": state.refused,
    }


@click.command("status")
@farm_argument
@json_option
def command(file: Path, as_json: bool) -> None:
    """Say how each board of FARM.toml stands, and why.

    It reads what the farm keeps, and needs no farm that runs.
    """
    beat, states = read_state(read_farm(file).state)
    alive, now_s = _alive(beat), time.time()
    if as_json:
        print_json(
            {
                "running": alive,
                "said": beat.said if beat else None,
                "said_at_s": beat.at_s if beat else None,
                "boards": [_told(name, state) for name, state in sorted(states.items())],
            }
        )
        return
    rows = [
        [
            name,
            state.label,
            _since(state.since_s, now_s),
            _since(state.fresh_s, now_s) if state.fresh_s else "never",
            "; ".join(filter(None, (state.reason, state.refused))),
        ]
        for name, state in sorted(states.items())
    ]
    print_table("", ["board", "state", "for", "new data", "why"], rows)
    say(f"{_since(beat.at_s, now_s)} ago: {beat.said}" if beat else "nothing has been said yet")
    say("the farm runs" if alive else "no farm runs; this is how it was left")
