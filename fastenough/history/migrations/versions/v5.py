# SPDX-License-Identifier: GPL-2.0-or-later
"""Version 5: when changes of the tail were noted, and what became of them.  Those of before are looked for anew."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "5"
down_revision = "4"


def upgrade() -> None:
    for name in ("noted_s", "until_s", "withdrawn_s"):
        op.add_column("change", sa.Column(name, sa.BigInteger))
    op.execute("DELETE FROM change WHERE kind = 'tail'")
