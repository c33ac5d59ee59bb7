# SPDX-License-Identifier: GPL-2.0-or-later
"""The gate: whether runs are slower than a baseline by more than a limit allows, from blocks of time.

A limit fails if the lower end of the interval of the difference exceeds it (Holm over all limits), and passes if the
upper end does not; otherwise it is INCONCLUSIVE.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from fastenough import words
from fastenough.analysis import wording
from fastenough.analysis.assessment import Judgment
from fastenough.analysis.bootstrap import grown_by, no_interval_of_difference
from fastenough.analysis.checks import findings_of
from fastenough.analysis.clusters import holm
from fastenough.analysis.compare import Comparison, Sides, judged_kinds, kind_name
from fastenough.analysis.differences import all_differences, differing_keys, run_values
from fastenough.analysis.excluded_runs import ExcludedRuns, RequiredOfRun, Selection, exclusion_text, forbids_pass
from fastenough.analysis.instructions import InstructionComparison, PathComparison, PathFigure, difference_text
from fastenough.analysis.machine import is_emulated
from fastenough.analysis.merged import grouped, judged_series, load_name
from fastenough.analysis.nights import NightsEvidence
from fastenough.model import BadInput, Requirement, Verdict
from fastenough.recording import Recording

Group = Sequence[Recording]

MOST_CONFIDENCE = 0.9999
"""Highest confidence of a limit on growth.  The tail of the draws is taken as Student's t, which is not tested much
farther out; where several limits or windows share an error, it is read at their share."""


@dataclass(frozen=True)
class Growth:
    """The allowed increase of a quantile over the baseline: a time, or a share of the magnitude of the baseline's."""

    quantile: float
    more_ns: float = 0.0
    more_share: float = 0.0
    confidence: float = 0.95

    def require_resolved(self) -> None:
        """Raises BadInput for a confidence that draws of blocks cannot show."""
        if self.confidence > MOST_CONFIDENCE:
            raise BadInput(
                f"confidence {words.percent(self.confidence)} is too high for a limit on growth; "
                f"use {words.percent(MOST_CONFIDENCE)} or less"
            )

    def allowed_ns(self, base_ns: float) -> float:
        """The greatest allowed quantile; that of a jitter may be below zero.  Infinite if the baseline's is."""
        return grown_by(base_ns, self.more_ns, self.more_share)

    @property
    def allowed(self) -> str:
        return words.percent(self.more_share) if self.more_share else words.exact_time(self.more_ns)

    @property
    def text(self) -> str:
        return f"at {words.percent(self.quantile)} slower than the baseline by at most {self.allowed}"


@dataclass(frozen=True)
class Budget:
    """The allowed increase of a figure of a path without load over the baseline, on a deterministic board: a number of
    instructions, or a share of the baseline's."""

    figure: str
    more: int = 0
    more_share: float = 0.0

    @property
    def text(self) -> str:
        allowed = words.percent(self.more_share) if self.more_share else words.counted(self.more, "instruction")
        return f"{self.figure} of the path longer than the baseline's by at most {allowed}"

    def is_kept(self, figure: PathFigure) -> bool:
        return figure.difference <= max(self.more, self.more_share * figure.first)


@dataclass(frozen=True)
class Limit:
    """A limit for the runs of a board, a probe and a load (None: of every one).  ``location``: file and number."""

    location: str
    criterion: Growth | Requirement | Budget
    board: str | None = None
    probe: str | None = None
    load: str | None = None

    def is_for(self, recording: Recording) -> bool:
        values = (recording.head.board, recording.head.probe, load_name(recording))
        return all(
            required in (None, value)
            for required, value in zip((self.board, self.probe, self.load), values, strict=True)
        )

    @property
    def subject(self) -> str:
        named = [
            self.probe or "every probe",
            f"load {self.load}" if self.load else "every load",
            *([f"on {self.board}"] if self.board else []),
        ]
        return ", ".join(named)

    @property
    def text(self) -> str:
        if not isinstance(self.criterion, Requirement):
            return self.criterion.text
        rate = f"at most {words.rate_of(self.criterion.miss_rate, 'activations')}" if self.criterion.miss_rate else ""
        return f"{rate or 'never'} above {words.exact_time(self.criterion.limit_ns)}"


ENVIRONMENT = (
    "board",
    "configuration",
    "kernel",
    "kernel configuration",
    "command line",
    "device tree",
    "processor",
    "hypervisor",
)
"""Keys of a run that must be those of the baseline, unless the file of limits allows that they differ."""


