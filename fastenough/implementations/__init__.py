# SPDX-License-Identifier: GPL-2.0-or-later
"""Implementations of the timed acts: one file each, one line here for each."""

from __future__ import annotations

from collections.abc import Mapping

from fastenough.implementations.base import Act, Counted, Implementation, Tally, TaskKind, vocabulary
from fastenough.implementations.catalogue import Value
from fastenough.implementations.linux_user import IMPLEMENTATION as LINUX_USER
from fastenough.implementations.linux_user import LinuxUser
from fastenough.model import BadInput
from fastenough.registry import listed

__all__ = [
    "DEFAULT",
    "IMPLEMENTATIONS",
    "Act",
    "Counted",
    "Implementation",
    "Tally",
    "TaskKind",
    "Value",
    "find_implementation",
    "user_space_implementations",
    "vocabulary",
]

_ALL: list[Implementation] = listed(
    __name__,
    "IMPLEMENTATION",
    (
        "linux_user",
        "linux_kernel",
        "xenomai_user",
        "xenomai_kernel",
        "evl_user",
        "evl_kernel",
    ),
)

IMPLEMENTATIONS: Mapping[str, Implementation] = {implementation.name: implementation for implementation in _ALL}

DEFAULT = LINUX_USER.name


def find_implementation(name: str) -> Implementation:
    """The implementation of that name; raises BadInput naming those that exist."""
    if name not in IMPLEMENTATIONS:
        raise BadInput(f"no implementation is called {name!r}; use one of {', '.join(IMPLEMENTATIONS)}")
    return IMPLEMENTATIONS[name]


def user_space_implementations() -> dict[str, LinuxUser]:
    """By name, the implementations whose tasks are those of a probe in user space; calibration can delay these."""
    return {name: user for name, user in IMPLEMENTATIONS.items() if isinstance(user, LinuxUser)}
