# SPDX-License-Identifier: GPL-2.0-or-later
"""A board is judged on its whole evaluation window by what the farm's file, or its plan, requires; pages say it."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Unpack

import pytest

from fastenough.campaign.expand import PLAN_FILE
from fastenough.farm.config import BoardEntry
from fastenough.farm.history_update import HistoryOrder, JudgedBoard, declaration_of, update_history
from fastenough.farm.judging import verdicts_on
from fastenough.farm.state_machine import BoardState
from fastenough.history import (
    OWNER,
    BoardColumns,
    BoardCondition,
    History,
    board_of,
    board_status,
    catch_up,
    declare,
    rename,
    requirement_text,
)
from fastenough.model import Requirement
from fastenough.store import Store
from tests.support import recordings as made

BOARD = "testboard"
WITHIN, BEYOND = asdict(Requirement(10**6)), asdict(Requirement(1000))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def later(line: bytes, hours: int) -> bytes:
    """A line of a recording that was made so many hours later."""
    said = json.loads(line)
    for key in ("begin", "end", "at"):
        if isinstance(said.get(key), dict):
            said[key] = {clock: value + hours * 3600 * 10**9 for clock, value in said[key].items()}
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"


def keep(
    store: Store,
    position: int | None = None,
    hours: int = 0,
    plan: str = "",
    **changes: Unpack[made.PlanFields],
) -> str:
    """A run that passes at 1 ms, made so many hours later; with a position, of a campaign of two with a plan."""
    origin = (
        None
        if position is None
        else {
            "campaign": "cycle-1",
            "plan_sha256": "p",
            "position": position,
            "positions": 2,
            "planned": ("timer", "timer, load cpu"),
        }
    )
    writer = store.begin(origin)
    if plan:
        writer.attach(PLAN_FILE, plan.encode())
    content = replace(made.Plan(made.quiet(writer.id), run_id=writer.id, begin_ns=0), **changes)
    for line in made.write(store.path / "made.jsonl", content).read_bytes().splitlines(keepends=True):
        writer.line(later(line, hours))
    writer.end()
    return str(writer.id)


def word(store: Store, required: dict[str, Any] | None = WITHIN) -> str:
    return str(verdicts_on(Store(store.path), BOARD, required)["verdict"])


def both(store: Store, required: dict[str, Any] | None = WITHIN) -> tuple[str, str]:
    """The verdict on the board, and the one on its newest cycle."""
    said = verdicts_on(Store(store.path), BOARD, required)
    return said["verdict"], said["cycle_verdict"]


def slow() -> list[Any]:
    return [[values * 1000 for values in cpu] for cpu in made.quiet("slow")]


@pytest.mark.check
def test_a_board_is_judged_on_all_recordings_of_its_window_not_on_the_newest_cycle(store: Store) -> None:
    assert both(store) == ("", ""), "nothing was measured"
    keep(store)
    assert both(store) == ("PASS", "PASS")
    keep(store, hours=24, values=slow())
    assert both(store) == ("FAIL", "FAIL")
    keep(store, hours=48)
    assert both(store) == ("FAIL", "PASS"), "the newest cycle is shown beside the verdict, and never instead of it"
    assert (word(store, BEYOND), word(store, None)) == ("FAIL", "")
    keep(store, hours=24 * 32)
    assert both(store) == ("PASS", "PASS"), "the recording above the limit is older than 30 days"


@pytest.mark.check
def test_another_configuration_is_judged_from_its_own_begin(store: Store) -> None:
    keep(store, values=slow())
    kernel = made.PROFILE["kernel"] | {"release": "6.12.0-rt9"}
    keep(store, hours=24, head={"profile": made.PROFILE | {"kernel": kernel}})
    said = verdicts_on(store, BOARD, WITHIN)
    assert (said["verdict"], said["judged_from_s"]) == ("PASS", made.WALL_NS // 10**9 + 86400)
    keep(store, hours=48, head={"profile": made.PROFILE | {"frequency": None, "kernel": kernel}})
    assert verdicts_on(store, BOARD, WITHIN)["judged_from_s"] == said["judged_from_s"], "a setting is no configuration"
    keep(store, hours=72)
    assert word(store) == "FAIL", "the first configuration again"


def test_what_was_cut_off_above_the_limit_forbids_a_pass(store: Store) -> None:
    keep(store, outcome=None, values=slow())
    keep(store, hours=24)
    assert both(store) == ("INCONCLUSIVE", "PASS")
    assert "above the limit" in verdicts_on(store, BOARD, WITHIN)["verdict_reason"]


def test_a_recording_ahead_of_the_clock_is_not_the_newest_cycle(store: Store) -> None:
    keep(store)
    keep(store, hours=400 * 24, values=slow())
    now_s = made.WALL_NS / 1e9 + 3600
    assert verdicts_on(store, BOARD, WITHIN, now_s)["verdict"] == "PASS"


def test_a_ring_that_does_not_say_its_load_may_fail_but_never_pass(store: Store) -> None:
    """As real boards' rings are: only what runs loads can tell that they ran."""
    keep(store, load=None)
    said = verdicts_on(store, BOARD, WITHIN)
    assert said["verdict"] == "INCONCLUSIVE" and "load not stated" in said["verdict_reason"]
    assert word(store, BEYOND) == "FAIL"


