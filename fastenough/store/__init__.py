# SPDX-License-Identifier: GPL-2.0-or-later
"""The store: a directory of immutable runs, and an index that can be rebuilt from them at any time."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from fastenough.files import Untrusted, changeable_by_others, others_may_write
from fastenough.folder import Folder
from fastenough.model import BadInput, FastenoughError
from fastenough.store.directory import RunWriter, settle, storage_errors
from fastenough.store.index import IN_MEMORY, Index
from fastenough.store.reading import (
    attached_content,
    columns_fault_of,
    fault_of,
    folded,
    make_columns,
    open_recording,
    read_run,
    renew_columns,
    run_folders,
    run_id_of,
    sealed_content,
    stamp,
    summary_of,
)
from fastenough.store.removed import note_removed, removed_runs
from fastenough.store.spool import Spool, arriving, has_spool, spool_of
from fastenough.store.summary import RunSummary, new_run_id

if TYPE_CHECKING:
    from fastenough.recording import Recording
    from fastenough.store.sealed import FoldedRun

__all__ = ["INDEX_SETTING", "RunSummary", "RunWriter", "Store", "new_run_id"]

INDEX_SETTING = "FASTENOUGH_INDEX"
"""Environment variable that names another database for the index, such as one shared by several benches."""
_SETTLED = {"ended", "cut-off", "damaged"}
_INDEX_FILE = "index.sqlite"
_Answer = TypeVar("_Answer")


class StoreWriter(RunWriter):
    """Writer of a run that adds the run to the index at its begin and at its end."""

    def __init__(
        self,
        runs: Folder,
        summary: RunSummary,
        remember: Callable[[RunSummary], None],
        forget: Callable[[str], None],
    ) -> None:
        super().__init__(runs, summary)
        self._all_runs = runs
        self._remember = remember
        self._forget = forget
        try:
            remember(summary)
        except BaseException:
            self.discard()
            raise

    def end(self) -> RunSummary:
        ended = super().end()
        self._remember(ended)
        make_columns(self._all_runs, ended.id)
        return ended

    def discard(self) -> None:
        """Remove the run, also a sealed one; it does not count as deleted."""
        with suppress(FastenoughError):
            self._forget(self.id)
        super().discard()


def _is_private(path: Path) -> bool:
    """Whether only this user and root can replace files in a folder: they own it and every folder above it.

    SQLite opens files by name, follows links and trusts any journal it finds, so it is used in such folders only.
    """
    return changeable_by_others(path) is None and not others_may_write(path.resolve(), path.stat())


class Store:
    """Runs below ``path``, which is created if it does not exist.  Read permission is enough for reading.

    ``place``: host and path, which identify the store in a shared database.

    The index only caches data of the runs.  If it cannot be used, ``index_fault`` gives the reason, and the
    runs are read instead.  A folder that others can write to has no index.
    """

    def __init__(self, path: Path, index_url: str | None = None) -> None:
        self.path = path.absolute()
        self.index_fault: str | None = None
        try:
            self._folder = Folder.at(path, make=True)
            self._runs = self._folder.below("runs", make=True)
        except Untrusted as error:
            raise BadInput(str(error)) from error
        except OSError as error:
            raise BadInput(
                f"{path}: cannot create a store there: {error.strerror}; name a directory you can write to"
            ) from error
        self._turn = threading.Lock()
        self._shared_index = index_url or os.environ.get(INDEX_SETTING)
        self.place = os.fsencode(f"{socket.gethostname()}:{self.path}").decode(errors="backslashreplace")
        self._place = self.place if self._shared_index else None
        self._open_index()

    def _keeps_index(self) -> bool:
        return os.access(self.path, os.W_OK, effective_ids=True) and self.is_private()

    def _open(self, database: str | Path) -> None:
        self._index = Index(database, self._place)
        self._refresh()

    def _open_index(self) -> None:
        self.index_fault = None
        if self._shared_index:
            self._open(self._shared_index)
            return
        try:
            if not self._keeps_index():
                self._open(IN_MEMORY)
                return
            self.require_own(_INDEX_FILE)
            self._open(self.path / _INDEX_FILE)
        except (FastenoughError, OSError) as error:
            self._do_without(str(error))

    def _do_without(self, fault: str) -> None:
        """Continue with an index in memory, built from the runs."""
        self.index_fault = fault
        self._open(IN_MEMORY)

    def _remember(self, summary: RunSummary) -> None:
        try:
            self._index.put([(summary, stamp(self._runs, summary.id)[0])])
        except FastenoughError as error:
            if self._shared_index:
                raise
            self._do_without(str(error))

    def _remove(self, run_id: str) -> None:
        self._index.remove([run_id])

    def _refresh(self) -> None:
        """Update the index from the directories: new, changed, running and removed runs."""
        known = self._index.known()
        present = dict(run_folders(self._runs))
        changed = []
        for run_id, name in present.items():
            now, newer = stamp(self._runs, name)
            state, before = known.get(run_id, ("", ""))
            if state not in _SETTLED or now != before or not now:
                changed.append((summary_of(self._runs, name, suspicious=newer or state not in ("", "running")), now))
        self._index.put(entry for entry in changed if known.get(entry[0].id) != (entry[0].state, entry[1]))
        self._forget([run_id for run_id in known if run_id not in present])

    def _forget(self, deleted: Sequence[str]) -> None:
        """Remove deleted runs from the index after their summaries are stored."""
        if not deleted:
            return
        missing = set(deleted)
        summaries = [
            summary
            for summary in self._index.find({}, brief=True)
            if summary.id in missing and summary.state != "running"
        ]
        try:
            note_removed(self._folder, summaries)
        except (OSError, Untrusted):  # such as a full disk: the next one to open the store tries again
            return
        self._index.remove(deleted)

    def _query(self, question: Callable[[Index], _Answer]) -> _Answer:
        """The result of a query on the index.  An index in memory is updated from the directories
        first, for one thread at a time."""
        if not self._index.in_memory:
            return question(self._index)
        with self._turn:
            self._refresh()
            return question(self._index)

    def begin(self, origin: Mapping[str, Any] | None = None) -> RunWriter:
        """Begin a run; ``origin`` holds the summary fields campaign, plan_sha256, position, positions and planned.

        Ids sort in the order of begin, also after the clock was set back: of several runs of a position of a
        campaign the newest counts, and it is the default run of commands.
        """
        run_id = new_run_id(max((before for before, _ in run_folders(self._runs)), default=""))
        return StoreWriter(self._runs, RunSummary(run_id, "running", **(origin or {})), self._remember, self._remove)

    def spool(self, board: str, ring: str, waiting: Callable[[], None]) -> AbstractContextManager[Spool]:
        """The spool of a board's ring for incomplete recordings; ``waiting`` is called while another pull uses it."""
        return spool_of(self._folder, board, ring, waiting)

    def has_spool(self, board: str, ring: str) -> bool:
        """Whether a ring of a board was pulled under this name."""
        return has_spool(self._folder, board, ring)

    def arriving(self, board: str, ring: str, name: str) -> bytes:
        """The data received so far of a recording that is being pulled, with the head that it will have;
        raises OSError if it has been stored meanwhile."""
        return arriving(self._folder, board, ring, name)

    def adopt(self, spool: Spool, lines: Iterable[bytes], run_id: str) -> None:
        """Store a complete recording under its id, atomically: it is sealed, or not stored."""
        with storage_errors(self._runs.path / run_id):
            ended = spool.seal(lines, run_id, self._runs)
        self._remember(ended)
        make_columns(self._runs, run_id)

    def settle(self) -> None:
        """Seal the runs of benches that died."""
        self._seal_left_behind()
        self._refresh()

    def _seal_left_behind(self) -> None:
        for run_id, name in run_folders(self._runs):
            try:
                with self._runs.below(name) as folder:
                    sealed = settle(folder, run_id)
                if sealed is not None:
                    make_columns(self._runs, name)
            except (OSError, FastenoughError):
                continue

    def runs(self, *, last: int | None = None, brief: bool = False, **equal: Any) -> list[RunSummary]:
        """Summaries, oldest first, of the runs whose fields equal those given, or are in a given set (see RunSummary).

        ``last``: only that many, the newest.  ``brief``: without the planned runs of their campaigns.
        """
        return self._query(lambda index: index.find(equal, last, brief=brief))

    def own_runs(self, *, last: int | None = None, **equal: Any) -> list[RunSummary]:
        """As ``runs``, brief, without the runs of other stores, which a shared index also lists."""
        return self._query(lambda index: index.find(equal, last, brief=True, own=True))

    def removed(self, **equal: Any) -> list[RunSummary]:
        """Summaries, oldest first, of the runs that somebody deleted and whose fields equal those given."""
        deleted = removed_runs(self._folder)
        present = dict(run_folders(self._runs)) if deleted else {}
        return [
            summary
            for summary in deleted
            if summary.id not in present and all(getattr(summary, name) == value for name, value in equal.items())
        ]

    def newest_campaign(self) -> str | None:
        """The campaign of the newest run that belongs to one."""
        return self._query(lambda index: index.newest_campaign())

    def find(self, prefix: str) -> str:
        """The id of the run with this prefix, or of the newest for ``last``; raises BadInput for none or several."""
        searched = "" if prefix == "last" else prefix.encode(errors="replace").decode()
        matches = self._query(lambda index: index.starting_with(searched))
        matches = matches[-1:] if prefix == "last" else matches
        if len(matches) != 1:
            how_many = "no run" if not matches else f"{len(matches)} runs"
            raise BadInput(f"{how_many} in {self.path} with an id that begins with {prefix!r}; see 'fastenough list'")
        return matches[0][0]

    def find_all(self, prefixes: Iterable[str]) -> list[str]:
        """The ids of the runs with these prefixes, each once, in the order of their first mention."""
        return list(dict.fromkeys(map(self.find, prefixes)))

    def _name(self, run_id: str) -> str | None:
        if run_id and run_id_of(run_id) == run_id and self._runs.status_below(run_id, ".") is not None:
            return run_id
        return dict(run_folders(self._runs)).get(run_id)

    def load(self, run: str) -> Recording:
        """The recording of a run, by id or unique prefix; a truncated one is read to its last whole line.

        One that fails its integrity check is empty except for the reason, in ``damage``.
        """
        run_id = run if self._name(run) else self.find(run)
        name = self._name(run_id)
        if name is None:
            place = dict(self._index.starting_with(run_id)).get(run_id)
            if self._shared_index and place is not None and place != self._place:
                raise BadInput(f"run {run_id} is stored at {place}; read it there")
            raise BadInput(f"run {run_id} was deleted from {self.path}; see 'fastenough list'")
        return read_run(self._runs, name)

    def opened(self, run_id: str) -> BinaryIO:
        """The recording file of a run, compressed or still growing; raises BadInput if there is none."""
        name = self._name(run_id)
        if name is None:
            raise BadInput(f"no run {run_id} in {self.path}; see 'fastenough list'")
        return open_recording(self._runs, name)

    def sealed(self, run_id: str) -> bytes:
        """The recording file of a sealed run after its hash was checked; raises BadInput or Untrusted for any
        other."""
        name = self._name(run_id)
        if name is None:
            raise BadInput(f"no run {run_id} in {self.path}; see 'fastenough list'")
        return sealed_content(self._runs, name)

    def has(self, run_id: str) -> bool:
        """Whether the folder of a run exists here: a shared index may list runs of other stores."""
        return self._runs.status_below(run_id, ".") is not None

    def is_private(self) -> bool:
        """Whether only this user and root can replace files in the store, so that SQLite may be used."""
        return _is_private(self.path)

    def require_own(self, file: str) -> None:
        """Raises Untrusted if the path of a database is occupied by anything but a file of this user."""
        for name in (file, *(f"{file}-{ending}" for ending in ("wal", "shm", "journal"))):
            self._folder.require_replaceable(name)

    def folded(self, run_id: str) -> FoldedRun | None:
        """A sealed run at the resolution of its columns, ten times as fast as from its text; None if it has
        no valid columns."""
        name = self._name(run_id)
        return None if name is None else folded(self._runs, name)

    def attached(self, run_id: str, file: str) -> bytes | None:
        """A file attached to a run, None if there is none; raises FastenoughError for one
        that was changed after it was stored."""
        name = self._name(run_id)
        return None if name is None else attached_content(self._runs, name, file)

    def fault(self, run_id: str) -> str | None:
        """The fault of a run of this store, None if its recording matches its hash and its summary."""
        name = self._name(run_id)
        return "its folder no longer exists" if name is None else fault_of(self._runs, name)

    def verify(self) -> dict[str, str]:
        """Faults by run; empty if every sealed recording matches its hash, its summary and its columns."""
        faults = {
            run_id: fault_of(self._runs, name) or columns_fault_of(self._runs, name)
            for run_id, name in run_folders(self._runs)
        }
        return {run: fault for run, fault in faults.items() if fault is not None}

    def rebuild(self, waiting: Callable[[], None] = lambda: None) -> dict[str, str]:
        """Rebuild the index from the runs, and missing or wrong columns; returns the damaged runs with
        their faults.

        Only one rebuild runs at a time: ``waiting`` is called if this one has to wait for another.
        Raises FastenoughError if there is still no usable index.
        """
        with self._folder.turn(waiting):
            self._seal_left_behind()
            faults: dict[str, str] = {}
            entries = []
            for run_id, name in run_folders(self._runs):
                now, _ = stamp(self._runs, name)
                summary = summary_of(self._runs, name, suspicious=True)
                if summary.state == "damaged":
                    faults[run_id] = summary.reason or "damaged"
                entries.append((summary, "" if summary.state == "damaged" else now))
            self._renew_index(entries)
            for run_id, name in run_folders(self._runs):
                if run_id not in faults:
                    renew_columns(self._runs, name)
        return faults

    def _renew_index(self, entries: Sequence[tuple[RunSummary, str]]) -> None:
        if self._shared_index or not self._keeps_index():
            self._index.replace(entries)
            return
        self._index.close()
        with storage_errors(self.path / _INDEX_FILE):
            self._write_index(entries)
        self._open_index()
        if self.index_fault is not None:
            raise FastenoughError(self.index_fault)

    def _write_index(self, entries: Sequence[tuple[RunSummary, str]]) -> None:
        """Write the index file; one that SQLite cannot lock is not in use and is replaced."""
        made = Index(IN_MEMORY, self._place)
        made.put(entries)
        with suppress(Untrusted, sqlite3.Error):
            self.require_own(_INDEX_FILE)
            made.copy_over(f"{self.path}/{_INDEX_FILE}")
            return
        for leftover in self._folder.names():
            if leftover.startswith(_INDEX_FILE):
                self._folder.remove(leftover)
        try:
            made.copy_over(f"{self.path}/{_INDEX_FILE}")
        except sqlite3.Error as error:
            raise FastenoughError(
                f"{self.path / _INDEX_FILE}: cannot write the index: {error}; the runs are safe: "
                "fix the cause, then run 'fastenough store rebuild'"
            ) from error

    def close(self) -> None:
        self._index.close()
