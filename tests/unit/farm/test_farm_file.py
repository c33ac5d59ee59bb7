# SPDX-License-Identifier: GPL-2.0-or-later
"""``farm.toml``: what it says, and that nothing hostile in it gets any further than one line."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastenough.campaign.plan import shipped_plans
from fastenough.cli.farm_boards import farm_board_command as board_command
from fastenough.cli.farm_boards import farm_rebuild_command as rebuild_command
from fastenough.cli.farm_boards import farm_status_command as status_command
from fastenough.farm.acts import BoardOrder, measure
from fastenough.farm.alerts import Observation, create_tables, mark_accepted, note_observations, pending
from fastenough.farm.config import Farm, read_farm
from fastenough.farm.processes import ActResult
from fastenough.farm.run import _act_ended
from fastenough.farm.state_file import FILE, Beat, FarmState, board_states, read_state
from fastenough.farm.state_machine import BoardAct, BoardPhase, BoardState
from fastenough.history import OWNER, PUBLIC, BoardCondition, BoardStatus, History, Viewer, board_statuses
from fastenough.model import BadInput, FastenoughError, Requirement
from fastenough.store import Store
from tests.support import recordings as made
from tests.unit.farm.test_farm_judging import keep

WHOLE = """
name = "lab"
coordinator = "[::1]:20408"
store = "data"
database = "postgresql+psycopg:///farm"
state = "kept"
reconcile = "30s"
false-changes = 0.5

[[board]]
name = "r1s1"
place = "rack1-slot1"
rack = "1"
public = true
limit = "100us"
ring = "/var/lib/fastenough/ring"
pull = "1min"
boot = "2min"
patience = "3h"
retry = "30s"
[[board.plan]]
file = "quick"
every = "24h"
days = ["sat", "sun"]
at = "06:00"

