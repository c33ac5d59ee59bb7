# SPDX-License-Identifier: GPL-2.0-or-later
"""Version 8: the boards whose data a rebuild has deleted and not read again yet; the requirement that a board was
judged by, and the state ``not judged``, which moves the ranks of later states.

Verdicts of earlier versions do not state their requirement: they are not shown until boards are judged again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "8"
down_revision = "7"

_NOT_JUDGED_RANK = 7


def upgrade() -> None:
    op.add_column("board", sa.Column("rebuilt_from", sa.Text, nullable=False, server_default=""))
    op.add_column("board", sa.Column("judged_by", sa.Text, nullable=False, server_default=""))
    op.add_column("board", sa.Column("plan_limit_ns", sa.BigInteger))
    op.execute(f"UPDATE summary SET rank = rank + 1 WHERE rank >= {_NOT_JUDGED_RANK}")
    op.execute("UPDATE summary SET at_s = 0 WHERE verdict <> ''")
