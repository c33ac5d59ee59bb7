# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of requirements, of which runs of one kind may have several."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough import words
from fastenough.analysis.assessment import Judgment
from fastenough.model import Requirement


def requirement_name(requirement: Requirement) -> str:
    """Limit and allowed miss rate, and what else is not the default: "100 µs, no misses"."""
    usual = Requirement(requirement.limit_ns)
    rate = f"miss rate at most {words.rate(requirement.miss_rate)}" if requirement.miss_rate else "no misses"
    parts = [words.exact_time(requirement.limit_ns), rate]
    if requirement.return_time_ns != usual.return_time_ns:
        parts.append(f"return time {words.duration(requirement.return_time_ns)}")
    if requirement.longest_burst is not None:
        parts.append(f"longest burst {words.number(requirement.longest_burst)}")
    if requirement.confidence != usual.confidence:
        parts.append(f"{words.percent(requirement.confidence)} confidence")
    return ", ".join(parts)


def limit_names(judgments: Sequence[Judgment]) -> dict[Requirement | None, str]:
    """The names of requirements of which one probe has several: by their limits, if these differ."""
    of_probes: dict[str, dict[Requirement, None]] = {}
    for judgment in judgments:
        if judgment.requirement is not None:
            of_probes.setdefault(judgment.probe, {})[judgment.requirement] = None
    several = [requirements for requirements in of_probes.values() if len(requirements) > 1]
    differ = all(len({required.limit_ns for required in group}) == len(group) for group in several)
    return {
        required: f"limit {words.exact_time(required.limit_ns) if differ else requirement_name(required)}"
        for group in several
        for required in group
    }
