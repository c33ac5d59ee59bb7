# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the first commit of a kernel repository whose path is too long, by measurements on a deterministic board.

Each commit has one kernel and one campaign.  A complete stored campaign of the same plan is reused, so that an
interrupted search continues where it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from fastenough import words
from fastenough.analysis.checks import findings_between
from fastenough.analysis.gate import Budget
from fastenough.analysis.instructions import (
    NO_LOAD,
    InstructionComparison,
    MaximaComparison,
    PathComparison,
    compare_instructions,
    difference_text,
)
from fastenough.board import Board
from fastenough.campaign import Plan, Progress, StopRequest, run_campaign
from fastenough.campaign.ledger import complete_runs
from fastenough.jobs.commit_search import CommitRange, CommitRating, search_commits
from fastenough.model import BadInput, FastenoughError, Outcome, Verdict
from fastenough.recording import Recording
from fastenough.store import Store
from fastenough.virtual.git_repository import GitRepository


class LengthCriterion(Protocol):
    """Rates a commit by its series, each compared with that of the good commit."""

    def rate(self, series: Sequence[InstructionComparison]) -> tuple[CommitRating, str]:
        """The rating, and its reason."""


@dataclass(frozen=True)
class LimitCriterion:
    """Bad: a maximum, under load that of all phases, is above a number of instructions."""

    limit: int

    def rate(self, series: Sequence[InstructionComparison]) -> tuple[CommitRating, str]:
        maximum = max(map(maximum_of, series))
        reason = f"maximum {words.number(maximum)} instructions, limit {words.number(self.limit)}"
        return CommitRating.BAD if maximum > self.limit else CommitRating.GOOD, reason


@dataclass(frozen=True)
class RiseCriterion:
    """Bad: a figure of a path without load is longer than that of the good commit by more than the budget."""

    budget: Budget

    def rate(self, series: Sequence[InstructionComparison]) -> tuple[CommitRating, str]:
        figures = [path.figure(self.budget.figure) for path in series if isinstance(path, PathComparison)]
        longest = max(figures, key=lambda figure: figure.difference)
        is_good = all(map(self.budget.is_kept, figures))
        reason = f"{longest.name} {longest.second:,.0f} instructions, good commit {longest.first:,.0f}"
        return CommitRating.GOOD if is_good else CommitRating.BAD, f"{reason}: {difference_text(longest)}"


def maximum_of(series: InstructionComparison) -> int:
    """The maximum of the second side of a comparison, in instructions."""
    return round(series.figure("maximum").second) if isinstance(series, PathComparison) else series.maxima[1][-1]


@dataclass(frozen=True)
class CommitResult:
    """A commit, measured and judged.

    ``campaign``: of its runs, empty if it was not measured.  ``paths`` and ``maxima``: its series without and with
    load, compared with those of the good commit.
    """

    commit: str
    subject: str
    rating: CommitRating
    reason: str
    campaign: str = ""
    runs: tuple[str, ...] = ()
    paths: tuple[PathComparison, ...] = ()
    maxima: tuple[MaximaComparison, ...] = ()


@dataclass(frozen=True)
class CommitBisection:
    """``conclusion``: one sentence.  ``first_bad``: None if it was not found.

    ``suspects``: the commits of which one is the first bad commit.  ``neighbours``: the commits before these.
    ``results``: all judged commits, in the order of the search.
    """

    conclusion: str
    first_bad: str | None
    suspects: tuple[str, ...]
    neighbours: tuple[str, ...]
    results: tuple[CommitResult, ...]


@dataclass(frozen=True)
class BisectionSetup:
    """``plan``: one probe and load on one deterministic board; its configuration is replaced by each kernel's name."""

    plan: Plan
    criterion: LengthCriterion

    def __post_init__(self) -> None:
        (entry,) = self.plan.entries
        if isinstance(self.criterion, RiseCriterion) and entry.loads[0] not in NO_LOAD:
            raise BadInput(
                f"--longer-by with load {entry.loads[0]}: a path has a length only without load; use --limit"
            )


class BisectionStopped(Exception):
    """A signal ended the measurement of a commit; ``signal``: its number."""

    def __init__(self, signal: int) -> None:
        super().__init__(f"stopped by signal {signal}")
        self.signal = signal


@dataclass(frozen=True)
class CommitBench:
    """Functions and store for the measurement of commits.  ``build``: returns the name of a commit's kernel; raises
    FastenoughError if it does not build.  ``emulator``: the guests' fact of this name; ``guest``: returns the hash of a
    kernel's guest.  Runs of another emulator or guest are not compared."""

    build: Callable[[str], str]
    emulator: Mapping[str, str]
    guest: Callable[[str], str]
    opened: Callable[[str], Board]
    store: Store
    on_progress: Callable[[Progress], None]
    stopping: StopRequest
    tell: Callable[[str], None]


