# SPDX-License-Identifier: GPL-2.0-or-later
"""The CI gate: compare runs with a baseline and apply the limits of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from fastenough.analysis import judge, words
from fastenough.analysis.compare import Comparison, NoCommonSeries, comparison_of, judged_together, sides_of
from fastenough.analysis.differences import all_differences, run_values
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
    has_latency,
    judge_budgets,
    judge_growth,
    judge_not_compared,
    requirement_result,
    result_without,
    subject_of,
)
from fastenough.analysis.gate_nights import NightsQuestion, judge_over_nights, nights_questions
from fastenough.analysis.instructions import InstructionComparison, compare_instructions
from fastenough.analysis.judgment import measures_no_latency
from fastenough.analysis.keys import RUN_KEYS
from fastenough.analysis.machine import counts_instructions
from fastenough.analysis.merged import judged_series
from fastenough.jobs.assess import lost_alike, runs_alike
from fastenough.jobs.limits import Limits
from fastenough.jobs.nights import Read, SinceChange, earlier_nights, nights_since
from fastenough.model import BadInput, FastenoughError, Outcome, Requirement, Verdict
from fastenough.recording import Recording, read_recording
from fastenough.recording.wakeups import is_monitor
from fastenough.store import Store

_WEIGHT = (Verdict.FAIL, Verdict.BROKEN, Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.NO_LIMIT)


@dataclass(frozen=True)
class CheckResult:
    """The result of a check.

    ``pairs``: runs with the comparable runs of the baseline; ``unmatched``: runs without any.  ``gaps``: further
    reasons against a PASS.  ``not_applicable``: why nothing could be measured.  ``departures``: differences from the
    baseline that are not allowed; with limits each is a FAIL.  ``excluded``: other runs of the store with the key of a
    run that a limit applies to, if the runs were named one by one or with --only-these.
    """

    verdict: Verdict
    pairs: tuple[BaselinePair, ...]
    unmatched: tuple[Group, ...]
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
    """Recordings by path, or by id in the store; raises BadInput, also for a run that is given twice."""
    recordings: dict[str, Recording] = {}
    for name in names:
        path = Path(name)
        if not path.is_file() and (len(path.parts) > 1 or path.suffix):
            raise BadInput(f"{name}: no such baseline: neither a file nor the id of a run")
        recording = read_recording(path) if path.is_file() else store.load(store.find(name))
        if recording.run_id in recordings:
            raise BadInput(f"--baseline {name}: run {recording.run_id} is given twice; give it once")
        recordings[recording.run_id] = recording
    return list(recordings.values())


def _pair_groups(runs: Sequence[Recording], baselines: Sequence[Recording]) -> tuple[list[BaselinePair], list[Group]]:
    pairs, unmatched = [], []
    for group, nearest in beside(runs, baselines):
        if not nearest:
            unmatched.append(group)
            continue
        if all(map(counts_instructions, (*group, *nearest))):
            pairs.append(_deterministic_pair(group, nearest))
            continue
        try:
            differences, sides = sides_of(nearest, group)
        except NoCommonSeries:  # one of both has no values: see judge_not_compared
            differences, sides = all_differences(RUN_KEYS, run_values(nearest[0]), run_values(group[0])), []
        judged = tuple(side for side in sides if side.judged)
        pairs.append(
            BaselinePair(
                group, nearest, differences, judged, tuple(comparison_of(side, differences) for side in judged)
            )
        )
    return _judged_together(pairs), unmatched


def _deterministic_pair(runs: Group, baseline: Group) -> BaselinePair:
    comparisons = tuple(compare_instructions(baseline, runs))
    return BaselinePair(
        runs,
        baseline,
        tuple(dict.fromkeys(text for comparison in comparisons for text in comparison.differences)),
        (),
        (),
        comparisons,
    )


def _judged_together(pairs: Sequence[BaselinePair]) -> list[BaselinePair]:
    """The pairs, with all their differences judged together."""
    marked = iter(judged_together([comparison for pair in pairs for comparison in pair.comparisons]))
    return [replace(pair, comparisons=tuple(next(marked) for _ in pair.comparisons)) for pair in pairs]


@dataclass(frozen=True)
class _RunSelection:
    """The selection of the runs, and the store that they come from.

    ``named``: ids of the runs and of the baseline, none of which counts as excluded.  ``read``: reads a run of the
    store, each only once.  ``change``: growth is judged by all nights since this change; None: by this night.
    ``same_cpus``: earlier runs count only if they are on the CPUs of the baseline.
    """

    selection: Selection
    named: frozenset[str]
    store: Store
    read: Read
    change: SinceChange | None
    same_cpus: bool = True

    def others(
        self, judged: Sequence[Recording], questions: Sequence[RequiredOfRun], since_ns: int = -1
    ) -> list[ExcludedRuns]:
        """Other runs of the store with the same key that began later than ``since_ns`` (wall clock).

        Empty for a campaign: each night of a CI is judged separately.
        """
        if self.selection is Selection.CAMPAIGN:
            return []
        taken = {*self.named, *(recording.run_id for recording in judged)}
        alike = (
            run
            for run in runs_alike(judged, self.store, self.read)
            if run.run_id not in taken and run.head.begin.wall_ns > since_ns
        )
        lost = lost_alike(questions, self.store, taken, since_ns, self.read)
        return [*lost, *find_excluded(questions, alike)]


def _requirement_results(
    limit: Limit, required: Requirement, runs: Sequence[Recording], selected: _RunSelection
) -> Iterator[tuple[LimitResult, list[ExcludedRuns]]]:
    """The result of a limit without a baseline for the runs of each key, with the excluded runs of that key."""
    mine = [recording for recording in runs if limit.is_for(recording)]
    if not mine:
        return
    assessment = judge(mine, required)
    by_id = {recording.run_id: recording for recording in mine}
    for judgment in assessment.judgments:
        group = [by_id[run] for run in judgment.run_ids]
        others = selected.others(group, requirements_of_runs(group, assessment))
        yield result_without(requirement_result(limit, judgment, group), others, selected.selection), others


def _unused_limits(
    limits: Sequence[Limit], results: Sequence[LimitResult], runs: Sequence[Recording]
) -> Iterator[LimitResult]:
    """INCONCLUSIVE for each limit that has no result, unless it is for a board that was not measured."""
    boards = {recording.head.board for recording in runs}
    used = {id(result.limit) for result in results}
    for limit in limits:
        if id(limit) not in used and limit.board in (None, *boards):
            yield LimitResult(limit, Verdict.INCONCLUSIVE, _unused_reason(limit, runs), limit.subject)


def _unused_reason(limit: Limit, runs: Sequence[Recording]) -> str:
    mine = list(filter(limit.is_for, runs))
    if not mine:
        return "no run matches this limit"
    counted = all(map(counts_instructions, mine))
    if isinstance(limit.criterion, Budget) and not counted:
        return "only paths on deterministic boards have a length in instructions"
    if isinstance(limit.criterion, Growth) and counted:
        return "on deterministic boards the length of a path is limited (path, longer-by), not the growth of a quantile"
    return "the baseline has no comparable run"


def _windows(pair: BaselinePair, selected: _RunSelection) -> list[BaselinePair]:
    """The runs, then the runs with earlier ones, of which each window has twice as many runs as the one before."""
    if not pair.sides:
        return [pair]
    earlier = earlier_nights(selected.store, pair.runs, pair.baseline, selected.read, selected.same_cpus)
    nights, pair = earlier.runs, replace(pair, left_out=earlier.left_out)
    windows, taken, names = [pair], len(pair.runs), {side.name for side in pair.sides}
    while taken < len(pair.runs) + len(nights):
        taken = min(2 * taken, len(pair.runs) + len(nights))
        runs = (*pair.runs, *nights[: taken - len(pair.runs)])
        _, sides = sides_of(pair.baseline, runs)
        judged = tuple(side for side in sides if side.judged and side.name in names)
        windows.append(replace(pair, runs=runs, sides=judged))
    return windows


def _growth_results(
    limits: Sequence[Limit], pairs: Sequence[BaselinePair], selected: _RunSelection
) -> list[LimitResult]:
    """The result of each limit on growth from the shortest window that decides; the windows share the allowed error."""
    growth_limits = [limit for limit in limits if isinstance(limit.criterion, Growth)]
    windows = [_windows(pair, selected) for pair in pairs if any(limit.is_for(pair.runs[0]) for limit in growth_limits)]
    most = max(map(len, windows), default=0)
    shared = {id(limit): limit for limit in growth_limits}
    stricter = [_stricter(limit, most) for limit in growth_limits]
    of = {id(strict): shared[id(limit)] for strict, limit in zip(stricter, growth_limits, strict=True)}
    decided: list[LimitResult] = []
    for number in range(most):
        window_results = [
            replace(result, limit=of[id(result.limit)])
            for result in judge_growth(stricter, [window[min(number, len(window) - 1)] for window in windows])
        ]
        decided = (
            window_results
            if not decided
            else [
                result if result.verdict is not Verdict.INCONCLUSIVE else later
                for result, later in zip(decided, window_results, strict=True)
            ]
        )
    left_out = {window[0].runs[0].run_id: window[0].left_out for window in windows}
    return [_with_nights(result, pairs, left_out.get(result.run_ids[0], ())) for result in decided]


def _stricter(limit: Limit, windows: int) -> Limit:
    """The limit with the share of the allowed error of one window, so that more windows cause no more false results."""
    if not isinstance(limit.criterion, Growth):
        return limit
    return replace(
        limit, criterion=replace(limit.criterion, confidence=1 - (1 - limit.criterion.confidence) / max(1, windows))
    )


def _with_nights(result: LimitResult, pairs: Sequence[BaselinePair], left_out: Sequence[str]) -> LimitResult:
    """The result, with the number of earlier runs that it includes, and those that were left out, added to the
    reason."""
    newest = {run.run_id for pair in pairs for run in pair.runs}
    earlier = sum(run not in newest for run in result.run_ids)
    together = f"together with {words.counted(earlier, 'earlier run')} since the last change"
    return replace(result, reason="; ".join([result.reason, *([together] if earlier else []), *left_out]))


def _growth_without(
    result: LimitResult, growth: Growth, pairs: Sequence[BaselinePair], selected: _RunSelection
) -> tuple[LimitResult, list[ExcludedRuns]]:
    """A result of a limit on growth, with the comparable runs since the baseline that it does not include."""
    pair = next(pair for pair in pairs if pair.runs[0].run_id == result.run_ids[0])
    since_ns = max(run.head.begin.wall_ns for run in pair.baseline)
    excluded = selected.others(pair.runs, growth_requirements(pair, growth), since_ns)
    others = [run for run in excluded if run.run_id not in result.run_ids]
    return result_without(result, others, selected.selection), others


def _nights_results(
    questions: Sequence[NightsQuestion], selected: _RunSelection, change: SinceChange
) -> Iterator[tuple[LimitResult, list[ExcludedRuns]]]:
    """The results of limits on the growth of one pair from the evidence of all nights.

    Each comes with the comparable runs that it does not include, lost ones among them, also for a campaign.
    """
    nights = nights_since(questions, selected.store, change, selected.same_cpus)
    for question, data in zip(questions, nights.data, strict=True):
        result = judge_over_nights(question, data)
        questions_of_pair = growth_requirements(question.pair, question.growth)
        excluded = (
            lost_alike(questions_of_pair, selected.store, selected.named, nights.since_ns, selected.read)
            if selected.selection is Selection.CAMPAIGN
            else selected.others(question.pair.runs, questions_of_pair, nights.since_ns)
        )
        others = [run for run in excluded if run.run_id not in result.run_ids]
        yield result_without(result, others, selected.selection), others


def _growth_results_by_key(
    limits: Sequence[Limit], pairs: Sequence[BaselinePair], selected: _RunSelection
) -> Iterator[tuple[LimitResult, list[ExcludedRuns]]]:
    """The result of each limit on growth, from all nights since the change or from this night."""
    if selected.change is None:
        for result in _growth_results(limits, pairs, selected):
            if isinstance(result.limit.criterion, Growth):
                yield _growth_without(result, result.limit.criterion, pairs, selected)
        return
    questions = nights_questions(limits, pairs)
    for pair in pairs:
        mine = [question for question in questions if question.pair is pair]
        if mine:
            yield from _nights_results(mine, selected, selected.change)


def _results_by_key(
    limits: Sequence[Limit], runs: Sequence[Recording], pairs: Sequence[BaselinePair], selected: _RunSelection
) -> Iterator[tuple[LimitResult, list[ExcludedRuns]]]:
    """The results of each limit, one for each key, with the excluded runs of that key."""
    yield from _growth_results_by_key(limits, pairs, selected)
    for result in (*judge_not_compared(limits, pairs), *judge_budgets(limits, pairs)):
        yield result, []
    for limit in limits:
        if isinstance(limit.criterion, Requirement):
            yield from _requirement_results(limit, limit.criterion, runs, selected)


def _all_results(
    limits: Sequence[Limit], runs: Sequence[Recording], pairs: Sequence[BaselinePair], selected: _RunSelection
) -> tuple[list[LimitResult], list[ExcludedRuns]]:
    """The results of all limits, and the excluded runs by maximum, each once, with a limit that it exceeds if any."""
    by_key = list(_results_by_key(limits, runs, pairs, selected))
    results, excluded = [result for result, _ in by_key], [run for _, others in by_key for run in others]
    each_once = {result.run_id: result for result in sorted(excluded, key=lambda result: result.exceeds)}
    by_maximum = sorted(each_once.values(), key=lambda result: result.maximum_ns, reverse=True)
    return results + list(_unused_limits(limits, results, runs)), by_maximum


def _gaps(
    limits: Sequence[Limit], results: Sequence[LimitResult], unmatched: Sequence[Group], missing: Sequence[str]
) -> list[str]:
    gaps = [f"not measured: {run}" for run in missing]
    if limits and not results:
        boards = ", ".join(dict.fromkeys(limit.board or "" for limit in limits))
        gaps.append(f"the file has no limit for a measured board; it has limits for {boards}")
    return gaps + [f"{subject_of(group[0])}: the baseline has no comparable run" for group in unmatched]


def _require_intact(recordings: Sequence[Recording]) -> None:
    for recording in recordings:
        if recording.damage is not None:
            raise FastenoughError(f"run {recording.run_id} failed the integrity check: {recording.damage}")


def _without_data(runs: Sequence[Recording]) -> Iterator[str]:
    """The runs that should hold a latency and do not, with the reason."""
    for run in runs:
        if run.outcome is Outcome.COMPLETED:
            if not judged_series(run) and not measures_no_latency(run):
                yield f"run {run.run_id} completed but holds no latency"
        elif run.outcome is not Outcome.NOT_APPLICABLE and not has_latency(run):
            why = "; ".join(run.reasons) or run.cut_off or "no reason is recorded"
            yield f"run {run.run_id} has no data: {why}"


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
    """Compare runs with a baseline and apply limits.

    ``missing``: planned runs that were not measured.  ``selection``: how the runs were selected.  ``since``: judge
    growth by all nights since this change.  Raises MixedRuns if a run and its baseline cannot be compared,
    FastenoughError if the integrity check of a run failed.
    """
    _require_intact((*runs, *baselines))
    taken = [run for run in runs if not is_monitor(run.head)]
    unfit = tuple(
        f"run {run.run_id}: {'; '.join(run.reasons)}" for run in taken if run.outcome is Outcome.NOT_APPLICABLE
    )
    failed = list(_without_data(taken))
    measured = [run for run in taken if run.outcome is not Outcome.NOT_APPLICABLE and judged_series(run)]
    if not measured:
        verdict = Verdict.BROKEN if failed else Verdict.INCONCLUSIVE
        return CheckResult(verdict, (), (), (), (*failed, "no latency was measured"), () if failed else unfit)
    on_step("comparing with the baseline")
    pairs, unmatched = _pair_groups(measured, [run for run in baselines if judged_series(run)])
    on_step("judging")
    departed = departures(measured, [run for run in baselines if judged_series(run)], limits.allowed)
    selected = _RunSelection(
        selection,
        frozenset(run.run_id for run in (*runs, *baselines)),
        store,
        cache(store.load),
        since,
        limits.allowed.same_cpus,
    )
    results, excluded = _all_results(limits.limits, measured, pairs, selected)
    gaps = [*failed, *_gaps(limits.limits, results, unmatched, missing), *unfit]
    verdicts = [result.verdict for result in results] + ([Verdict.INCONCLUSIVE] if gaps and limits.limits else [])
    verdicts += [Verdict.FAIL] if departed and limits.limits else []
    verdicts += [Verdict.BROKEN] if failed else []
    verdict = next((verdict for verdict in _WEIGHT if verdict in verdicts), Verdict.NO_LIMIT)
    return CheckResult(
        verdict,
        tuple(pairs),
        tuple(unmatched),
        tuple(results),
        tuple(gaps),
        departures=tuple(departed),
        excluded=tuple(excluded),
    )
