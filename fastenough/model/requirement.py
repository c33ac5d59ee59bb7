# SPDX-License-Identifier: GPL-2.0-or-later
"""What is required of a system: a limit, how often it may be exceeded, and how sure one wants to be."""

from __future__ import annotations

from dataclasses import dataclass

from fastenough.model.terms import BadInput


@dataclass(frozen=True)
class Requirement:
    """A limit that may be exceeded at no more than a stated rate, shown at a stated confidence.

    ``miss_rate`` is misses per activation (0 = never: nothing observed above the limit, and the bound
    that remains is printed).  ``confidence`` lies strictly between 0 and 1.
    """

    limit_ns: int
    miss_rate: float = 0.0
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.limit_ns <= 0:
            raise BadInput(f"the limit must be longer than 0, not {self.limit_ns} ns")
        if not 0.0 <= self.miss_rate < 1.0:
            raise BadInput(f"the miss rate must be at least 0 and below 1, not {self.miss_rate}")
        if not 0.0 < self.confidence < 1.0:
            raise BadInput(f"the confidence must lie between 0% and 100%, not {self.confidence * 100:g}%")
