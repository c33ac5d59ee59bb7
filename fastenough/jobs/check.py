# SPDX-License-Identifier: GPL-2.0-or-later
"""The gate of a CI: runs beside a baseline, and whether they keep the limits of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fastenough.analysis import judge
from fastenough.analysis.compare import Comparison, comparison_of, judged_together, sides_of
from fastenough.analysis.gate import (
    Beside,
    Group,
    Held,
    Limit,
    beside,
    checked_before,
    held_growth,
    held_requirement,
    subject_of,
)
from fastenough.analysis.merged import judged_series
from fastenough.jobs.assess import Question, asked_of
from fastenough.model import BadInput, FastenoughError, Outcome, Requirement, Verdict
from fastenough.recording import Recording, read_recording
from fastenough.recording.wakeups import is_monitor
from fastenough.store import Store
from fastenough.store.looks import with_some_of

_WEIGHT = (Verdict.FAIL, Verdict.BROKEN, Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.NO_LIMIT)

_MAY_BE_EMPTY = (Outcome.COMPLETED, Outcome.NOT_APPLICABLE)


@dataclass(frozen=True)
class Checked:
    """``pairs``: the runs beside the baseline's; ``alone``: those that have none.  ``gaps``: what else forbids a PASS.

    ``not_applicable``: nothing could be measured, with the reasons.
    """

    verdict: Verdict
    pairs: tuple[Beside, ...]
    alone: tuple[Group, ...]
    held: tuple[Held, ...]
    gaps: tuple[str, ...]
    not_applicable: tuple[str, ...] = ()

    @property
    def comparisons(self) -> list[Comparison]:
        return [comparison for pair in self.pairs for comparison in pair.comparisons]


def read_baseline(store: Store, names: Sequence[str]) -> list[Recording]:
    """Recordings by path, or by id in the store; raises BadInput."""
    found = []
    for name in names:
        path = Path(name)
        if not path.is_file() and (len(path.parts) > 1 or path.suffix):
            raise BadInput(f"{name}: the baseline is not there: there is no such file, and no run has such an id")
        found.append(read_recording(path) if path.is_file() else store.load(store.find(name)))
    return found


def _paired(runs: Sequence[Recording], baselines: Sequence[Recording]) -> tuple[list[Beside], list[Group]]:
    pairs, alone = [], []
    for group, nearest in beside(runs, baselines):
        if not nearest:
            alone.append(group)
            continue
        differs, sides = sides_of(nearest, group)
        judged = tuple(each for each in sides if each.judged)
        pairs.append(Beside(group, nearest, differs, judged, tuple(comparison_of(each, differs) for each in judged)))
    return _marked(pairs), alone


def _marked(pairs: Sequence[Beside]) -> list[Beside]:
    """All differences of all pairs are judged together."""
    marked = iter(judged_together([each for pair in pairs for each in pair.comparisons]))
    return [replace(pair, comparisons=tuple(next(marked) for _ in pair.comparisons)) for pair in pairs]


def _by_itself(limit: Limit, required: Requirement, runs: Sequence[Recording], store: Store) -> Iterator[Held]:
    """Each key's runs by a limit that needs no baseline.

    New runs are judged by themselves, as the nights of a CI are; where some of them were judged before and did not
    pass, it is a further look.
    """
    mine = [recording for recording in runs if limit.is_for(recording)]
    asked, ids = asked_of(mine, Question(required, required.confidence), "gate"), [one.run_id for one in mine]
    if asked is None:
        return
    before = store.looks_before(asked, ids)
    again = len(with_some_of(before, ids))
    assessment = judge(mine, required, look=again)
    store.note_look(asked, ids, assessment.verdict)
    by_id = {recording.run_id: recording for recording in mine}
    said = checked_before(again, len(before) - again, required.confidence)
    for judgment in assessment.judgments:
        yield held_requirement(limit, judgment, [by_id[run] for run in judgment.run_ids], assessment.reasons, said)


def _unused(limits: Sequence[Limit], held: Sequence[Held], runs: Sequence[Recording]) -> Iterator[Held]:
    """A limit for a board that was measured, or for every one, and of which nothing came, is not kept by that."""
    boards = {recording.head.board for recording in runs}
    used = {id(one.limit) for one in held}
    for limit in limits:
        if id(limit) not in used and limit.board in (None, *boards):
            reason = ("no run is of this" if not any(map(limit.is_for, runs)) else
                      "there is nothing in the baseline that it could be compared with")
            yield Held(limit, Verdict.INCONCLUSIVE, reason, limit.subject)


def _all_held(limits: Sequence[Limit], runs: Sequence[Recording], pairs: Sequence[Beside], store: Store) -> list[Held]:
    held = held_growth(limits, pairs)
    for limit in limits:
        if isinstance(limit.asked, Requirement):
            held += _by_itself(limit, limit.asked, runs, store)
    return held + list(_unused(limits, held, runs))


def _gaps(limits: Sequence[Limit], held: Sequence[Held], alone: Sequence[Group], missing: Sequence[str]) -> list[str]:
    gaps = [f"not measured: {run}" for run in missing]
    if limits and not held:
        boards = ", ".join(dict.fromkeys(limit.board or "" for limit in limits))
        gaps.append(f"no limit of the file is for a board that was measured; it has limits for {boards}")
    return gaps + [f"{subject_of(group[0])}: the baseline holds no run like it" for group in alone]


def _require_believed(recordings: Sequence[Recording]) -> None:
    for recording in recordings:
        if recording.damage is not None:
            raise FastenoughError(f"run {recording.run_id} is not believed: {recording.damage}")


def check(runs: Sequence[Recording], baselines: Sequence[Recording], limits: Sequence[Limit], store: Store, *,
          missing: Sequence[str] = (), on_step: Callable[[str], None] = lambda what: None) -> Checked:
    """Hold runs beside a baseline and against limits.  ``missing``: runs that were planned and are not there.

    Raises MixedRuns where a run and its baseline may not be compared, FastenoughError for one that is not believed.
    """
    _require_believed((*runs, *baselines))
    taken = [run for run in runs if not is_monitor(run.head)]
    unfit = tuple(f"run {run.run_id}: {'; '.join(run.reasons)}" for run in taken
                  if run.outcome is Outcome.NOT_APPLICABLE)
    failed = [f"run {run.run_id} holds nothing: {'; '.join(run.reasons) or run.cut_off or 'no reason is recorded'}"
              for run in taken if run.outcome not in _MAY_BE_EMPTY and not judged_series(run)]
    measured = [run for run in taken if run.outcome is not Outcome.NOT_APPLICABLE and judged_series(run)]
    if not measured:
        verdict = Verdict.BROKEN if failed else Verdict.INCONCLUSIVE
        return Checked(verdict, (), (), (), (*failed, "no latency was measured"), () if failed else unfit)
    on_step("comparing with the baseline")
    pairs, alone = _paired(measured, [run for run in baselines if judged_series(run)])
    on_step("judging")
    held = _all_held(limits, measured, pairs, store)
    gaps = [*failed, *_gaps(limits, held, alone, missing), *unfit]
    found = [one.verdict for one in held] + ([Verdict.INCONCLUSIVE] if gaps and limits else [])
    found += [Verdict.BROKEN] if failed else []
    verdict = next((verdict for verdict in _WEIGHT if verdict in found), Verdict.NO_LIMIT)
    return Checked(verdict, tuple(pairs), tuple(alone), tuple(held), tuple(gaps))
