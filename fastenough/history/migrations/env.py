# SPDX-License-Identifier: GPL-2.0-or-later
"""Migration environment of Alembic: uses the given connection and its open transaction."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