[[board]]
name = "bare"
link = "ssh://root@bare:2222"
"""
BOARD = '[[board]]\nname = "one"\nplace = "p"\n'


def read(tmp_path: Path, text: str) -> Farm:
    path = tmp_path / "farm.toml"
    path.write_text(text)
    return read_farm(path)


def test_a_whole_farm_is_read(tmp_path: Path) -> None:
    farm = read(tmp_path, WHOLE)
    first, bare = farm.boards
    assert (farm.name, farm.coordinator, farm.store, farm.state, farm.reconcile_s) == (
        "lab",
        "[::1]:20408",
        tmp_path / "data",
        tmp_path / "kept",
        30.0,
    )
    assert farm.false_changes == 0.5 and read(tmp_path, BOARD).false_changes == 1.0
    assert (first.place, first.public, first.requirement, first.times.pull_s, first.times.patience_s) == (
        "rack1-slot1",
        True,
        Requirement(100_000),
        60.0,
        10800.0,
    )
    assert first.plans[0].file == shipped_plans()["quick"] and first.plans[0].dates.days == {5, 6}
    assert (bare.public, bare.requirement, bare.rack, bare.ring) == (False, None, "", "")


def test_all_of_a_requirement_is_read(tmp_path: Path) -> None:
    farm = read(tmp_path, BOARD + '[board.requirement]\nlimit = "1ms"\nmiss-rate = 1e-6\nlongest-burst = 20')
    assert farm.boards[0].requirement == Requirement(10**6, 1e-6, longest_burst=20)


def test_the_load_of_a_ring_is_read(tmp_path: Path) -> None:
    ring = BOARD + 'ring = "/r"\n[board.load]\n'
    for text, least, most in (
        ('name = "none"', None, 0.1),
        ('name = "none"\nbusy-at-most = "25%"', None, 0.25),
        ('name = "press"\nbusy-at-least = 0.5', 0.5, None),
    ):
        load = read(tmp_path, ring + text).boards[0].load
        assert load is not None and (load.busy_at_least, load.busy_at_most) == (least, most)


def test_a_board_of_which_nothing_else_is_said_is_measured_by_the_cycle_of_twelve_hours(tmp_path: Path) -> None:
    farm = read(tmp_path, BOARD)
    assert [plan.file for plan in farm.boards[0].plans] == [shipped_plans()["osadl-cycle"]]
    assert farm.boards[0].plans[0].dates.every_s == 12 * 3600
    assert farm.database == f"sqlite:///{tmp_path}/fastenough-data/history.sqlite"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[[board]]\nname = "x; rm -rf /"\nplace = "p"',
            "farm.toml:2: board 1: name = 'x; rm -rf /' is not a valid name",
        ),
        ('[[board]]\nname = "../x"\nplace = "p"', "name = '../x' is not a valid name"),
        ('[[board]]\nname = "a"\nplace = "$(reboot)"', "place = '$(reboot)' is not a valid name"),
        ('[[board]]\nname = "a\\u001b[2J"\nplace = "p"', "is not a valid name"),
        ('[[board]]\nname = "-a"\nplace = "p"', "name = '-a' is not a valid name"),
        ('[[board]]\nname = "a"', "place and link are missing"),
        ('[[board]]\nname = "a"\nlink = "ssh://-oProxyCommand=x"', "link: "),
        ('[[board]]\nname = "a"\nlink = "telnet:x"', "unknown board"),
        (BOARD + 'ring = "../../etc"', "is not an absolute path"),
        (BOARD + 'ring = "/a/../etc"', "is not an absolute path"),
        (BOARD + 'ring = "/a\\u0007"', "is not an absolute path"),
        (BOARD + 'limit = "fast"', "limit: 'fast' is no duration"),
        (
            BOARD + 'limit = "1ms"\n[board.requirement]\nlimit = "1ms"',
            "farm.toml:4: board 1: limit and requirement are both set",
        ),
        (BOARD + '[board.requirement]\nlimit = "1ms"\nmiss-rate = "200%"', "miss-rate"),
        (BOARD + '[board.load]\nname = "none"', "load requires ring"),
        (BOARD + 'ring = "/r"\n[board.load]\nbusy-at-most = 0.1', "farm.toml:5: load: name is missing"),
        (BOARD + 'ring = "/r"\n[board.load]\nname = "press"', "load: busy-at-least is missing or not between"),
        (
            BOARD + 'ring = "/r"\n[board.load]\nname = "none"\nbusy-at-most = 1',
            "load: busy-at-most is missing or not between",
        ),
        (BOARD + 'ring = "/r"\n[board.load]\nname = "press"\nbusy-at-most = 0.5', "load: unknown key 'busy-at-most'"),
        (BOARD + "public = 1", "public = 1 is invalid"),
        (BOARD + "pulls = 3", "unknown key 'pulls'"),
        (BOARD + '[[board.plan]]\nfile = "none.toml"', "none.toml: No such file"),
        (BOARD + '[[board.plan]]\nfile = "quick"\nevery = "7h"', "farm.toml:4: plan 1: every must divide a day"),
        (BOARD + BOARD, "two boards have the name 'one'"),
        (BOARD + BOARD.replace("one", "two"), "two boards have the place 'p'"),
        ('coordinator = "x y"\n' + BOARD, "coordinator = 'x y' is not HOST:PORT"),
        ("board = []", "no board is defined"),
        ("", "board is missing"),
        ("[[board", "invalid TOML"),
        ('password = "x"\n' + BOARD, "unknown key 'password'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput) as refusal:
        read(tmp_path, text)
    assert said in str(refusal.value) and str(refusal.value).isprintable()


TWO_KERNELS = """
name = "two"
configurations = ["a", "b"]
[[run]]
probe = "timer"
duration = "1s"
"""


def test_a_plan_that_needs_another_kernel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A farm boots no other kernel: the present one would be recorded under both names."""
    plan = tmp_path / "two.toml"
    plan.write_text(f'{TWO_KERNELS}[[configuration]]\nname = "b"\nkernel = "*"\n')
    with pytest.raises(BadInput, match="does not change configurations"):
        read(tmp_path, BOARD + '[[board.plan]]\nfile = "two.toml"')
    plan.write_text(TWO_KERNELS)
    for name in ("LG_COORDINATOR", "LG_USERNAME"):
        monkeypatch.setenv(name, "")
    order = BoardOrder(
        farm="lab",
        coordinator="c",
        store=str(tmp_path / "store"),
        state=str(tmp_path),
        database="",
        board="one",
        stated_link="ssh://one",
        plan=str(plan),
        resume=False,
    )
    assert "several configurations (a, b)" in measure(order)["refusal"]


def test_what_the_farm_keeps_is_there_after_it_and_one_farm_writes_it(tmp_path: Path) -> None:
    state = BoardState(phase=BoardPhase.MEASURING, since_s=5.0, reason="ü", busy=frozenset({BoardAct.PULL}), newest="9")
    with pytest.raises(BadInput, match="no farm has run here"):
        read_state(tmp_path / "state")
    kept = FarmState(tmp_path / "state")
    with pytest.raises(BadInput, match="another farm uses this folder"):
        FarmState(tmp_path / "state")
    kept.put("one", state)
    kept.beat(Beat(7, 8.0, "all well"))
    assert read_state(tmp_path / "state") == (Beat(7, 8.0, "all well"), {"one": state})
    kept.close()
    again = FarmState(tmp_path / "state")
    assert again.boards() == {"one": state}
    again.close()


