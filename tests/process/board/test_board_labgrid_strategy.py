# SPDX-License-Identifier: GPL-2.0-or-later
"""Configurations of a labgrid board are its strategy's states: a power script, and a shell process as boot loader."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fastenough.board import AS_BOOTED, open_board
from fastenough.board.labgrid import COORDINATOR_SETTING, ENVIRONMENT_SETTING, POWER_CYCLED
from fastenough.campaign import Progress, read_plan, run_campaign
from fastenough.link import BoardGone
from fastenough.model import BadInput, FastenoughError, NotApplicable, Outcome
from fastenough.store import Store
from tests.support.labgrid_lab import Lab, client, free_port, holder, refused, reserved
from tests.support.processes import ROOT, eventually, with_words

pytestmark = [pytest.mark.machines, pytest.mark.usefixtures("at_lab")]
_STRATEGIES = Path(__file__).parents[2] / "support/labgrid_strategies.py"
_ENVIRONMENT = """targets:
  rack-3:
    resources:
      RemotePlace:
        name: board
    drivers:
      ExternalPowerDriver:
        cmd_on: sh -c 'echo on >>{place}/power'
        cmd_off: sh -c 'echo off >>{place}/power; rm -f {place}/booted'
      {console}
      {strategy}: {{}}
imports:
- {strategies}
"""
_SHELL = "ExternalConsoleDriver: {{cmd: 'sh {place}/loader'}}"
_LOADER = """printf 'boot> '
read kernel
test "$kernel" = burnt && { echo 'no image'; read rest; }
echo "$kernel" >"${0%/*}/booted"
echo "$kernel is up"
read rest
"""
_STATES = ("off", "stock", "rt", "burnt", "stuck")
_PLAN = """name = "both"
board = "labgrid:board"
configurations = ["stock", "rt"]
duration = "1s"
[[run]]
probe = "timer"
repeat = 2
parameters = { interval = "5ms" }
"""

Environment = Callable[..., Path]


@pytest.fixture(autouse=True)
def running(monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    """The kernel that every board states; its preemption model is unknown until a test states one."""
    kernel: dict[str, str | None] = {"release": "6.1.0", "preemption": None}
    monkeypatch.setattr("fastenough.board.labgrid.kernel_profile", lambda link: {"kernel": kernel})
    return kernel


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """Makes an environment for the place, and labgrid use it."""

    def made(strategy: str, console: str = _SHELL) -> Path:
        (tmp_path / "loader").write_text(_LOADER)
        path = tmp_path / "env.yaml"
        path.write_text(
            _ENVIRONMENT.format(
                place=tmp_path, strategy=strategy, strategies=_STRATEGIES, console=console.format(place=tmp_path)
            )
        )
        monkeypatch.setenv(ENVIRONMENT_SETTING, str(path))
        return path

    return made


def _switched(environment: Path) -> list[str]:
    """What the power switch was told."""
    power = environment.with_name("power")
    return power.read_text().split() if power.exists() else []


def _bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fastenough", "run", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def _one_line(said: str) -> str:
    (line,) = [line for line in said.splitlines() if line.startswith("fastenough: ")]
    assert line.isprintable()
    return line


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "states"), [("BootStrategy", _STATES), ("BootGraph", ("off", "rt"))])
def test_configurations_are_the_states_and_asking_switches_nothing(
    environment: Environment, kind: str, states: tuple[str, ...]
) -> None:
    path = environment(kind)
    assert open_board("labgrid:board").configurations() == (AS_BOOTED, *states)
    assert _switched(path) == []


def test_without_a_strategy_there_is_the_power_switch(environment: Environment) -> None:
    environment("ExternalConsoleDriver", "NetworkPowerDriver: {{}}")
    assert open_board("labgrid:board").configurations() == (AS_BOOTED, POWER_CYCLED)
    environment("BootStrategy")
    assert open_board("labgrid:other").configurations() == (AS_BOOTED, POWER_CYCLED)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["BootStrategy", "BootGraph"])
def test_a_configuration_is_reached_through_the_strategy(lab: Lab, environment: Environment, kind: str) -> None:
    path = environment(kind)
    with open_board("labgrid:board").boot("rt") as booted:
        assert booted.link.run(["cat", str(path.with_name("booted"))]).text == "rt\n"
        assert booted.configuration.name == "rt"
        assert "None" not in holder(lab)
    assert _switched(path) == ["off", "on"]
    assert "None" in holder(lab)
    assert with_words(str(path.with_name("loader"))) == []


@pytest.mark.slow
def test_a_state_whose_name_contradicts_the_kernel_is_refused(
    environment: Environment, running: dict[str, str | None]
) -> None:
    environment("BootStrategy")
    running["preemption"] = "none"
    refused(FastenoughError, "the name means a kernel with PREEMPT_RT", configuration="rt")


def test_as_booted_leaves_the_strategy_alone(environment: Environment) -> None:
    path = environment("BootStrategy")
    with open_board("labgrid:board").boot(AS_BOOTED) as booted:
        assert booted.link.run(["true"]).status == 0
    assert _switched(path) == []


def test_a_plan_boots_each_configuration_once_and_measures_in_it(environment: Environment, tmp_path: Path) -> None:
    path = environment("BootStrategy")
    (tmp_path / "plan.toml").write_text(_PLAN)
    seen: set[tuple[str, str]] = set()

    def look(progress: Progress) -> None:
        if progress.phase == "measuring":
            seen.add((progress.spec.configuration, path.with_name("booted").read_text().strip()))

    store = Store(tmp_path / "store")
    campaign = run_campaign(read_plan(tmp_path / "plan.toml"), store, look)
    recordings = [store.load(run) for run in campaign.runs]
    assert [recording.outcome for recording in recordings] == [Outcome.COMPLETED] * 4
    named = [recording.head.configuration for recording in recordings]
    assert [each and each.name for each in named] == ["stock", "stock", "rt", "rt"]
    assert seen == {("stock", "stock"), ("rt", "rt")}
    assert _switched(path) == ["off", "on", "off", "on"]


@pytest.mark.slow
def test_the_console_is_the_strategys_until_it_is_up(lab: Lab, environment: Environment) -> None:
    path = environment("BootStrategy", "SerialDriver: {{}}")
    readers = []

    def answer() -> None:
        lab.wire.say(b"boot> ")
        readers.append(len(lab.wire.listeners))
        time.sleep(1.0)
        lab.wire.say(b"stock is up\r\n")

    with lab.wire.meanwhile(answer), open_board("labgrid:board").boot("stock") as booted:
        assert booted.last_words() == []
        assert eventually(lambda: len(lab.wire.listeners) == 1)
    assert readers == [1]
    assert _switched(path) == ["off", "on"]


@pytest.mark.slow
def test_a_strategy_that_fails_says_why(lab: Lab, environment: Environment, tmp_path: Path) -> None:
    path = environment("BootStrategy")
    ended = _bench("timer", "--board", "labgrid:board", "--configuration", "burnt", "--store", str(tmp_path / "store"))
    assert ended.returncode == 4, ended.stderr
    (run,) = Store(tmp_path / "store").runs()
    end = Store(tmp_path / "store").load(run.id).end
    assert end is not None
    assert run.outcome == Outcome.FAILED
    (reason,) = end.reasons
    assert reason.startswith("labgrid:board: transition burnt failed: TIMEOUT: ")
    assert reason.isprintable()
    assert _switched(path) == ["off", "on"]
    assert "None" in holder(lab)


@pytest.mark.slow
def test_a_strategy_that_hangs_is_given_up(lab: Lab, environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    path = environment("BootStrategy")
    monkeypatch.setattr("fastenough.board.labgrid._TRANSITION_S", 12.0)
    refused(BoardGone, "transition stuck has not ended within 12 s", configuration="stuck")
    assert "None" in holder(lab)
    assert with_words("labgrid_act.py", "stuck") == with_words(str(path.with_name("loader"))) == []


def _start_bench(configuration: str, store: Path) -> subprocess.Popen[bytes]:
    """Start a run of the board in this configuration."""
    words = ("timer", "--board", "labgrid:board", "--configuration", configuration, "--store", str(store))
    return subprocess.Popen([sys.executable, "-m", "fastenough", "run", *words], cwd=ROOT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_a_transition_and_the_campaign(
    number: signal.Signals, lab: Lab, environment: Environment, tmp_path: Path
) -> None:
    environment("BootStrategy")
    bench = _start_bench("stuck", tmp_path / "store")
    try:
        assert eventually(lambda: bool(with_words("labgrid_act.py", "stuck")), 60)
        bench.send_signal(number)
        assert bench.wait(60) == 128 + number
    finally:
        bench.kill()
        bench.wait()
    assert eventually(lambda: with_words("labgrid_act.py", "stuck") == [], 4)
    assert "None" in holder(lab)
    assert not Store(tmp_path / "store").runs()


def test_a_transition_ends_with_a_killed_bench(lab: Lab, environment: Environment, tmp_path: Path) -> None:
    """The place stays acquired, as by any client of labgrid's that is killed, for its user to release or use again."""
    path = environment("BootStrategy")
    bench = _start_bench("burnt", tmp_path / "store")
    loader = str(path.with_name("loader"))
    try:
        assert eventually(lambda: bool(with_words("labgrid_act.py", "burnt")) and bool(with_words(loader)), 60)
    finally:
        bench.kill()
        bench.wait()
    assert eventually(lambda: with_words("labgrid_act.py", "burnt") == with_words(loader) == [], 4)
    client(lab.coordinator, "-p", "board", "release")


