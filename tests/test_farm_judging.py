# SPDX-License-Identifier: GPL-2.0-or-later
"""A cycle that has ended is judged by what the farm's file, or its plan, requires; pages and badge say it."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import recordings as made

from fastenough.farm.config import BoardEntry
from fastenough.farm.judging import verdict_on
from fastenough.farm.machine import BoardState
from fastenough.farm.taking import said_of, take_runs
from fastenough.history import OWNER, History, State, board_of, standing_of
from fastenough.model import Requirement
from fastenough.store import Store

BOARD = "testboard"
WITHIN, BEYOND = asdict(Requirement(10**6)), asdict(Requirement(1000))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def keep(store: Store, position: int | None = None, **changes: Any) -> str:
    """A run that passes at 1 ms; with a position, of a campaign of two."""
    origin = None if position is None else {"campaign": "cycle-1", "plan_sha256": "p", "position": position,
                                            "positions": 2, "planned": ("timer", "timer, load cpu")}
    writer = store.begin(origin)
    plan = made.Plan(**{"values": made.quiet(writer.id), "run_id": writer.id} | changes)
    for line in made.write(store.path / "made.jsonl", plan).read_bytes().splitlines(keepends=True):
        writer.line(line)
    writer.end()
    return str(writer.id)


def word(store: Store, required: dict[str, Any] | None = WITHIN) -> str:
    return verdict_on(Store(store.path), BOARD, required)["verdict"]


def test_the_newest_recording_of_a_ring_is_judged_by_itself(store: Store) -> None:
    assert word(store) == "", "nothing was measured"
    keep(store, values=[[values * 1000 for values in cpu] for cpu in made.quiet("slow")])
    assert word(store) == "FAIL"
    keep(store)
    assert (word(store), word(store, BEYOND), word(store, None)) == ("PASS", "FAIL", "")
    assert "never later than 1.00 µs" in verdict_on(store, BOARD, BEYOND)["verdict_reason"]


def test_a_ring_that_does_not_say_its_load_may_fail_but_never_pass(store: Store) -> None:
    """As real boards' rings are: only what runs loads can tell that they ran."""
    keep(store, load=None)
    said = verdict_on(store, BOARD, WITHIN)
    assert said["verdict"] == "INCONCLUSIVE" and "under which load" in said["verdict_reason"]
    assert word(store, BEYOND) == "FAIL"


def test_what_was_cut_off_or_damaged_is_broken_and_the_monitor_is_no_cycle(store: Store) -> None:
    keep(store)
    keep(store, head={"probe": "monitor"}, series={"role": "diagnostic"})
    assert word(store) == "PASS"
    cut = keep(store, outcome=None)
    assert word(store) == "BROKEN"
    sealed = store.path / "runs" / cut / "recording.jsonl.zst"
    sealed.chmod(0o644)
    sealed.write_bytes(sealed.read_bytes()[:-5] + b"wrong")
    assert word(store) == "BROKEN"


def test_the_runs_of_a_plan_are_judged_together_and_one_that_is_missing_forbids_a_pass(store: Store) -> None:
    keep(store, 0)
    assert word(store) == "INCONCLUSIVE"
    assert "timer, load cpu" in verdict_on(store, BOARD, WITHIN)["verdict_reason"]
    keep(store, 1, load="cpu")
    assert word(store) == "PASS"


def test_what_a_plan_requires_comes_before_what_the_board_does(store: Store) -> None:
    keep(store, head={"requirement": {"limit_ns": 1000, "miss_rate": 0.0, "confidence": 0.95}})
    assert (word(store, WITHIN), word(store, None)) == ("FAIL", "FAIL")


def test_the_history_has_the_verdict_and_the_requirement(store: Store) -> None:
    """As the farm orders it once a recording has come; a requirement that goes takes its verdict along."""
    keep(store)
    required = Requirement(10**6, 1e-3, longest_burst=5)
    board = BoardEntry(BOARD, public=True, requirement=required)
    order = {"store": str(store.path), "database": f"sqlite:///{store.path}/history.sqlite", "stored": [],
             "under_way": [], "all": True, "close": [], "boards": [], "judge": {}}

    def told(board: BoardEntry) -> Any:
        judge = {BOARD: board.requirement and asdict(board.requirement)}
        take_runs(order | {"boards": [said_of(board, BoardState())], "judge": json.loads(json.dumps(judge))})
        with closing(History.of(store)) as history:
            assert board_of(history, OWNER, BOARD).requirement == board.requirement
            return standing_of(history, OWNER, BOARD, 0)

    assert (told(board).verdict, told(board).board.limit_ns) == ("PASS", 10**6)
    late = told(replace(board, requirement=Requirement(1000)))
    assert late.state is State.FAIL and late.reason == late.verdict_reason != ""
    assert told(replace(board, requirement=None)).verdict == ""
