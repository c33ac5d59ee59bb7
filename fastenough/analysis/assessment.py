# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of an assessment: findings, judgments of the runs of one key, and the result for all runs; names of
requirements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fastenough import words
from fastenough.analysis.measures import Bound
from fastenough.model import Requirement, Verdict

LIFE_SAFETY = (
    "This is no statement about life safety. No measurement can show that a deadline is never missed; "
    "fastenough gives no verdict where a missed deadline may injure or kill. Use hardware or a system "
    "certified for that purpose."
)


@dataclass(frozen=True)
class CheckFinding:
    """A reason against a PASS, and the next step."""

    verdict: Verdict
    text: str
    next_step: str | None = None
    more_samples: int | None = None
    more_ns: float | None = None


@dataclass(frozen=True)
class Supported:
    """The hardest requirement the data supports at one miss rate: nothing (or rarely enough) above ``limit_ns``."""

    miss_rate: float
    limit_ns: int
    confidence: float
    bound: Bound


@dataclass(frozen=True)
class StatedMaximum:
    """Evidence of the samples of one CPU (or of one run, if runs differ) about the requirement, at ``confidence``.

    ``disturbances``: least and greatest possible number.  ``longest``: greatest possible number of exceedances of one
    disturbance; ``longest_run``: longest measured run of exceedances.  ``independent``: equivalent number of
    independent disturbances.  ``upper``: upper bound on the rate of exceedances per activation, None with fewer than
    ten disturbances.  ``every_ns``: at most one disturbance in this time.  ``scale_ns``: disturbances within this time
    depend on each other and form one of ``clusters``; 0 if they may be independent.  ``declared_burst``: the declared
    longest burst that ``within`` rests on, None if it rests on measured data alone.  ``source``: source of the order
    of the values.
    """

    series: str
    cpus: tuple[int, ...]
    run_ids: tuple[str, ...]
    n: int
    duration_ns: int
    exceeded: int
    disturbances: tuple[int, int]
    longest: int
    longest_run: float
    independent: float
    effective_n: float
    upper: float | None
    every_ns: float
    scale_ns: float
    clusters: int
    p_value: float
    steady: bool
    within: bool
    declared_burst: int | None
    source: str
    confidence: float
    text: str


@dataclass(frozen=True)
class Judgment:
    """The judgment of runs of one key.

    ``requirement``: None if nothing is required of them.  ``maximum_ns``: None if there are no values, or an imported
    source left out values that may exceed those stored.  ``uncharged``: missed periods without a value.
    ``n_is_least``: whether such a source left out an unknown number of values.
    """

    run_ids: tuple[str, ...]
    probe: str
    load: str | None
    verdict: Verdict
    findings: tuple[CheckFinding, ...]
    maximum_ns: float | None
    worst_cpu: int | None
    n: int
    exceeded: int
    bound: Bound
    supported: tuple[Supported, ...]
    not_measured: tuple[int, ...] = ()
    """CPUs of the machine that these runs did not measure."""
    setup: tuple[str, ...] = ()
    """Board, configuration and implementation, by name."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """As text: "method nanosleep"."""
    requirement: Requirement | None = None
    uncharged: int = 0
    n_is_least: bool = False
    evidence: tuple[StatedMaximum, ...] = ()
    """Results per CPU, from runs with valid data."""


@dataclass(frozen=True)
class RequirementResult:
    """The verdict on one of several requirements, from all runs of ``probe`` that it applies to."""

    probe: str
    requirement: Requirement
    verdict: Verdict


@dataclass(frozen=True)
class Assessment:
    """The verdict with its reasons and evidence.

    ``all_not_applicable``: nothing could be measured here; the verdict is then INCONCLUSIVE and the command
    line ends with its own status.  ``requirement_results``: empty unless there are several requirements.
    """

    verdict: Verdict
    headline: str
    reasons: tuple[str, ...]
    next_steps: tuple[str, ...]
    cautions: tuple[str, ...]
    judgments: tuple[Judgment, ...]
    supported: tuple[Supported, ...]
    not_applicable: tuple[tuple[str, str], ...]
    all_not_applicable: bool
    emulated: bool
    life_safety: str = field(default=LIFE_SAFETY)
    requirement_results: tuple[RequirementResult, ...] = ()

    def requirements_of(self, run_id: str) -> tuple[Requirement, ...]:
        """The requirements of a run, that of the least limit first."""
        stated = (judgment.requirement for judgment in self.judgments if run_id in judgment.run_ids)
        return tuple(sorted(filter(None, stated), key=lambda requirement: requirement.limit_ns))

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """All requirements, each once."""
        return tuple(
            dict.fromkeys(judgment.requirement for judgment in self.judgments if judgment.requirement is not None)
        )


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