def test_what_was_cut_off_or_damaged_is_broken_and_the_monitor_is_no_cycle(store: Store) -> None:
    keep(store)
    keep(store, hours=1, head={"probe": "monitor"}, series={"role": "diagnostic"})
    assert word(store) == "PASS"
    cut = keep(store, hours=2, outcome=None)
    assert word(store) == "BROKEN"
    damage(store, cut)
    assert word(store) == "BROKEN"


def test_the_runs_of_a_plan_on_another_board_are_left_out(store: Store) -> None:
    keep(store, 0)
    keep(store, 1, hours=1, head={"board": "other"}, values=slow())
    assert both(store) == ("PASS", "PASS")


MACHINES = [{"profile": made.PROFILE | {"machine": [letter * 64]}} for letter in "abc"]


def share_name(store: Store, history: History, second: made.PlanFields) -> None:
    """Two machines that are boards, with a run of each: the second one has the former name of the first.

    ``second``: fields of the run of the second one.
    """
    declare(history, "press", former_names=json.dumps([BOARD]))
    keep(store, head=MACHINES[0])
    catch_up(history, store)
    declare(history, "other")
    rename(history, "other", BOARD, [])
    keep(store, hours=1, **second)
    catch_up(history, store)


def columns_of_both(store: Store, history: History) -> list[BoardColumns]:
    names: list[tuple[str, list[str]]] = [("press", [BOARD]), (BOARD, [])]
    return [verdicts_on(store, name, WITHIN, former_names=former, history=history) for name, former in names]


def cycle_verdicts(store: Store, history: History) -> list[str]:
    return [str(columns["cycle_verdict"]) for columns in columns_of_both(store, history)]


@pytest.mark.check
def test_a_run_of_another_machine_with_a_former_name_is_not_of_the_board(store: Store) -> None:
    """As the history attributes it: after a board was renamed, another one was given its name."""
    with closing(History.of(store)) as history:
        share_name(store, history, {"head": MACHINES[1], "values": slow()})
        assert [columns["verdict"] for columns in columns_of_both(store, history)] == ["PASS", "FAIL"]
        assert cycle_verdicts(store, history) == ["PASS", "FAIL"]


def damage(store: Store, run: str) -> None:
    sealed = store.path / "runs" / run / "recording.jsonl.zst"
    sealed.chmod(0o644)
    sealed.write_bytes(sealed.read_bytes()[:-5] + b"wrong")


@pytest.mark.check
def test_a_run_that_the_history_does_not_have_is_of_its_machine_or_else_of_the_present_name(store: Store) -> None:
    """A damaged one identifies no machine; one of a third machine is of neither board."""
    with closing(History.of(store)) as history:
        share_name(store, history, {"head": MACHINES[1]})
        keep(store, hours=2, head=MACHINES[2], values=slow())
        assert cycle_verdicts(store, history) == ["PASS", "PASS"]
        keep(store, hours=3, head=MACHINES[0], values=slow())
        assert cycle_verdicts(store, history) == ["FAIL", "PASS"]
        damage(store, keep(store, hours=4, head=MACHINES[1]))
        assert cycle_verdicts(store, history) == ["FAIL", "BROKEN"]


@pytest.mark.check
def test_a_plan_on_two_machines_of_one_name_is_judged_by_machine(store: Store) -> None:
    with closing(History.of(store)) as history:
        share_name(store, history, {"head": MACHINES[1]})
        keep(store, 0, hours=2, head=MACHINES[0], values=slow())
        keep(store, 1, hours=3, head=MACHINES[1])
        catch_up(history, store)
        assert cycle_verdicts(store, history) == ["FAIL", "PASS"]


PLAN = """
name = "cycle"
boards = ["ssh://a", "ssh://b"]
[[run]]
probe = "timer"
duration = "1s"
loads = ["none", "cpu"]
"""


@pytest.mark.parametrize(("boards", "verdict"), [("ab", "PASS"), ("a", "INCONCLUSIVE")])
def test_a_run_that_is_missing_on_another_board_of_the_plan_forbids_no_pass(
    store: Store, boards: str, verdict: str
) -> None:
    """The plan was killed: with two boards and one load after the runs of the first, else within those of it."""
    plan = PLAN.replace('"none", "cpu"', '"none"') if boards == "ab" else PLAN.replace(', "ssh://b"', "")
    keep(store, 0, plan=plan)
    assert word(store) == verdict


