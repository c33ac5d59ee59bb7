# SPDX-License-Identifier: GPL-2.0-or-later
"""Power cycles of an outlet that cuts the power some time after its answer, or of another board."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from fastenough.board import AS_BOOTED, labgrid
from fastenough.board.labgrid import POWER_CYCLED, LabgridBoard, stoppable
from fastenough.campaign.stop import StopRequest
from fastenough.link import BoardGone
from fastenough.link.ssh import Address, parse_address
from fastenough.model import FastenoughError, NotApplicable

ADDRESS = parse_address("root@board")
OLD_S = 1000.0


@dataclass
class _Link:
    """A link to a board that has been up for this time, or that is cut meanwhile (None)."""

    uptime_s: float | None
    is_open: bool = True

    name = "ssh://root@board:22"

    def read(self, path: str) -> bytes:
        if self.uptime_s is None:
            raise BoardGone("the board is gone")
        return f"{self.uptime_s} 0\n".encode()

    def close(self) -> None:
        self.is_open = False


def _links(monkeypatch: pytest.MonkeyPatch, uptimes_s: Iterator[float | None]) -> list[_Link]:
    links: list[_Link] = []

    def open_link(address: Address, file_for: object) -> _Link:
        links.append(_Link(next(uptimes_s)))
        return links[-1]

    monkeypatch.setattr(labgrid, "open_ssh", open_link)
    monkeypatch.setattr(labgrid, "_act", lambda *_: {})
    monkeypatch.setattr(labgrid, "_RETRY_S", 0.01)
    monkeypatch.delenv(labgrid.ENVIRONMENT_SETTING, raising=False)
    return links


def _up(board: LabgridBoard, configuration: str) -> object:
    """The link to the board in this configuration."""
    with ExitStack() as stack:
        link, _ = board._up(configuration, ADDRESS, None, stack)
        stack.pop_all()
    return link


def test_a_board_that_an_outlet_cuts_later_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    links = _links(monkeypatch, iter((OLD_S, OLD_S, None, 3.0)))
    link = _up(LabgridBoard("place"), POWER_CYCLED)
    assert [opened is link for opened in links] == [opened.is_open for opened in links] == [False, False, False, True]


def test_a_board_that_stays_up_was_not_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    links = _links(monkeypatch, iter([OLD_S] * 1000))
    with pytest.raises(FastenoughError, match="did not restart it"):
        _up(LabgridBoard("place", 0.2), POWER_CYCLED)
    assert len(links) > 2 and not any(link.is_open for link in links)


def test_without_a_power_cycle_the_uptime_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    links = _links(monkeypatch, iter([OLD_S]))
    assert _up(LabgridBoard("place"), AS_BOOTED) is links[0]


def test_a_stop_ends_the_wait_for_a_board(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is requested while the board does not answer."""
    links = _links(monkeypatch, iter([None] * 10))
    stopping = StopRequest()

    def sleep(seconds: float) -> bool:
        if len(links) == 3:
            stopping.request(signal.SIGINT)
        return stopping.sleep(seconds)

    board = stoppable(LabgridBoard("place", 60.0), sleep)
    assert isinstance(board, LabgridBoard)
    with pytest.raises(KeyboardInterrupt):
        _up(board, POWER_CYCLED)
    assert len(links) == 3 and not any(link.is_open for link in links)


def test_a_stopped_board_is_not_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    acts: list[object] = []
    _links(monkeypatch, iter([]))
    monkeypatch.setattr(labgrid, "_act", lambda *words: acts.append(words))
    with pytest.raises(KeyboardInterrupt):
        _up(LabgridBoard("place", sleep=lambda seconds: True), POWER_CYCLED)
    assert acts == []


def test_the_states_of_a_stoppable_board_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def act(*words: object) -> dict[str, list[str]]:
        asked.append(words)
        return {"states": ["off"]}

    monkeypatch.setattr(labgrid, "_act", act)
    monkeypatch.setenv(labgrid.ENVIRONMENT_SETTING, "env.yaml")
    stopping = StopRequest()
    board = stoppable(LabgridBoard("place"), stopping.sleep)
    for same in (board, stoppable(board, stopping.sleep)):
        assert same.configurations() == (AS_BOOTED, "off")
    assert len(asked) == 1


def test_a_place_that_cannot_be_released_does_not_hide_the_error_of_the_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    def act(place: str, what: str) -> dict[str, object]:
        if what == "release":
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return {}

    monkeypatch.setattr(labgrid, "_act", act)
    monkeypatch.delenv(labgrid.ENVIRONMENT_SETTING, raising=False)
    with pytest.raises(NotApplicable, match="has no NetworkService"), LabgridBoard("place").boot(AS_BOOTED):
        pass
