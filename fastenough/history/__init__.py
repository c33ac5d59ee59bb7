# SPDX-License-Identifier: GPL-2.0-or-later
"""The history of many boards: a database made from the recordings of a store, and the questions that pages ask it."""

from fastenough.history.archive import close_months
from fastenough.history.boards import declare, is_declared
from fastenough.history.database import History
from fastenough.history.following import Following
from fastenough.history.histogram_questions import distribution, heat, ridge
from fastenough.history.ingest import Caught, catch_up, take, take_from
from fastenough.history.maxima_questions import maxima, worst
from fastenough.history.rebuilding import rebuild
from fastenough.history.rows import (
    NOTHING,
    OWNER,
    PUBLIC,
    Band,
    Board,
    Buckets,
    Change,
    Distribution,
    Happening,
    Heat,
    Maxima,
    Ridge,
    RidgeRow,
    SeriesOf,
    Standing,
    State,
    UnknownBoard,
    Viewer,
    Worst,
)
from fastenough.history.run_questions import bands, changes, events, last_changes, runs
from fastenough.history.standings import board_of, standing, standing_of

__all__ = [
    "NOTHING", "OWNER", "PUBLIC", "Band", "Board", "Buckets", "Caught", "Change", "Distribution", "Following",
    "Happening", "Heat", "History", "Maxima", "Ridge", "RidgeRow", "SeriesOf", "Standing", "State", "UnknownBoard",
    "Viewer", "Worst", "bands", "board_of", "catch_up", "changes", "close_months", "declare", "distribution",
    "events", "heat", "is_declared", "last_changes", "maxima", "rebuild", "ridge", "runs", "standing", "standing_of",
    "take", "take_from", "worst",
]
