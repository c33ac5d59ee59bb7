# SPDX-License-Identifier: GPL-2.0-or-later
"""The CI gate: compare runs with a baseline and apply the limits of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from fastenough.analysis import judge, words
from fastenough.analysis.compare import Comparison, comparison_of, judged_together, sides_of
from fastenough.analysis.excluded_runs import (
    ExcludedRuns,
    RequiredOfRun,
    Selection,
    find_excluded,
    requirements_of_runs,
)
from fastenough.analysis.gate import (
    BaselinePair,
    Budget,
    Departure,
    Group,
    Growth,
    Limit,
    LimitResult,
    beside,
    departures,
    growth_requirements,
    judge_budgets,
    judge_growth,
    requirement_result,
    result_without,
    subject_of,
)
from fastenough.analysis.gate_nights import NightsQuestion, judge_over_nights, nights_questions
from fastenough.analysis.instructions import InstructionComparison, compare_instructions
from fastenough.analysis.machine import counts_instructions
from fastenough.analysis.merged import judged_series
from fastenough.jobs.assess import deleted_alike, runs_alike
from fastenough.jobs.limits import Limits
from fastenough.jobs.nights import Read, SinceChange, earlier_nights, nights_since
from fastenough.model import BadInput, FastenoughError, Outcome, Requirement, Verdict
from fastenough.recording import Recording, read_recording
from fastenough.recording.wakeups import is_monitor
from fastenough.store import Store

_WEIGHT = (Verdict.FAIL, Verdict.BROKEN, Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.NO_LIMIT)

_MAY_BE_EMPTY = (Outcome.COMPLETED, Outcome.NOT_APPLICABLE)


@dataclass(frozen=True)
class CheckResult:
    """``pairs``: the runs beside the baseline's; ``alone``: those that have none.  ``gaps``: what else forbids a PASS.

    ``not_applicable``: nothing could be measured, with the reasons.  ``departures``: in what the runs depart from the
    baseline; with limits each is a FAIL.  ``excluded``: other runs of the store with the key of a run that a limit
    applies to, if the runs were selected one by one, or by --only-these.
    """

    verdict: Verdict
    pairs: tuple[BaselinePair, ...]
    alone: tuple[Group, ...]
    limits: tuple[LimitResult, ...]
    gaps: tuple[str, ...]
    not_applicable: tuple[str, ...] = ()
    departures: tuple[Departure, ...] = ()
    excluded: tuple[ExcludedRuns, ...] = ()

    @property
    def comparisons(self) -> list[Comparison]:
        return [comparison for pair in self.pairs for comparison in pair.comparisons]

    @property
    def instructions(self) -> list[InstructionComparison]:
        return [comparison for pair in self.pairs for comparison in pair.instructions]


def read_baseline(store: Store, names: Sequence[str]) -> list[Recording]:
    """Recordings by path, or by id in the store; raises BadInput."""
    recordings = []
    for name in names:
        path = Path(name)
        if not path.is_file() and (len(path.parts) > 1 or path.suffix):
            raise BadInput(f"{name}: no such baseline: neither a file nor the id of a run")
        recordings.append(read_recording(path) if path.is_file() else store.load(store.find(name)))
    return recordings


def _pair_groups(runs: Sequence[Recording], baselines: Sequence[Recording]) -> tuple[list[BaselinePair], list[Group]]:
    pairs, alone = [], []
    for group, nearest in beside(runs, baselines):
        if not nearest:
            alone.append(group)
            continue
        if all(map(counts_instructions, (*group, *nearest))):
            pairs.append(_deterministic_pair(group, nearest))
            continue
        differs, sides = sides_of(nearest, group)
        judged = tuple(side for side in sides if side.judged)
        pairs.append(
            BaselinePair(group, nearest, differs, judged, tuple(comparison_of(side, differs) for side in judged))
        )
    return _judged_together(pairs), alone


def _deterministic_pair(runs: Group, baseline: Group) -> BaselinePair:
    comparisons = tuple(compare_instructions(baseline, runs))
    return BaselinePair(
        runs,
        baseline,
        tuple(dict.fromkeys(text for comparison in comparisons for text in comparison.differs)),
        (),
        (),
        comparisons,
    )


def _judged_together(pairs: Sequence[BaselinePair]) -> list[BaselinePair]:
    """All differences of all pairs are judged together."""
    marked = iter(judged_together([comparison for pair in pairs for comparison in pair.comparisons]))
    return [replace(pair, comparisons=tuple(next(marked) for _ in pair.comparisons)) for pair in pairs]


@dataclass(frozen=True)
class _Chosen:
    """How the runs were selected; ``named``: ids of the runs and of the baseline, of which none is excluded.

    ``read``: read a run of the store, each once.  ``change``: the change since which nights add up; None: limits on
    growth are judged for this night.
    """

    selection: Selection
    named: frozenset[str]
    store: Store
    read: Read
    change: SinceChange | None

    def others(
        self, judged: Sequence[Recording], questions: Sequence[RequiredOfRun], since_ns: int = -1
    ) -> list[ExcludedRuns]:
        """Other runs of the store with the key of these that began later than ``since_ns`` (wall clock).

        None for the runs of a campaign: each night of a CI is judged by itself.
        """
        if self.selection is Selection.CAMPAIGN:
            return []
        taken = {*self.named, *(recording.run_id for recording in judged)}
        alike = (
            run
            for run in runs_alike(judged, self.store, self.read)
            if run.run_id not in taken and run.head.begin.wall_ns > since_ns
        )
        return [*deleted_alike(questions, self.store, since_ns), *find_excluded(questions, alike)]


def _by_itself(
    limit: Limit, required: Requirement, runs: Sequence[Recording], chosen: _Chosen
) -> Iterator[tuple[LimitResult, list[ExcludedRuns]]]:
    """The results of a limit that needs no baseline, for the runs of each key, with the excluded runs of that key.

    New runs are judged by themselves, as the nights of a CI are.
    """
    mine = [recording for recording in runs if limit.is_for(recording)]
    if not mine:
        return
    assessment = judge(mine, required)
    by_id = {recording.run_id: recording for recording in mine}
    for judgment in assessment.judgments:
        group = [by_id[run] for run in judgment.run_ids]
        others = chosen.others(group, requirements_of_runs(group, assessment))
        yield (
            result_without(requirement_result(limit, judgment, group, assessment.reasons), others, chosen.selection),
            others,
        )


def _unused_limits(
    limits: Sequence[Limit], held: Sequence[LimitResult], runs: Sequence[Recording]
) -> Iterator[LimitResult]:
    """The result INCONCLUSIVE of each limit without a result that is for a measured board, or for every board."""
    boards = {recording.head.board for recording in runs}
    used = {id(result.limit) for result in held}
    for limit in limits:
        if id(limit) not in used and limit.board in (None, *boards):
            yield LimitResult(limit, Verdict.INCONCLUSIVE, _why_unused(limit, runs), limit.subject)


def _why_unused(limit: Limit, runs: Sequence[Recording]) -> str:
    mine = list(filter(limit.is_for, runs))
    if not mine:
        return "no run matches this limit"
    counted = all(map(counts_instructions, mine))
    if isinstance(limit.criterion, Budget) and not counted:
        return "only paths on deterministic boards have a length in instructions"
    if isinstance(limit.criterion, Growth) and counted:
        return "on deterministic boards the length of a path is limited (path, longer-by), not the growth of a quantile"
    return "the baseline has no comparable run"


def _windows(pair: BaselinePair, chosen: _Chosen) -> list[BaselinePair]:
    """The runs alone, and together with as many before them, with three times as many, and so on."""
    nights = earlier_nights(chosen.store, pair.runs, pair.baseline, chosen.read)
    windows, taken = [pair], len(pair.runs)
    while taken < len(pair.runs) + len(nights):
        taken = min(2 * taken, len(pair.runs) + len(nights))
        runs = (*pair.runs, *nights[: taken - len(pair.runs)])
        _, sides = sides_of(pair.baseline, runs)
        windows.append(replace(pair, runs=runs, sides=tuple(side for side in sides if side.judged)))
    return windows


def _growth_results(limits: Sequence[Limit], pairs: Sequence[BaselinePair], chosen: _Chosen) -> list[LimitResult]:
    """Of each limit on growth what the fewest nights decide; the windows share the error that is allowed."""
    growth_limits = [limit for limit in limits if isinstance(limit.criterion, Growth)]
    windows = [_windows(pair, chosen) for pair in pairs if any(limit.is_for(pair.runs[0]) for limit in growth_limits)]
    most = max(map(len, windows), default=0)
    shared = {id(limit): limit for limit in growth_limits}
    stricter = [_stricter(limit, most) for limit in growth_limits]
    of = {id(strict): shared[id(limit)] for strict, limit in zip(stricter, growth_limits, strict=True)}
    decided: list[LimitResult] = []
    for number in range(most):
        held = [
            replace(result, limit=of[id(result.limit)])
            for result in judge_growth(stricter, [window[min(number, len(window) - 1)] for window in windows])
        ]
        decided = (
            held
            if not decided
            else [
                result if result.verdict is not Verdict.INCONCLUSIVE else later
                for result, later in zip(decided, held, strict=True)
            ]
        )
    return [_with_nights(result, pairs) for result in decided]


def _stricter(limit: Limit, windows: int) -> Limit:
    """At its share of the error: with so many windows, a PASS or a FAIL by chance is no more likely than with one."""
    if not isinstance(limit.criterion, Growth):
        return limit
    return replace(
        limit, criterion=replace(limit.criterion, confidence=1 - (1 - limit.criterion.confidence) / max(1, windows))
    )


def _with_nights(held: LimitResult, pairs: Sequence[BaselinePair]) -> LimitResult:
    """Says in the reason where earlier runs were taken in."""
    newest = {run.run_id for pair in pairs for run in pair.runs}
    earlier = sum(run not in newest for run in held.run_ids)
    return (
        held
        if not earlier
        else replace(
            held, reason=f"{held.reason}; together with {words.counted(earlier, 'earlier run')} since the last change"
        )
    )


def _growth_without(
    held: LimitResult, growth: Growth, pairs: Sequence[BaselinePair], chosen: _Chosen
) -> tuple[LimitResult, list[ExcludedRuns]]:
    """A result of a limit on growth with the runs since the baseline that it does not rest on."""
    pair = next(pair for pair in pairs if pair.runs[0].run_id == held.run_ids[0])
    since_ns = max(run.head.begin.wall_ns for run in pair.baseline)
    excluded = chosen.others(pair.runs, growth_requirements(pair, growth), since_ns)
    others = [run for run in excluded if run.run_id not in held.run_ids]
    return result_without(held, others, chosen.selection), others


def _nights_results(
    questions: Sequence[NightsQuestion], chosen: _Chosen, change: SinceChange
) -> Iterator[tuple[LimitResult, list[ExcludedRuns]]]:
    """The results of limits on the growth of one pair by the evidence of all nights, with the runs that it does not
    rest on; a deleted run is one of these, also for a campaign."""
    nights = nights_since(questions, chosen.store, change)
    for question, data in zip(questions, nights.data, strict=True):
        result = judge_over_nights(question, data)
        questions_of_pair = growth_requirements(question.pair, question.growth)
        excluded = (
            deleted_alike(questions_of_pair, chosen.store, nights.since_ns)
            if chosen.selection is Selection.CAMPAIGN
            else chosen.others(question.pair.runs, questions_of_pair, nights.since_ns)
        )
        others = [run for run in excluded if run.run_id not in result.run_ids]
        yield result_without(result, others, chosen.selection), others


def _growth_results_by_key(
    limits: Sequence[Limit], pairs: Sequence[BaselinePair], chosen: _Chosen
) -> Iterator[tuple[LimitResult, list[ExcludedRuns]]]:
    """The result of each limit on growth: of all nights since a change, or of this night."""
    if chosen.change is None:
        for result in _growth_results(limits, pairs, chosen):
            if isinstance(result.limit.criterion, Growth):
                yield _growth_without(result, result.limit.criterion, pairs, chosen)
        return
    questions = nights_questions(limits, pairs)
    for pair in pairs:
        mine = [question for question in questions if question.pair is pair]
        if mine:
            yield from _nights_results(mine, chosen, chosen.change)


def _results_by_key(
    limits: Sequence[Limit], runs: Sequence[Recording], pairs: Sequence[BaselinePair], chosen: _Chosen
) -> Iterator[tuple[LimitResult, list[ExcludedRuns]]]:
    """The result of each limit for each key, with the excluded runs of that key."""
    yield from _growth_results_by_key(limits, pairs, chosen)
    for held in judge_budgets(limits, pairs):
        yield held, []
    for limit in limits:
        if isinstance(limit.criterion, Requirement):
            yield from _by_itself(limit, limit.criterion, runs, chosen)


def _all_results(
    limits: Sequence[Limit], runs: Sequence[Recording], pairs: Sequence[BaselinePair], chosen: _Chosen
) -> tuple[list[LimitResult], list[ExcludedRuns]]:
    """The results of all limits, and the excluded runs, each once, by a limit that it exceeds if there is one."""
    results = list(_results_by_key(limits, runs, pairs, chosen))
    held, excluded = [result for result, _ in results], [run for _, others in results for run in others]
    each_once = {result.run_id: result for result in sorted(excluded, key=lambda result: result.exceeds)}
    by_maximum = sorted(each_once.values(), key=lambda result: result.maximum_ns, reverse=True)
    return held + list(_unused_limits(limits, held, runs)), by_maximum


def _gaps(
    limits: Sequence[Limit], held: Sequence[LimitResult], alone: Sequence[Group], missing: Sequence[str]
) -> list[str]:
    gaps = [f"not measured: {run}" for run in missing]
    if limits and not held:
        boards = ", ".join(dict.fromkeys(limit.board or "" for limit in limits))
        gaps.append(f"the file has no limit for a measured board; it has limits for {boards}")
    return gaps + [f"{subject_of(group[0])}: the baseline has no comparable run" for group in alone]


def _require_intact(recordings: Sequence[Recording]) -> None:
    for recording in recordings:
        if recording.damage is not None:
            raise FastenoughError(f"run {recording.run_id} failed the integrity check: {recording.damage}")


def check(
    runs: Sequence[Recording],
    baselines: Sequence[Recording],
    limits: Limits,
    store: Store,
    *,
    missing: Sequence[str] = (),
    selection: Selection = Selection.CAMPAIGN,
    since: SinceChange | None = None,
    on_step: Callable[[str], None] = lambda what: None,
) -> CheckResult:
    """Hold runs beside a baseline and against limits.  ``missing``: runs that were planned and are not there.
    ``selection``: how the runs were selected.  ``since``: the change since which nights add up.

    Raises MixedRuns where a run and its baseline may not be compared, FastenoughError for one that is not believed.
    """
    _require_intact((*runs, *baselines))
    taken = [run for run in runs if not is_monitor(run.head)]
    unfit = tuple(
        f"run {run.run_id}: {'; '.join(run.reasons)}" for run in taken if run.outcome is Outcome.NOT_APPLICABLE
    )
    failed = [
        f"run {run.run_id} has no data: {'; '.join(run.reasons) or run.cut_off or 'no reason is recorded'}"
        for run in taken
        if run.outcome not in _MAY_BE_EMPTY and not judged_series(run)
    ]
    measured = [run for run in taken if run.outcome is not Outcome.NOT_APPLICABLE and judged_series(run)]
    if not measured:
        verdict = Verdict.BROKEN if failed else Verdict.INCONCLUSIVE
        return CheckResult(verdict, (), (), (), (*failed, "no latency was measured"), () if failed else unfit)
    on_step("comparing with the baseline")
    pairs, alone = _pair_groups(measured, [run for run in baselines if judged_series(run)])
    on_step("judging")
    departed = departures(measured, [run for run in baselines if judged_series(run)], limits.allowed)
    chosen = _Chosen(selection, frozenset(run.run_id for run in (*runs, *baselines)), store, cache(store.load), since)
    held, excluded = _all_results(limits.limits, measured, pairs, chosen)
    gaps = [*failed, *_gaps(limits.limits, held, alone, missing), *unfit]
    verdicts = [result.verdict for result in held] + ([Verdict.INCONCLUSIVE] if gaps and limits.limits else [])
    verdicts += [Verdict.FAIL] if departed and limits.limits else []
    verdicts += [Verdict.BROKEN] if failed else []
    verdict = next((verdict for verdict in _WEIGHT if verdict in verdicts), Verdict.NO_LIMIT)
    return CheckResult(
        verdict,
        tuple(pairs),
        tuple(alone),
        tuple(held),
        tuple(gaps),
        departures=tuple(departed),
        excluded=tuple(excluded),
    )
