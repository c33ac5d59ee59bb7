# SPDX-License-Identifier: GPL-2.0-or-later
"""What Alembic runs to migrate: on the connection that it was given, in the transaction that is open there."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
