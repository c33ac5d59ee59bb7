# SPDX-License-Identifier: GPL-2.0-or-later
"""The probe's lines on their way into the run: passed on as they come, head and end completed by the bench."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from fastenough import __version__
from fastenough.campaign.expand import RunSpec
from fastenough.implementations import Tally, vocabulary
from fastenough.model import FastenoughError, Outcome
from fastenough.recording import Recording
from fastenough.recording.writer import end_series


class NotKept(FastenoughError):
    """The store takes no more: nothing can be measured any more."""


class Writer(Protocol):
    """Where a run's lines go; the store's, as a rule."""

    id: str

    def line(self, raw: bytes) -> None: ...

    def end(self) -> Any: ...

    def close(self) -> None: ...

    def discard(self) -> None: ...


class Keeper(Protocol):
    """Where runs are kept: the store."""

    def begin(self, origin: Mapping[str, Any] | None = None) -> Writer: ...

    def runs(self, **equal: Any) -> list[Any]: ...

    def load(self, run: str) -> Recording: ...

    def settle(self) -> None: ...

    def fault(self, run_id: str) -> str | None: ...


def _instant() -> dict[str, int]:
    return {"mono_ns": time.monotonic_ns(), "wall_ns": time.time_ns()}


def raw_line(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def made_head(spec: RunSpec, added: Mapping[str, Any]) -> dict[str, Any]:
    """The head of a run in which no probe came to speak."""
    return {
        "type": "head", "format": "fastenough-recording", "version": 1,
        "tool": {"name": "fastenough", "version": __version__}, "run_id": "", "probe": spec.probe,
        "implementation": spec.implementation, "parameters": vocabulary(spec.parameters), "series": [], "settings": [],
        "cost": {}, "interval_ns": 1_000_000_000, "begin": _instant(), "marks": [],
    } | dict(added)


def made_end(outcome: Outcome, reasons: Sequence[str], recorded: Recording | None = None) -> dict[str, Any]:
    """The end of a run whose probe did not come to write one, with the totals of what it recorded."""
    at, series = _instant(), []
    if recorded is not None:
        for last in recorded.intervals[-1:]:
            at = {"mono_ns": last.end_mono_ns, "wall_ns": last.end_wall_ns}
        series = [end_series(number, total, recorded.lost(number), recorded.missed(number))
                  for number, total in recorded.totals.items()]
    return {"type": "end", "outcome": outcome.value, "reasons": list(reasons), "at": at, "series": series,
            "counters": {}, "events_dropped": 0}


def complete_head(head: dict[str, Any], run_id: str, added: Mapping[str, Any]) -> dict[str, Any]:
    """The probe's head with what only the bench knows: lists are joined, the rest is added."""
    joined = {name: [*head.get(name, []), *(entry for entry in added.get(name, []) if entry not in head.get(name, []))]
              for name in ("marks", "settings")}
    return head | dict(added) | joined | {"run_id": run_id}


def complete_end(end: dict[str, Any], proof: Mapping[str, Any]) -> dict[str, Any]:
    """The probe's end with the load's proof; a completed run whose load did not run has failed."""
    reasons = [*end["reasons"], *proof["reasons"]]
    failed = end["outcome"] == Outcome.COMPLETED and not proof["ran"]
    return end | {"load": dict(proof), "reasons": reasons,
                  "outcome": Outcome.FAILED.value if failed else end["outcome"]}


class Transcript:
    """Takes the probe's lines one by one; begins the run in the store with the first.

    ``revise``: what becomes of the end that the probe wrote.
    """

    def __init__(self, begin: Callable[[], Writer], added: Mapping[str, Any],
                 prove: Callable[[], Mapping[str, Any]]) -> None:
        self._begin = begin
        self._added = added
        self._prove = prove
        self._names: dict[int, str] = {}
        self.revise: Callable[[dict[str, Any]], dict[str, Any]] = dict
        self.writer: Writer | None = None
        self.outcome: Outcome | None = None
        self.reasons: tuple[str, ...] = ()
        self.worst_ns: dict[str, int] = {}
        self.tally = Tally()

    def take(self, raw: bytes) -> str | None:
        """Pass one line on and return its type; what is not a whole line was torn by the probe's death: None."""
        if not raw.endswith(b"\n"):
            return None
        try:
            line = json.loads(raw)
            kind = line["type"]
        except (ValueError, TypeError, KeyError) as error:
            raise FastenoughError(f"the probe wrote what is no line of a recording: {raw[:80]!r}; "
                                  "build probe and bench from one version") from error
        match kind:
            case "head":
                self._head(line)
            case "end":
                self._end(line)
            case "interval":
                self._watch(line)
                self._write(raw)
            case _:
                self._write(raw)
        return str(kind)

    def _head(self, head: dict[str, Any]) -> None:
        self._names = {entry["id"]: entry["name"] for entry in head["series"] if entry["unit"] == "ns"}
        self.writer = self._begin()
        self._write(raw_line(complete_head(head, self.writer.id, self._added)))

    def _watch(self, interval: dict[str, Any]) -> None:
        for first in interval["series"][:1]:
            self.tally = Tally(self.tally.stored + first["count"], self.tally.lost + first["lost"],
                               self.tally.missed + first["missed"])
        for entry in interval["series"]:
            name = self._names.get(entry["id"])
            if name is not None and "max" in entry:
                self.worst_ns[name] = max(entry["max"], self.worst_ns.get(name, entry["max"]))

    def _end(self, end: dict[str, Any]) -> None:
        completed = complete_end(self.revise(end), self._prove())
        self._write(raw_line(completed))
        self.outcome = Outcome(completed["outcome"])
        self.reasons = tuple(map(str, completed["reasons"]))

    def _write(self, raw: bytes) -> None:
        if self.writer is None:
            raise FastenoughError("the probe did not begin with a head; build probe and bench from one version")
        try:
            self.writer.line(raw)
        except FastenoughError as error:
            raise NotKept(str(error)) from error

    def make(self, spec: RunSpec, outcome: Outcome, reason: str) -> None:
        """Store a run in which no probe came to speak: a head and an end with the reason."""
        self.writer = self._begin()
        self._write(raw_line(made_head(spec, self._added) | {"run_id": self.writer.id}))
        self._close(made_end(outcome, [reason]))

    def fail(self, reasons: Sequence[str], recorded: Recording) -> None:
        """End a run whose probe can write no end any more."""
        self._close(made_end(Outcome.FAILED, reasons, recorded))

    def _close(self, end: Mapping[str, Any]) -> None:
        self._write(raw_line(end))
        self.outcome = Outcome(end["outcome"])
        self.reasons = tuple(end["reasons"])

    def seal(self) -> None:
        """The run is over, whatever its end says; nothing where none began."""
        if self.writer is not None:
            self.writer.end()
