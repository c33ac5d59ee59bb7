# SPDX-License-Identifier: GPL-2.0-or-later
"""Version 7: standard names of columns, and the state ``reserved`` of boards, which was ``lent`` before."""

from __future__ import annotations

from alembic import op

revision = "7"
down_revision = "6"

_RENAMED = (
    ("board", "watched", "is_declared"),
    ("board", "shown", "display_facts"),
    ("board", "formerly", "former_names"),
    ("series", "judged", "for_verdict"),
    ("summary", "words", "search_text"),
)
"""Table, former name of the column, new name."""


def upgrade() -> None:
    for table, former, name in _RENAMED:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {former} TO {name}")
    op.execute("UPDATE board SET state = 'reserved' WHERE state = 'lent'")
