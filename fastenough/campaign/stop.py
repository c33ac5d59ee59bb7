# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests to stop: the first SIGINT or SIGTERM lets the probe end its recording, the second one does not wait."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SAME_S = 0.2
"""Signals so close together are one request: timeout(1) signals a process and then its group, which includes it."""


class StopRequest:
    """A request to stop, made by a signal or a call."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._requested_mono_s = 0.0
        self._notify: Callable[[], None] | None = None
        self.signal = 0
        """Number of the signal that requested the stop, else 0."""

    @property
    def requested(self) -> bool:
        return self._requested.is_set()

    def sleep(self, seconds: float) -> bool:
        """Sleep until the time has passed or a stop is requested; return whether it is requested."""
        return self._requested.wait(seconds)

    def request(self, number: int = 0) -> None:
        """Request the stop and notify the measurement; a later request raises KeyboardInterrupt."""
        if self.requested:
            if time.monotonic() - self._requested_mono_s > _SAME_S:
                raise KeyboardInterrupt
            return
        self._requested_mono_s = time.monotonic()
        self.signal = number
        self._requested.set()
        if self._notify is not None:
            self._notify()

    @contextmanager
    def notifying(self, notify: Callable[[], None]) -> Iterator[None]:
        """Context in which ``notify`` is called when a stop is requested."""
        self._notify = notify
        try:
            yield
        finally:
            self._notify = None


@contextmanager
def stop_on_signals(stopping: StopRequest) -> Iterator[None]:
    """Context in which signals become requests; without effect outside the main thread, where Python forbids it.

    A signal that is ignored (nohup) stays ignored.
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
