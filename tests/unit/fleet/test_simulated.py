# SPDX-License-Identifier: GPL-2.0-or-later
"""When a simulated board publishes again what no taker has confirmed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fastenough.fleet.chunk import Stored
from fastenough.fleet.simulated import MOST_PATIENCE_S, Publishing, SimulatedBoard


def times_s(publishing: Publishing, clock: list[float], until_s: float) -> list[float]:
    """When it publishes its single interval, looked at every second."""
    found = []
    while clock[0] < until_s:
        if publishing.next_chunk(ended=1) is not None:
            found.append(clock[0])
        clock[0] += 1.0
    return found


def test_the_pause_between_repetitions_doubles_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("fastenough.fleet.simulated.time.monotonic", lambda: clock[0])
    publishing = Publishing(SimulatedBoard(1, 300.0, 0.0, 0.0))
    pauses_s = [after - before for before, after in pairwise(times_s(publishing, clock, 5000.0))]
    assert [pause_s // 20 for pause_s in pauses_s[:5]] == [1, 2, 4, 8, 16]
    assert all(0 <= pause_s - MOST_PATIENCE_S <= 1 for pause_s in pauses_s[4:])
    assert len(pauses_s) > 8


def test_an_answer_makes_it_quick_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("fastenough.fleet.simulated.time.monotonic", lambda: clock[0])
    board = SimulatedBoard(1, 300.0, 0.0, 0.0)
    publishing = Publishing(board)
    assert len(times_s(publishing, clock, 1400.0)) == 5
    publishing.answer(Stored(board.run, 1).packed())
    assert publishing.next_chunk(ended=1) is None
    assert publishing.next_chunk(ended=2) is not None
    clock[0] += 21.0
    assert publishing.next_chunk(ended=2) is not None


def test_answers_to_repetitions_cause_no_further_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takers that are behind answer each repetition, and confirm nothing new for a long time."""
    clock = [1000.0]
    monkeypatch.setattr("fastenough.fleet.simulated.time.monotonic", lambda: clock[0])
    board = SimulatedBoard(1, 300.0, 0.0, 0.0)
    publishing, published = Publishing(board), 0
    while clock[0] < 1600.0:
        published += publishing.next_chunk(ended=2) is not None
        publishing.answer(Stored(board.run, 0).packed())
        clock[0] += 1.0
    assert 3 <= published <= 10
    publishing.answer(Stored(board.run, 2).packed())
    assert publishing.next_chunk(ended=2) is None
