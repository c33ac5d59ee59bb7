# SPDX-License-Identifier: GPL-2.0-or-later
"""``farm.toml``: what it says, and that nothing hostile in it gets any further than one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastenough.campaign.shipped import shipped
from fastenough.farm.config import Farm, read_farm
from fastenough.farm.kept import Beat, Kept, seen
from fastenough.farm.machine import Act, BoardState, Phase
from fastenough.model import BadInput, Requirement

WHOLE = """
name = "lab"
coordinator = "[::1]:20408"
store = "data"
database = "postgresql+psycopg:///farm"
state = "kept"
reconcile = "30s"

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
        "lab", "[::1]:20408", tmp_path / "data", tmp_path / "kept", 30.0)
    assert (first.place, first.public, first.requirement, first.times.pull_s, first.times.patience_s) == (
        "rack1-slot1", True, Requirement(100_000), 60.0, 10800.0)
    assert first.plans[0].file == shipped()["quick"] and first.plans[0].dates.days == {5, 6}
    assert (bare.public, bare.requirement, bare.rack, bare.ring) == (False, None, "", "")


def test_all_of_a_requirement_is_read(tmp_path: Path) -> None:
    farm = read(tmp_path, BOARD + '[board.requirement]\nlimit = "1ms"\nmiss-rate = 1e-6\nlongest-burst = 20')
    assert farm.boards[0].requirement == Requirement(10**6, 1e-6, longest_burst=20)


def test_the_load_of_a_ring_is_read(tmp_path: Path) -> None:
    ring = BOARD + 'ring = "/r"\n[board.load]\n'
    for text, least, most in (('name = "none"', None, 0.1), ('name = "none"\nbusy-at-most = "25%"', None, 0.25),
                              ('name = "press"\nbusy-at-least = 0.5', 0.5, None)):
        load = read(tmp_path, ring + text).boards[0].load
        assert load is not None and (load.busy_at_least, load.busy_at_most) == (least, most)


def test_a_board_of_which_nothing_else_is_said_is_measured_by_the_cycle_of_twelve_hours(tmp_path: Path) -> None:
    farm = read(tmp_path, BOARD)
    assert [plan.file for plan in farm.boards[0].plans] == [shipped()["osadl-cycle"]]
    assert farm.boards[0].plans[0].dates.every_s == 12 * 3600
    assert farm.database == f"sqlite:///{tmp_path}/fastenough-data/history.sqlite"


@pytest.mark.parametrize(("text", "said"), [
    ('[[board]]\nname = "x; rm -rf /"\nplace = "p"', "farm.toml:2: board 1: name = 'x; rm -rf /' cannot be used"),
    ('[[board]]\nname = "../x"\nplace = "p"', "name = '../x' cannot be used"),
    ('[[board]]\nname = "a"\nplace = "$(reboot)"', "place = '$(reboot)' cannot be used"),
    ('[[board]]\nname = "a\\u001b[2J"\nplace = "p"', "cannot be used"),
    ('[[board]]\nname = "-a"\nplace = "p"', "name = '-a' cannot be used"),
    ('[[board]]\nname = "a"', "neither place nor link"),
    ('[[board]]\nname = "a"\nlink = "ssh://-oProxyCommand=x"', "link: "),
    ('[[board]]\nname = "a"\nlink = "telnet:x"', "no board is called"),
    (BOARD + 'ring = "../../etc"', "is no absolute path"),
    (BOARD + 'ring = "/a/../etc"', "is no absolute path"),
    (BOARD + 'ring = "/a\\u0007"', "is no absolute path"),
    (BOARD + 'limit = "fast"', "limit: 'fast' is no duration"),
    (BOARD + 'limit = "1ms"\n[board.requirement]\nlimit = "1ms"', "farm.toml:4: board 1: limit and requirement both"),
    (BOARD + '[board.requirement]\nlimit = "1ms"\nmiss-rate = "200%"', "miss-rate"),
    (BOARD + '[board.load]\nname = "none"', "load is of what a ring records"),
    (BOARD + 'ring = "/r"\n[board.load]\nbusy-at-most = 0.1', "farm.toml:5: load: name is missing"),
    (BOARD + 'ring = "/r"\n[board.load]\nname = "press"', "load: busy-at-least is missing or says nothing"),
    (BOARD + 'ring = "/r"\n[board.load]\nname = "none"\nbusy-at-most = 1', "load: busy-at-most is missing or says"),
    (BOARD + 'ring = "/r"\n[board.load]\nname = "press"\nbusy-at-most = 0.5', "load: unknown key 'busy-at-most'"),
    (BOARD + "public = 1", "public = 1 cannot be used"),
    (BOARD + "pulls = 3", "unknown key 'pulls'"),
    (BOARD + '[[board.plan]]\nfile = "none.toml"', "none.toml: cannot be read"),
    (BOARD + '[[board.plan]]\nfile = "quick"\nevery = "7h"', "farm.toml:4: plan 1: every must divide a day"),
    (BOARD + BOARD, "two boards have the name 'one'"),
    (BOARD + BOARD.replace("one", "two"), "two boards have the place 'p'"),
    ('coordinator = "x y"\n' + BOARD, "coordinator = 'x y' is no address"),
    ("board = []", "there is no board"), ("", "board is missing"), ("[[board", "not TOML"),
    ('password = "x"\n' + BOARD, "unknown key 'password'"),
])
def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput) as refusal:
        read(tmp_path, text)
    assert said in str(refusal.value) and str(refusal.value).isprintable()


def test_what_the_farm_keeps_is_there_after_it_and_one_farm_writes_it(tmp_path: Path) -> None:
    state = BoardState(phase=Phase.MEASURING, since_s=5.0, reason="ü", busy=frozenset({Act.PULL}), newest="9")
    with pytest.raises(BadInput, match="no farm has run there"):
        seen(tmp_path / "state")
    kept = Kept(tmp_path / "state")
    with pytest.raises(BadInput, match="a farm is at work there"):
        Kept(tmp_path / "state")
    kept.put("one", state)
    kept.beat(Beat(7, 8.0, "all well"))
    assert seen(tmp_path / "state") == (Beat(7, 8.0, "all well"), {"one": state})
    kept.close()
    again = Kept(tmp_path / "state")
    assert again.boards() == {"one": state}
    again.close()
