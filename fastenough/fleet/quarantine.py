# SPDX-License-Identifier: GPL-2.0-or-later
"""Quarantined machine ids: list them, and lift a quarantine, which is recorded."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import select

from fastenough.fleet import tables
from fastenough.fleet.chunk import shard_of
from fastenough.history import History
from fastenough.model import BadInput

_MOST_BY, _MOST_REASON = 200, 1000


@dataclass(frozen=True)
class QuarantinedMachine:
    """A machine id whose chunks are refused.  ``fault``: the reason."""

    machine: str
    type: str
    fault: str


@dataclass(frozen=True)
class LiftedQuarantine:
    """A lifted quarantine: its machine, the time, the operator and the reason.  ``fault``: reason of the quarantine."""

    machine: str
    at_s: int
    by: str
    reason: str
    fault: str


def quarantined(history: History) -> list[QuarantinedMachine]:
    """All quarantined machine ids, in their order."""
    table = tables.MACHINE
    with history.reading() as connection:
        rows = connection.execute(
            select(table.c.machine, table.c.type, table.c.quarantine)
            .where(table.c.quarantine != "")
            .order_by(table.c.machine)
        )
        return [QuarantinedMachine(*row) for row in rows]


def lifted(history: History) -> list[LiftedQuarantine]:
    """All quarantines that were lifted, oldest first."""
    table = tables.LIFTED
    with history.reading() as connection:
        rows = connection.execute(
            select(table.c.machine, table.c.at_s, table.c.by, table.c.reason, table.c.fault).order_by(table.c.id)
        )
        return [LiftedQuarantine(*row) for row in rows]


def lift(history: History, machine: str, by: str, reason: str) -> LiftedQuarantine:
    """Accept the chunks of a machine again, and record the operator and the reason; raises BadInput.

    Its boots are forgotten, so that the remaining board is not taken for a second one.  If two boards still publish,
    the next boot that returns quarantines them again.
    """
    for name, text, most in (("--by", by, _MOST_BY), ("--reason", reason, _MOST_REASON)):
        if not text.strip() or not text.isprintable() or len(text) > most:
            raise BadInput(f"{name}: write one line of 1 to {most} characters")
    table = tables.MACHINE
    with history.writing() as connection:
        row = connection.execute(select(table.c.quarantine).where(table.c.machine == machine)).one_or_none()
        if row is not None:  # no taker is about to write what it has read of the machine before
            tables.locked_position(connection, shard_of(machine))
            row = connection.execute(select(table.c.quarantine).where(table.c.machine == machine)).one()
        if row is None or not row[0]:
            raise BadInput(
                f"{machine[:40]} is not quarantined; list the machines with: fastenough farm quarantine list"
            )
        done = LiftedQuarantine(machine, int(history.wall_s()), by, reason, str(row[0]))
        connection.execute(table.update().where(table.c.machine == machine).values(quarantine="", boots="[]"))
        connection.execute(tables.LIFTED.insert().values(asdict(done)))
    return done
