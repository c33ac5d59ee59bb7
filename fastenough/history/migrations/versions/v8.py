# SPDX-License-Identifier: GPL-2.0-or-later
"""Version 8: the boards whose data a rebuild has deleted and not read again yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "8"
down_revision = "7"


def upgrade() -> None:
    op.add_column("board", sa.Column("rebuilt_from", sa.Text, nullable=False, server_default=""))
