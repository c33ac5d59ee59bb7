# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors, names of parameters in recordings, outcomes, verdicts and exit statuses."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class FastenoughError(Exception):
    """An error that a person can fix.  The message is one line: what is wrong, and what to do."""


class BadInput(FastenoughError):
    """Wrong usage or bad input; the command line ends with status 2."""


class Unavailable(FastenoughError):
    """A service, such as a database, does not answer at present; a later attempt may succeed."""


class NotApplicable(FastenoughError):
    """This cannot be measured here; the message is the reason.  Never a pass, never a zero."""


EMULATED = "emulated"
"""The mark of a recording whose timing is not meaningful."""
IMPORTED = "imported"
"""The mark of a recording imported from the output of another tool: it holds no more data than that output."""


RUN_LENGTH = frozenset({"duration_ns", "loops"})
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
    """The verdict on a requirement."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    BROKEN = "BROKEN"
    NO_LIMIT = "no limit stated"
    """No requirement was stated: latencies are reported without a verdict."""


class ExitStatus(IntEnum):
    """Exit statuses of the command line."""

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
