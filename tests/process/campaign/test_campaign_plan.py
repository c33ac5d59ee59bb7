# SPDX-License-Identifier: GPL-2.0-or-later
"""Plans: what they expand into, and what is said of bad ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fastenough.campaign import Entry, Plan, expand, parse_duration_s, plan_sha256, read_plan
from fastenough.campaign.expand import PHASES_WITHIN_NS, phases_ns
from fastenough.campaign.plan_check import check_plan
from fastenough.implementations import Act
from fastenough.implementations.linux_user import probe_arguments
from fastenough.model import BadInput
from tests.support.cli_calls import command_line
from tests.support.processes import ROOT

pytestmark = pytest.mark.untimed

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
duration = "5s"
"""


def _written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    return path


def test_a_plan_expands_in_order(tmp_path: Path) -> None:
    plan = read_plan(_written(tmp_path, GOOD))
    specs = expand(plan)
    assert [spec.position for spec in specs] == list(range(9))
    assert [(spec.parameters["interval"], spec.load) for spec in specs[:4]] == [
        ("1ms", "none"),
        ("1ms", "cpu"),
        ("200us", "none"),
        ("200us", "cpu"),
    ]
    assert specs[0].key() | {"position": 4} == specs[4].key()
    assert (specs[8].probe, specs[8].load, specs[8].duration_s) == ("spin", "mine", 5.0)
    assert plan.settings == {"rt-throttling": -1}


def test_phases_are_runs_that_begin_later(tmp_path: Path) -> None:
    specs = expand(read_plan(_written(tmp_path, GOOD.replace("repeat = 2", "repeat = 2\nphases = 30"))))
    assert len(specs) == 2 * 30 * 4 + 1
    first = [spec.phase_ns for spec in specs[:30]]
    assert first == phases_ns(30) and len(set(first)) == 30
    assert all(phase_ns is not None and 0 < phase_ns < PHASES_WITHIN_NS for phase_ns in first)
    assert {spec.load for spec in specs[:30]} == {"none"} and specs[30].phase_ns == first[0]
    assert specs[-1].phase_ns is None and "phase_ns" not in specs[-1].key()
    assert len({spec.title for spec in specs[:30]}) == 30
    assert _hash(tmp_path, GOOD.replace("repeat", "phases")) != _hash(tmp_path, GOOD)


def test_more_phases_begin_with_those_of_fewer() -> None:
    assert phases_ns(60)[:30] == phases_ns(30)
    gaps = np.diff(sorted([0, *phases_ns(30), PHASES_WITHIN_NS]))
    assert gaps.max() < 3 * PHASES_WITHIN_NS / 30


