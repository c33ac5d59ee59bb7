# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines and their booted configurations.

A machine is identified by a set of identifiers, of which a kernel without a driver sees fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Configuration:
    """The booted configuration of a machine.

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
    hashes = (profile or {}).get("machine")
    return frozenset(map(str, hashes)) if isinstance(hashes, list) else frozenset()


def is_same_machine(first: Identifiers, second: Identifiers) -> bool | None:
    """Return whether one of two sets contains the other; None if one of them is unknown.

    A card may be added, and a kernel may lack a driver.  Clones with a card in common have more besides it.
    """
    return first <= second or second <= first if first and second else None


class Machines:
    """The machines of several runs, numbered in order of first appearance; any two sets of one machine agree."""

    def __init__(self, runs: Iterable[Identifiers]) -> None:
        self._machines: list[set[Identifiers]] = []
        for identifiers in filter(None, runs):
            number = self.number(identifiers)
            if number is None:
                self._machines.append({identifiers})
            else:
                self._machines[number].add(identifiers)

    def __len__(self) -> int:
        return len(self._machines)

    def number(self, identifiers: Identifiers) -> int | None:
        """Return the number of a machine; None if it is unknown."""
        for number, machine in enumerate(self._machines):
            if all(is_same_machine(known, identifiers) for known in machine):
                return number
        return None