def test_a_board_of_somebody_else_is_not_switched(
    lab: Lab, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = environment("BootStrategy")
    with reserved(lab, monkeypatch):
        refused(NotApplicable, "in use by .*/somebody", configuration="rt")
    assert _switched(path) == []


def test_a_state_that_there_is_not_is_refused(environment: Environment, tmp_path: Path) -> None:
    path = environment("BootStrategy")
    ended = _bench("timer", "--board", "labgrid:board", "--configuration", "xenomai", "--store", str(tmp_path))
    assert ended.returncode == 2, ended.stderr
    assert _one_line(ended.stderr).endswith(
        f"board labgrid:board has no configuration 'xenomai'; use one of as-booted, {', '.join(_STATES)}"
    )
    (tmp_path / "plan.toml").write_text(_PLAN.replace('"rt"', '"unknown"'))
    with pytest.raises(BadInput, match=r"plan\.toml:3: configurations: .* no configuration 'unknown'"):
        read_plan(tmp_path / "plan.toml")
    assert _switched(path) == []


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"targets:": "targets: : ["}, "Error in configuration file"),
        ({"BootStrategy": "LostStrategy"}, "unknown driver LostStrategy; list the file that defines it under imports"),
        (
            {"BootStrategy: {}": "BootStrategy: {}\n      BootGraph: {}"},
            "the target rack-3 has 2 strategies; keep only one",
        ),
        ({"BootStrategy": "MuteStrategy"}, "MuteStrategy does not declare its states"),
        ({str(_STRATEGIES): "lost.py"}, "FileNotFoundError.*lost.py"),
        ({"rack-3": "rack-3: !template $LG_LOST\n  rack-4"}, "unknown variable 'LG_LOST'"),
    ],
    ids=["yaml", "driver", "two", "mute", "import", "template"],
)
def test_an_environment_that_cannot_be_used_is_bad_input(
    environment: Environment, broken: dict[str, str], said: str
) -> None:
    path = environment("BootStrategy")
    text = path.read_text()
    for old, new in broken.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    told = refused(BadInput, said, configuration="rt")
    assert f"LG_ENV={path}: " in told


