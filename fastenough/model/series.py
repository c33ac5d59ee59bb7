# SPDX-License-Identifier: GPL-2.0-or-later
"""A series: one stream of values in a recording, and its use."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """The use of a series.  A recording states it; it does not follow from the name of the series."""

    VERDICT = "verdict"
    DIAGNOSTIC = "diagnostic"
    THROUGHPUT = "throughput"


@dataclass(frozen=True)
class SourceSummary:
    """The summary of an imported series in its source file, in the unit of the series; None: not stated.

    ``overflow``: number of values beyond the histogram of the tool, which were only counted.
    """

    count: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    mean: float | None = None
    overflow: int | None = None

    @property
    def omitted_count_unknown(self) -> bool:
        """Whether an unknown number of values is missing."""
        return self.count is None and self.overflow != 0


@dataclass(frozen=True)
class Series:
    """One stream of values; each is the time between two events.

    ``two_sided``: deviations in both directions count (jitter).  ``corrected``: corrected for coordinated omission, so
    missed activations have values.  ``relative``: each due time counts from the last act.  ``rise_k``: resolution of
    its rises; None: it has none.  ``source_summary``: stated by the source file, of imported series only.
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
    source_summary: SourceSummary | None = None

    @property
    def unit_ns(self) -> float:
        """Length of one unit of a value, in ns."""
        return 1.0 if self.tick_ps is None else self.tick_ps / 1000.0
