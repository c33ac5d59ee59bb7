# SPDX-License-Identifier: GPL-2.0-or-later
"""The criteria of a bisection: a configuration is rated by a requirement, or by comparison with the first one.

Neither criterion uses a single maximum."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from fastenough import words
from fastenough.analysis import judge
from fastenough.analysis.assessment import Assessment
from fastenough.analysis.bootstrap import BootstrapDifference, no_interval_of_difference
from fastenough.analysis.checks import findings_between
from fastenough.analysis.compare import NoCommonSeries, Sides, sides_of
from fastenough.analysis.gate import Group, Growth, beside, is_same_act, series_departures, subject_of, unknown_quantile
from fastenough.analysis.merged import MixedRuns, judged_series
from fastenough.model import BadInput, Requirement, Verdict
from fastenough.recording import Recording


class Rating(StrEnum):
    """The rating of a configuration; skipped: it cannot be measured."""

    GOOD = "good"
    BAD = "bad"
    UNDECIDED = "undecided"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class CriterionResult:
    """The rating of a configuration by its data so far.  ``more_ns``: further time that may decide it, 0 if unknown;
    ``closed``: more data would not change the rating."""

    rating: Rating
    reasons: tuple[str, ...]
    next_steps: tuple[str, ...] = ()
    more_ns: int = 0
    closed: bool = True


class Criterion(Protocol):
    """Rates a configuration by its recordings.

    ``against_first``: by comparison with the first configuration, which is then measured for the maximum time.
    """

    @property
    def confidence(self) -> float: ...

    @property
    def against_first(self) -> bool: ...

    def look(
        self, runs: Sequence[Recording], first: Sequence[Recording], confidence: float, looks: int
    ) -> CriterionResult:
        """``first``: recordings of the first configuration, empty if ``runs`` are its own; ``looks``: number of earlier
        ratings of this configuration."""
        ...


_RATINGS = {Verdict.PASS: Rating.GOOD, Verdict.FAIL: Rating.BAD}


@dataclass(frozen=True)
class RequirementCriterion:
    """Good is PASS and bad is FAIL, under all ``loads`` together.

    Raises BadInput for a requirement that a single value would violate, or that no data could confirm.
    """

    requirement: Requirement
    loads: tuple[str, ...]
    against_first = False

    def __post_init__(self) -> None:
        if self.requirement.miss_rate == 0:
            raise BadInput(
                "with a miss rate of 0 a single deadline miss would decide a step; give the allowed miss rate "
                "(--miss-rate)"
            )
        if self.requirement.longest_burst is None:
            raise BadInput(
                "without --longest-burst a configuration with fewer than 10 disturbances cannot be called good; "
                "give the most periods that one disturbance can miss (--longest-burst)"
            )

    @property
    def confidence(self) -> float:
        return self.requirement.confidence

    def look(
        self, runs: Sequence[Recording], first: Sequence[Recording], confidence: float, looks: int
    ) -> CriterionResult:
        assessment = judge(runs, replace(self.requirement, confidence=confidence), loads=self.loads or None)
        closed = assessment.verdict is not Verdict.INCONCLUSIVE or assessment.all_not_applicable
        return CriterionResult(
            _RATINGS.get(assessment.verdict, Rating.UNDECIDED),
            assessment.reasons,
            assessment.next_steps,
            _more_ns(assessment),
            closed,
        )


def _more_ns(assessment: Assessment) -> int:
    """Further time that may decide the rating, 0 if unknown; each load is measured as long as the longest one."""
    needed = [finding.more_ns or 0.0 for judgment in assessment.judgments for finding in judgment.findings]
    return math.ceil(max(needed, default=0.0)) * max(1, len(assessment.judgments))


def _confidence_of_look(confidence: float, looks: int) -> float:
    """Confidence of a comparison after ``looks`` earlier ones with fewer data.

    The first comparison has the whole error, the k-th further one 1 / (k (k + 1)) of it.  These shares add up to 1, so
    all further comparisons together err no more often than the first.
    """
    return confidence if looks == 0 else 1.0 - (1.0 - confidence) / (looks * (looks + 1))


@dataclass(frozen=True)
class SlowdownCriterion:
    """Bad: slower than the first configuration by more than the allowed difference, under at least one load; good: not
    slower by more than that, under each load.

    It also applies to configurations of an emulated board: the result says which of them changed the behaviour in
    emulation, and nothing about speed.
    """

    growth: Growth
    against_first = True

    @property
    def confidence(self) -> float:
        return self.growth.confidence

    def look(
        self, runs: Sequence[Recording], first: Sequence[Recording], confidence: float, looks: int
    ) -> CriterionResult:
        against = list(_against((*first, *runs)))
        broken = [why for verdict, why in against if verdict is Verdict.BROKEN]
        if broken or not any(map(judged_series, runs)):
            return CriterionResult(Rating.UNDECIDED, (*broken, *_empty(runs)))
        if not first:
            return CriterionResult(Rating.GOOD, ("reference for the other configurations",))
        groups = [pair for pair in beside([run for run in runs if judged_series(run)], first) if pair[1]]
        departed = [list(series_departures(*pair, same_cpus=True)) for pair in groups]
        comparable = [pair for pair, departures in zip(groups, departed, strict=True) if not departures]
        try:
            seen = list(_series_differences(self.growth, comparable))
        except (MixedRuns, NoCommonSeries) as error:
            return CriterionResult(Rating.UNDECIDED, (str(error),))
        departures = (f"{one.subject}: {one.reason}" for of_group in departed for one in of_group)
        reasons = [*departures, *(why for _, why in against)]
        measured = [nearest[0] for _, nearest in comparable]
        needed = [base for base in first if judged_series(base)]
        complete = all(any(is_same_act(base, run) for run in measured) for base in needed) and len(seen) >= len(
            {subject_of(base) for base in needed}
        )
        return self._rate(seen, reasons, complete, _confidence_of_look(confidence, looks))

    def _rate(
        self, seen: Sequence[_SeriesDifference], against: Sequence[str], complete: bool, confidence: float
    ) -> CriterionResult:
        """The rating by these differences.

        Bad under any load is bad, so the allowed error is divided among the loads; good requires every load
        (``complete``).
        """
        texts = tuple(difference.text(self.growth, confidence) for difference in seen)
        error = (1 - confidence) / max(1, len(seen))
        slower = [
            text
            for difference, text in zip(seen, texts, strict=True)
            if difference.beyond is not None and difference.beyond.chance_of_no_more() <= error
        ]
        if slower:
            return CriterionResult(Rating.BAD, tuple(slower))
        undecided = [
            difference
            for difference in seen
            if difference.beyond is None or not difference.beyond.is_no_more(confidence)
        ]
        if not undecided and complete and not against:
            return CriterionResult(Rating.GOOD, texts)
        if not undecided:
            missing = "not measured under each load of the first configuration"
            return CriterionResult(Rating.UNDECIDED, tuple(against) or (missing,))
        if all(unknown_quantile(difference.sides, self.growth.quantile) for difference in undecided):
            return CriterionResult(Rating.UNDECIDED, texts, (_USE_LIMIT,))
        return CriterionResult(Rating.UNDECIDED, texts, ("measure longer, or allow a larger difference",), closed=False)


_USE_LIMIT = "give a limit and a miss rate, which count missed periods, instead of an allowed difference"


@dataclass(frozen=True)
class _SeriesDifference:
    """A judged series and that of the first configuration; ``beyond``: its slowdown minus the allowed difference."""

    subject: str
    sides: Sides
    beyond: BootstrapDifference | None

    def text(self, growth: Growth, confidence: float) -> str:
        at = f"{self.subject}: {self.sides.name} at {words.percent(growth.quantile)}"
        if unknown := unknown_quantile(self.sides, growth.quantile, "the first configuration"):
            return f"{at}: {unknown}"
        before, now = (side.value_ns(growth.quantile) for side in self.sides.of_activations)
        difference = self.sides.difference_at(growth.quantile)
        if before is None or now is None or difference is None:
            return f"{at}: {no_interval_of_difference(*self.sides.of_activations, growth.quantile)}"
        lower, upper = difference.interval(confidence)
        return (
            f"{at}: {words.latency(now)}, first configuration {words.latency(before)}; difference "
            f"{words.microseconds_interval(lower, upper)} µs ({words.percent(confidence)} confidence), "
            f"allowed {growth.allowed}"
        )


def _series_differences(growth: Growth, groups: Iterable[tuple[Group, Group]]) -> Iterator[_SeriesDifference]:
    """The differences of groups of runs to those of the first configuration.

    Raises MixedRuns or NoCommonSeries for runs that may not be compared.
    """
    for group, nearest in groups:
        for sides in sides_of(nearest, group)[1]:
            if sides.judged:
                yield _SeriesDifference(
                    subject_of(group[0]),
                    sides,
                    sides.difference_at(growth.quantile, growth.more_ns, growth.more_share),
                )


def _empty(runs: Sequence[Recording]) -> Iterator[str]:
    for run in runs:
        if not judged_series(run):
            reason = "; ".join(run.reasons) or run.cut_off or "no reason was recorded"
            yield f"run {run.run_id} contains no data: {reason}"


def _against(runs: Sequence[Recording]) -> Iterator[tuple[Verdict, str]]:
    """Findings about the data of the runs, except that a run is emulated."""
    for run in runs:
        for finding in findings_between(run):
            yield finding.verdict, f"run {run.run_id}: {finding.text}"
