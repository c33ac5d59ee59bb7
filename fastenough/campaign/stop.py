# SPDX-License-Identifier: GPL-2.0-or-later
"""Ending early: the first SIGINT or SIGTERM lets the probe end its recording, the second one hurries."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """Whether to end, and what to tell so."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._tell: Callable[[], None] | None = None
        self.signal = 0
        """The number of the signal that asked, 0 where it was none."""

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def sleep(self, seconds: float) -> bool:
        """Sleep, but no longer than until asked to end; whether it was asked."""
        return self._asked.wait(seconds)

    def request(self, number: int = 0) -> None:
        """Ask to end; who measures is told at once.  A second time, nothing is waited for."""
        if self.asked:
            raise KeyboardInterrupt
        self.signal = number
        self._asked.set()
        if self._tell is not None:
            self._tell()

    @contextmanager
    def telling(self, tell: Callable[[], None]) -> Iterator[None]:
        """While inside, this is called when somebody asks."""
        self._tell = tell
        try:
            yield
        finally:
            self._tell = None


@contextmanager
def stop_on_signals(stopping: StopRequest) -> Iterator[None]:
    """Turn signals into requests; outside the main thread, where Python forbids that, requests come by call.

    A signal that is ignored (nohup) stays so.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        stopping.request(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, handle) for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