def test_an_environment_that_is_not_there_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_SETTING, str(tmp_path / "lost.yaml"))
    ended = _bench("timer", "--board", "labgrid:board", "--store", str(tmp_path / "store"))
    assert ended.returncode == 2, ended.stderr
    assert "lost.yaml' could not be found" in _one_line(ended.stderr)


def test_the_coordinator_of_the_environment_is_the_one_asked(
    lab: Lab, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = environment("BootStrategy")
    path.write_text(f"options: {{coordinator_address: '{lab.coordinator}'}}\n{path.read_text()}")
    monkeypatch.setenv(COORDINATOR_SETTING, f"127.0.0.1:{free_port()}")
    with open_board("labgrid:board").boot("stock") as booted:
        assert booted.configuration.name == "stock"


def test_an_address_of_the_environment_is_used(environment: Environment) -> None:
    path = environment("BootStrategy")
    service = "NetworkService: {address: board, username: root}"
    path.write_text(path.read_text().replace("name: board\n", f"name: bare\n      {service}\n"))
    with open_board("labgrid:bare").boot("stock") as booted:
        assert booted.link.run(["cat", str(path.with_name("booted"))]).text == "stock\n"


def test_a_driver_that_ends_its_process_is_said(environment: Environment) -> None:
    path = environment("BootStrategy")
    extra = path.with_name("extra.py")
    extra.write_text("import os\nprint('{}')\nos.write(2, b'out of memory\\n')\nos._exit(9)\n")
    path.write_text(f"{path.read_text()}- {extra}\n")
    with pytest.raises(FastenoughError, match="labgrid:board: states failed: out of memory"):
        open_board("labgrid:board").configurations()
