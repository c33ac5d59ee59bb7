# SPDX-License-Identifier: GPL-2.0-or-later
"""The summary of a run in ``run.json`` and in the index; the recording is authoritative.  Ids of new runs."""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fastenough.model import Outcome
from fastenough.recording.lines import parse_line

RUN_VERSION = 1
_FORMAT = "fastenough-run"
MOST_SUMMARY_BYTES = 1 << 20
INTEGERS = frozenset({"begin_wall_ns", "duration_ns", "samples", "worst_ns", "position", "positions", "bytes"})
LISTS = frozenset({"planned", "files"})
_STATES = ("running", "ended", "cut-off", "damaged")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_FILE = re.compile(r"[0-9a-f]{64} [a-z][a-z.]*\Z")


@dataclass(frozen=True)
class RunSummary:
    """``state`` is ``running``, ``ended``, ``cut-off`` (its bench died) or ``damaged`` (``reason`` says how);
    ``outcome`` is None unless ended.  ``samples``, ``worst_ns`` and ``duration_ns`` are those of the first series' name
    over all CPUs (of an import, of the first with values; of the monitor, of the longest way that was seen), None where
    the recording has no end.
    ``planned`` has the title of every run of the campaign by position, so that missing ones can be named.  ``files``:
    the attached files, each as SHA-256 and name.
    """

    id: str
    state: str
    outcome: str | None = None
    reason: str | None = None
    board: str | None = None
    configuration: str | None = None
    probe: str | None = None
    implementation: str | None = None
    load: str | None = None
    begin_wall_ns: int | None = None
    duration_ns: int | None = None
    samples: int | None = None
    worst_ns: int | None = None
    campaign: str | None = None
    plan_sha256: str | None = None
    position: int | None = None
    positions: int | None = None
    sha256: str | None = None
    bytes: int | None = None
    planned: tuple[str, ...] | None = None
    files: tuple[str, ...] | None = None

    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each attached file, by name."""
        return {name: sha256 for sha256, _, name in (line.partition(" ") for line in self.files or ())}


def damaged(run_id: str, reason: str) -> RunSummary:
    """The summary of a run whose own summary is invalid."""
    return RunSummary(run_id, "damaged", reason=reason)


def _is_fit(name: str, value: Any) -> bool:
    if value is None:
        return name not in ("id", "state")
    if name in LISTS:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if name in INTEGERS:
        return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return isinstance(value, str)


def summary_entry(summary: RunSummary) -> dict[str, object]:
    """The summary as it is stored in JSON."""
    entry = {"format": _FORMAT, "version": RUN_VERSION} | asdict(summary)
    if summary.files is None:  # which readers of before there were any do not know
        del entry["files"]
    return entry


def parse_summary(raw: bytes, run_id: str) -> RunSummary:
    """The summary of this run; raises ValueError for anything else."""
    entry = parse_line(raw)
    if not isinstance(entry, dict) or entry.pop("format", None) != _FORMAT:
        raise ValueError("it is not the summary of a run")
    if entry.pop("version", None) != RUN_VERSION:
        raise ValueError("its format version is not supported")
    if not {"id", "state"} <= set(entry) <= {field.name for field in fields(RunSummary)}:
        raise ValueError("it has missing or unknown fields")
    unfit = next((name for name, value in entry.items() if not _is_fit(name, value)), None)
    if unfit is not None:
        raise ValueError(f"its field {unfit} has an invalid value")
    if entry["id"] != run_id:
        raise ValueError(f"it is the summary of another run, {entry['id'][:80]}")
    if entry["state"] not in _STATES or entry.get("outcome") not in (None, *Outcome):
        raise ValueError("its state or outcome is invalid")
    if entry.get("sha256") is not None and not _SHA256.match(entry["sha256"]):
        raise ValueError("its sha256 is not a SHA-256")
    if not all(_FILE.match(line) for line in entry.get("files") or ()):
        raise ValueError("its list of files is invalid")
    return with_tuples(RunSummary(**entry))


def with_tuples(summary: RunSummary) -> RunSummary:
    """The same with the lists from JSON converted to tuples."""
    planned, files = (None if value is None else tuple(value) for value in (summary.planned, summary.files))
    return replace(summary, planned=planned, files=files)


_TIME_LENGTH = len("20261231T235959999Z")
_LEAST = timedelta(milliseconds=1)


def new_run_id(after: str = "") -> str:
    """A unique id that sorts by time of begin, and after the id ``after`` even if the clock was set
    back.  An ``after`` without a time is ignored."""
    begin = datetime.now(UTC)
    with suppress(ValueError, OverflowError):
        begin = max(begin, datetime.strptime(after[:_TIME_LENGTH], "%Y%m%dT%H%M%S%fZ").replace(tzinfo=UTC) + _LEAST)
    return f"{begin:%Y%m%dT%H%M%S}{begin.microsecond // 1000:03d}Z-{secrets.token_hex(3)}"
