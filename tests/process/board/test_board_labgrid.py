# SPDX-License-Identifier: GPL-2.0-or-later
"""A board that labgrid switches: a real coordinator and exporter on loopback, a power switch that speaks HTTP."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from fastenough.board import AS_BOOTED, open_board
from fastenough.board.labgrid import COORDINATOR_SETTING, POWER_CYCLED, LabgridBoard
from fastenough.link import BoardGone
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.settings import BoardBusy, Settings
from tests.support.labgrid_lab import Lab, client, free_port, holder, refused, reserved
from tests.support.processes import eventually, with_words
from tests.support.ssh_boards import Server

pytestmark = [pytest.mark.machines, pytest.mark.usefixtures("at_lab")]


@pytest.mark.slow
def test_a_place_is_held_switched_reached_and_let_go(server: Server, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastenough.board.labgrid._uptime_s", lambda link: 1.0)
    lab.switch.said.clear()
    with open_board("labgrid:board").boot(POWER_CYCLED) as booted:
        assert booted.link.run([booted.probe, "--version"]).status == 0
        assert "None" not in holder(lab)
        assert booted.configuration.name == POWER_CYCLED
    assert lab.switch.said == [("/relay/0/value", b"0"), ("/relay/0/value", b"1")]
    assert "None" in holder(lab)
    assert eventually(lambda: not server.processes())


def test_a_board_that_was_not_restarted_is_not_power_cycled(lab: Lab) -> None:
    """The switch is not that of the board: this machine stays up."""
    with pytest.raises(FastenoughError, match="did not restart it"), LabgridBoard("board", 3.0).boot(POWER_CYCLED):
        pass
    assert "None" in holder(lab)


def test_a_board_that_another_bench_measures_is_neither_switched_nor_released(lab: Lab) -> None:
    board = open_board("labgrid:board")
    with board.boot(AS_BOOTED) as booted, Settings(booted.link):
        lab.switch.said.clear()
        refused(BoardBusy, "another fastenough is measuring", configuration=POWER_CYCLED)
        with board.boot(AS_BOOTED) as again, pytest.raises(BoardBusy), Settings(again.link):
            pass
        assert lab.switch.said == []
        assert "None" not in holder(lab)
    assert "None" in holder(lab)


def test_as_booted_switches_nothing(lab: Lab) -> None:
    lab.switch.said.clear()
    with open_board("labgrid:board").boot(AS_BOOTED) as booted:
        assert booted.link.run(["true"]).status == 0
    assert lab.switch.said == []


def test_a_place_that_somebody_has_is_reserved(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with reserved(lab, monkeypatch):
        refused(NotApplicable, "in use by .*/somebody")


@pytest.mark.slow
def test_what_a_killed_bench_held_is_taken_over(lab: Lab) -> None:
    client(lab.coordinator, "-p", "board", "acquire")
    with open_board("labgrid:board").boot(AS_BOOTED) as booted:
        assert booted.link.run(["true"]).status == 0
    assert "None" in holder(lab)


@pytest.mark.slow
def test_a_switch_that_never_answers_is_given_up(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastenough.board.labgrid._act.__defaults__", (8.0,))
    lab.switch.stuck.set()
    try:
        begin = time.monotonic()
        refused(BoardGone, "cycle has not ended within 8 s", configuration=POWER_CYCLED)
        assert time.monotonic() - begin < 60
    finally:
        lab.switch.stuck.clear()
    assert "None" in holder(lab)


def test_a_signal_does_not_leave_a_board_without_power(lab: Lab) -> None:
    """The power cycle ends first, and then the boot."""
    stopping = threading.Event()
    lab.switch.said.clear()
    lab.switch.stuck.set()

    def stop() -> None:
        assert eventually(lambda: bool(with_words("labgrid_act.py", "cycle")), 60)
        stopping.set()
        time.sleep(1.0)
        lab.switch.stuck.clear()

    stopper = threading.Thread(target=stop, daemon=True)
    stopper.start()
    with pytest.raises(KeyboardInterrupt), LabgridBoard("board", sleep=stopping.wait).boot(POWER_CYCLED):
        pass
    stopper.join(60)
    assert lab.switch.said == [("/relay/0/value", b"0"), ("/relay/0/value", b"1")]
    assert "None" in holder(lab)


@pytest.mark.parametrize(
    ("name", "said"), [("labgrid:nowhere", "no such place"), ("labgrid:bare", "has no NetworkService")]
)
def test_a_place_that_cannot_be_reached_says_why(name: str, said: str) -> None:
    refused(NotApplicable, said, name)


@pytest.mark.parametrize("name", ["labgrid:-p", "labgrid:a b", "labgrid:a\nb", "labgrid:../x"])
def test_names_that_are_no_places_arerefused(name: str) -> None:
    with pytest.raises(BadInput, match="is not a valid labgrid place") as refusal:
        open_board(name)
    assert str(refusal.value).isprintable()


def test_a_coordinator_that_is_away_or_silent_is_said(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COORDINATOR_SETTING, f"127.0.0.1:{free_port()}")
    refused(NotApplicable, "labgrid:board: acquire failed: .*(refused|[Cc]onnect|UNAVAILABLE|unavailable)")


@pytest.mark.slow
def test_an_exporter_that_hangs_does_not_hang_us(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Last: the coordinator drops an exporter that does not answer, which then ends.

    Where that comes before the request of a slow client, the place has no resources left.
    """
    monkeypatch.setattr("fastenough.board.labgrid._act.__defaults__", (15.0,))
    os.kill(lab.exporter.pid, signal.SIGSTOP)
    begin = time.monotonic()
    refused((NotApplicable, BoardGone), r"labgrid:board(: acquire| has no NetworkService)")
    assert time.monotonic() - begin < 60
