# SPDX-License-Identifier: GPL-2.0-or-later
"""The history of many boards: a database made from the recordings of a store, and the questions that pages ask it."""

from fastenough.history.archive import close_months
from fastenough.history.boards import declare, disown, is_declared, note_refused, rename
from fastenough.history.database import History
from fastenough.history.following import Following
from fastenough.history.histogram_questions import distribution, heat, ridge
from fastenough.history.ingest import Caught, catch_up, take, take_from, take_noted
from fastenough.history.maxima_questions import latest, maxima, worst
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
    Refusal,
    Ridge,
    RidgeRow,
    SeriesOf,
    Standing,
    State,
    UnknownBoard,
    Viewer,
    Worst,
)
from fastenough.history.run_questions import bands, changes, events, last_changes, newest_events, runs
from fastenough.history.standings import WINDOW_S, board_of, refusals, standing, standing_of

__all__ = [
    "NOTHING",
    "OWNER",
    "PUBLIC",
    "WINDOW_S",
    "Band",
    "Board",
    "Buckets",
    "Caught",
    "Change",
    "Distribution",
    "Following",
    "Happening",
    "Heat",
    "History",
    "Maxima",
    "Refusal",
    "Ridge",
    "RidgeRow",
    "SeriesOf",
    "Standing",
    "State",
    "UnknownBoard",
    "Viewer",
    "Worst",
    "bands",
    "board_of",
    "catch_up",
    "changes",
    "close_months",
    "declare",
    "disown",
    "distribution",
    "events",
    "heat",
    "is_declared",
    "last_changes",
    "latest",
    "maxima",
    "newest_events",
    "note_refused",
    "rebuild",
    "refusals",
    "rename",
    "ridge",
    "runs",
    "standing",
    "standing_of",
    "take",
    "take_from",
    "take_noted",
    "worst",
]
