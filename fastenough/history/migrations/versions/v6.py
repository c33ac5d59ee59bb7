# SPDX-License-Identifier: GPL-2.0-or-later
"""Version 6: what boards are searched, sorted and grouped by.  Rows are computed by whoever stores data next."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"


def upgrade() -> None:
    for name in ("type", "site"):
        op.add_column("board", sa.Column(name, sa.String(200), nullable=False, server_default=""))
    op.create_table(
        "summary",
        sa.Column("board", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at_s", sa.BigInteger, nullable=False),
        sa.Column("rank", sa.SmallInteger, nullable=False),
        *(
            sa.Column(name, sa.BigInteger)
            for name in ("silent_from_s", "seen_s", "max_5min_ns", "max_24h_ns", "max_30d_ns")
        ),
        sa.Column("kernel", sa.String(200), nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("words", sa.Text, nullable=False),
    )
