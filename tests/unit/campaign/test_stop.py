# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests to stop: the first one ends a run in good order, a later one at once."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import pytest

from fastenough.campaign import stop
from fastenough.campaign.stop import StopRequest


@pytest.mark.parametrize(("after_s", "at_once"), [(0.001, False), (1.0, True)])
def test_two_signals_of_one_sender_are_one_request(
    monkeypatch: pytest.MonkeyPatch, after_s: float, at_once: bool
) -> None:
    """``timeout`` signals its command and then the group of both."""
    clock: SimpleNamespace = SimpleNamespace(now_s=50.0, monotonic=lambda: clock.now_s)
    monkeypatch.setattr(stop, "time", clock)
    notified: list[bool] = []
    stopping = StopRequest()
    with stopping.notifying(lambda: notified.append(True)):
        stopping.request(signal.SIGTERM)
        clock.now_s += after_s
        if at_once:
            with pytest.raises(KeyboardInterrupt):
                stopping.request(signal.SIGINT)
        else:
            stopping.request(signal.SIGINT)
    assert (notified, stopping.signal) == ([True], signal.SIGTERM)
