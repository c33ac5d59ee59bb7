# SPDX-License-Identifier: GPL-2.0-or-later
"""The sentences of a PASS that rests on a declared longest burst."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fastenough import words
from fastenough.analysis.assessment import Judgment, StatedMaximum


def declared_bursts(judgments: Sequence[Judgment]) -> list[int]:
    """The longest bursts declared, not measured, without which something here would not have passed."""
    return sorted(
        {
            result.declared_burst
            for judgment in judgments
            for result in judgment.evidence
            if result.declared_burst is not None
        }
    )


def if_declared(judgments: Sequence[Judgment]) -> str:
    """Suffix of "fast enough" where that rests on a declared longest burst."""
    bursts = declared_bursts(judgments)
    return (
        f" if, as declared, no disturbance delays more than {words.counted(bursts[-1], 'activation')}" if bursts else ""
    )


def rate_upper(result: StatedMaximum) -> float:
    """Upper bound on the rate of exceedances per activation, measured or by the declared longest burst.

    0 if none is allowed; infinite if the measured time is unknown.
    """
    if result.upper is not None or result.declared_burst is None:
        return result.upper or 0.0
    if not result.every_ns:
        return math.inf
    return result.declared_burst * result.duration_ns / result.every_ns / result.n


def declared_rate(result: StatedMaximum) -> str:
    """Suffix of a statement about disturbances: the rate that follows from the declared longest burst."""
    upper = rate_upper(result)
    if result.upper is not None or result.declared_burst is None or upper >= 1:
        return ""
    return f", hence at most {words.rate_at_most(upper)} with the declared longest burst"


def reliance(judgment: Judgment) -> str:
    """Suffix that names the declared longest burst, and the CPUs that rely on it unless all do."""
    relying = [result for result in judgment.evidence if result.declared_burst is not None]
    if not relying:
        return ""
    cpus = sorted({cpu for result in relying for cpu in result.cpus})
    subject = f"{words.cpus(cpus)} " if cpus and len(relying) < len(judgment.evidence) else ""
    verb = "rely" if subject and len(cpus) > 1 else "relies"
    return f"; {subject}{verb} on the declared longest burst of {relying[0].declared_burst:,}"