def test_the_runs_of_a_plan_are_judged_together_and_one_that_is_missing_forbids_a_pass(store: Store) -> None:
    keep(store, 0)
    assert word(store) == "INCONCLUSIVE"
    assert "timer, load cpu" in verdicts_on(store, BOARD, WITHIN)["verdict_reason"]
    keep(store, 1, hours=1, load="cpu", load_use=(made.RAN | {"cpu_ns": 10**10},))
    assert word(store) == "PASS"


def test_what_a_plan_requires_comes_before_what_the_board_does(store: Store) -> None:
    keep(store, head={"requirement": {"limit_ns": 1000, "miss_rate": 0.0, "confidence": 0.95}})
    assert (word(store, WITHIN), word(store, None)) == ("FAIL", "FAIL")


def requirement(limit_ns: int) -> dict[str, Any]:
    return {"requirement": {"limit_ns": limit_ns, "miss_rate": 0.0, "confidence": 0.95}}


def test_the_verdict_states_its_requirement_and_whether_a_plan_does(store: Store) -> None:
    def judged(required: dict[str, Any] | None) -> tuple[str, str, int | None]:
        columns = verdicts_on(Store(store.path), BOARD, required)
        return columns["verdict"], columns["judged_by"], columns["plan_limit_ns"]

    keep(store)
    assert judged(WITHIN) == ("PASS", requirement_text(Requirement(10**6)), None)
    assert judged(None) == ("", "", None)
    keep(store, hours=1, head=requirement(2 * 10**6))
    assert judged(WITHIN) == judged(None) == ("PASS", requirement_text(Requirement(2 * 10**6)), 2 * 10**6)


def test_earlier_runs_of_an_edited_plan_are_judged_by_its_present_requirement(store: Store) -> None:
    keep(store, head=requirement(10**9), values=slow())
    assert word(store, None) == "PASS"
    keep(store, hours=1, head=requirement(10**6))
    assert both(store, None) == ("FAIL", "PASS")
    keep(store, hours=2, head=requirement(10**9))
    assert both(store, None) == ("PASS", "PASS")


def test_each_load_of_an_edited_plan_has_its_present_requirement(store: Store) -> None:
    keep(store, head=requirement(10**6))
    keep(store, hours=1, load="other", head=requirement(10**6))
    keep(store, position=0, hours=2, head=requirement(10**6))
    keep(store, position=1, hours=3, load="other", head=requirement(10**9), values=slow())
    assert both(store, None) == ("PASS", "PASS")


def test_earlier_settings_need_none_of_the_present_loads(store: Store) -> None:
    lower = {"name": "priority", "requested": 10, "in_effect": 10}
    keep(store, load="other", settings=tuple(lower if held["name"] == "priority" else held for held in made.SETTINGS))
    keep(store, hours=1)
    assert both(store) == ("PASS", "PASS")


@pytest.mark.check
def test_the_history_has_the_verdict_and_the_requirement(store: Store) -> None:
    """As the farm orders it once a recording has come; a requirement that goes takes its verdict along."""
    keep(store)
    required = Requirement(10**6, 1e-3, longest_burst=5)
    board = BoardEntry(BOARD, public=True, requirement=required)
    order: HistoryOrder = {
        "farm": "farm",
        "coordinator": "",
        "state": str(store.path),
        "store": str(store.path),
        "database": f"sqlite:///{store.path}/history.sqlite",
        "stored": [],
        "under_way": [],
        "all": True,
        "close": [],
        "boards": [],
        "judge": {},
        "refused": {},
        "interrupted": [],
        "newest_run": None,
        "id": "farm",
        "names": [BOARD],
    }

    def told(board: BoardEntry) -> Any:
        required = None if board.requirement is None else asdict(board.requirement)
        judge: dict[str, JudgedBoard] = {BOARD: {"required": required, "former_names": []}}
        changed: HistoryOrder = {**order, "boards": [declaration_of(board, BoardState())], "judge": judge}
        update_history(json.loads(json.dumps(changed)))
        with closing(History.of(store)) as history:
            assert board_of(history, OWNER, BOARD).requirement == board.requirement
            return board_status(history, OWNER, BOARD, 0)

    assert (told(board).verdict, told(board).board.limit_ns) == ("PASS", 10**6)
    late = told(replace(board, requirement=Requirement(1000)))
    assert late.state is BoardCondition.FAIL and late.reason == late.verdict_reason != ""
    assert told(replace(board, requirement=None)).verdict == ""


def test_only_the_newest_runs_of_a_board_are_listed(store: Store) -> None:
    runs = [keep(store, hours=hour) for hour in range(3)]
    assert [run.id for run in store.own_runs(board=BOARD, last=2)] == runs[1:]
