# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables of a fleet beside those of the history, in the same database and written in the same transactions."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    MetaData,
    Select,
    SmallInteger,
    String,
    Table,
    Text,
    func,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite

from fastenough.history import History
from fastenough.history.database import put
from fastenough.history.rollups import DAY_S

METADATA = MetaData()
KEPT_DAYS = 2
"""Full days of single intervals; older ones are in the archive and in the history's sums."""

PUBLISHES = "publishes"
"""Name of the farm of all boards that publish."""


def _key(name: str, kind: type[BigInteger] | type[Integer] | type[SmallInteger] = Integer) -> Column[int]:
    return Column(name, kind, primary_key=True, autoincrement=False)


SHARD = Table(
    "fleet_shard",
    METADATA,
    _key("shard", SmallInteger),
    Column("stream", String(64), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("sequence", BigInteger, nullable=False),
)
"""Position up to which a shard is stored: ``sequence`` of the last message.  ``stream``: when the stream was made; for
another stream, or one that lost its newest messages, a new ``epoch`` begins."""

MACHINE = Table(
    "fleet_machine",
    METADATA,
    Column("machine", String(32), primary_key=True),
    Column("type", String(200), nullable=False),
    Column("boots", Text, nullable=False),
    Column("lost", BigInteger, nullable=False),
    Column("quarantine", Text, nullable=False),
)
"""``boots``: JSON list of boot ids in the order of their appearance.  ``lost``: intervals that the board overwrote
before they were stored.  ``quarantine``: why its chunks are refused; empty if they are accepted."""

LIFTED = Table(
    "fleet_lifted",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("machine", String(32), nullable=False),
    Column("at_s", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
    Column("why", Text, key="reason", nullable=False),
    Column("fault", Text, nullable=False),
)
"""Lifted quarantines: time, operator, ``reason``, and ``fault``, the reason of the quarantine.

The database calls the column of ``reason`` ``why``, as in version 1 of the JSON output, so that existing rows stay
readable, also by older programs that use the same database."""

AHEAD = Table(
    "fleet_ahead",
    METADATA,
    Column("machine", String(32), primary_key=True),
    Column("run", String(100), primary_key=True),
    Column("next", BigInteger, nullable=False),
    Column("least_ns", BigInteger, nullable=False),
    Column("dropped", BigInteger, nullable=False),
)
"""Runs with intervals ahead of the takers' clock, as `fastenough.fleet.ahead.AheadPart`."""

INTERVAL = Table(
    "fleet_interval",
    METADATA,
    _key("board"),
    _key("run"),
    _key("cpu", SmallInteger),
    _key("interval", BigInteger),
    _key("begin_s", BigInteger),
    Column("count", BigInteger, nullable=False),
    Column("lost", BigInteger, nullable=False),
    Column("missed", BigInteger, nullable=False),
    Column("max_ns", BigInteger),
    postgresql_partition_by="RANGE (begin_s)",
)
"""Single intervals of the newest days, by day in PostgreSQL: a day that is over is dropped as a whole."""


def opened(url: str) -> History:
    """The history at a URL, with the tables of a fleet; raises as `History.at` does."""
    history = History.at(url)
    with history.writing() as connection:
        _lock(connection)
        METADATA.create_all(connection)
    return history


def _lock(connection: Connection) -> None:
    """Lock the creation of tables until the transaction ends; SQLite has one writer at a time."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(7701, 1)"))


def stored_intervals(connection: Connection) -> int:
    """How many single intervals the database holds."""
    return int(connection.execute(select(func.count()).select_from(INTERVAL)).scalar_one())


@dataclass(frozen=True)
class ShardPosition:
    """Position of a shard in the stream, as in `SHARD`: all messages up to it are stored."""

    stream: str
    epoch: int
    sequence: int


def locked_position(connection: Connection, shard: int) -> ShardPosition | None:
    """Position of a shard, locked until the transaction ends; None if nothing is stored."""
    return _position(connection, select(SHARD).where(SHARD.c.shard == shard).with_for_update())


def stored_position(connection: Connection, shard: int) -> ShardPosition | None:
    """Position of a shard, which a taker may move at any time; None if nothing is stored."""
    return _position(connection, select(SHARD).where(SHARD.c.shard == shard))


def _position(connection: Connection, question: Select[Any]) -> ShardPosition | None:
    row = connection.execute(question).mappings().one_or_none()
    return None if row is None else ShardPosition(row["stream"], row["epoch"], row["sequence"])


def enter_position(connection: Connection, shard: int, position: ShardPosition) -> bool:
    """Enter and lock the position of a shard that has none; False if it has one.

    A missing row cannot be locked: a second taker waits here until the first one has entered it.
    """
    insert: Any = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[connection.dialect.name](SHARD)
    entering = insert.values(shard=shard, **asdict(position)).on_conflict_do_nothing().returning(SHARD.c.shard)
    return connection.execute(entering).first() is not None


def put_position(connection: Connection, shard: int, position: ShardPosition) -> None:
    """Store the position of a shard."""
    put(connection, SHARD, [{"shard": shard, **asdict(position)}])


@dataclass(frozen=True)
class MachineRow:
    """A row of `MACHINE` without its key."""

    type: str
    boots: tuple[str, ...]
    lost: int
    quarantine: str


def machines(connection: Connection, names: Collection[str]) -> dict[str, MachineRow]:
    """The stored rows of these machines."""
    rows = connection.execute(select(MACHINE).where(MACHINE.c.machine.in_(names))).mappings()
    return {
        row["machine"]: MachineRow(row["type"], tuple(json.loads(row["boots"])), row["lost"], row["quarantine"])
        for row in rows
    }


def put_machine(connection: Connection, machine: str, row: MachineRow) -> None:
    """Store the row of a machine."""
    put(connection, MACHINE, [{"machine": machine, **asdict(row), "boots": json.dumps(row.boots)}])


def _name_of_day(begin_s: int) -> str:
    return f"fleet_interval_{datetime.fromtimestamp(begin_s, UTC):%Y%m%d}"


def oldest_kept_s(now_s: float) -> int:
    """Begin of the oldest day of which single intervals are stored."""
    return (int(now_s) // DAY_S - KEPT_DAYS) * DAY_S


def ensure_days(connection: Connection, days: Collection[int]) -> None:
    """Make the missing partitions of days since 1970, before anything is inserted; SQLite has none.

    To make one, a transaction waits for all others that insert, and these for it until it ends: callers omit days that
    `drop_before` deletes.
    """
    if connection.dialect.name != "postgresql":
        return
    begins_s = [day * DAY_S for day in sorted(days) if not _has_day(connection, day * DAY_S)]
    if begins_s:
        _lock(connection)
    for begin_s in begins_s:
        connection.execute(
            text(
                f"CREATE TABLE IF NOT EXISTS {_name_of_day(begin_s)} PARTITION OF fleet_interval "
                f"FOR VALUES FROM ({begin_s}) TO ({begin_s + DAY_S})"
            )
        )


def _has_day(connection: Connection, begin_s: int) -> bool:
    name = connection.execute(text("SELECT to_regclass(:name)"), {"name": _name_of_day(begin_s)})
    return name.scalar() is not None


def drop_before(history: History, now_s: float) -> None:
    """Delete the single intervals of days that ended more than `KEPT_DAYS` days ago.

    Each partition is dropped in a separate transaction: the locks of all of them may exceed the server's memory.
    """
    oldest_s = oldest_kept_s(now_s)
    if history.engine.dialect.name != "postgresql":
        with history.writing() as connection:
            connection.execute(INTERVAL.delete().where(INTERVAL.c.begin_s < oldest_s))
        return
    with history.reading() as connection:
        names = connection.scalars(
            text("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'fleet_interval'::regclass")
        ).all()
    oldest = _name_of_day(oldest_s)
    for name in (name for name in names if name < oldest):
        with history.writing() as connection:
            connection.execute(text(f"DROP TABLE IF EXISTS {name}"))
