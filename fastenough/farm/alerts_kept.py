# SPDX-License-Identifier: GPL-2.0-or-later
"""What somebody is to be told of a farm's boards, each once, and who has accepted it; kept in the history's database.

An alert is of something that happened at one moment, or of something that lasts and ends.  Its key follows from what
was seen, so that to note it twice changes nothing.  The tables are not made again from the store: who makes the history
anew is not told everything once more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    exists,
    insert,
    select,
    text,
    update,
)

from fastenough.history.database import History

METADATA = MetaData()
ALERT = Table(
    "alert",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("board", String(200), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("key", String(64), nullable=False),
    Column("at_s", BigInteger, nullable=False),
    Column("noted_s", BigInteger, nullable=False),
    Column("lasts", Boolean, nullable=False),
    Column("ended_s", BigInteger),
    Column("summary", Text, nullable=False),
    Column("more", Text, nullable=False),
    UniqueConstraint("board", "kind", "key"),
)
ACCEPTED = Table(
    "alert_accepted",
    METADATA,
    Column("alert", Integer, primary_key=True, autoincrement=False),
    Column("receiver", String(64), primary_key=True),
    Column("end", Boolean, primary_key=True),
)
"""``receiver`` has taken the alert; ``end``: that it ended."""


Key = tuple[str, str, str]
"""Board, kind and key of an alert."""


@dataclass(frozen=True)
class Seen:
    """What was seen of a board.  ``key`` tells apart what happened at a moment; of what ``lasts`` there is one at a
    time.  ``more``: what stands beside it, in words, by name."""

    board: str
    kind: str
    key: str
    at_s: int
    summary: str
    lasts: bool = False
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> Key:
        return self.board, self.kind, self.key


@dataclass(frozen=True)
class Alert:
    """A thing to be told.  ``end``: that it ended, at ``ended_s``."""

    id: int
    seen: Seen
    noted_s: int
    ended_s: int | None
    end: bool


def prepare(history: History) -> None:
    """Make the tables where they are missing."""
    with history.writing() as connection:
        METADATA.create_all(connection)


def known(history: History) -> set[Key]:
    """Of all that was noted."""
    with history.reading() as connection:
        return _known(connection)


def _known(connection: Connection) -> set[Key]:
    return {
        (row.board, row.kind, row.key) for row in connection.execute(select(ALERT.c.board, ALERT.c.kind, ALERT.c.key))
    }


def note(history: History, happened: Iterable[Seen], lasting: Iterable[Seen], now_s: int) -> None:
    """Note what happened, and what lasts now; what lasted before and is not among it has ended.  One transaction."""
    with history.writing() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(7702)"))
        before = _known(connection)
        new = {seen.id: seen for seen in happened if seen.id not in before}
        for seen in new.values():
            _insert(connection, seen, seen.key, now_s)
        _note_lasting(connection, {(seen.board, seen.kind): seen for seen in lasting}, now_s)


def _note_lasting(connection: Connection, now: Mapping[tuple[str, str], Seen], now_s: int) -> None:
    rows = connection.execute(select(ALERT).where(ALERT.c.lasts, ALERT.c.ended_s.is_(None))).mappings().all()
    under_way = {(row["board"], row["kind"]): row["id"] for row in rows}
    for what, number in under_way.items():
        if what not in now:
            connection.execute(update(ALERT).where(ALERT.c.id == number).values(ended_s=now_s))
    for what, seen in now.items():
        if what not in under_way:
            _insert(connection, seen, f"{seen.key} {now_s}"[:64], now_s)


def _insert(connection: Connection, seen: Seen, key: str, now_s: int) -> None:
    connection.execute(
        insert(ALERT).values(
            board=seen.board,
            kind=seen.kind,
            key=key,
            at_s=seen.at_s,
            noted_s=now_s,
            lasts=seen.lasts,
            summary=seen.summary,
            more=json.dumps(dict(seen.more)),
        )
    )


def pending(history: History, receiver: str) -> list[Alert]:
    """What a receiver has not accepted yet, in the order in which it is to be told."""
    found: list[Alert] = []
    with history.reading() as connection:
        for end in (False, True):
            taken = exists().where(
                ACCEPTED.c.alert == ALERT.c.id, ACCEPTED.c.receiver == receiver, ACCEPTED.c.end.is_(end)
            )
            question = select(ALERT).where(~taken)
            if end:
                question = question.where(ALERT.c.ended_s.is_not(None))
            found += [_alert(row, end) for row in connection.execute(question).mappings()]
    return sorted(found, key=lambda alert: (alert.id, alert.end))


def _alert(row: Mapping[str, Any] | Any, end: bool) -> Alert:
    seen = Seen(
        row["board"], row["kind"], row["key"], row["at_s"], row["summary"], row["lasts"], json.loads(row["more"])
    )
    return Alert(row["id"], seen, row["noted_s"], row["ended_s"], end)


def accept(history: History, receiver: str, alert: Alert) -> None:
    """Remember that a receiver has taken an alert."""
    with history.writing() as connection:
        connection.execute(insert(ACCEPTED).values(alert=alert.id, receiver=receiver, end=alert.end))
