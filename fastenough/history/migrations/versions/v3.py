# SPDX-License-Identifier: GPL-2.0-or-later
"""Version 3: all of what is required of a board, beside its limit."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    op.add_column("board", sa.Column("requirement", sa.Text, nullable=False, server_default=""))