@dataclass(frozen=True)
class AllowedDepartures:
    """Departures from the baseline that are allowed.  ``differs``: keys of the environment; ``missing``: loads that are
    no longer measured."""

    differs: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def same_cpus(self) -> bool:
        """Whether latencies must be measured on the CPUs of the baseline."""
        return "processor" not in self.differs


@dataclass(frozen=True)
class Departure:
    """A difference from the baseline that is not allowed."""

    subject: str
    requirement: str
    reason: str


@dataclass(frozen=True)
class LimitResult:
    """The result of one limit for runs of one key, or of a limit that applies to no run.

    ``nights``: the evidence of all nights, if the limit was judged by it.
    """

    limit: Limit
    verdict: Verdict
    reason: str
    subject: str
    run_ids: tuple[str, ...] = ()
    duration_ns: int = 0
    nights: NightsEvidence | None = None


@dataclass(frozen=True)
class BaselinePair:
    """Runs of one key, and the corresponding runs of the baseline; ``sides``: the judged series.

    ``differences``: those of the environment.  ``comparisons``: of all judged series.  Of deterministic boards there
    are ``instructions`` instead of both.  ``left_out``: why earlier runs were left out.
    """

    runs: Group
    baseline: Group
    differences: tuple[str, ...]
    sides: tuple[Sides, ...]
    comparisons: tuple[Comparison, ...]
    instructions: tuple[InstructionComparison, ...] = ()
    left_out: tuple[str, ...] = ()


def subject_of(recording: Recording) -> str:
    """Description of runs of one kind: probe, load and board."""
    head, load = recording.head, load_name(recording) or "not stated"
    return f"{head.probe}, load {load}, on {head.board or 'an unnamed board'}"


def _act(recording: Recording) -> tuple[object, ...]:
    """Keys that must be equal in corresponding runs; other differences are reported."""
    return (*_kind(recording), repr(run_values(recording)["act"]))


def _kind(recording: Recording) -> tuple[object, ...]:
    return (recording.head.probe, load_name(recording), recording.head.implementation)


def _corresponds(run: Recording, base: Recording) -> bool:
    """Whether a run is of the act of the baseline; versions of one tool may state different numbers of parameters."""
    other_version = run.head.tool != base.head.tool and run.head.tool.name == base.head.tool.name
    if not other_version or _kind(run) != _kind(base):
        return _act(run) == _act(base)
    return not any(key.name == "act" for key in differing_keys(run_values(run), run_values(base)))


def beside(runs: Group, baselines: Group) -> list[tuple[Group, Group]]:
    """The runs in groups of one key, each with the most similar runs of the baseline, if any."""
    pairs: list[tuple[Group, Group]] = []
    groups, base_groups = grouped(runs), grouped(baselines)
    for group in groups:
        alike = [other for other in base_groups if is_same_act(other[0], group[0])]
        if not alike:
            alike = [
                other for other in base_groups if _corresponds(group[0], other[0]) and _is_of_one_act(groups, other[0])
            ]
            alike = alike if len({_act(other[0]) for other in alike}) == 1 else []
        values = run_values(group[0])
        nearest = min(alike, key=lambda other: len(differing_keys(run_values(other[0]), values)), default=[])
        pairs.append((group, nearest))
    return pairs


def _is_of_one_act(groups: Sequence[Group], base: Recording) -> bool:
    """Whether all groups that correspond to a run of the baseline are of one act: else none of them is comparable."""
    return len({_act(group[0]) for group in groups if _corresponds(group[0], base)}) == 1


def departures(runs: Group, baselines: Group, allowed: AllowedDepartures) -> list[Departure]:
    """Loads and activations of the baseline that are no longer measured, and environments that differ."""
    pairs = beside(runs, baselines)
    result = [
        Departure(
            subject_of(base),
            "every measurement of the baseline is repeated",
            f"no run corresponds to run {base.run_id} of the baseline",
        )
        for base in _no_longer_measured(runs, baselines, pairs, "board" not in allowed.differs)
        if load_name(base) not in allowed.missing
    ]
    for group, nearest in pairs:
        if nearest:
            result += _other_environment(group[0], nearest[0], allowed)
            result += series_departures(group, nearest, allowed.same_cpus)
    return result


