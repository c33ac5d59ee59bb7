# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings of every kind, changed at random and sealed again: no traceback, and no PASS that they contradict."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from fastenough.analysis import judge
from fastenough.model import Verdict
from fastenough.recording import read_recording
from fastenough.store import Store
from tests.support import mutant_trial as trial
from tests.support import pass_checker

pytestmark = pytest.mark.untimed

CHECKER = Path(pass_checker.__file__)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, probe_binary: str) -> dict[str, bytes]:
    return trial.kinds(tmp_path_factory.mktemp("kinds"), probe_binary)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_mutants_are_refused_or_judged_as_they_deserve(whole: dict[str, bytes], part: int) -> None:
    """1,000 in all; ``make bench`` tries 100,000."""
    trials = trial.Trials(whole, 20261122)
    trials.run(range(part * 500, part * 500 + 500))
    assert trials.counts["parsed"] >= trials.counts["mutants"] / 3, trials.counts
    assert trials.counts["parsed"] < trials.counts["mutants"] * 0.9, "and some are refused"
    assert trials.counts["passed"] >= 20, "what never passes cannot be contradicted"


@pytest.mark.slow
def test_mutants_in_the_store_and_mutants_of_columns(whole: dict[str, bytes], tmp_path: Path) -> None:
    store, counts, trials = Store(tmp_path / "store"), Counter[str](), trial.Trials(whole, 20261123)
    for number in range(150):
        trial.stored(store, trials.content(number), random.Random(number), counts)
    assert counts["columns"] >= 50 and counts["columns passed"] >= 3, counts


@pytest.mark.parametrize("name", [*trial.PASSING, "version 1"])
def test_what_passes_is_not_contradicted(whole: dict[str, bytes], tmp_path: Path, name: str) -> None:
    """By a process of its own, which has nothing of the package."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(whole[name])
    assert judge([read_recording(path)], trial.ASKED[0]).verdict is Verdict.PASS
    said = subprocess.run(
        [sys.executable, "-I", str(CHECKER), str(path), "200000", "0"], check=True, capture_output=True, timeout=60
    )
    assert json.loads(said.stdout) == []
    strict = subprocess.run(
        [sys.executable, "-I", str(CHECKER), str(path), "3500", "0"], check=True, capture_output=True, timeout=60
    )
    assert "beyond the limit" in strict.stdout.decode()


def test_the_checker_shares_no_code_with_the_package() -> None:
    assert "import fastenough" not in CHECKER.read_text() and "from fastenough" not in CHECKER.read_text()


@pytest.mark.parametrize("name", ["timer-2", "timer", "timer-aborted-2", "timer-changed-2"])
def test_what_cannot_pass_is_contradicted(whole: dict[str, bytes], name: str) -> None:
    assert pass_checker.contradictions(whole[name], 10**9)
