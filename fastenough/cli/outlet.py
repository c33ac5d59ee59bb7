# SPDX-License-Identifier: GPL-2.0-or-later
"""Standard output that never waits for its reader: lines that the reader does not take in time are dropped.

A stopped reader of a pipe, or a paused terminal, blocks a writer without limit; here only a thread of its own waits.
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

_MOST_WAITING = 4 << 20
"""Characters that may wait for the reader: about 10,000 lines."""
_PATIENCE_S = 10.0
"""Time for the reader to take the rest at the end."""


class DroppingStream(io.TextIOBase):
    """Accepts text at once and writes it from a thread of its own.

    If too much text waits, more text is dropped; ``notice`` returns the text that replaces so many lines.  The next
    call raises what the writing raised (BrokenPipeError: the reader has gone).
    """

    def __init__(self, stream: TextIO, notice: Callable[[int], str]) -> None:
        self._stream = stream
        self._notice = notice
        self._changed = threading.Condition()
        self._texts: deque[str] = deque()
        self._waiting = 0
        self._dropped = 0
        self._fault: OSError | None = None
        stream.flush()
        self._descriptor = stream.fileno()
        threading.Thread(target=self._write_all, name="output", daemon=True).start()

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
            if self._waiting >= _MOST_WAITING:
                self._dropped += text.count("\n")
                return len(text)
            self._texts.append(self._notice(self._dropped) + text if self._dropped else text)
            self._dropped = 0
            self._waiting += len(self._texts[-1])
            self._changed.notify_all()
        return len(text)

    def _write_all(self) -> None:
        """Write to the descriptor: the lock of the stream would be held while the reader is stopped."""
        encoding, errors = self._stream.encoding, self._stream.errors or "strict"
        while self._fault is None:
            with self._changed:
                self._changed.wait_for(lambda: self._texts)
                text = self._texts[0]
            fault = _write_descriptor(self._descriptor, text.encode(encoding, errors))
            with self._changed:
                self._fault = fault
                self._waiting -= len(self._texts.popleft())
                self._changed.notify_all()

    def drain(self) -> int:
        """Wait for the reader, for a limited time; returns the number of lines that it did not take."""
        with self._changed:
            self._changed.wait_for(lambda: self._fault is not None or not self._texts, _PATIENCE_S)
            if self._fault is not None:
                raise self._fault
            return self._dropped + sum(text.count("\n") for text in self._texts)


def _write_descriptor(descriptor: int, content: bytes) -> OSError | None:
    """Write all of the content, without a time limit; returns the error, if any."""
    left = memoryview(content)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError as error:
        return error
    return None


@contextmanager
def never_waiting(stream: TextIO, notice: Callable[[int], str]) -> Iterator[TextIO]:
    """A replacement of the stream that never waits; at the end the number of dropped lines goes to standard error.

    A stream without a file descriptor never waits, and is used as it is.
    """
    try:
        stream.fileno()
    except OSError:
        yield stream
        return
    stream_of_lines = DroppingStream(stream, notice)
    try:
        yield stream_of_lines  # type: ignore[misc]
    finally:
        dropped = stream_of_lines.drain()
        if dropped:
            print(
                f"fastenough: {dropped} lines dropped: standard output was not read in time; the recording is complete",
                file=sys.stderr,
            )
