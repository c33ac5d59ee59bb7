# SPDX-License-Identifier: GPL-2.0-or-later
"""Plans: what they expand into, and what is said of bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import ROOT

from fastenough.campaign import Entry, Plan, expand, parse_duration_s, plan_sha256, read_plan
from fastenough.implementations import Act
from fastenough.implementations.linux_user import words
from fastenough.model import BadInput

GOOD = """
name = "two-by-two"
duration = "2s"
loads = ["none", "cpu"]
[settings]
rt-throttling = -1
[[load]]
name = "mine"
commands = [["sh", "-c", "while :; do :; done"]]
[[run]]
probe = "timer"
repeat = 2
[run.parameters]
interval = ["1ms", "200us"]
quiet = true
lock = false
[[run]]
probe = "spin"
loads = ["mine"]
duration = 5
"""


def _written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    return path


def test_a_plan_expands_in_order(tmp_path: Path) -> None:
    plan = read_plan(_written(tmp_path, GOOD))
    specs = expand(plan)
    assert [spec.position for spec in specs] == list(range(9))
    assert [(spec.parameters["interval"], spec.load) for spec in specs[:4]] == \
        [("1ms", "none"), ("1ms", "cpu"), ("200us", "none"), ("200us", "cpu")]
    assert specs[0].key() | {"position": 4} == specs[4].key()
    assert (specs[8].probe, specs[8].load, specs[8].duration_s) == ("spin", "mine", 5.0)
    assert plan.settings == {"rt-throttling": -1}


def test_parameters_become_options(tmp_path: Path) -> None:
    spec = expand(read_plan(_written(tmp_path, GOOD)))[0]
    act = Act(spec.probe, spec.parameters, spec.duration_s)
    assert words(act) == ["timer", "--interval=1ms", "--quiet", "--duration=2000ms", "--record=-"]


def _hash(tmp_path: Path, text: str) -> str:
    plan = read_plan(_written(tmp_path, text))
    return plan_sha256(plan, expand(plan))


def test_equal_plans_have_equal_hashes(tmp_path: Path) -> None:
    assert _hash(tmp_path, GOOD) == _hash(tmp_path, GOOD)
    for change in (("2s", "3s"), ('"cpu"]', '"io"]'), ("-1", "950000"), ("do :;", "do true;"), ("200us", "300us")):
        assert _hash(tmp_path, GOOD.replace(*change)) != _hash(tmp_path, GOOD)


def test_a_plan_in_code() -> None:
    plan = Plan("built", (Entry("timer", ("none",), 1.0, {"interval": ("1ms",)}),))
    assert len(expand(plan)) == 1


@pytest.mark.parametrize("path", sorted((ROOT / "campaigns").glob("*.toml")), ids=lambda path: path.name)
def test_every_shipped_plan_can_be_read(path: Path) -> None:
    assert expand(read_plan(path))


@pytest.mark.parametrize(("text", "complaint"), [
    ("", "name is missing"),
    ("name = 3", "name = 3 cannot be used"),
    ('name = "A b"', "lower-case"),
    ('name = "x"', "run is missing"),
    ('name = "x"\nrun = []', "nothing to run"),
    ('name = "x"\nrun = [1]', "must be a table"),
    ('name = "x"\n[[run]]', "run 1: probe is missing"),
    ('name = "x"\n[[run]]\nprobe = "Timer!"', "no name of a probe"),
    ('name = "x"\ndurations = 3\n[[run]]\nprobe = "timer"', "unknown key 'durations'"),
    ('name = "x"\n[[run]]\nprobe = "timer"\nduration = "long"', "duration: 'long'"),
    ('name = "x"\n[[run]]\nprobe = "timer"\nduration = 0', "longer than 0"),
    ('name = "x"\n[[run]]\nprobe = "timer"\nduration = true', "duration = True cannot be used"),
    ('name = "x"\n[[run]]\nprobe = "timer"\nrepeat = 0', "repeat must be at least 1"),
    ('name = "x"\n[[run]]\nprobe = "timer"\nrepeat = true', "repeat = True cannot be used"),
    ('name = "x"\n[[run]]\nprobe = "timer"\nloads = []', "at least one word"),
    ('name = "x"\n[[run]]\nprobe = "timer"\nloads = "cpu"', "loads = 'cpu' cannot be used"),
    ('name = "x"\nloads = ["heavy"]\n[[run]]\nprobe = "timer"', "loads: 'heavy' is not known"),
    ('name = "x"\n[settings]\nturbo = 1\n[[run]]\nprobe = "timer"', "no setting is called 'turbo'"),
    ('name = "x"\n[[run]]\nprobe = "timer"\nparameters = {"--interval" = 1}', "without dashes"),
    ('name = "x"\n[[run]]\nprobe = "timer"\nparameters = {interval = []}', "interval must be"),
    ('name = "x"\n[[run]]\nprobe = "timer"\nparameters = {record = "x"}', "record is the bench's own"),
    ('name = "x"\n[[run]]\nprobe = "timer"\nparameters = {duration = "1s"}', "write duration beside probe"),
    ('name = "x"\n[[load]]\nname = "cpu"\ncommands = [["a"]]\n[[run]]\nprobe = "timer"', "load 1: name 'cpu'"),
    ('name = "x"\n[[load]]\nname = "m"\ncommands = ["a"]\n[[run]]\nprobe = "timer"', "list of lists"),
    ("name = ", "not TOML"),
    ('name = "x"\nname = "y"', "not TOML"),
])
def test_bad_plans_are_told_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = _written(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        read_plan(path)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_such_plan(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="name a plan that exists"):
        read_plan(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="not TOML"):
        read_plan(tmp_path / "binary.toml")


def test_durations() -> None:
    assert parse_duration_s("2m") == 120.0
    assert parse_duration_s(3) == 3.0
    assert parse_duration_s(0.25) == 0.25
    for wrong in ("", "3 weeks", "-1s", "0s", 0):
        with pytest.raises(BadInput):
            parse_duration_s(wrong)
