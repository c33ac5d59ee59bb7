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
"""So much may be written at any moment, and in each second besides."""
_PROBES_OWN_ADVICE = " (or measure anyway"
_BY_SIGNAL = {128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)}


class EndedBySignal(FastenoughError):
    """The task was ended by a signal before it had anything to say."""


class Refused(BadInput):
    """The task refused an option; the message is its own and names the option, as in ``--interval``."""


class Task:
    """Use as a context: at its end the task has ended, whatever happened.

    ``first_line`` is there from the begin; after ``follow()`` a thread of its own hands on those that follow, so that a
    slow bench never stops the board.  Raises what the task's exit status says (Refused, NotApplicable, EndedBySignal,
    else FastenoughError) with its own words when it ends without a first line.

    ``silence_s``: longest time without output, and least time that a task has to end when asked.
    """

    def __init__(
        self, link: Link, argv: Sequence[str], limit_s: float, silence_s: float | None = _HEAD_TIMEOUT_S
    ) -> None:
        self._name = Path(argv[0]).name
        self._end_s = max(_END_TIMEOUT_S, silence_s or 0.0)
        self._process = link.raised.start(argv, limit_s=limit_s)
        self._stream = self._process.lines(silence_s)
        try:
            self.first_line = self._first()
        except BaseException:
            self._process.stop()
            raise
        self._changed = threading.Event()
        self._fault: FastenoughError | None = None
        self._thread: threading.Thread | None = None

    def follow(self, take: Callable[[bytes], Any]) -> None:
        """Hand on every line from now on, the first one in the caller's own thread.

        What ``take`` raises then ends the handing on, and is raised by ``wait()``.
        """
        take(self.first_line)
        self._thread = threading.Thread(target=self._collect, args=(take,), name=self._name, daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the task may still have something to say."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def pid(self) -> int:
        """The task's process on the board."""
        return self._process.pid

    def _first(self) -> bytes:
        first = next(self._stream, b"")
        if first.endswith(b"\n"):
            return first
        status = self._process.wait(_END_TIMEOUT_S)
        said = (self._process.stderr().decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        if status == ExitStatus.BAD_INPUT:
            raise Refused(said.removeprefix(f"{self._name}: ").partition(_PROBES_OWN_ADVICE)[0])
        if status == ExitStatus.NOT_APPLICABLE:
            raise NotApplicable(said)
        kind = EndedBySignal if status in _BY_SIGNAL else FastenoughError
        raise kind(f"{self._name} ended with status {status}: {said}")

    def _collect(self, take: Callable[[bytes], Any]) -> None:
        begun_s, taken = time.monotonic(), 0
        try:
            for line in self._stream:
                taken += len(line)
                if taken > _BYTES_AT_ONCE + _BYTES_PER_S * (time.monotonic() - begun_s):
                    raise FastenoughError(
                        f"{self._name} writes more than any recording holds: {taken >> 20} MB in "
                        f"{time.monotonic() - begun_s:.0f} s; it is ended"
                    )
                take(line)
                self._changed.set()
        except FastenoughError as error:
            self._fault = error
        finally:
            self._changed.set()

    def look(self, timeout_s: float) -> None:
        """Until another line has come, the task has ended, ``wake()`` is called, or the time is over."""
        self._changed.wait(timeout_s)
        self._changed.clear()

    def wake(self) -> None:
        """Let ``look()`` return at once."""
        self._changed.set()

    def wait(self, timeout_s: float) -> None:
        """Until the task has ended by itself; raises FastenoughError when it has not, or when the board is gone."""
        assert self._thread is not None, "follow() comes first"
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise FastenoughError(f"{self._name} has not ended within {timeout_s:g} s")
        if self._fault is not None:
            raise self._fault
        self._process.wait(_END_TIMEOUT_S)

    def ended_early(self) -> FastenoughError:
        """The reason why the task ended by itself."""
        if self._fault is not None:
            return self._fault
        try:
            status = self._process.wait(_END_TIMEOUT_S)
        except FastenoughError as error:
            return error
        said = (self._process.stderr().decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        return FastenoughError(
            f"the board's task ended by itself in the middle of the run, with status {status}: {said}"
        )

    def interrupt(self) -> None:
        """Ask the task to end its recording, and wait until it has."""
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

    ``head`` is there from the begin.  ``silence_s``: longest time without output.
    """

    def __init__(self, link: Link, argv: Sequence[str], limit_s: float, silence_s: float = _HEAD_TIMEOUT_S) -> None:
        super().__init__(link, argv, limit_s, silence_s)
        self.lines: list[bytes] = []
        self.follow(self.lines.append)
        self.head = head_of(self.first_line, self._name)

    def first_event(self, timeout_s: float) -> Event:
        """The first event, once it has come; raises FastenoughError when none does."""
        deadline = time.monotonic() + timeout_s
        seen = 0
        while time.monotonic() < deadline:
            for raw in self.lines[seen:]:
                seen += 1
                event = event_of(raw, self._name)
                if event is not None:
                    return event
            time.sleep(_POLL_S)
        raise FastenoughError(f"{self._name} recorded no event within {timeout_s:g} s")

    def recording(self) -> Recording:
        """What it recorded, checked; cut off where it was cut off."""
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            file.write(b"".join(self.lines))
            file.flush()
            return read_recording(Path(file.name))