@dataclass
class _Commits:
    """Measures and judges commits; the first one is the good commit, with which the others are compared."""

    repository: GitRepository
    setup: BisectionSetup
    bench: CommitBench

    def __post_init__(self) -> None:
        self._first: list[Recording] = []

    def judge(self, commit: str) -> CommitResult:
        """Measure and judge a commit, and print the result."""
        result = self._judged(CommitResult(commit, self.repository.subject(commit), CommitRating.SKIPPED, ""))
        self.bench.tell(f"{commit[:12]} {result.rating}: {result.reason} ({result.subject})")
        return result

    def _judged(self, unmeasured: CommitResult) -> CommitResult:
        try:
            kernel = self.bench.build(unmeasured.commit)
        except FastenoughError as error:
            return replace(unmeasured, reason=str(error))
        campaign, runs = self._measure(kernel)
        measured = replace(unmeasured, campaign=campaign, runs=tuple(run.run_id for run in runs))
        reason = next(filter(None, map(_unusable_reason, runs)), None)
        if reason is not None:
            return replace(measured, reason=reason)
        self._first = self._first or runs
        series = compare_instructions(self._first, runs)
        if not series:
            raise BadInput(f"probe {self.setup.plan.entries[0].probe} measures no latency; choose another probe")
        rating, reason = self.setup.criterion.rate(series)
        return replace(
            measured,
            rating=rating,
            reason=reason,
            paths=tuple(path for path in series if isinstance(path, PathComparison)),
            maxima=tuple(maxima for maxima in series if isinstance(maxima, MaximaComparison)),
        )

    def _measure(self, kernel: str) -> tuple[str, list[Recording]]:
        """The campaign of a kernel and its runs: stored ones of the same emulator and guest, or new ones."""
        bench = self.bench
        plan = replace(self.setup.plan, configurations=(kernel,), guest=bench.guest(kernel))
        stored = complete_runs(bench.store, plan)
        if stored is not None:
            runs = [bench.store.load(run) for run in stored[1]]
            if all((run.head.profile or {}).get("emulator") == bench.emulator for run in runs):
                return stored[0], runs
        done = run_campaign(
            plan,
            bench.store,
            bench.on_progress,
            resume=True,
            opened=bench.opened,
            stopping=bench.stopping,
            tell=bench.tell,
        )
        if done.stopped:
            raise BisectionStopped(done.signal)
        return done.id, [bench.store.load(run) for run in done.runs]


def _unusable_reason(run: Recording) -> str | None:
    """The reason why the figures of a run cannot be compared; None if they can."""
    if run.outcome is not Outcome.COMPLETED:
        return "; ".join(run.reasons) or f"run {run.run_id} is incomplete"
    broken = (finding.text for finding in findings_between(run) if finding.verdict is Verdict.BROKEN)
    return next(broken, None)


def bisect_commits(
    repository: GitRepository, good: str, bad: str, setup: BisectionSetup, bench: CommitBench
) -> CommitBisection:
    """Find the first bad commit between two revisions.

    A commit that does not build, boot or complete its runs is skipped.  Raises as :func:`search_commits` does,
    BadInput for an unknown revision, BisectionStopped if a signal ends it.
    """
    commits = _Commits(repository, setup, bench)
    commit_range = search_commits(repository, repository.resolve(good), repository.resolve(bad), commits.judge)
    return CommitBisection(
        _conclusion(commit_range),
        commit_range.first_bad,
        commit_range.suspects,
        commit_range.neighbours,
        tuple(commit_range.judged.values()),
    )


def _conclusion(commit_range: CommitRange[CommitResult]) -> str:
    if commit_range.bad_base is not None:
        return (
            f"first bad commit not found: the merge base {commit_range.bad_base[:12]} is bad "
            f"({commit_range.judged[commit_range.bad_base].reason}), so the good revision has a correction that the "
            "bad one lacks"
        )
    if commit_range.bad_neighbour is not None:
        return (
            f"first bad commit not found: {commit_range.bad_neighbour[:12]}, an ancestor of a good commit, is bad "
            f"({commit_range.judged[commit_range.bad_neighbour].reason}), so a correction lies between them; use it "
            "as --bad"
        )
    if len(commit_range.suspects) > 1:
        return (
            f"first bad commit not found: it is one of {words.number(len(commit_range.suspects))} commits, "
            f"{words.number(len(commit_range.suspects) - 1)} of which cannot be measured"
        )
    first = commit_range.judged[commit_range.suspects[0]]
    return f"{first.commit[:12]} is the first bad commit: {first.subject}"
