# SPDX-License-Identifier: GPL-2.0-or-later
"""The probe's lines on their way into the store: passed on as they come, with head and end completed by the bench."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Protocol

from fastenough.campaign.expand import RunSpec
from fastenough.implementations import Tally, vocabulary
from fastenough.model import FastenoughError, Outcome
from fastenough.recording import LoadProof, LoadUse, Recording
from fastenough.recording.building import (
    HeadAdditions,
    completed_end,
    completed_head,
    end_line,
    end_of_recording,
    head_line,
    line_bytes,
    unmeasured_end,
    unmeasured_head,
    with_load,
    with_settings,
)
from fastenough.recording.head import End, RecordedSetting
from fastenough.recording.lines import JsonLine
from fastenough.recording.versions import VERSIONS, line_validators, upgraded_end, upgraded_head


class StorageFailure(FastenoughError):
    """The store cannot be written, so no further run can be measured."""


class Writer(Protocol):
    """Receiver of a run's lines, usually the store's."""

    id: str

    def line(self, raw: bytes) -> None: ...

    def attach(self, name: str, content: bytes) -> None: ...

    def end(self) -> Any: ...

    def close(self) -> None: ...

    def discard(self) -> None: ...


class RunStore(Protocol):
    """The store of runs."""

    def begin(self, origin: Mapping[str, Any] | None = None) -> Writer: ...

    def runs(self, **equal: Any) -> list[Any]: ...

    def load(self, run: str) -> Recording: ...

    def settle(self) -> None: ...

    def fault(self, run_id: str) -> str | None: ...


def no_load() -> None:
    """Return None: the activity of no load."""


def no_proof() -> LoadProof:
    """Return the load proof of a run in which nothing was measured."""
    return LoadProof(None, None)


@contextmanager
def checked_line(raw: bytes) -> Iterator[None]:
    """Context in which a line of a probe is parsed; an invalid recording line raises FastenoughError."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise FastenoughError(
            f"the probe wrote an invalid recording line: {raw[:80]!r}; build probe and bench from the same version"
        ) from error


class Transcript:
    """Takes the probe's lines one by one; the first one begins the run in the store.

    The stored format version is the bench's, whatever the probe's.  ``prove``: return whether the load ran; ``used``:
    return the load's activity since the last call, for each interval.  ``revise``: return the end line in place of the
    probe's.  ``holds_end``: hold the end line back until ``write_end()``.  ``implementation``: name of the
    implementation if the probe does not know it.
    """

    def __init__(
        self,
        begin: Callable[[], Writer],
        added: HeadAdditions,
        prove: Callable[[], LoadProof],
        used: Callable[[], LoadUse | None] = no_load,
        implementation: str | None = None,
    ) -> None:
        self._begin = begin
        self._added = added
        self._prove = prove
        self._used = used
        self._by = {} if implementation is None else {"implementation": implementation}
        self.revise: Callable[[JsonLine], JsonLine] = dict
        self.holds_end = False
        self._held_end: JsonLine | None = None
        self._turn = threading.RLock()
        self._version = VERSIONS[-1]
        self._head_line: JsonLine = {}
        self._names: dict[int, str] = {}
        self.writer: Writer | None = None
        self.has_interval = False
        self.outcome: Outcome | None = None
        self.reasons: tuple[str, ...] = ()
        self.worst_ns: dict[str, int] = {}
        self.tally = Tally()

    def add_settings(self, entries: Sequence[RecordedSetting]) -> None:
        """Add settings to the head, if it is not written yet."""
        self._added = replace(self._added, settings=(*self._added.settings, *entries))

    @property
    def profile(self) -> Mapping[str, Any] | None:
        """The board's profile; None if unknown."""
        return self._added.profile

    def take(self, raw: bytes) -> str | None:
        """Pass one line on and return its type; return None for an incomplete line, left by a killed probe.

        Raises FastenoughError for a line after the end, which may be one that ``fail`` wrote meanwhile.
        """
        with self._turn:
            return self._take(raw)

    def _take(self, raw: bytes) -> str | None:
        if not raw.endswith(b"\n"):
            return None
        if self.outcome is not None:
            raise FastenoughError("the probe's output continues after its end; build probe and bench from one version")
        with checked_line(raw):
            line = json.loads(raw)
            kind = line["type"]
            if (kind == "head") != (self.writer is None):
                raise ValueError("not the next line of a recording")
            if kind == "head":
                self._version = VERSIONS[VERSIONS.index(line["version"])]
            line_validators(self._version)[kind](line)
        match kind:
            case "head":
                self._head(line)
            case "end":
                self._end(line)
            case "interval":
                self._write(self._with_load(raw))
                self._watch(line)
            case _:
                self._write(raw)
        return str(kind)

    def _head(self, head: JsonLine) -> None:
        self._head_line = upgraded_head(head) | self._by
        self._names = {entry["id"]: entry["name"] for entry in self._head_line["series"] if entry["unit"] == "ns"}
        self.writer = self._begin()
        self._write(line_bytes(completed_head(self._head_line, self.writer.id, self._added)))

    def _with_load(self, raw: bytes) -> bytes:
        """Return the interval with the load's activity, or unchanged if the board does not answer."""
        with suppress(FastenoughError, OSError):
            return with_load(raw, self._used())
        return raw

    def _watch(self, interval: JsonLine) -> None:
        self.has_interval = True
        for series in interval["series"][:1]:
            self.tally = Tally(
                self.tally.stored + series["count"],
                self.tally.lost + series["lost"],
                self.tally.missed + series["missed"],
            )
        for entry in interval["series"]:
            name = self._names.get(entry["id"])
            if name is not None and "max" in entry:
                self.worst_ns[name] = max(entry["max"], self.worst_ns.get(name, entry["max"]))

    def _end(self, end: JsonLine) -> None:
        completed = completed_end(self.revise(upgraded_end(end, self._head_line)), self._prove())
        if self.holds_end:
            self._held_end = completed
        else:
            self._write(line_bytes(completed))
        self.tally = replace(self.tally, counters=completed["counters"])
        self.outcome = Outcome(completed["outcome"])
        self.reasons = tuple(map(str, completed["reasons"]))

    def write_end(self, settings: Sequence[RecordedSetting]) -> None:
        """Write the end line that was held back, if there is one, with settings as read after the run."""
        with self._turn:
            if self._held_end is not None:
                end, self._held_end = self._held_end, None
                self._write(line_bytes(with_settings(end, settings)))

    def _write(self, raw: bytes) -> None:
        assert self.writer is not None, "the head begins the run"
        try:
            self.writer.line(raw)
        except FastenoughError as error:
            raise StorageFailure(str(error)) from error

    def make(self, spec: RunSpec, outcome: Outcome, reason: str) -> None:
        """Store a run without output of a probe: a head, and an end with the reason."""
        self.writer = self._begin()
        head = unmeasured_head(
            spec.probe, spec.implementation, vocabulary(spec.parameters), self._added, self.writer.id
        )
        self._write(line_bytes(head_line(head)))
        self._close(unmeasured_end(outcome, reason))

    def fail(self, reasons: Sequence[str], store: RunStore) -> None:
        """End a run as failed; does nothing if the run has not begun, or has its end."""
        with self._turn:
            if self.writer is not None and self.outcome is None:
                self._close(end_of_recording(store.load(self.writer.id), Outcome.FAILED, reasons))

    def _close(self, end: End) -> None:
        self._write(line_bytes(end_line(end)))
        self.outcome, self.reasons = end.outcome, end.reasons

    def seal(self) -> None:
        """End the run in the store, if one was begun."""
        if self.writer is not None:
            self.writer.end()
