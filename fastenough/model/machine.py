# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines and what is booted on them.

A machine is identified by a set of identifiers, of which a kernel without a driver sees fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Configuration:
    """What is booted on a machine.

    ``kernel_release``: the output of ``uname -r``; ``command_line``: that of the kernel; None: unknown.
    """

    name: str
    kernel_release: str | None = None
    kernel_config_sha256: str | None = None
    command_line: str | None = None


Identifiers = frozenset[str]
"""Hashes that identify a machine; empty: unknown."""


def identifiers_of(profile: Mapping[str, Any] | None) -> Identifiers:
    """Return the identifiers in a profile (fact ``machine``), empty without them."""
    found = (profile or {}).get("machine")
    return frozenset(map(str, found)) if isinstance(found, list) else frozenset()


def is_same_machine(one: Identifiers, other: Identifiers) -> bool | None:
    """Return whether one of two sets contains the other; None if one of them is unknown.

    A card may be added, and a kernel may lack a driver.  Clones with a card in common have more besides it.
    """
    return one <= other or other <= one if one and other else None


class Machines:
    """The machines of several runs, numbered in order of first appearance; any two sets of one machine agree."""

    def __init__(self, seen: Iterable[Identifiers]) -> None:
        self._known: list[set[Identifiers]] = []
        for identifiers in filter(None, seen):
            number = self.number(identifiers)
            if number is None:
                self._known.append({identifiers})
            else:
                self._known[number].add(identifiers)

    def __len__(self) -> int:
        return len(self._known)

    def number(self, identifiers: Identifiers) -> int | None:
        """Return the number of a machine; None if it is unknown."""
        for number, known in enumerate(self._known):
            if all(is_same_machine(each, identifiers) for each in known):
                return number
        return None
