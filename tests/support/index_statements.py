# SPDX-License-Identifier: GPL-2.0-or-later
"""The statements that an SQLite index executes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def each_statement(note: Callable[[str], object]) -> Iterator[None]:
    """Context in which each statement is passed to a function before it is executed."""
    really = sqlite3.connect

    def connect(*arguments: Any, **more: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = really(*arguments, **more)
        connection.set_trace_callback(note)
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        yield
