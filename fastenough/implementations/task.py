# SPDX-License-Identifier: GPL-2.0-or-later
"""A task on the board that writes a recording: started, awaited until it measures, followed, and ended."""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fastenough.link import Link
from fastenough.model import BadInput, ExitStatus, FastenoughError, NotApplicable
from fastenough.recording import Event, Recording, read_recording
from fastenough.recording.reader import event_of, head_of

_HEAD_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 20.0
_POLL_S = 0.05
_BYTES_AT_ONCE = 64 << 20
_BYTES_PER_S = 4 << 20
"""Most bytes that a task may write at once, and in addition in each second."""
_PROBES_OWN_ADVICE = " (or measure anyway"
_BY_SIGNAL = {128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)}


class EndedBySignal(FastenoughError):
    """A signal ended the task before its first line."""


class Refused(BadInput):
    """The board or its task refuses what was requested of a run; the message of a task names the option, as in
    ``--interval``."""


def fault_at_start(name: str, status: int, stderr: bytes) -> FastenoughError:
    """The error of a task that ended before its first line: that of its exit status, with its last message."""
    message = (stderr.decode(errors="replace").strip().splitlines() or ["no error message"])[-1]
    if status == ExitStatus.BAD_INPUT:
        return Refused(message.removeprefix(f"{name}: ").partition(_PROBES_OWN_ADVICE)[0])
    if status == ExitStatus.NOT_APPLICABLE:
        return NotApplicable(message)
    error = EndedBySignal if status in _BY_SIGNAL else FastenoughError
    return error(f"{name} ended with status {status}: {message}")


class Task:
    """A context manager: the task has ended when the context ends.

    ``first_line`` is read at the start.  After ``follow()`` a separate thread passes on all further lines, so that a
    slow bench never stops the board.  Without a first line, the error is that of the exit status (Refused,
    NotApplicable, EndedBySignal, else FastenoughError), with the last line of the task's standard error.

    ``silence_s``: longest time without output, and shortest time in which a task must be able to end when asked.
    """

    def __init__(
        self, link: Link, argv: Sequence[str], limit_s: float, silence_s: float | None = _HEAD_TIMEOUT_S
    ) -> None:
        self._name = Path(argv[0]).name
        self._end_s = max(_END_TIMEOUT_S, silence_s or 0.0)
        self._process = link.raised.start(argv, limit_s=limit_s)
        self._stream = self._process.lines(silence_s)
        try:
            self.first_line = self._read_first_line()
        except BaseException:
            self._process.stop()
            raise
        self._changed = threading.Event()
        self._fault: Exception | None = None
        self._thread: threading.Thread | None = None

    def follow(self, on_line: Callable[[bytes], Any]) -> None:
        """Pass every line to ``on_line``, the first one in the caller's thread.

        An exception of ``on_line`` ends this; ``wait()`` raises it.
        """
        on_line(self.first_line)
        self._thread = threading.Thread(target=self._collect, args=(on_line,), name=self._name, daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether further lines may follow."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def pid(self) -> int:
        """The task's process on the board."""
        return self._process.pid

    def _read_first_line(self) -> bytes:
        line = next(self._stream, b"")
        if line.endswith(b"\n"):
            return line
        raise fault_at_start(self._name, self._process.wait(_END_TIMEOUT_S), self._process.stderr())

    def _collect(self, on_line: Callable[[bytes], Any]) -> None:
        begin_mono_s, received_bytes = time.monotonic(), 0
        try:
            for line in self._stream:
                received_bytes += len(line)
                if received_bytes > _BYTES_AT_ONCE + _BYTES_PER_S * (time.monotonic() - begin_mono_s):
                    raise FastenoughError(
                        f"{self._name} wrote more than any recording contains: {received_bytes >> 20} MB in "
                        f"{time.monotonic() - begin_mono_s:.0f} s; it was ended"
                    )
                on_line(line)
                self._changed.set()
        except Exception as error:
            self._fault = error
        finally:
            self._changed.set()

    def look(self, timeout_s: float) -> None:
        """Wait for another line, the end of the task, ``wake()``, or the end of the time."""
        self._changed.wait(timeout_s)
        self._changed.clear()

    def wake(self) -> None:
        """Make ``look()`` return at once."""
        self._changed.set()

    def wait(self, timeout_s: float) -> None:
        """Wait for the end of the task; raises FastenoughError after the time, or if the board is gone."""
        assert self._thread is not None, "follow() comes first"
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise FastenoughError(f"{self._name} has not ended within {timeout_s:g} s")
        if self._fault is not None:
            raise self._fault
        self._process.wait(_END_TIMEOUT_S)

    def ended_early(self) -> FastenoughError:
        """The reason why the task ended by itself; raises an exception of ``on_line`` that is no FastenoughError."""
        if isinstance(self._fault, FastenoughError):
            return self._fault
        if self._fault is not None:
            raise self._fault
        try:
            status = self._process.wait(_END_TIMEOUT_S)
        except FastenoughError as error:
            return error
        message = (self._process.stderr().decode(errors="replace").strip().splitlines() or ["no error message"])[-1]
        return FastenoughError(
            f"the board's task ended by itself in the middle of the run, with status {status}: {message}"
        )

    def interrupt(self) -> None:
        """Ask the task to end its recording, and wait for its end."""
        self.ask()
        self.wait(self._end_s)

    def ask(self) -> None:
        """Ask the task to end its recording."""
        self._process.signal(signal.SIGINT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is None or self._thread.is_alive() or self._process.running:
            self._process.stop()
        if self._thread is not None:
            self._thread.join(_END_TIMEOUT_S)


class Probing(Task):
    """A task whose recording is held in memory, so that it can be queried while it runs.

    ``head`` is read at the start.  ``silence_s``: longest time without output.
    """

    def __init__(self, link: Link, argv: Sequence[str], limit_s: float, silence_s: float = _HEAD_TIMEOUT_S) -> None:
        super().__init__(link, argv, limit_s, silence_s)
        self.lines: list[bytes] = []
        self.follow(self.lines.append)
        self.head = head_of(self.first_line, self._name)

    def first_event(self, timeout_s: float) -> Event:
        """Wait for the first event and return it; raises FastenoughError without one."""
        deadline_mono_s = time.monotonic() + timeout_s
        position = 0
        while time.monotonic() < deadline_mono_s:
            for line in self.lines[position:]:
                position += 1
                event = event_of(line, self._name)
                if event is not None:
                    return event
            time.sleep(_POLL_S)
        raise FastenoughError(f"{self._name} recorded no event within {timeout_s:g} s")

    def recording(self) -> Recording:
        """The recording so far, checked; truncated if the task is still running."""
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            file.write(b"".join(self.lines))
            file.flush()
            return read_recording(Path(file.name))