@pytest.mark.parametrize("content", [b"no database" * 1000, b""])
def test_a_damaged_state_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    """An empty one, of a farm that was killed at its first start, is filled."""
    tmp_path.chmod(0o700)
    (tmp_path / FILE).write_bytes(content)
    for reading in (read_state, board_states):
        with pytest.raises(FastenoughError, match=FILE):
            reading(tmp_path)
    if content:
        for _ in range(2):  # the first one has left no lock
            with pytest.raises(BadInput, match="not a valid state file"):
                FarmState(tmp_path)
    else:
        FarmState(tmp_path).close()
        assert read_state(tmp_path) == (None, {})


@pytest.mark.parametrize("state", ["[]", "3", "{", '{"phase": "nowhere"}', '{"busy": 3}'])
def test_a_damaged_board_in_a_state_file_is_one_line(tmp_path: Path, state: str) -> None:
    tmp_path.chmod(0o700)
    with closing(FarmState(tmp_path)) as farm_state:
        farm_state._database.execute("insert into board values ('one', ?)", (state,))
        for reading in (read_state, board_states, lambda _: farm_state.boards()):
            with pytest.raises(BadInput, match="not a valid state file"):
                reading(tmp_path)


def test_a_state_file_that_cannot_be_used_at_present_is_not_called_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reader must not move it away; nor is the lock of the folder held after the error."""
    tmp_path.chmod(0o700)
    FarmState(tmp_path).close()
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *of, **how: connect(*of, **how | {"timeout": 0.01}))
    with closing(connect(tmp_path / FILE, isolation_level=None)) as other:
        other.executescript("pragma locking_mode = exclusive; begin exclusive; insert into beat values (1, 2, 3, '')")
        for reading in (read_state, board_states, FarmState):
            with pytest.raises(FastenoughError, match="locked") as raised:
                reading(tmp_path)
            assert not isinstance(raised.value, BadInput)
        other.execute("rollback")
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    for _ in range(2):  # the first one has left no lock
        with pytest.raises(FastenoughError, match="unable to open") as raised:
            FarmState(tmp_path)
        assert not isinstance(raised.value, BadInput)


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with closing(FarmState(tmp_path)) as farm_state:
        farm_state._database.execute("pragma max_page_count = 1")
        with pytest.raises(FastenoughError, match=f"{FILE}: .*full"):
            farm_state.put("one", BoardState(reason="x" * 100_000))


FORMER_STATE_FILE = """
create table board (name text primary key, state text not null);
create table beat (one integer primary key check (one = 1), pid integer not null, at_s real not null,
                   said text not null);
insert into board values ('one', '{"phase": "lent", "since_s": 2.0, "reason": "reserved by desk/somebody",
    "busy": [], "lent_created_s": 3.0, "lent_changed_s": 4.0}');
insert into beat values (1, 7, 8.0, '1 reserved');
"""


def test_a_state_file_of_an_older_version_is_read_and_then_upgraded(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.executescript(FORMER_STATE_FILE)
    state = BoardState(BoardPhase.RESERVED, 2.0, "reserved by desk/somebody", place_created_s=3.0, place_changed_s=4.0)
    assert read_state(tmp_path) == (Beat(7, 8.0, "1 reserved"), {"one": state})
    for status_line in ("2 measuring", "3 measuring"):
        with closing(FarmState(tmp_path)) as farm_state:
            assert farm_state.boards() == {"one": state}
            farm_state.beat(Beat(9, 10.0, status_line))
        assert read_state(tmp_path) == (Beat(9, 10.0, status_line), {"one": state})
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        columns = [column[1] for column in database.execute("pragma table_info(beat)")]
    assert columns == ["id", "pid", "at_s", "status_line"]


FARM = """
store = "store"
state = "state"

[[board]]   # the first
name = "testboard"   # as its recordings state
link = "local"
public = true
limit = "1ms"
ring = "/ring"
[board.load]
name = "none"

[[board]]
name = "other"
link = "local"
ring = "/ring"
public = true
"""


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    """A farm's file, with a run of the first of its boards in the store, which the history has."""
    path = tmp_path / "farm.toml"
    path.write_text(FARM)
    with closing(Store(tmp_path / "store")) as store:
        keep(store)
    made_again(path)
    return path