def _no_longer_measured(
    runs: Group, baselines: Group, pairs: Sequence[tuple[Group, Group]], on_each_board: bool
) -> Iterator[Recording]:
    """The first run of each group of the baseline without a corresponding run (``on_each_board``: on its board)."""

    beside_ids = {nearest[0].run_id for _, nearest in pairs if nearest}
    measured = [group[0] for group, _ in pairs]
    for base, *_ in grouped(baselines):
        on_boards = (run for run in measured if not on_each_board or run.head.board == base.head.board)
        if base.run_id not in beside_ids and not any(_corresponds(run, base) for run in on_boards):
            yield base


def _other_environment(run: Recording, base: Recording, allowed: AllowedDepartures) -> Iterator[Departure]:
    values, others = run_values(base), run_values(run)
    for key in differing_keys(values, others):
        if key.name in ENVIRONMENT and key.name not in allowed.differs:
            texts = all_differences([key], values, others)
            yield Departure(subject_of(run), f"same {key.name} as the baseline", "; ".join(texts))


def _cpus_by_latency(runs: Group) -> dict[str, set[frozenset[int | None]]]:
    """The sets of CPUs on which runs measured each judged latency that has values or missed periods.

    A corrected series has a value for each missed period: without values nothing was measured.
    """
    sets: dict[str, set[frozenset[int | None]]] = {}
    for run in runs:
        cpus: dict[str, set[int | None]] = {}
        for series in judged_series(run):
            if run.totals[series.id].total or (run.missed(series.id) and not series.corrected):
                cpus.setdefault(kind_name(series), set()).add(series.cpu)
        for name, of_run in cpus.items():
            sets.setdefault(name, set()).add(frozenset(of_run))
    return sets


def has_latency(run: Recording) -> bool:
    """Whether it measured any judged latency."""
    return bool(_cpus_by_latency([run]))


def series_departures(runs: Group, baseline: Group, same_cpus: bool, all_cpus: bool = True) -> Iterator[Departure]:
    """Yield judged latencies without values, and latencies measured on other CPUs.

    All CPUs are merged, so another set of CPUs can hide growth or feign it.  Runs are compared one by one: a set of
    CPUs counts if a run of the baseline has it.  ``all_cpus``: each set of the baseline must be measured.
    """
    before, now = _cpus_by_latency(baseline), _cpus_by_latency(runs)
    base_kinds, kinds = judged_kinds(baseline[0]), judged_kinds(runs[0])
    # A board and an instrument name one latency differently: see _pairs.
    if base_kinds and kinds and not set(base_kinds) & set(kinds):
        now = {base_kinds[0]: now[kinds[0]]} if kinds[0] in now else {}
    subject = subject_of(runs[0])
    for name, sets in before.items():
        measured = now.get(name, set())
        if not measured:
            yield Departure(subject, "every latency of the baseline is measured", f"{name} has no values")
        elif same_cpus and None not in {cpu for cpus in sets | measured for cpu in cpus}:
            if (measured == sets) if all_cpus else (measured <= sets):
                continue
            reason = f"{name}: measured on {_cpus_text(measured)}, baseline on {_cpus_text(sets)}"
            yield Departure(subject, "same CPUs as the baseline", reason)


def _cpus_text(sets: Collection[frozenset[int | None]]) -> str:
    """The sets of CPUs, as text: "CPUs 0-1", "CPU 0 or CPUs 0-1"."""
    texts = [words.cpus(sorted(cpu for cpu in cpus if cpu is not None)) for cpus in sets]
    return " or ".join(sorted(texts))


def is_same_act(first: Recording, second: Recording) -> bool:
    """Whether both runs are of one act under one load, in any environment."""
    return _act(first) == _act(second)


def most_severe_finding(recordings: Group) -> tuple[Verdict, str] | None:
    """The most severe finding of the runs."""
    findings = [
        (finding.verdict, f"run {recording.run_id}: {finding.text}")
        for recording in recordings
        for finding in findings_of(recording)
    ]
    return min(findings, key=lambda item: item[0] is not Verdict.BROKEN, default=None)


@dataclass(frozen=True)
class _GrowthResult:
    """One limit on growth for one series of one group; ``p_value``: of the growth being within it."""

    limit: Limit
    growth: Growth
    pair: BaselinePair
    sides: Sides
    p_value: float | None = None
    within: bool = False


