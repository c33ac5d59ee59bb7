# SPDX-License-Identifier: GPL-2.0-or-later
"""Values that a test needs and that may be None by their type."""

from __future__ import annotations

from typing import TypeVar

import pytest

T = TypeVar("T")


def present(value: T | None, name: str) -> T:
    """The value; fails the test with ``name`` if it is None."""
    __tracebackhide__ = True
    if value is None:
        pytest.fail(f"missing: {name}")
    return value
