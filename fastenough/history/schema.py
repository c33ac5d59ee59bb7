# SPDX-License-Identifier: GPL-2.0-or-later
"""The current tables, the same in SQLite and PostgreSQL; `migrations/` has those of every version, frozen.

A row of ``interval`` holds five minutes of a CPU.  Tables derived from it: ``hour`` (the maxima of its twelve
five-minute windows on all CPUs), ``cycle`` and ``month`` (histograms), ``now`` (a row per series of a board).  Each is
a sum or a maximum, so the order in which recordings are read has no effect.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
)

METADATA = MetaData()
ALL_CPUS = -1
"""In ``cycle``: the row of all CPUs together, for ridges."""
NO_CPU = -2
"""The CPU of a series without one."""
STEP_S = 300
HOUR_S = 3600
CYCLE_S = 12 * HOUR_S
K = 4


def _key(name: str, kind: Any = Integer) -> Column[Any]:
    return Column(name, kind, primary_key=True, autoincrement=False)


def _number(name: str) -> Column[Any]:
    return Column(name, BigInteger, nullable=False)


BOARD = Table(
    "board",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    # declared by the farm: in no recording, and unchanged by a rebuild
    Column("rack", String(200), nullable=False, default=""),
    Column("public", Boolean, nullable=False, default=False),
    Column("is_declared", Boolean, nullable=False, default=False),
    Column("limit_ns", BigInteger),
    Column("state", String(16), nullable=False, default="ok"),
    Column("reason", Text, nullable=False, default=""),
    Column("verdict", String(16), nullable=False, default=""),
    Column("verdict_reason", Text, nullable=False, default=""),
    # from its newest run
    Column("configuration", String(200), nullable=False, default=""),
    Column("display_facts", Text, nullable=False, default="{}"),
    Column("changed_s", BigInteger),
    # declared by the farm
    Column("requirement", Text, nullable=False, server_default=""),
    Column("cycle_verdict", String(16), nullable=False, server_default=""),
    Column("cycle_reason", Text, nullable=False, server_default=""),
    Column("judged_from_s", BigInteger),
    Column("due_s", BigInteger, nullable=False, server_default="0"),
    Column("farm", String(300), nullable=False, server_default=""),
    Column("former_names", Text, nullable=False, server_default=""),
    Column("type", String(200), nullable=False, server_default=""),
    Column("site", String(200), nullable=False, server_default=""),
    Column("rebuilt_from", Text, nullable=False, server_default=""),
    Column("judged_by", Text, nullable=False, server_default=""),
    Column("plan_limit_ns", BigInteger),
)
"""``is_declared``: whether a farm declared it.  ``state``: ok, reserved, dead or retired, as that farm declared it.
``display_facts``: JSON of the facts of its profile that pages show.  ``requirement``: JSON of a `Requirement`, empty if
there is none.

``verdict`` is that of all recordings since ``judged_from_s``, ``cycle_verdict`` that of the newest cycle alone.
``judged_by``: JSON of the `Requirement` of both, empty if there is none.  ``plan_limit_ns``: its limit if the runs of
the newest cycle state it; it then applies instead of ``requirement``.
``due_s``: longest time until new data, 0 if no farm declared it.  ``farm``: ID of the farm that declared it, or empty.
``former_names``: JSON list of the names under which it recorded before, or empty.  ``type``, ``site`` and ``rack``
group boards.  ``rebuilt_from``: the store from which a rebuild has not yet read all of its data again, else empty.
"""

SERIES = Table(
    "series",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("for_verdict", Boolean, nullable=False),
    Column("from_event", Text, nullable=False),
    Column("to_event", Text, nullable=False),
)

RUN = Table(
    "run",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("board", ForeignKey("board.id"), nullable=False),
    _number("begin_s"),
    Column("end_s", BigInteger, nullable=False),
    Column("load", String(200), nullable=False),
    Column("configuration", String(200), nullable=False),
    Column("profile", String(64)),
    Index("ix_run_board_begin", "board", "begin_s"),
)
"""``end_s``: the end of its newest interval."""

PROFILE = Table(
    "profile",
    METADATA,
    Column("sha256", String(64), primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
"""``content``: JSON, compressed."""

INTERVAL = Table(
    "interval",
    METADATA,
    _key("board"),
    _key("series"),
    _key("begin_s", BigInteger),
    _key("cpu", SmallInteger),
    _key("run"),
    _number("intervals"),
    _number("count"),
    _number("lost"),
    _number("missed"),
    _number("min_ns"),
    _number("max_ns"),
    _number("sum_ns"),
    Column("sum_sq", String(48), nullable=False),
    Column("histogram", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""``begin_s``: of the five-minute window in which the intervals began.  All intervals of a run in one window, such as
after a clock was set back, are summed in one row."""