def _grown(limit: Limit, growth: Growth, pair: BaselinePair) -> Iterator[_GrowthResult]:
    for sides in pair.sides:
        resampled = sides.difference_at(growth.quantile, growth.more_ns, growth.more_share)
        yield (
            _GrowthResult(limit, growth, pair, sides)
            if resampled is None
            else _GrowthResult(
                limit, growth, pair, sides, resampled.chance_of_no_more(), resampled.is_no_more(growth.confidence)
            )
        )


def _growth_text(result: _GrowthResult) -> str:
    if unknown := unknown_quantile(result.sides, result.growth.quantile):
        return f"{result.sides.name} at {words.percent(result.growth.quantile)}: {unknown}"
    base, other = (side.value_ns(result.growth.quantile) for side in result.sides.of_activations)
    resampled = result.sides.difference_at(result.growth.quantile)
    if base is None or other is None or resampled is None:
        why = no_interval_of_difference(*result.sides.of_activations, result.growth.quantile)
        return f"{result.sides.name} at {words.percent(result.growth.quantile)}: no interval ({why})"
    lower, upper = resampled.interval(result.growth.confidence)
    return (
        f"{result.sides.name} at {words.percent(result.growth.quantile)}: {words.latency(base)} before, "
        f"{words.latency(other)} now; difference {words.microseconds_interval(lower, upper)} µs "
        f"({words.percent(result.growth.confidence)})"
    )


def unknown_quantile(sides: Sides, quantile: float, base_name: str = "the baseline") -> str | None:
    """Why a quantile of all activations is unknown on either side, if it is: it lies among missed periods."""
    reasons = [
        f"{name} {'has' if side.missed == 1 or name == base_name else 'have'} "
        f"{words.counted(side.missed, 'missed period')} without a value"
        for name, side in zip((base_name, "these runs"), sides.of_activations, strict=True)
        if side.is_missed(quantile)
    ]
    return f"{' and '.join(reasons)}, so the quantile is unknown" if reasons else None


def _judged_growth(result: _GrowthResult, slower: bool) -> LimitResult:
    against = most_severe_finding((*result.pair.runs, *result.pair.baseline))
    verdict = Verdict.FAIL if slower else Verdict.PASS if result.within else Verdict.INCONCLUSIVE
    reason = _growth_text(result)
    if verdict is Verdict.INCONCLUSIVE and unknown_quantile(result.sides, result.growth.quantile):
        reason += "; set limit and miss-rate instead of slower-by"
    elif verdict is Verdict.INCONCLUSIVE and result.p_value is not None:
        reason += f": not enough evidence that it is at most {result.growth.allowed}; measure longer"
    runs = result.pair.runs
    if against is not None and (against[0] is Verdict.BROKEN or verdict is Verdict.PASS or is_emulated(runs[0])):
        verdict, reason = against
    return LimitResult(
        result.limit,
        verdict,
        reason,
        subject_of(runs[0]),
        tuple(run.run_id for run in runs),
        sum(run.duration_ns for run in runs),
    )


def judge_growth(limits: Sequence[Limit], pairs: Sequence[BaselinePair]) -> list[LimitResult]:
    """The results of the limits on growth, judged together, each at its own confidence.

    Holm's method over the ratios of p-values and allowed errors: with one confidence it is the usual method.
    """
    results = [
        grown
        for limit in limits
        if isinstance(limit.criterion, Growth)
        for pair in pairs
        if limit.is_for(pair.runs[0])
        for grown in _grown(limit, limit.criterion, pair)
    ]
    tested = [result for result in results if result.p_value is not None]
    shares = [(result.p_value or 0.0) / (1 - result.growth.confidence) for result in tested]
    slower = dict(zip(map(id, tested), holm(shares, 1.0), strict=True))
    return [_judged_growth(result, slower.get(id(result), False)) for result in results]


def judge_not_compared(limits: Sequence[Limit], pairs: Sequence[BaselinePair]) -> list[LimitResult]:
    """A result for each limit on growth and each pair with latencies that could not be compared: BROKEN if a run is,
    else INCONCLUSIVE."""
    return [
        _not_compared(limit, pair, names)
        for pair in pairs
        if not pair.instructions and (names := _only_now(pair))
        for limit in limits
        if isinstance(limit.criterion, Growth) and limit.is_for(pair.runs[0])
    ]


