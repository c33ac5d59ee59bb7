# SPDX-License-Identifier: GPL-2.0-or-later
"""A series: one stream of values in a recording, and what may be done with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """What a series is for; it states so itself, nothing follows from its name."""

    VERDICT = "verdict"
    DIAGNOSTIC = "diagnostic"
    THROUGHPUT = "throughput"


@dataclass(frozen=True)
class Said:
    """What the file that a series was imported from says of it, in the series' unit; None: it does not say.

    ``overflow``: values that were only counted, since the tool's own histogram did not reach so far.
    """

    count: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    mean: float | None = None
    overflow: int | None = None


@dataclass(frozen=True)
class Series:
    """One stream of values, and the two events between which each value lies.

    ``two_sided``: a value off in either direction counts (jitter).  ``corrected``: for coordinated omission, missed
    activations are values too.  ``relative``: each due time counts from the last act.  ``rise_k``: resolution of its
    rises, None where it has none.  ``said``: of imported ones only.
    """

    id: int
    name: str
    unit: str
    clock: str
    from_event: str
    to_event: str
    k: int
    role: Role
    two_sided: bool = False
    corrected: bool = False
    relative: bool = False
    cpu: int | None = None
    period_ns: int | None = None
    bytes: int | None = None
    tick_ps: int | None = None
    rise_k: int | None = None
    refused: str | None = None
    labels: dict[str, Any] = field(default_factory=dict)
    said: Said | None = None

    @property
    def unit_ns(self) -> float:
        """How many nanoseconds one unit of a value is."""
        return 1.0 if self.tick_ps is None else self.tick_ps / 1000.0
