# SPDX-License-Identifier: GPL-2.0-or-later
"""Common and differing traits of things of one kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def shared(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The traits that all items have with the same value."""
    first = items[0] if items else {}
    return {name: value for name, value in first.items() if all(name in item and item[name] == value for item in items)}


def differing(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of each item, the traits that are not common to all."""
    common = shared(items)
    return [{name: value for name, value in item.items() if name not in common} for item in items]


def in_words(item: Mapping[str, Any]) -> str:
    """``CPU 0 size=4096 relative``: a CPU by its number, a flag by its name, the rest with its value."""
    return " ".join(_word(name, value) for name, value in item.items())


def _word(name: str, value: Any) -> str:
    if name == "cpu":
        return f"CPU {value}"
    return name if value is True else f"{name}={value}"
