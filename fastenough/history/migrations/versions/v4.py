# SPDX-License-Identifier: GPL-2.0-or-later
"""Version 4: the newest cycle's own verdict, how often a board is due, and recordings that were not taken whole."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"


def upgrade() -> None:
    op.add_column("board", sa.Column("cycle_verdict", sa.String(16), nullable=False, server_default=""))
    op.add_column("board", sa.Column("cycle_reason", sa.Text, nullable=False, server_default=""))
    op.add_column("board", sa.Column("judged_from_s", sa.BigInteger))
    op.add_column("board", sa.Column("due_s", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("board", sa.Column("farm", sa.String(300), nullable=False, server_default=""))
    op.add_column("board", sa.Column("formerly", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "refused",
        sa.Column("board", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(200), primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at_s", sa.BigInteger, nullable=False),
    )