def test_parameters_become_options(tmp_path: Path) -> None:
    spec = expand(read_plan(_written(tmp_path, GOOD)))[0]
    act = Act(spec.probe, spec.parameters, spec.duration_s)
    assert probe_arguments(act) == ["timer", "--interval=1ms", "--quiet", "--duration=2000ms", "--record=-"]


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


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "name is missing"),
        ("name = 3", "name = 3 is invalid"),
        ('name = "A b"', "lower-case"),
        ('name = "x"', "run is missing"),
        ('name = "x"\nrun = []', "has no runs"),
        ('name = "x"\nrun = [1]', "must be a table"),
        ('name = "x"\n[[run]]', "run 1: probe is missing"),
        ('name = "x"\n[[run]]\nprobe = "Timer!"', "not a valid probe name"),
        ('name = "x"\ndurations = 3\n[[run]]\nprobe = "timer"', "unknown key 'durations'"),
        ('name = "x"\n[[run]]\nprobe = "timer"\nduration = "long"', "duration: 'long'"),
        ('name = "x"\n[[run]]\nprobe = "timer"\nduration = "0s"', "longer than 0"),
        ('name = "x"\n[[run]]\nprobe = "timer"\nduration = 10', "plan.toml:4: run 1: duration = 10 has no unit"),
        ('name = "x"\nduration = 0.5\n[[run]]\nprobe = "timer"', "plan.toml:2: duration = 0.5 has no unit"),
        (
            'name = "x"\n[[load]]\nfile = "none.toml"\n[[run]]\nprobe = "timer"',
            "plan.toml:3: load 1: file = 'none.toml'",
        ),
        ('name = "x"\n[[run]]\nprobe = "timer"\nduration = true', "duration = True is invalid"),
        ('name = "x"\n[[run]]\nprobe = "timer"\nrepeat = 0', "repeat must be at least 1"),
        ('name = "x"\n[[run]]\nprobe = "timer"\nrepeat = true', "repeat = True is invalid"),
        ('name = "x"\n[[run]]\nprobe = "timer"\nloads = []', "at least one word"),
        ('name = "x"\n[[run]]\nprobe = "timer"\nloads = "cpu"', "loads = 'cpu' is invalid"),
        ('name = "x"\nloads = ["heavy"]\n[[run]]\nprobe = "timer"', "loads: unknown value 'heavy'"),
        ('name = "x"\n[settings]\nturbo = 1\n[[run]]\nprobe = "timer"', "unknown setting 'turbo'"),
        ('name = "x"\n[[run]]\nprobe = "timer"\nparameters = {"--interval" = 1}', "without its dashes"),
        ('name = "x"\n[[run]]\nprobe = "timer"\nparameters = {interval = []}', "interval must be"),
        ('name = "x"\n[[run]]\nprobe = "timer"\nparameters = {record = "x"}', "record is set by the bench"),
        ('name = "x"\n[[run]]\nprobe = "timer"\nparameters = {duration = "1s"}', "write duration next to probe"),
        ('name = "x"\n[[load]]\nname = "cpu"\ncommands = [["a"]]\n[[run]]\nprobe = "timer"', "load 1: name 'cpu'"),
        ('name = "x"\n[[load]]\nname = "m"\ncommands = ["a"]\n[[run]]\nprobe = "timer"', "list of lists"),
        ("name = ", "invalid TOML"),
        ('name = "x"\nname = "y"', "invalid TOML"),
    ],
)
def test_bad_plans_are_told_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = _written(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        read_plan(path)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_such_plan(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read .*none\.toml: No such file"):
        read_plan(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="invalid TOML"):
        read_plan(tmp_path / "binary.toml")


def test_equal_values_of_a_parameter_are_one_run(tmp_path: Path) -> None:
    for values, left in (
        ('"1ms", "1000us", "0.001s", "200us"', ["1ms", "200us"]),
        ('98, "98", 97', [98, 97]),
        ("true, 1", [True, 1]),
        ('"fifo", "rr", "fifo"', ["fifo", "rr"]),
    ):
        text = f'name = "x"\n[[run]]\nprobe = "timer"\nparameters = {{interval = [{values}]}}'
        assert [spec.parameters["interval"] for spec in expand(read_plan(_written(tmp_path, text)))] == left


_OF_SEVERAL = ("policy", "combined", "conflicts")
"""Words of refusals of several values together, each of which is valid by itself."""
RANGES = """name = "x"
duration = "1s"
[[run]]
probe = "timer"
[[run]]
probe = "timer"
[run.parameters]
interval = ["1ms", "2ms"]
{}
"""


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("priority = 100", "priority"),
        ('priority = "high"', "priority"),
        ("threads = [1, 0]", "threads"),
        ('warm-up = "25h"', "warm-up"),
        ("loops = -1", "loops"),
        ('offset = ["1ms", "11s"]', "offset"),
        ('report = "5ms"', "report"),
        ('timer-slack = "0"', "timer-slack"),
        ("affinity = 99999", "affinity"),
        ('affinity = ["0", "0-70000"]', "affinity"),
        ('housekeeping = "!99999"', "housekeeping"),
        ('policy = "deadline"\ndeadline = "5ms"', "policy"),
        ('policy = "deadline"\nruntime = "3ms"', "policy"),
        ('policy = "deadline"\ndeadline = "1ms"\nruntime = "1.1ms"', "policy"),
        ('policy = ["deadline", "fifo"]\ndeadline = "1ms"', "policy"),
        ('policy = ["fifo", "other"]\npriority = 98', "policy"),
        ('deadline = "5ms"', "policy"),
        ('warm-up = "1s"\nloops = [0, 5]', "combined"),
        ("deepest-idle-state = 0\nlatency = 0", "conflicts"),
        ('affinity = ["0", "0,foo"]', "affinity"),
        ('affinity = "1-0"', "affinity"),
        ('housekeeping = "0-"', "housekeeping"),
        ('latency = ["off", "fast"]', "latency"),
    ],
)
def test_every_entry_is_checked_before_anything_runs(tmp_path: Path, probe_binary: Path, line: str, key: str) -> None:
    plan = read_plan(_written(tmp_path, RANGES.format(line)))
    with pytest.raises(BadInput) as refused:
        check_plan(plan)
    said = str(refused.value)
    assert said.startswith(f"{tmp_path}/plan.toml:{7 if key in _OF_SEVERAL else 9}: run 2: ") and key in said
    assert "\n" not in said


@pytest.mark.parametrize(
    "line",
    [
        "priority = 99",
        'offset = "0"',
        'affinity = "!0"',
        "affinity = true",
        'policy = "deadline"\ndeadline = "1ms"',
        'policy = "deadline"\ndeadline = "5ms"\nallow-difference = true',
        'policy = ["fifo", "rr"]\npriority = 98',
        'policy = "other"\nloops = 5',
        'warm-up = "0"\nloops = 5',
        'affinity = ["0-1", "1,0", "!0-0"]',
        'latency = [50, "off"]',
        "deepest-idle-state = 0\ndefault-system = false",
    ],
)
def test_what_the_probe_takes_is_not_refused(tmp_path: Path, probe_binary: Path, line: str) -> None:
    check_plan(read_plan(_written(tmp_path, RANGES.format(line))))


@pytest.mark.slow
def test_the_second_entry_ends_a_command_too(tmp_path: Path, probe_binary: Path) -> None:
    _written(tmp_path, RANGES.format("priority = 100"))
    done = command_line("campaign", "run", "plan.toml", "--as-granted", cwd=tmp_path)
    assert done.returncode == 2 and "plan.toml:9: run 2: priority=100" in done.stderr
    assert not list(tmp_path.glob("fastenough-data/runs/*"))


def test_a_missing_file_of_a_gauge_is_told_with_its_line(tmp_path: Path, probe_binary: Path) -> None:
    text = 'name = "x"\ninstrument = "/dev/ttyACM0"\nself-test = "none.json"\n[[run]]\nprobe = "response"\n'
    with pytest.raises(BadInput) as refused:
        check_plan(read_plan(_written(tmp_path, text)))
    assert str(refused.value).startswith(f"{tmp_path}/plan.toml:3: self-test: ") and "none.json" in str(refused.value)


def test_durations() -> None:
    assert parse_duration_s("2m") == 120.0
    assert parse_duration_s(3) == 3.0
    assert parse_duration_s(0.25) == 0.25
    for wrong in ("", "3 weeks", "-1s", "0s", 0):
        with pytest.raises(BadInput):
            parse_duration_s(wrong)
