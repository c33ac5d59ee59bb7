# SPDX-License-Identifier: GPL-2.0-or-later
"""A task on the board that writes a recording: started, awaited until it measures, ended, and its recording read."""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from fastenough.link import Link
from fastenough.model import BadInput, ExitStatus, FastenoughError, NotApplicable
from fastenough.recording import Event, Recording, read_recording
from fastenough.recording.reader import event_of, head_of

_HEAD_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 20.0
_POLL_S = 0.05


class Probing:
    """Use as a context: at its end the task has ended, whatever happened.

    ``head`` is there from the begin; the lines that follow are collected by a thread, so that a slow bench never
    stops the board.  Raises what the task's exit status says (BadInput, NotApplicable, else FastenoughError) with its
    own words when it ends without a head.
    """

    def __init__(self, link: Link, argv: Sequence[str], limit_s: float) -> None:
        self._name = Path(argv[0]).name
        self._process = link.raised.start(argv, limit_s=limit_s)
        self._stream = self._process.lines(_HEAD_TIMEOUT_S)
        try:
            self.lines: list[bytes] = [self._first()]
        except BaseException:
            self._process.stop()
            raise
        self.head = head_of(self.lines[0], self._name)
        self._fault: FastenoughError | None = None
        self._thread = threading.Thread(target=self._collect, name=self._name, daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the task may still have something to say."""
        return self._thread.is_alive()

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
            raise BadInput(said.removeprefix(f"{self._name}: ").partition(" (or measure all the same")[0])
        if status == ExitStatus.NOT_APPLICABLE:
            raise NotApplicable(said)
        raise FastenoughError(f"{self._name} ended with status {status}: {said}")

    def _collect(self) -> None:
        try:
            self.lines.extend(self._stream)
        except FastenoughError as error:
            self._fault = error

    def wait(self, timeout_s: float) -> None:
        """Until the task has ended by itself; raises FastenoughError when it has not, or when the board is gone."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise FastenoughError(f"{self._name} has not ended within {timeout_s:g} s")
        if self._fault is not None:
            raise self._fault

    def ended_early(self) -> FastenoughError:
        """Why it has ended although nobody asked it to."""
        try:
            status = self._process.wait(_END_TIMEOUT_S)
        except FastenoughError as error:
            return error
        said = (self._process.stderr().decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        return FastenoughError(f"the board's task ended by itself in the middle of the run, with status {status}: "
                               f"{said}")

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

    def interrupt(self) -> None:
        """Ask the task to end its recording, and wait until it has."""
        self._process.signal(signal.SIGINT)
        self.wait(_END_TIMEOUT_S)

    def recording(self) -> Recording:
        """What it recorded, checked; cut off where it was cut off."""
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            file.write(b"".join(self.lines))
            file.flush()
            return read_recording(Path(file.name))

    def __enter__(self) -> Probing:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._thread.is_alive():
            self._process.stop()
            self._thread.join(_END_TIMEOUT_S)
