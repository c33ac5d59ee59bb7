# SPDX-License-Identifier: GPL-2.0-or-later
"""Standard output for a command that must not wait for its reader: what the reader does not take in time, it misses.

A pipe whose reader stands still (a pager, a stopped program) and a terminal that was paused take nothing more for as
long as they like, and who writes there waits.  Here a thread of its own does.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

_MOST_KEPT = 4 << 20
"""Characters that wait for the reader: some 10,000 culprits."""
_PATIENCE_S = 10.0
"""So long the reader may take for what is left when all has been said."""


class Outlet(io.TextIOBase):
    """Takes texts at once, and hands them on as the reader takes them.

    Where too much waits, the next texts are missed; ``told`` says how many lines these were, in front of the next text
    that is handed on.  Raises what the writing raised (BrokenPipeError: the reader has gone) from what is called next.
    """

    def __init__(self, stream: TextIO, told: Callable[[int], str]) -> None:
        self._stream = stream
        self._told = told
        self._changed = threading.Condition()
        self._texts: deque[str] = deque()
        self._kept = 0
        self._missed = 0
        self._fault: OSError | None = None
        stream.flush()
        self._descriptor = stream.fileno()
        threading.Thread(target=self._hand_on, name="outlet", daemon=True).start()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: str, /) -> int:
        with self._changed:
            if self._fault is not None:
                raise self._fault
            if self._kept >= _MOST_KEPT:
                self._missed += text.count("\n")
                return len(text)
            self._texts.append(self._told(self._missed) + text if self._missed else text)
            self._missed = 0
            self._kept += len(self._texts[-1])
            self._changed.notify_all()
        return len(text)

    def _hand_on(self) -> None:
        """By the descriptor alone: a lock of the stream's would be held while the reader stands still."""
        encoding, errors = self._stream.encoding, self._stream.errors or "strict"
        while self._fault is None:
            with self._changed:
                self._changed.wait_for(lambda: self._texts)
                text = self._texts[0]
            fault = _written(self._descriptor, text.encode(encoding, errors))
            with self._changed:
                self._fault = fault
                self._kept -= len(self._texts.popleft())
                self._changed.notify_all()

    def drain(self) -> int:
        """Wait for the reader, but not for ever; how many lines it did not take."""
        with self._changed:
            self._changed.wait_for(lambda: self._fault is not None or not self._texts, _PATIENCE_S)
            if self._fault is not None:
                raise self._fault
            return self._missed + sum(text.count("\n") for text in self._texts)


def _written(descriptor: int, content: bytes) -> OSError | None:
    """Wait for as long as it takes; what became of it."""
    left = memoryview(content)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError as error:
        return error
    return None


@contextmanager
def unhurried(stream: TextIO, told: Callable[[int], str]) -> Iterator[TextIO]:
    """While inside, the stream given instead never waits; at the end what was not taken is said on standard error.

    A stream that is no file of the system's never waits by itself.
    """
    try:
        stream.fileno()
    except OSError:
        yield stream
        return
    outlet = Outlet(stream, told)
    try:
        yield outlet  # type: ignore[misc]
    finally:
        missed = outlet.drain()
        if missed:
            print(
                f"fastenough: {missed} lines were not told: nobody reads standard output, though it is open; "
                "the recording has them",
                file=sys.stderr,
            )