def _only_now(pair: BaselinePair) -> list[str]:
    """The judged latencies of the baseline that have values in the runs only; all of them if none could be compared."""
    names = judged_kinds(pair.baseline[0])
    if not pair.sides:
        return names
    before, now = _cpus_by_latency(pair.baseline), _cpus_by_latency(pair.runs)
    return [name for name in names if name in now and name not in before]


def _not_compared(limit: Limit, pair: BaselinePair, names: Sequence[str]) -> LimitResult:
    """The result for latencies without a comparison; it names the side without values, and a bad run."""
    before = _cpus_by_latency(pair.baseline)
    side, group = ("these runs", pair.runs) if set(names) & before.keys() else ("the baseline", pair.baseline)
    runs = " and ".join(run.run_id for run in group)
    reason = f"{', '.join(names)}: not compared with the baseline; {side} (run {runs}): no values"
    against = most_severe_finding((*pair.baseline, *pair.runs))
    verdict = Verdict.INCONCLUSIVE
    if against is not None:
        verdict, reason = against[0], f"{reason}; {against[1]}"
    return LimitResult(
        limit,
        verdict,
        reason,
        subject_of(pair.runs[0]),
        tuple(run.run_id for run in pair.runs),
        sum(run.duration_ns for run in pair.runs),
    )


def judge_budgets(limits: Sequence[Limit], pairs: Sequence[BaselinePair]) -> list[LimitResult]:
    """The results of the budgets of paths: exact, hence each by itself."""
    return [
        _judged_budget(limit, limit.criterion, pair, comparison)
        for limit in limits
        if isinstance(limit.criterion, Budget)
        for pair in pairs
        if limit.is_for(pair.runs[0])
        for comparison in pair.instructions
    ]


def _judged_budget(limit: Limit, budget: Budget, pair: BaselinePair, comparison: InstructionComparison) -> LimitResult:
    broken = most_severe_finding((*pair.runs, *pair.baseline))
    if broken is not None and broken[0] is Verdict.BROKEN:
        verdict, reason = broken
    elif isinstance(comparison, PathComparison):
        figure = comparison.figure(budget.figure)
        verdict = Verdict.PASS if budget.is_kept(figure) else Verdict.FAIL
        reason = (
            f"{comparison.series}, {figure.name}: {figure.first:,.0f} instructions before, {figure.second:,.0f} now: "
            f"{difference_text(figure)}"
        )
    else:
        verdict = Verdict.INCONCLUSIVE
        reason = f'load {comparison.load}: a path has a length only without load; give the limit load = "none"'
    runs = pair.runs
    return LimitResult(
        limit,
        verdict,
        reason,
        subject_of(runs[0]),
        tuple(run.run_id for run in runs),
        sum(run.duration_ns for run in runs),
    )


def growth_requirements(pair: BaselinePair, growth: Growth) -> list[RequiredOfRun]:
    """What a limit on growth requires of each judged series of a run: its share of activations above the quantile of
    the baseline plus the allowed growth is at most that beyond the quantile."""
    requirements = []
    for sides in pair.sides:
        base_ns = sides.base.value_ns(growth.quantile)
        if base_ns is not None:
            limit_ns = max(1, int(growth.allowed_ns(base_ns)))
            required = Requirement(limit_ns, 1 - growth.quantile, growth.confidence)
            requirements.append(RequiredOfRun(pair.runs[0], required, sides.other.merged.name))
    return requirements


def result_without(result: LimitResult, others: Sequence[ExcludedRuns], selection: Selection) -> LimitResult:
    """The result of a limit, with the excluded runs of the same key named.

    A PASS is refused as `forbids_pass` states.
    """
    if not others:
        return result
    reason = f"{result.reason}; {exclusion_text(others)}"
    if result.verdict is not Verdict.PASS or not forbids_pass(others, selection):
        return replace(result, reason=reason)
    return replace(
        result, verdict=Verdict.INCONCLUSIVE, reason=f"{reason}; check all of these runs together, or pass --only-these"
    )


def requirement_result(limit: Limit, judgment: Judgment, runs: Group) -> LimitResult:
    """The result of a limit without a baseline, with the reasons of this judgment alone."""
    reasons = [finding.text for finding in judgment.findings] or wording.reasons((judgment,), judgment.verdict)
    return LimitResult(
        limit,
        judgment.verdict,
        "; ".join(reasons) or wording.observed(judgment),
        subject_of(runs[0]),
        judgment.run_ids,
        sum(run.duration_ns for run in runs),
    )
