# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of version 1, frozen: a migration never imports those of today."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def _key(name: str, kind: Any = sa.Integer) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, autoincrement=False)


def _numbers(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in names]


def _text(name: str, length: int | None = None) -> sa.Column[Any]:
    return sa.Column(name, sa.Text if length is None else sa.String(length), nullable=False)


def upgrade() -> None:
    _boards()
    _rows()
    _newest()


def _boards() -> None:
    op.create_table(
        "board",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False),
        _text("rack", 200),
        sa.Column("public", sa.Boolean, nullable=False),
        sa.Column("watched", sa.Boolean, nullable=False),
        sa.Column("limit_ns", sa.BigInteger),
        _text("state", 16),
        _text("reason"),
        _text("verdict", 16),
        _text("verdict_reason"),
        _text("configuration", 200),
        _text("shown"),
        sa.Column("changed_s", sa.BigInteger),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "series",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("judged", sa.Boolean, nullable=False),
        _text("from_event"),
        _text("to_event"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("board", sa.Integer, sa.ForeignKey("board.id"), nullable=False),
        *_numbers("begin_s", "end_s"),
        _text("load", 200),
        _text("configuration", 200),
        sa.Column("profile", sa.String(64)),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_run_board_begin", "run", ["board", "begin_s"])
    op.create_table("profile", _key("sha256", sa.String(64)), sa.Column("content", sa.LargeBinary, nullable=False))


def _rows() -> None:
    op.create_table(
        "interval",
        _key("board"),
        _key("series"),
        _key("begin_s", sa.BigInteger),
        _key("cpu", sa.SmallInteger),
        _key("run"),
        *_numbers("intervals", "count", "lost", "missed", "min_ns", "max_ns", "sum_ns"),
        _text("sum_sq", 48),
        sa.Column("histogram", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "hour",
        _key("board"),
        _key("series"),
        _key("begin_s", sa.BigInteger),
        *_numbers("max_ns", "count", "lost"),
        sa.Column("maxima", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_hour_begin", "hour", ["begin_s", "series", "board", "max_ns"])
    op.create_table(
        "cycle",
        _key("board"),
        _key("series"),
        _key("begin_s", sa.BigInteger),
        _key("cpu", sa.SmallInteger),
        *_numbers("count", "max_ns"),
        sa.Column("histogram", sa.LargeBinary, nullable=False),
    )


def _newest() -> None:
    op.create_table(
        "now",
        _key("board"),
        _key("series"),
        *_numbers("seen_s", "step_s", "newest_s", "max_5min_ns", "max_ever_ns", "max_ever_at_s"),
        sa.Column("hours", sa.LargeBinary, nullable=False),
        sa.Column("days", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "cursor",
        sa.Column("run", sa.Integer, sa.ForeignKey("run.id"), primary_key=True, autoincrement=False),
        _text("head", 64),
        *_numbers("offset", "intervals"),
    )
    op.create_table(
        "event",
        _key("run"),
        _key("series"),
        _key("kind", sa.String(16)),
        _key("slot_s", sa.BigInteger),
        sa.Column("board", sa.Integer, nullable=False),
        *_numbers("at_s"),
        sa.Column("cpu", sa.SmallInteger, nullable=False),
        *_numbers("value_ns"),
        _text("culprit"),
    )
    op.create_index("ix_event_board_at", "event", ["board", "at_s"])
    op.create_table(
        "change",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("board", sa.Integer, nullable=False),
        *_numbers("at_s"),
        _text("kind", 16),
        _text("key"),
        _text("was"),
        _text("now"),
        sa.Column("latency", sa.Boolean, nullable=False),
        sa.Column("last_run", sa.Integer),
        sa.Column("run", sa.Integer),
    )
    op.create_index("ix_change_board_at", "change", ["board", "at_s"])
