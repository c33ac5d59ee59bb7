# SPDX-License-Identifier: GPL-2.0-or-later
"""A plan with an instrument whose bench is an ordinary user with sudo: root runs the task, all else is the user's."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.link import FakeLink
from fastenough.link.guard import descendants
from fastenough.model import BadInput, Outcome
from fastenough.recording import Recording, read_recording
from fastenough.settings import Settings
from tests.process.campaign.test_campaign_instrument import PLAN
from tests.support.gauge_simulation import Build, Follower, realtime_gauge
from tests.support.ordinary_user import User, ordinary_user
from tests.support.processes import eventually, with_words

_SETTINGS = """
[settings]
control-priority = 10
"""
_BENCH = """
import sys
sys.path.insert(0, {checkout!r})
from fastenough.cli import main
from fastenough.implementations import IMPLEMENTATIONS
from tests.support.stand_in import StandIn
IMPLEMENTATIONS[StandIn.name] = StandIn()
sys.exit(main())
"""


@pytest.fixture
def sudoer(probe_binary: str) -> Iterator[User]:
    with ordinary_user(sudo=True) as made:
        yield made


@pytest.fixture
def plan(sudoer: User, gauge_build: Build) -> Iterator[str]:
    """Beside a gauge that the user may open."""
    with realtime_gauge(gauge_build, sudoer.home, before=sudoer.prefix()) as gauge:
        Follower(gauge.pins)
        (sudoer.home / "self-test.json").write_text('{"passed": true, "minimum": {"0": 0}, "maximum": {"0": 0}}')
        path = sudoer.home / "plan.toml"
        path.write_text(PLAN.format(port=gauge.port).replace("[[load]]", f"{_SETTINGS}[[load]]", 1))
        yield str(path)


def _bench(user: User, *words: str) -> subprocess.Popen[str]:
    script = _BENCH.format(checkout=str(Path(__file__).resolve().parents[3]))
    return subprocess.Popen(
        [*user.prefix(), user.python, "-c", script, "run", *words],
        cwd=user.home,
        text=True,
        env=user.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _recordings(user: User) -> list[Recording]:
    return [read_recording(path) for path in sorted(user.home.glob("fastenough-data/runs/*/recording.jsonl.zst"))]


def _in_effect(recording: Recording) -> dict[str, object]:
    return {setting.name: setting.in_effect for setting in recording.head.settings}


@pytest.mark.slow
def test_an_experiment_of_a_user_with_sudo(sudoer: User, plan: str) -> None:
    bench = _bench(sudoer, "--plan", plan)
    _, said = bench.communicate(timeout=200)
    assert bench.returncode == 0, said
    assert said.splitlines()[0] == (
        "not root: the probe and the settings run through sudo; loads run as this user, who owns all files"
    )
    recordings = _recordings(sudoer)
    assert [recording.outcome for recording in recordings] == [Outcome.COMPLETED] * 8
    outside = [recording for recording in recordings if recording.head.instrument]
    own = [recording for recording in recordings if not recording.head.instrument]
    assert len(outside) == len(own) == 4
    assert all(recording.totals[0].total > 20 for recording in outside)
    assert all(_in_effect(recording)["policy"] == "fifo" for recording in own)
    assert {_in_effect(recording)["control-priority"] for recording in recordings} == {"fifo:10:reset"}
    assert {path.lstat().st_uid for path in sudoer.home.rglob("*")} - {0} == {sudoer.uid}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_experiment_that_is_ended_leaves_nothing_of_roots(sudoer: User, plan: str, number: signal.Signals) -> None:
    bench = _bench(sudoer, "--plan", plan)
    try:
        assert eventually(
            lambda: any(
                '"interval"' in path.read_text() for path in sudoer.home.glob("fastenough-data/runs/*/recording.jsonl")
            ),
            60,
        )
        tree = descendants(bench.pid)
        assert len(tree) >= 3, "sudo, the guard and the probe"
    finally:
        bench.send_signal(number)
        _, said = bench.communicate(timeout=60)
    assert bench.returncode == (-number if number == signal.SIGKILL else 128 + number), said
    assert eventually(lambda: not set(tree) & set(with_words("fastenough")))


class _Forbidding(FakeLink):
    def write(self, path: str, content: bytes) -> None:
        raise PermissionError(13, "Permission denied", path)


def test_pins_are_set_through_sudo_though_nothing_else_needs_it(sudoer: User) -> None:
    """This machine has none, so it goes no further."""
    plain = ("policy=other", "latency=off", "mlockall", "allow-difference", "--duration", "1s")
    for probe, told in ((("response", "chip=none", "in=1", "out=2"), True), (("timer",), False)):
        ended = sudoer.call("run", *probe, *plain)
        assert ("through sudo" in ended.stderr) == told, ended.stderr


def test_pins_that_a_user_may_not_set_are_not_said_to_be_in_use(tmp_path: Path) -> None:
    chip = "/sys/class/gpio/gpiochip0"
    link = _Forbidding({f"{chip}/label": "soc\n", f"{chip}/base": "0\n", f"{chip}/ngpio": "32\n"})
    with Settings(link, tmp_path / "journal") as settings, pytest.raises(BadInput, match="as root or with sudo"):
        settings.apply("pin", "soc/17=in")
