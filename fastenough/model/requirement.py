# SPDX-License-Identifier: GPL-2.0-or-later
"""What is required of a system: a limit, how often it may be exceeded, and how sure one wants to be."""

from __future__ import annotations

from dataclasses import dataclass

from fastenough.model.terms import BadInput

RETURN_TIME_NS = 5 * 10**9
"""What "never" has to exclude where nobody says: that a disturbance comes as often as once in 5 s.  It is what 15 s
without one show, so what a first look of 20 s under each load can answer; for more, declare more."""


@dataclass(frozen=True)
class Requirement:
    """A limit that may be exceeded at no more than a stated rate, shown at a stated confidence.

    ``miss_rate`` is misses per activation; 0 is never: nothing seen above the limit, and no disturbance as often as
    once in ``return_time_ns``.  ``longest_burst``: how many activations one cause makes late at most, also where they
    are seconds apart, declared by who knows the system; with it a miss rate can be shown though hardly anything was
    late.  ``confidence`` lies
    strictly between 0 and 1.
    """

    limit_ns: int
    miss_rate: float = 0.0
    confidence: float = 0.95
    longest_burst: int | None = None
    return_time_ns: int = RETURN_TIME_NS

    def __post_init__(self) -> None:
        if self.limit_ns <= 0:
            raise BadInput(f"the limit must be longer than 0, not {self.limit_ns} ns")
        if not 0.0 <= self.miss_rate < 1.0:
            raise BadInput(f"the miss rate must be at least 0 and below 1, not {self.miss_rate}")
        if not 0.0 < self.confidence < 1.0:
            raise BadInput(f"the confidence must lie between 0% and 100%, not {self.confidence * 100:g}%")
        if self.longest_burst is not None and not 1 <= self.longest_burst <= 10**9:
            raise BadInput(f"the longest burst must be 1 activation or more, not {self.longest_burst}")
        if self.return_time_ns <= 0:
            raise BadInput(f"the return time must be longer than 0, not {self.return_time_ns} ns")
