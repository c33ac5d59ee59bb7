# SPDX-License-Identifier: GPL-2.0-or-later
"""Bringing a database to the form of today.  Several processes may do it at once: one works, the others wait."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, inspect, text

from fastenough.model import FastenoughError

VERSION = "4"
"""Of the tables in `schema.py`; `migrations/versions/` holds every one up to it."""


def version_of(connection: Connection) -> str | None:
    """None of a database that has no history in it yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def migrate(connection: Connection, to: str = VERSION) -> None:
    """In the transaction that is open: what was there before stays where anything fails."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(7701, 0)"))
    found = version_of(connection)
    if (found is not None and not found.isdecimal()) or int(found or 0) > int(VERSION):
        raise FastenoughError(
            f"the history has version {found}; this fastenough supports versions up to {VERSION}; update "
            "fastenough, or name another database"
        )
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)
