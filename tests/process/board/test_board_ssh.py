# SPDX-License-Identifier: GPL-2.0-or-later
"""Measuring a board that has nothing of ours: facts, runs and loads over ssh, and a run whose board goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fastenough.board import AS_BOOTED, open_board
from fastenough.facts import FACTS, collect
from fastenough.link import LocalLink
from fastenough.link.agent import AgentLink
from fastenough.loads import RunningLoad, find_load
from fastenough.model import Outcome
from fastenough.store import Store
from tests.support.ordinary_user import ordinary_user
from tests.support.processes import eventually, with_words
from tests.support.ssh_boards import NAME, Server, ssh_server
from tests.support.tools import require

pytestmark = [pytest.mark.machines, pytest.mark.usefixtures("at_server")]
_CHANGING = {"absent", *(fact.name for fact in FACTS if fact.volatile)}
"""Facts that are not the same twice."""


def _bench(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fastenough", "run", *words, "--board", NAME],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_the_facts_of_a_board_are_those_it_has(server: Server, lasting_facts: None) -> None:
    with open_board(NAME).boot(AS_BOOTED) as booted:
        begin = time.monotonic()
        far = collect(booted.link)
        took_s = time.monotonic() - begin
        near = collect(LocalLink())
        assert booted.configuration.kernel_release == os.uname().release
    differing = {name for name in near if near[name] != far[name]}
    assert far.keys() == near.keys()
    assert differing <= _CHANGING, {name: (near[name], far[name]) for name in differing - _CHANGING}
    assert took_s < 60
    assert eventually(lambda: not server.processes())


def test_a_run_on_a_board_behind_ssh(server: Server, tmp_path: Path) -> None:
    bench = _bench("timer", "interval=5ms", "--duration", "2s", "--store", str(tmp_path))
    _, said = bench.communicate(timeout=120)
    assert bench.returncode == 0, said
    (run,) = Store(tmp_path).runs()
    assert run.outcome == Outcome.COMPLETED
    assert run.board == os.uname().nodename, "the machine itself, reached another way"
    assert server.processes() == []


def test_a_run_as_an_ordinary_user_who_may_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe has root's rights there, the session has not."""
    with ordinary_user(sudo=True) as user, ssh_server(user=user.name, prefix=user.prefix()) as other:
        for name, value in other.environment().items():
            monkeypatch.setenv(name, value)
        bench = _bench("timer", "interval=5ms", "--duration", "1s", "--store", str(tmp_path))
        _, said = bench.communicate(timeout=120)
        assert bench.returncode == 0, said
        (run,) = Store(tmp_path).runs()
        assert run.outcome == Outcome.COMPLETED
        assert eventually(lambda: not other.processes())


@pytest.mark.slow
def test_a_load_on_a_board_behind_ssh_is_proven_and_gone(server: Server) -> None:
    require("stress-ng")
    with open_board(NAME).boot(AS_BOOTED) as booted:
        with RunningLoad(booted.link, find_load("cpu"), 1, 30) as running:
            time.sleep(1.0)
            running.begin()
            time.sleep(3.0)
            proof = running.proof()
            assert with_words("stress-ng")
        assert (proof.cpu_time_s or 0) > 0
        assert (proof.processes or 0) >= 1
        assert isinstance(booted.link, AgentLink)
        assert server.processes() == [booted.link.agent_pid]
    assert eventually(lambda: not server.processes())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill-session", "stop-agent"])
def test_a_run_whose_board_goes_says_why(server: Server, tmp_path: Path, how: str) -> None:
    bench = _bench("timer", "interval=5ms", "--duration", "600s", "--store", str(tmp_path))
    assert eventually(lambda: any(b"--record" in _command_line(pid) for pid in server.processes()), 60)
    (agent,) = [pid for pid in server.processes() if _parent(pid) not in server.processes()]
    time.sleep(2.0)
    if how == "stop-agent":
        os.kill(agent, signal.SIGSTOP)
    else:
        os.kill(_parent(agent), signal.SIGKILL)
    begin = time.monotonic()
    _, said = bench.communicate(timeout=120)
    assert time.monotonic() - begin < 60
    assert bench.returncode == 4, said
    assert f"{NAME} is gone" in said
    if how == "stop-agent":
        os.kill(agent, signal.SIGCONT)
    assert eventually(lambda: not server.processes())


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
