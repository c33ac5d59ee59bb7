# SPDX-License-Identifier: GPL-2.0-or-later
"""The store: a directory of immutable runs, and an index that can always be made again from them."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from sqlalchemy.engine import URL

from fastenough.files import Untrusted, changeable_by_others, others_may_write
from fastenough.folder import Folder
from fastenough.model import BadInput, FastenoughError, Verdict
from fastenough.store import looks
from fastenough.store.directory import RUN_FILE, RunWriter, settle, storage_errors
from fastenough.store.index import Index
from fastenough.store.looks import Look, Topic
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
from fastenough.store.spool import Spool, arriving, spool_of
from fastenough.store.summary import RunSummary, new_run_id

if TYPE_CHECKING:
    from fastenough.recording import Recording
    from fastenough.store.sealed import FoldedRun

__all__ = ["INDEX_SETTING", "RunSummary", "RunWriter", "Store", "new_run_id"]

INDEX_SETTING = "FASTENOUGH_INDEX"
"""Environment variable that names another database for the index, such as one shared by several benches."""
_SETTLED = {"ended", "cut-off"}
_INDEX_FILE = "index.sqlite"
_IN_MEMORY = URL.create("sqlite")
_Answer = TypeVar("_Answer")


class StoreWriter(RunWriter):
    """A run being recorded, which the index learns of when it ends."""

    def __init__(self, runs: Folder, summary: RunSummary, remember: Callable[[RunSummary], None]) -> None:
        super().__init__(runs, summary)
        self._all_runs = runs
        self._remember = remember
        try:
            remember(summary)
        except FastenoughError:
            self.discard()
            raise

    def end(self) -> RunSummary:
        ended = super().end()
        self._remember(ended)
        make_columns(self._all_runs, ended.id)
        return ended


def _is_private(path: Path) -> bool:
    """Whether nobody but this user and root can exchange what lies in a folder: it and those above are theirs.

    SQLite opens files by name, follows links and trusts a journal it finds, so it may be let in nowhere else.
    """
    return changeable_by_others(path) is None and not others_may_write(path.resolve(), path.stat())


class Store:
    """Runs below ``path``; made when it does not exist.  A store that may only be read can be read.

    Its own index is only a memory of what the runs say: where it cannot be used, ``index_fault`` says why, and the
    runs are read instead.  In a folder that others may write into there is none.
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
        self._place = os.fsencode(f"{socket.gethostname()}:{self.path}").decode(errors="backslashreplace")
        self._turn = threading.Lock()
        self._shared_index = index_url or os.environ.get(INDEX_SETTING)
        self._open_index()

    def _keeps_index(self) -> bool:
        return os.access(self.path, os.W_OK, effective_ids=True) and self.is_private()

    def _open(self, url: str | URL) -> None:
        self._index = Index(url, self._place)
        self._refresh()

    def _open_index(self) -> None:
        self.index_fault = None
        if self._shared_index:
            self._open(self._shared_index)
            return
        try:
            if not self._keeps_index():
                self._open(_IN_MEMORY)
                return
            self.require_own(_INDEX_FILE)
            self._open(URL.create("sqlite", database=f"{self.path}/{_INDEX_FILE}"))
        except (FastenoughError, OSError) as error:
            self._do_without(str(error))

    def _do_without(self, fault: str) -> None:
        """Go on with an index in memory, made from the runs."""
        self.index_fault = fault
        self._open(_IN_MEMORY)

    def _remember(self, summary: RunSummary) -> None:
        try:
            self._index.put([(summary, stamp(self._runs, summary.id)[0])])
        except FastenoughError as error:
            if self._shared_index:
                raise
            self._do_without(str(error))

    def _refresh(self) -> None:
        """Let the index follow the directories: new and changed ones, running ones, and those that are gone."""
        known = self._index.known()
        present = dict(run_folders(self._runs))
        changed = []
        for run_id, name in present.items():
            now, newer = stamp(self._runs, name)
            state, before = known.get(run_id, ("", ""))
            if state not in _SETTLED or now != before:
                changed.append((summary_of(self._runs, name, suspicious=newer or state not in ("", "running")), now))
        self._index.put(entry for entry in changed if known.get(entry[0].id) != (entry[0].state, entry[1]))
        self._index.remove(set(known) - set(present))

    def _query(self, question: Callable[[Index], _Answer]) -> _Answer:
        """An answer of the index.  Nobody tells one in memory what other processes begin: it follows the directories
        first, for one thread at a time."""
        if not self._index.in_memory:
            return question(self._index)
        with self._turn:
            self._refresh()
            return question(self._index)

    def begin(self, origin: Mapping[str, Any] | None = None) -> RunWriter:
        """Begin a run; ``origin`` holds the summary fields campaign, plan_sha256, position, positions and planned.

        Runs sort as they were begun, also after the clock was set back: of a campaign the newest run of a position
        stands, and who names no run means the newest.
        """
        run_id = new_run_id(max((before for before, _ in run_folders(self._runs)), default=""))
        return StoreWriter(self._runs, RunSummary(run_id, "running", **(origin or {})), self._remember)

    def spool(self, board: str, ring: str, waiting: Callable[[], None]) -> AbstractContextManager[Spool]:
        """Where recordings of a board's ring lie until they are whole; ``waiting`` is called while another has it."""
        return spool_of(self._folder, board, ring, waiting)

    def arriving(self, board: str, ring: str, name: str) -> bytes:
        """What has come so far of a recording that a pull has told to be under way, with the head that it will have;
        raises OSError where it has come into the store meanwhile."""
        return arriving(self._folder, board, ring, name)

    def adopt(self, spool: Spool, lines: Iterable[bytes], run_id: str) -> None:
        """Store a whole recording under the name that it has: it is there sealed, or not at all."""
        with storage_errors(self._runs.path / run_id):
            ended = spool.seal(lines, run_id, self._runs)
        self._remember(ended)
        make_columns(self._runs, run_id)

    def settle(self) -> None:
        """Seal what dead benches left behind."""
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
        """Summaries, oldest first, of the runs whose fields equal those given (see RunSummary).

        ``last``: only so many of them, the newest.  ``brief``: without what their campaigns planned.
        """
        return self._query(lambda index: index.find(equal, last, brief=brief))

    def newest_campaign(self) -> str | None:
        """The campaign that the newest run of those that name one belongs to."""
        return self._query(Index.newest_campaign)

    def find(self, prefix: str) -> str:
        """The one run whose id begins so, ``last`` being the newest; raises BadInput for none or several."""
        searched = "" if prefix == "last" else prefix.encode(errors="replace").decode()
        found = self._query(lambda index: index.starting_with(searched))
        found = found[-1:] if prefix == "last" else found
        if len(found) != 1:
            how_many = "no run" if not found else f"{len(found)} runs"
            raise BadInput(f"{how_many} in {self.path} with an id that begins with {prefix!r}; see 'fastenough list'")
        return found[0][0]

    def _name(self, run_id: str) -> str | None:
        if run_id and run_id_of(run_id) == run_id and self._runs.status_below(run_id, ".") is not None:
            return run_id
        return dict(run_folders(self._runs)).get(run_id)

    def load(self, run: str) -> Recording:
        """The recording of a run, by id or unique beginning of it; a cut-off one is read as far as it goes.

        One that is not what was recorded holds nothing but the reason, in ``damage``.
        """
        run_id = run if self._name(run) else self.find(run)
        name = self._name(run_id)
        if name is None:
            place = dict(self._index.starting_with(run_id))[run_id]
            raise BadInput(f"run {run_id} is stored at {place}; read it there")
        return read_run(self._runs, name)

    def opened(self, run_id: str) -> BinaryIO:
        """The recording of a run as it lies there, compressed or still growing; raises BadInput where there is none."""
        name = self._name(run_id)
        if name is None:
            raise BadInput(f"no run {run_id} in {self.path}; see 'fastenough list'")
        return open_recording(self._runs, name)

    def sealed(self, run_id: str) -> bytes:
        """The file of a sealed run's recording, whose content has its hash; raises BadInput or Untrusted for any
        other."""
        name = self._name(run_id)
        if name is None:
            raise BadInput(f"no run {run_id} in {self.path}; see 'fastenough list'")
        return sealed_content(self._runs, name)

    def has(self, run_id: str) -> bool:
        """Whether the folder of a run is here: an index may know others."""
        return self._runs.status_below(run_id, RUN_FILE) is not None

    def is_private(self) -> bool:
        """Whether nobody but this user and root can exchange what lies in the store: SQLite may be let in."""
        return _is_private(self.path)

    def require_own(self, file: str) -> None:
        """Raises Untrusted where something else than a file of this user's stands in the place of a database."""
        for name in (file, *(f"{file}-{ending}" for ending in ("wal", "shm", "journal"))):
            self._folder.require_replaceable(name)

    def folded(self, run_id: str) -> FoldedRun | None:
        """A sealed run at the resolution of its columns, in a tenth of the time that its text takes; None where it has
        no columns that are believed."""
        name = self._name(run_id)
        return None if name is None else folded(self._runs, name)

    def attached(self, run_id: str, file: str) -> bytes | None:
        """A file that is kept beside the recording of a run, None where there is none; raises FastenoughError for one
        that is not what was kept."""
        name = self._name(run_id)
        return None if name is None else attached_content(self._runs, name, file)

    def looks_before(self, topic: Topic, runs: Sequence[str]) -> list[Look]:
        """The looks at a family of questions that came before one by these runs, since its question last passed."""
        return looks.looks_before(self._folder, topic, runs)

    def note_look(self, topic: Topic, runs: Sequence[str], verdict: Verdict) -> None:
        """Remember a look; a store that takes nothing, such as that of another user, is only read."""
        with suppress(OSError, Untrusted):
            looks.note(self._folder, topic, runs, verdict)

    def fault(self, run_id: str) -> str | None:
        """What is wrong with a run of this store, None when its recording still has its hash."""
        name = self._name(run_id)
        return "its folder no longer exists" if name is None else fault_of(self._runs, name)

    def verify(self) -> dict[str, str]:
        """What is wrong, by run; empty when every sealed recording still has its hash, and its columns say the same."""
        faults = {
            run_id: fault_of(self._runs, name) or columns_fault_of(self._runs, name)
            for run_id, name in run_folders(self._runs)
        }
        return {run: fault for run, fault in faults.items() if fault is not None}

    def rebuild(self, waiting: Callable[[], None] = lambda: None) -> dict[str, str]:
        """Make the index again from the runs, and columns that are missing or wrong; returns the damaged runs with
        what is wrong, the others go on.

        One rebuild at a time: ``waiting`` is called where another one is at work, which this one then waits for.
        Raises FastenoughError where there still is no index that can be used.
        """
        with self._folder.turn(waiting):
            self._seal_left_behind()
            faults: dict[str, str] = {}
            entries = []
            for run_id, name in run_folders(self._runs):
                now, _ = stamp(self._runs, name)
                fault = fault_of(self._runs, name)
                summary = summary_of(self._runs, name, suspicious=False)
                if fault is None:
                    entries.append((summary, now))
                else:
                    faults[run_id] = fault
                    entries.append((replace(summary, state="damaged", reason=fault), ""))
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
        """Into the file of the index; one that SQLite cannot lock, so that nobody uses it, makes way for a new one."""
        made = Index(_IN_MEMORY, self._place)
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
