# SPDX-License-Identifier: GPL-2.0-or-later
"""The keys of ``[[run]]`` that are one file each, one line here for each; ``plan_file`` reads the other keys."""

from __future__ import annotations

from collections.abc import Mapping

from fastenough.campaign.run_keys.base import RunKey
from fastenough.registry import listed

__all__ = ["KEYS", "RunKey"]

_ALL: list[RunKey] = listed(
    __name__,
    "KEY",
    [
        "break_threshold",
    ],
)

KEYS: Mapping[str, RunKey] = {key.name: key for key in _ALL}
