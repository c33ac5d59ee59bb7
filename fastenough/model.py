# SPDX-License-Identifier: GPL-2.0-or-later
"""The terms everything else speaks in (SPEC section 1); no behaviour beyond what the terms mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any


class FastenoughError(Exception):
    """Something a person can mend: the message is one line saying what is wrong and how to mend it."""


class BadInput(FastenoughError):
    """Wrong usage or bad input; the command line ends with status 2."""


class NotApplicable(FastenoughError):
    """This cannot be measured here; the message is the reason.  Never a pass, never a zero."""


class Outcome(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"
    NOT_APPLICABLE = "not-applicable"


class Verdict(StrEnum):
    """What the evidence says about a requirement."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    BROKEN = "BROKEN"


class ExitStatus(IntEnum):
    """The command line's contract with scripts."""

    DONE = 0
    FAIL = 1
    BAD_INPUT = 2
    INCONCLUSIVE = 3
    BROKEN = 4
    NOT_APPLICABLE = 5


VERDICT_EXIT_STATUS = {
    Verdict.PASS: ExitStatus.DONE,
    Verdict.FAIL: ExitStatus.FAIL,
    Verdict.INCONCLUSIVE: ExitStatus.INCONCLUSIVE,
    Verdict.BROKEN: ExitStatus.BROKEN,
}


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


@dataclass(frozen=True)
class Configuration:
    """What a board has booted: the name people gave it, and what the board itself tells; None where it does not."""

    name: str
    kernel_release: str | None = None
    kernel_config_sha256: str | None = None
    command_line: str | None = None


@dataclass(frozen=True)
class Series:
    """One stream of values in a recording, and the two events between which each value lies."""

    id: int
    name: str
    unit: str
    clock: str
    from_event: str
    to_event: str
    k: int
    cpu: int | None = None
    period_ns: int | None = None
    bytes: int | None = None
    tick_ps: int | None = None
    refused: str | None = None
    labels: dict[str, Any] = field(default_factory=dict)

    @property
    def unit_ns(self) -> float:
        """How many nanoseconds one unit of a value is."""
        return 1.0 if self.tick_ps is None else self.tick_ps / 1000.0
