# SPDX-License-Identifier: GPL-2.0-or-later
"""What was recorded, and how boards stand, into the history: one process at a time, of the farm's nursery."""

from __future__ import annotations

from typing import Any

from fastenough.farm.config import BoardEntry
from fastenough.farm.machine import BoardState
from fastenough.farm.nursery import Order


def said_of(board: BoardEntry, state: BoardState) -> dict[str, Any]:
    """What the history is told of a board, as JSON has it."""
    return {"name": board.name, "rack": board.rack, "public": board.public, "limit_ns": board.limit_ns,
            "state": state.told, "reason": state.reason}


def take_runs(order: Order) -> dict[str, Any]:
    """Into the history: these runs, or all where ``all``."""
    return {}
