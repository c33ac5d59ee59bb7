# SPDX-License-Identifier: GPL-2.0-or-later
"""The nights of a gate: the runs of a store that answer the same question, since the last change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fastenough import words
from fastenough.analysis.checks import findings_of, is_broken
from fastenough.analysis.compare import kind_name
from fastenough.analysis.differences import differing_keys, run_values
from fastenough.analysis.gate import BaselinePair, is_same_act, most_severe_finding, series_departures
from fastenough.analysis.gate_nights import NightsData, NightsQuestion, exceedances_of
from fastenough.analysis.keys import Key
from fastenough.analysis.merged import MixedRuns, judged_series, load_name, require_mergeable
from fastenough.analysis.nights import RunExceedances
from fastenough.model import BadInput, Outcome, Verdict
from fastenough.recording import Recording
from fastenough.store import RunSummary, Store

MOST_NIGHTS = 31
"""Maximum number of earlier runs that are included."""
LAST_CHANGE = "last"
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?")

Read = Callable[[str], Recording]


@dataclass(frozen=True)
class SinceChange:
    """The change since which nights count: the first run after it, or its time (wall clock, UTC), or neither: the last
    change that the store shows."""

    run_id: str | None = None
    begin_ns: int | None = None

    @property
    def is_requested(self) -> bool:
        return self.run_id is not None or self.begin_ns is not None

    def precedes(self, run_id: str, begin_ns: int) -> bool:
        """Whether a run was made after this change."""
        return (self.run_id is None or run_id >= self.run_id) and (self.begin_ns is None or begin_ns >= self.begin_ns)


def change_of(store: Store, name: str) -> SinceChange:
    """The change that a user names: ``last``, a date, as in 2026-11-20 or 2026-11-20T14:30 (UTC), or a run of the
    store; raises BadInput."""
    if name == LAST_CHANGE:
        return SinceChange()
    if _DATE.fullmatch(name) is None:
        return SinceChange(run_id=store.find(name))
    try:
        begin = datetime.fromisoformat(name).replace(tzinfo=UTC)
    except ValueError as error:
        raise BadInput(f"{name} is not a date: {error}; write it as 2026-11-20 or 2026-11-20T14:30") from error
    return SinceChange(begin_ns=int(begin.timestamp()) * 10**9)


def _runs_before(
    store: Store, runs: Sequence[Recording], baseline: Sequence[Recording], read: Read, change: SinceChange
) -> Iterator[tuple[Recording, list[Key]]]:
    """The runs of the store that answer the same question as these, newest first, each with the keys of these that
    forbid to merge it: those before them, and since the baseline and the change.

    The order is that in which they were stored, whatever their clocks say.  Damaged runs are left out.
    """
    first, own = runs[0], {run.run_id for run in (*runs, *baseline)}
    oldest, since_ns = min(run.run_id for run in runs), max(run.head.begin.wall_ns for run in baseline)
    values = run_values(first)

    def counts(summary: RunSummary) -> bool:
        begin_ns = summary.begin_wall_ns or 0
        return (
            summary.id < oldest
            and summary.id not in own
            and begin_ns > since_ns
            and change.precedes(summary.id, begin_ns)
        )

    head, outcome = first.head, Outcome.COMPLETED.value
    alike = store.runs(brief=True, board=head.board, probe=head.probe, load=load_name(first), outcome=outcome)
    for summary in filter(counts, reversed(alike)):
        run = read(summary.id)
        if run.damage is None and is_same_act(run, first) and judged_series(run):
            yield run, list(differing_keys(run_values(run), values))


@dataclass(frozen=True)
class EarlierNights:
    """Earlier runs, newest first; ``left_out``: those that did not measure the latencies of the baseline on its CPUs,
    or whose series may not be merged, as text."""

    runs: tuple[Recording, ...]
    left_out: tuple[str, ...]


def _left_out(run: Recording, newest: Recording, baseline: Sequence[Recording], same_cpus: bool) -> str | None:
    """Why an earlier run is left out: it did not measure the latencies of the baseline on its CPUs, or a series of it
    may not be merged with that of the newest run."""
    reasons = [departure.reason for departure in series_departures([run], baseline, same_cpus, all_cpus=False)]
    reason = "; ".join(reasons) or _unmergeable(run, newest)
    return f"run {run.run_id} left out ({reason})" if reason else None


def _unmergeable(run: Recording, newest: Recording) -> str:
    """Why a series of a run may not be merged with that of the newest run; empty if all may."""
    for kind in dict.fromkeys(map(kind_name, newest.series)):
        parts = [(each, series) for each in (newest, run) for series in each.series if kind_name(series) == kind]
        try:
            require_mergeable(parts)
        except MixedRuns as error:
            return str(error)
    return ""


def earlier_nights(
    store: Store,
    runs: Sequence[Recording],
    baseline: Sequence[Recording],
    read: Read | None = None,
    same_cpus: bool = True,
) -> EarlierNights:
    """The runs of the store that answer the same question as these: those before them, since the last change of a key
    that forbids to merge, and since the baseline.

    Runs that cannot be trusted, that did not measure the latencies of the baseline on its CPUs, or whose series may not
    be merged with those of these runs, are left out and do not end the search.  ``read``: read a run; default: the
    store's.  ``same_cpus``: see :func:`series_departures`.
    """
    nights: list[Recording] = []
    left_out: list[str] = []
    for earlier, keys in _runs_before(store, runs, baseline, read or store.load, SinceChange()):
        if keys or len(nights) == MOST_NIGHTS:
            break
        if is_broken(findings_of(earlier)):
            continue
        if (reason := _left_out(earlier, runs[0], baseline, same_cpus)) is not None:
            left_out.append(reason)
        else:
            nights.append(earlier)
    return EarlierNights(tuple(nights), tuple(left_out))


@dataclass(frozen=True)
class _RunData:
    """A run: what it has above the allowed quantile of each question, and its most severe finding."""

    begin_ns: int
    duration_ns: int
    exceedances: tuple[RunExceedances | None, ...]
    finding: tuple[Verdict, str] | None

    @property
    def is_broken(self) -> bool:
        return self.finding is not None and self.finding[0] is Verdict.BROKEN


def _data_of(questions: Sequence[NightsQuestion], run: Recording) -> _RunData:
    exceedances = tuple(exceedances_of(question, run) for question in questions)
    return _RunData(run.head.begin.wall_ns, run.duration_ns, exceedances, most_severe_finding([run]))


@dataclass(frozen=True)
class NightsSince:
    """The data of each question of one pair, in order; ``since_ns``: their runs began later (wall clock)."""

    data: tuple[NightsData, ...]
    since_ns: int


def nights_since(
    questions: Sequence[NightsQuestion], store: Store, change: SinceChange, same_cpus: bool = True
) -> NightsSince:
    """The nights of questions of one pair since a change; each earlier run is read, summed up and dropped.

    Runs are left out as by :func:`earlier_nights`.  Raises BadInput for a run that was made before the change.
    """
    pair = questions[0].pair
    before = next((run for run in pair.runs if not change.precedes(run.run_id, run.head.begin.wall_ns)), None)
    if before is not None:
        raise BadInput(f"run {before.run_id} was made before the change of --since; check a later run")
    since_ns = max(change.begin_ns or 0, *(run.head.begin.wall_ns for run in pair.baseline))
    begin = "as requested" if change.is_requested else "since the baseline"
    runs, untrusted = [_data_of(questions, run) for run in pair.runs[::-1]], 0
    left_out: list[str] = []
    for run, keys in _runs_before(store, pair.runs, pair.baseline, store.load, change):
        if keys:
            begin, since_ns = f"since a change of {', '.join(key.name for key in keys)}", run.head.begin.wall_ns
            break
        if (reason := _left_out(run, pair.runs[0], pair.baseline, same_cpus)) is not None:
            left_out.append(reason)
            continue
        earlier = _data_of(questions, run)
        untrusted += earlier.is_broken
        runs += [] if earlier.is_broken else [earlier]
    if change.run_id is not None:
        since_ns = max(since_ns, runs[-1].begin_ns - 1)
    if untrusted:
        begin += f"; {words.counted(untrusted, 'untrusted run')} left out"
    begin = "; ".join([begin, *left_out])
    return NightsSince(tuple(_of_question(place, runs[::-1], pair, begin) for place in range(len(questions))), since_ns)


def _of_question(place: int, runs: Sequence[_RunData], pair: BaselinePair, begin: str) -> NightsData:
    findings = [finding for finding in (most_severe_finding(pair.baseline), *(run.finding for run in runs)) if finding]
    return NightsData(
        [exceedances for run in runs if (exceedances := run.exceedances[place]) is not None],
        f"{words.minute(runs[0].begin_ns)} ({begin})",
        min(findings, key=lambda finding: finding[0] is not Verdict.BROKEN, default=None),
        sum(run.duration_ns for run in runs),
    )
