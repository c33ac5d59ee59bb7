# SPDX-License-Identifier: GPL-2.0-or-later
"""The store: a directory of immutable runs, and an index that can always be made again from them."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastenough.model import BadInput, FastenoughError
from fastenough.recording import Recording, read_recording
from fastenough.store.directory import (
    RunSummary,
    RunWriter,
    check,
    mendable,
    read_summary,
    recording_path,
    settle,
)
from fastenough.store.index import Index

__all__ = ["INDEX_SETTING", "RunSummary", "RunWriter", "Store", "new_run_id"]

INDEX_SETTING = "FASTENOUGH_INDEX"
"""Environment variable that names another database for the index, such as one shared by several benches."""
_SETTLED = {"ended", "cut-off"}


def new_run_id() -> str:
    """Sorts by time of begin, and is unique without asking anybody."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}Z-{secrets.token_hex(3)}"


class StoreWriter(RunWriter):
    """A run being recorded, which the index learns of when it ends."""

    def __init__(self, directory: Path, summary: RunSummary, index: Index) -> None:
        super().__init__(directory, summary)
        self._index = index
        try:
            index.put([summary])
        except FastenoughError:
            self.discard()
            raise

    def end(self) -> RunSummary:
        ended = super().end()
        self._index.put([ended])
        return ended


class Store:
    """Runs below ``path``; made when it does not exist.  A store that may only be read can be read."""

    def __init__(self, path: Path, index_url: str | None = None) -> None:
        self.path = path.absolute()
        self._runs = self.path / "runs"
        try:
            self._runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"{path}: no store can be made there: {error.strerror}; name a directory "
                           "you may write") from error
        self._index_url = index_url or os.environ.get(INDEX_SETTING) or self._own_index()
        self._index = self._open_index()
        self._refresh()

    def _own_index(self) -> str:
        return f"sqlite:///{self.path}/index.sqlite" if os.access(self.path, os.W_OK) else "sqlite://"

    def _open_index(self) -> Index:
        return Index(self._index_url, f"{socket.gethostname()}:{self.path}")

    def _directories(self) -> Iterator[Path]:
        return (entry for entry in sorted(self._runs.iterdir()) if entry.is_dir())

    def _refresh(self) -> None:
        """Let the index follow the directories: new ones, running ones, and those that are gone."""
        known = self._index.states()
        present = list(self._directories())
        changed = [read_summary(entry) for entry in present if known.get(entry.name) not in _SETTLED]
        self._index.put(summary for summary in changed if known.get(summary.id) != summary.state)
        self._index.remove(set(known) - {entry.name for entry in present})

    def begin(self, origin: Mapping[str, Any] | None = None) -> RunWriter:
        """Begin a run; ``origin`` holds the summary fields campaign, plan_sha256, position and positions."""
        run_id = new_run_id()
        return StoreWriter(self._runs / run_id, RunSummary(run_id, "running", **(origin or {})), self._index)

    def settle(self) -> None:
        """Seal what dead benches left behind."""
        settled = [read_summary(directory) for directory in self._directories() if settle(directory)]
        self._index.put(settled)
        self._refresh()

    def runs(self, **equal: Any) -> list[RunSummary]:
        """Summaries, oldest first, of the runs whose fields equal those given (see RunSummary)."""
        return self._index.find(equal)

    def find(self, prefix: str) -> str:
        """The one run whose id begins so, ``last`` being the newest; raises BadInput for none or several."""
        found = self._index.starting_with("")[-1:] if prefix == "last" else self._index.starting_with(prefix)
        if len(found) != 1:
            how_many = "no run" if not found else f"{len(found)} runs"
            raise BadInput(f"{how_many} in {self.path} with an id that begins with {prefix!r}; "
                           "see 'fastenough list'")
        return found[0][0]

    def load(self, run: str) -> Recording:
        """The recording of a run, by id or unique beginning of it; a cut-off one is read as far as it goes."""
        run_id = self.find(run)
        directory = self._runs / run_id
        if not directory.is_dir():
            place = dict(self._index.starting_with(run_id))[run_id]
            raise BadInput(f"run {run_id} is kept at {place}; read it there")
        return read_recording(recording_path(directory))

    def verify(self) -> dict[str, str]:
        """What is wrong, by run; empty when every sealed recording still has its hash."""
        faults = {directory.name: check(directory) for directory in self._directories()}
        return {run: fault for run, fault in faults.items() if fault is not None}

    def rebuild(self) -> dict[str, str]:
        """Make the index again from the runs; returns the damaged ones with what is wrong, the others go on."""
        self._index.close()
        if self._index_url == self._own_index():
            with mendable(self.path):
                for leftover in self.path.glob("index.sqlite*"):
                    leftover.unlink()
        self._index = self._open_index()
        self._index.clear()
        self.settle()
        return {run.id: run.reason or "damaged" for run in self._index.find({"state": "damaged"})}

    def close(self) -> None:
        self._index.close()