def boards(farm: Path, viewer: Viewer = PUBLIC) -> dict[str, BoardStatus]:
    with closing(Store(farm.parent / "store")) as store, closing(History.of(store)) as history:
        return {one.board.name: one for one in board_statuses(history, viewer, made.WALL_NS // 10**9 + 60)}


def change(farm: Path, *words: str) -> bool:
    """Whether it was done."""
    return CliRunner().invoke(board_command, [words[0], str(farm), *words[1:]]).exception is None


def made_again(farm: Path) -> None:
    done = CliRunner().invoke(rebuild_command, [str(farm)], catch_exceptions=False)
    assert "intervals of" in done.output


@pytest.mark.check
def test_a_board_can_be_renamed_and_keeps_all_it_recorded(farm: Path) -> None:
    assert boards(farm)["testboard"].verdict == "PASS"
    assert change(farm, "rename", "testboard", "press-1")
    for _ in range(2):
        found = boards(farm)
        assert set(found) == {"press-1", "other"}
        assert (found["press-1"].verdict, found["press-1"].max_ever_ns is None) == ("PASS", False)
        made_again(farm)
    assert read_farm(farm).boards[0].former_names == ("testboard",)
    assert "# the first" in farm.read_text(), "comments stay"
    assert not change(farm, "rename", "press-1", "other")
    assert set(boards(farm)) == {"press-1", "other"}


@pytest.mark.check
def test_alerts_of_a_renamed_board_are_not_sent_again(farm: Path) -> None:
    """Its conditions end under the name that receivers know, and begin again."""
    names = {"testboard", "press-1"}
    event, condition = (Observation("testboard", kind, "k", 1, kind, kind == "fail") for kind in ("maximum", "fail"))
    with closing(Store(farm.parent / "store")) as store, closing(History.of(store)) as history:
        create_tables(history)
        note_observations(history, names, [event], [condition], 1)
        for alert in pending(history, "receiver", names):
            mark_accepted(history, "receiver", alert)
        assert change(farm, "rename", "testboard", "press-1")
        note_observations(history, names, [replace(event, board="press-1")], [replace(condition, board="press-1")], 2)
        sent = [(alert.observation.board, alert.end) for alert in pending(history, "receiver", names)]
        assert sent == [("testboard", True), ("press-1", False)]


@pytest.mark.check
def test_former_names_of_a_board_in_a_file_of_an_older_version_are_read(farm: Path) -> None:
    assert change(farm, "rename", "testboard", "press-1")
    farm.write_text(farm.read_text().replace("former-names =", "formerly ="))
    assert read_farm(farm).boards[0].former_names == ("testboard",)
    assert change(farm, "rename", "press-1", "press-2")
    assert read_farm(farm).boards[0].former_names == ("testboard", "press-1")
    assert "formerly" not in farm.read_text()
    made_again(farm)
    assert set(boards(farm)) == {"press-2", "other"} and boards(farm)["press-2"].max_ever_ns is not None


@pytest.mark.check
def test_a_board_can_be_withdrawn_and_retired(farm: Path) -> None:
    assert change(farm, "withdraw", "testboard")
    assert set(boards(farm)) == {"other"} and set(boards(farm, OWNER)) == {"testboard", "other"}
    assert change(farm, "retire", "other")
    assert boards(farm)["other"].state is BoardCondition.RETIRED
    assert [board.retired for board in read_farm(farm).boards] == [False, True]
    assert not change(farm, "retire", "nobody")


@pytest.mark.check
def test_rebuild_makes_what_store_and_file_say(farm: Path) -> None:
    """A board that the file no longer names is not public; one that has no runs either is forgotten."""
    farm.write_text(FARM.replace('"testboard"', '"third"').replace('"other"', '"fourth"'))
    made_again(farm)
    assert set(boards(farm)) == {"third", "fourth"}
    assert set(boards(farm, OWNER)) == {"third", "fourth", "testboard"}
    for run in (farm.parent / "store" / "runs").iterdir():
        shutil.rmtree(run)
    made_again(farm)
    assert set(boards(farm, OWNER)) == {"third", "fourth"}


@pytest.mark.check
def test_status_names_what_the_last_pull_refused(farm: Path) -> None:
    with closing(FarmState(farm.parent / "state")) as kept:
        refused = [["ring-1.jsonl", "a line has no end"], ["ring-2.jsonl", "line 7 is no JSON"]]
        ended = _act_ended(BoardAct.PULL, ActResult({"refused": refused}))
        kept.put("testboard", replace(BoardState(phase=BoardPhase.MEASURING), refused=ended.refused))
        kept.beat(Beat(1, 1.0, ""))
    said = json.loads(CliRunner().invoke(status_command, [str(farm), "--json"], catch_exceptions=False).output)
    (board,) = (one for one in said["boards"] if one["board"] == "testboard")
    assert board["refused"].startswith("2 recordings") and "ring-2.jsonl" in board["refused"]
    assert "ring-2.jsonl" in CliRunner().invoke(status_command, [str(farm)], catch_exceptions=False).output


def test_boards_are_not_changed_while_the_farm_is_at_work(farm: Path) -> None:
    kept = FarmState(farm.parent / "state")
    assert not change(farm, "retire", "other")
    kept.close()
    assert farm.read_text() == FARM
