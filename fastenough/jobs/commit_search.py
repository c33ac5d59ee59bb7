# SPDX-License-Identifier: GPL-2.0-or-later
"""Search for the first bad commit of a history, as ``git bisect run`` does.

The commits that may be the first bad one are halved until one is left.  A commit that cannot be judged is skipped; if
only skipped ones are left beside the bad one, the result is this range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from fastenough.model import BadInput

_GOLDEN = (5**0.5 - 1) / 2


class CommitRating(StrEnum):
    """The rating of a commit; skipped: it cannot be judged."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"


class CommitHistory(Protocol):
    """Commits and their order; see ``GitRepository``."""

    def parents(self, commit: str) -> list[str]: ...

    def merge_bases(self, first: str, second: str) -> list[str]: ...

    def candidates(self, bad: str, good: Sequence[str]) -> list[str]: ...


class RatedCommit(Protocol):
    """A rated commit; ``reason``: of its rating."""

    @property
    def rating(self) -> CommitRating: ...

    @property
    def reason(self) -> str: ...


_Rated = TypeVar("_Rated", bound=RatedCommit)


@dataclass(frozen=True)
class CommitRange(Generic[_Rated]):
    """Result of a search.

    ``suspects``: the commits of which one is the first bad commit; empty if a merge base is bad.  ``neighbours``: their
    parents outside of this range.  ``bad_base``: the merge base that is bad, else None.  ``judged``: all judged
    commits, in the order of the search.
    """

    suspects: tuple[str, ...]
    neighbours: tuple[str, ...]
    bad_base: str | None
    judged: dict[str, _Rated]

    @property
    def bad_neighbour(self) -> str | None:
        """The first neighbour that is bad, although it is an ancestor of a good commit; None if there is none."""
        bad = (commit for commit in self.neighbours if self.judged[commit].rating is CommitRating.BAD)
        return next(bad, None)

    @property
    def first_bad(self) -> str | None:
        """The first bad commit; None if it was not found."""
        return self.suspects[0] if len(self.suspects) == 1 and self.bad_neighbour is None else None


@dataclass
class _Search(Generic[_Rated]):
    history: CommitHistory
    judge: Callable[[str], _Rated]
    good: list[str]
    bad: str

    def __post_init__(self) -> None:
        self.judged: dict[str, _Rated] = {}

    def rating(self, commit: str) -> CommitRating:
        """The rating of a commit, which is judged once."""
        if commit not in self.judged:
            self.judged[commit] = self.judge(commit)
        return self.judged[commit].rating

    def require(self, commit: str, expected: CommitRating) -> None:
        """Raise BadInput unless an end of the range is rated as the user states."""
        if self.rating(commit) is not expected:
            raise BadInput(
                f"--{expected} {commit[:12]} is {self.judged[commit].rating}: {self.judged[commit].reason}; "
                f"choose another --{expected} revision or another limit"
            )

    def bad_base(self) -> str | None:
        """The first bad merge base of both ends, or None; good merge bases are added to the good commits."""
        for base in self.history.merge_bases(self.good[0], self.bad):
            if base in self.good:
                continue
            match self.rating(base):
                case CommitRating.BAD:
                    return base
                case CommitRating.GOOD:
                    self.good.append(base)
        return None

    def suspects(self) -> list[str]:
        """Judge commits until none is left to judge; return those of which one is the first bad commit."""
        while True:
            candidates = self.history.candidates(self.bad, self.good)
            left = [commit for commit in candidates if commit not in self.judged]
            if not left:
                return candidates
            commit = left[next_index(len(left), len(candidates) - len(left) - 1)]
            match self.rating(commit):
                case CommitRating.GOOD:
                    self.good.append(commit)
                case CommitRating.BAD:
                    self.bad = commit

    def neighbours(self, suspects: Sequence[str]) -> list[str]:
        """Judge the parents of the suspects that are outside of their range, and return these."""
        parents = dict.fromkeys(parent for commit in suspects for parent in self.history.parents(commit))
        outside = [parent for parent in parents if parent not in suspects]
        for parent in outside:
            self.rating(parent)
        return outside


def next_index(left: int, skipped: int) -> int:
    """The index of the next commit to judge among ``left`` commits, of which the first halves the range best.

    Neighbours of a skipped commit often fail for the same reason, so each skipped one moves the choice (as in git).
    """
    return int(left * (skipped * _GOLDEN % 1) ** 1.5)


def search_commits(history: CommitHistory, good: str, bad: str, judge: Callable[[str], _Rated]) -> CommitRange[_Rated]:
    """Find the first bad commit among the ancestors of ``bad`` that are not ancestors of ``good``.

    Both ends are judged first, to confirm them, then their merge bases.  If good changes to bad more than once, one of
    these changes is found, or a bad neighbour.  Raises BadInput if the ends are not as stated, in the wrong order or
    without common history, and each exception of ``judge``.
    """
    bases = history.merge_bases(good, bad)
    if not bases:
        raise BadInput(f"{good[:12]} and {bad[:12]} have no common history")
    if bases == [bad]:
        raise BadInput(
            f"--good {good[:12]} is --bad {bad[:12]} or descends from it; give a good revision before the bad one"
        )
    search = _Search(history, judge, [good], bad)
    search.require(good, CommitRating.GOOD)
    search.require(bad, CommitRating.BAD)
    base = search.bad_base()
    if base is not None:
        return CommitRange((), (), base, search.judged)
    suspects = search.suspects()
    return CommitRange(tuple(suspects), tuple(search.neighbours(suspects)), None, search.judged)
