# SPDX-License-Identifier: GPL-2.0-or-later
"""A requirement: a limit, the rate at which it may be exceeded, and the confidence required."""

from __future__ import annotations

from dataclasses import dataclass

from fastenough.model.terms import BadInput

RETURN_TIME_NS = 5 * 10**9
"""Default return time.  "Never" then excludes disturbances that come once in 5 s or more often.  15 s without a
disturbance are enough evidence for that, so a first run of 20 s under each load gives an answer."""
LEAST_MISS_RATE = 1e-18
"""Least rate other than 0: one miss in 30 years at 1 GHz.  The reciprocal of a much smaller number overflows."""
LEAST_CONFIDENCE = 1e-6


def require_confidence(share: float, name: str = "the confidence") -> None:
    """Raise BadInput for a confidence at which no bounds can be computed; ``name``: that of the option or key."""
    if not LEAST_CONFIDENCE <= share < 1.0:
        raise BadInput(
            f"{name} must be at least {LEAST_CONFIDENCE:.4%} and below 100%, not {share * 100:g}%; 95% is usual"
        )


@dataclass(frozen=True)
class Requirement:
    """A limit, and the rate at which it may be exceeded, to be demonstrated at a stated confidence.

    ``miss_rate``: misses per activation.  0 means never: no exceedance was measured, and a disturbance comes less often
    than once in ``return_time_ns``.  ``longest_burst``: maximum number of activations that one cause delays, even if
    they are seconds apart; declared by a person who knows the system.  With it, few exceedances are enough evidence
    for a miss rate.  ``confidence``: a millionth or more, and less than 1.
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
        if 0.0 < self.miss_rate < LEAST_MISS_RATE:
            raise BadInput(f"the miss rate must be 0, or {LEAST_MISS_RATE:g} or more, not {self.miss_rate}")
        require_confidence(self.confidence)
        if self.longest_burst is not None and not 1 <= self.longest_burst <= 10**9:
            raise BadInput(f"the longest burst must be 1 activation or more, not {self.longest_burst}")
        if self.return_time_ns <= 0:
            raise BadInput(f"the return time must be longer than 0, not {self.return_time_ns} ns")