HOUR = Table(
    "hour",
    METADATA,
    _key("board"),
    _key("series"),
    _key("begin_s", BigInteger),
    _number("max_ns"),
    _number("count"),
    _number("lost"),
    Column("maxima", LargeBinary, nullable=False),
    Index("ix_hour_begin", "begin_s", "series", "board", "max_ns"),
)


def _rollup(name: str) -> Table:
    return Table(
        name,
        METADATA,
        _key("board"),
        _key("series"),
        _key("begin_s", BigInteger),
        _key("cpu", SmallInteger),
        _number("count"),
        _number("max_ns"),
        Column("histogram", LargeBinary, nullable=False),
    )


CYCLE = _rollup("cycle")
MONTH = _rollup("month")

ARCHIVE = Table(
    "archive", METADATA, _key("board"), _key("begin_s", BigInteger), Column("file", String(200), nullable=False)
)
"""Closed months of ``interval``: the name of the file of Parquet that has all its rows."""

NOW = Table(
    "now",
    METADATA,
    _key("board"),
    _key("series"),
    _number("seen_s"),
    _number("step_s"),
    _number("newest_s"),
    _number("max_5min_ns"),
    _number("max_ever_ns"),
    _number("max_ever_at_s"),
    Column("hours", LargeBinary, nullable=False),
    Column("days", LargeBinary, nullable=False),
)
"""``hours``, ``days``: maxima of the newest ones, in rings (`packed_maxima.py`)."""

SUMMARY = Table(
    "summary",
    METADATA,
    _key("board"),
    _number("at_s"),
    Column("rank", SmallInteger, nullable=False),
    Column("silent_from_s", BigInteger),
    Column("seen_s", BigInteger),
    Column("max_5min_ns", BigInteger),
    Column("max_24h_ns", BigInteger),
    Column("max_30d_ns", BigInteger),
    Column("kernel", String(200), nullable=False),
    Column("verdict", String(16), nullable=False),
    Column("search_text", Text, nullable=False),
)
"""Columns for search, order and groups of boards, computed at ``at_s``; 0: outdated (`summaries.py`).

``rank``: of its condition; ``silent_from_s``: when it becomes silent without new data; ``search_text``: in lower
case.
"""

REFUSED = Table(
    "refused",
    METADATA,
    _key("board"),
    _key("name", String(200)),
    Column("kind", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    _number("at_s"),
)
"""Refused and incomplete recordings of a board; ``at_s``: when first seen."""

CURSOR = Table(
    "cursor",
    METADATA,
    Column("run", ForeignKey("run.id"), primary_key=True, autoincrement=False),
    Column("head", String(64), nullable=False),
    _number("offset"),
    _number("intervals"),
)
"""Position up to which a recording was read, updated in the transaction that writes its rows.  ``head``: SHA-256 of its
first line."""

EVENT = Table(
    "event",
    METADATA,
    _key("run"),
    _key("series"),
    _key("kind", String(16)),
    _key("slot_s", BigInteger),
    Column("board", Integer, nullable=False),
    _number("at_s"),
    Column("cpu", SmallInteger, nullable=False),
    _number("value_ns"),
    Column("culprit", Text, nullable=False),
    Index("ix_event_board_at", "board", "at_s"),
)
"""The greatest event of each kind in five minutes: a run begins with hundreds of new maxima."""

CHANGE = Table(
    "change",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("board", Integer, nullable=False),
    _number("at_s"),
    Column("kind", String(16), nullable=False),
    Column("key", Text, nullable=False),
    Column("was", Text, nullable=False),
    Column("now", Text, nullable=False),
    Column("latency", Boolean, nullable=False),
    Column("last_run", Integer),
    Column("run", Integer),
    Column("noted_s", BigInteger),
    Column("until_s", BigInteger),
    Column("withdrawn_s", BigInteger),
    Index("ix_change_board_at", "board", "at_s"),
)
"""Of changes of the tail, ``noted_s``: the end of the cycle that showed it; ``until_s``: of a trend; ``withdrawn_s``:
when it became improbable."""
