# SPDX-License-Identifier: GPL-2.0-or-later
"""Version 2: months, made of the cycles that they consist of, and where closed months of five-minute rows are kept."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import op

from fastenough.history.histograms import HistogramSet

revision = "2"
down_revision = "1"

_COLUMNS = ("board", "series", "begin_s", "cpu", "count", "max_ns", "histogram")
_CYCLE, _MONTH = (sa.table(name, *map(sa.column, _COLUMNS)) for name in ("cycle", "month"))


def _key(name: str, kind: Any = sa.Integer) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, autoincrement=False)


def upgrade() -> None:
    op.create_table(
        "month",
        _key("board"),
        _key("series"),
        _key("begin_s", sa.BigInteger),
        _key("cpu", sa.SmallInteger),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("count", "max_ns")),
        sa.Column("histogram", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "archive", _key("board"), _key("begin_s", sa.BigInteger), sa.Column("file", sa.String(200), nullable=False)
    )
    bind = op.get_bind()
    cycles = bind.execute(sa.select(_CYCLE).order_by(_CYCLE.c.board)).mappings()
    for _, rows in groupby(cycles, key=lambda row: row["board"]):
        made = _months(rows)
        bind.execute(sa.insert(_MONTH), made)


def _months(rows: Iterable[sa.RowMapping]) -> list[dict[str, int | bytes]]:
    """Of one board."""
    keyed = [((row["board"], row["series"], _month_begin_s(row["begin_s"]), row["cpu"]), row) for row in rows]
    pile = HistogramSet.unpacked((key, row["histogram"]) for key, row in keyed)
    packed, counts = pile.packed(), pile.counts()
    worst: dict[tuple[int, ...], int] = {}
    for key, row in keyed:
        worst[key] = max(worst.get(key, row["max_ns"]), row["max_ns"])
    return [dict(zip(_COLUMNS, (*key, counts[key], worst[key], packed[key]), strict=True)) for key in packed]


def _month_begin_s(at_s: int) -> int:
    at = datetime.fromtimestamp(at_s, UTC)
    return int(datetime(at.year, at.month, 1, tzinfo=UTC).timestamp())
