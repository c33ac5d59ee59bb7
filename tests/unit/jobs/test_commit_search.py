# SPDX-License-Identifier: GPL-2.0-or-later
"""The search for the first bad commit, in histories with merges whose first bad commit is known."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fastenough.jobs.commit_search import CommitRange, CommitRating, next_index, search_commits
from fastenough.model import BadInput
from fastenough.virtual.git_repository import GitRepository, open_repository
from tests.support.git_history import Commit, git, make_history

pytestmark = pytest.mark.check

LINEAR = [Commit(f"c{number}", (f"c{number - 1}",) if number else ()) for number in range(10)]
SIDE = [
    Commit("s0", ("c3",)),
    *(Commit(f"s{number}", (f"s{number - 1}",)) for number in range(1, 4)),
    Commit("m0", ("c9", "s3")),
    Commit("t0", ("c5",)),
    Commit("t1", ("t0",)),
    Commit("m1", ("m0", "t1")),
    *(Commit(f"d{number}", (f"d{number - 1}" if number else "m1",)) for number in range(3)),
]
"""Two branches that are merged, and three commits after them."""
HISTORY = [*LINEAR, *SIDE, Commit("fork", ("c4",)), Commit("alien")]
BETWEEN = [commit.name for commit in [*LINEAR, *SIDE] if commit.name != "c0"]
"""The commits after c0."""


@dataclass(frozen=True)
class Judgment:
    rating: CommitRating
    reason: str = "so it is"


@dataclass
class Truth:
    """The commits that contain ``culprit`` are bad; ``broken`` ones cannot be judged."""

    repository: GitRepository
    ids: dict[str, str]
    culprit: str
    broken: Collection[str] = ()
    asked: list[str] = field(default_factory=list)

    def __call__(self, commit: str) -> Judgment:
        self.asked.append(commit)
        if commit in {self.ids[name] for name in self.broken}:
            return Judgment(CommitRating.SKIPPED)
        culprit = self.ids[self.culprit]
        return Judgment(
            CommitRating.BAD if culprit in self.repository.merge_bases(commit, culprit) else CommitRating.GOOD
        )


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[GitRepository, dict[str, str]]:
    folder = tmp_path_factory.mktemp("history")
    ids = make_history(folder, HISTORY)
    return open_repository(folder), ids


History = tuple[GitRepository, dict[str, str]]


def search(truth: Truth, good: str = "c0", bad: str = "d2") -> CommitRange[Judgment]:
    return search_commits(truth.repository, truth.ids[good], truth.ids[bad], truth)


def names(history: History, commits: Collection[str]) -> set[str]:
    by_id = {commit: name for name, commit in history[1].items()}
    return {by_id[commit] for commit in commits}


@pytest.mark.parametrize("culprit", ["c1", "c4", "c9", "s0", "s3", "t1", "m0", "m1", "d0", "d2"])
def test_the_first_bad_commit_is_found_also_in_merged_branches(history: History, culprit: str) -> None:
    truth = Truth(*history, culprit)
    found = search(truth)
    assert names(history, found.suspects) == {culprit} and found.first_bad in found.suspects
    parents = next(commit.parents for commit in HISTORY if commit.name == culprit)
    assert names(history, found.neighbours) == set(parents)
    assert all(found.judged[commit].rating is CommitRating.GOOD for commit in found.neighbours)
    assert len(truth.asked) == len(set(truth.asked)) <= 2 + math.ceil(math.log2(len(BETWEEN))) + len(parents)
    assert list(found.judged) == truth.asked


def _trials() -> Iterator[tuple[str, list[str]]]:
    choice = random.Random(3)
    for _ in range(12):
        culprit = choice.choice(BETWEEN[:-1])
        yield culprit, choice.sample([name for name in BETWEEN if name != "d2"], choice.randrange(1, 9))


@pytest.mark.parametrize(("culprit", "broken"), list(_trials()))
def test_commits_that_cannot_be_judged_are_skipped_and_named_if_it_may_be_one_of_them(
    history: History, culprit: str, broken: list[str]
) -> None:
    found = search(Truth(*history, culprit, broken))
    suspects = names(history, found.suspects)
    assert culprit in suspects
    assert len(suspects - {*broken}) == 1, "all others of the range are skipped"


def test_with_all_between_skipped_the_range_is_the_result(history: History) -> None:
    found = search(Truth(*history, "c5", ["c4", "c5", "c6"]), "c3", "c7")
    assert names(history, found.suspects) == {"c4", "c5", "c6", "c7"}
    assert names(history, found.neighbours) == {"c3"}


def test_without_commits_between_the_bad_one_is_the_first(history: History) -> None:
    truth = Truth(*history, "c8")
    found = search(truth, "c7", "c8")
    assert (names(history, found.suspects), names(history, found.neighbours)) == ({"c8"}, {"c7"})
    assert len(truth.asked) == 2


def test_a_good_commit_on_another_branch_is_good_from_the_merge_base_on(history: History) -> None:
    truth = Truth(*history, "c7")
    found = search(truth, "fork", "c9")
    assert names(history, found.suspects) == {"c7"}
    assert truth.asked[2] == history[1]["c4"], "the merge base is judged after both ends"


def test_a_bad_merge_base_means_that_the_good_branch_has_a_correction(history: History) -> None:
    class Corrected(Truth):
        def __call__(self, commit: str) -> Judgment:
            return Judgment(CommitRating.GOOD) if commit == self.ids["fork"] else super().__call__(commit)

    found = search(Corrected(*history, "c2"), "fork", "c9")
    assert (found.bad_base, found.suspects) == (history[1]["c4"], ())


def test_a_commit_with_a_bad_parent_is_not_the_first(tmp_path: Path) -> None:
    class Corrected(Truth):
        def __call__(self, commit: str) -> Judgment:
            good = commit in {self.ids[name] for name in ("g1", "g2", "g3")}
            return Judgment(CommitRating.GOOD) if good else super().__call__(commit)

    corrected = [Commit("g1", ("p",)), Commit("g2", ("g1",)), Commit("g3", ("g2",))]
    commits = [Commit("c0"), Commit("p", ("c0",)), *corrected, Commit("x", ("p",)), Commit("m", ("g3", "x"))]
    ids = make_history(tmp_path, commits)
    found = search(Corrected(open_repository(tmp_path), ids, "p"), "c0", "m")
    assert (found.suspects, found.bad_neighbour, found.first_bad) == ((ids["x"],), ids["p"], None)


def test_a_merge_base_that_cannot_be_judged_stops_nothing(history: History) -> None:
    assert names(history, search(Truth(*history, "c7", ["c4"]), "fork", "c9").suspects) == {"c7"}


@pytest.mark.parametrize(
    ("good", "bad", "culprit", "asked"),
    [
        ("c5", "c5", "c5", 0),
        ("c9", "c5", "c5", 0),
        ("alien", "c5", "c5", 0),
        ("c5", "c9", "c4", 1),
        ("c5", "c8", "c9", 2),
    ],
)
def test_ends_that_are_not_as_stated_are_refused(
    history: History, good: str, bad: str, culprit: str, asked: int
) -> None:
    truth = Truth(*history, culprit)
    with pytest.raises(BadInput):
        search(truth, good, bad)
    assert len(truth.asked) == asked


@pytest.mark.parametrize("end", ["c0", "c9"])
def test_ends_must_be_judged(history: History, end: str) -> None:
    with pytest.raises(BadInput, match="is skipped: so it is"):
        search(Truth(*history, "c5", [end]), "c0", "c9")


def test_each_skipped_commit_moves_the_choice() -> None:
    indices = [next_index(100, skipped) for skipped in range(8)]
    assert indices[0] == 0 and len(set(indices)) == 8 and max(indices) < 100
    assert all(0 <= next_index(1, skipped) < 1 for skipped in range(50))


def test_revisions_are_commits(history: History) -> None:
    repository, ids = history
    assert repository.resolve("c9~2") == ids["c7"] == repository.resolve(ids["c7"][:10])
    git(repository.path, "tag", "-f", "-m", "a tag", "v1", "c7")
    assert repository.resolve("v1") == ids["c7"]
    for revision in ("none", "c9:", "--all", "^c9", ""):
        with pytest.raises(BadInput):
            repository.resolve(revision)
