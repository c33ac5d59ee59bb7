# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors, names of parameters in recordings, outcomes, verdicts and exit statuses."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class FastenoughError(Exception):
    """Something a person can fix: the message is one line saying what is wrong and how to fix it."""


class BadInput(FastenoughError):
    """Wrong usage or bad input; the command line ends with status 2."""


class Unavailable(FastenoughError):
    """What answers at other times, such as a database, does not answer now: it is worth asking again."""


class NotApplicable(FastenoughError):
    """This cannot be measured here; the message is the reason.  Never a pass, never a zero."""


EMULATED = "emulated"
"""The mark of a recording that shows function, and never speed."""
IMPORTED = "imported"
"""The mark of a recording that was made of another tool's output: it tells no more than that tool did."""


HOW_LONG = frozenset({"duration_ns", "loops"})
"""Parameters for the length of a run; they do not affect latency, so runs that differ only in them may be merged."""


def parameter_name(option: str, *, is_duration: bool) -> str:
    """The name in a recording of an option of a plan or the command line: ``report`` is ``report_ns``."""
    return option.replace("-", "_") + ("_ns" if is_duration else "")


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
    NO_LIMIT = "no limit stated"
    """Nothing was required: what was seen is told, and judged by nothing."""


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
    Verdict.NO_LIMIT: ExitStatus.DONE,
}
