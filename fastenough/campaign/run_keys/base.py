# SPDX-License-Identifier: GPL-2.0-or-later
"""What a key of ``[[run]]`` with a file of its own can do."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from fastenough.board import Booted
from fastenough.campaign.toml import Table
from fastenough.implementations import Value


class RunKey:
    """A key of ``[[run]]``, as plans spell it, and its effect.

    A key overrides the methods that it needs.  All are called only for a ``[[run]]`` that has the key, and raise
    BadInput, made by ``table.fault()``, for a value that is not valid.
    """

    name: str

    def parameters(self, table: Table) -> Mapping[str, Value]:
        """The parameters of the probe that the key sets."""
        return {}

    def value(self, table: Table) -> Value | None:
        """The value that each run passes to :meth:`during`; None for a key that only sets parameters."""
        return None

    def during(self, value: Value, booted: Booted) -> AbstractContextManager[None]:
        """Entered before the load of a run starts, left after its recordings are complete."""
        return nullcontext()
