# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings being pulled from a board's ring into the store: the data received so far, and the last one stored.

The data of a recording are in ``STORE/pulled/RING/NAME.part``, whole lines only: its length is where a pull resumes,
whatever interrupted the last one.  ``NAME.head`` is the head that it will have in the store.  ``last.json`` names the
recording stored last.  ``report.jsonl`` is what pulls did that have not returned: the next one reports it.

``STORE/pulled/ids/RUN`` names the spool to which a run id is bound while its recording is pulled: no other source
can store a recording of that id.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

from fastenough import __version__
from fastenough.files import Untrusted, write_all
from fastenough.folder import Folder
from fastenough.model import BadInput
from fastenough.store.directory import RunWriter
from fastenough.store.summary import RunSummary

_PULLED = "pulled"
_LAST = "last.json"
_PART = ".part"
_HEAD = ".head"
_IDS = "ids"
_REFUSED = "refused.json"
_REPORT = "report.jsonl"
_MOST_LAST_BYTES = 4096
_MOST_BINDING_BYTES = 256
_MOST_REFUSED_BYTES = 1 << 20
_MOST_REPORT_BYTES = 32 << 20
_MOST_REFUSED = 1000
_MOST_HEAD_BYTES = 32 << 20
_CHUNK = 1 << 20
_FOLDER = re.compile(r"[0-9A-Za-z-]*-[0-9a-f]{16}", re.ASCII)


@dataclass(frozen=True)
class Last:
    """The recording stored last: its serial, and the instant at which its last interval ended.

    ``gap_told``: the following recording for which the gap between the two was reported.  ``boot_id``: the kernel's id
    of its boot; None if it is unknown.
    """

    serial: int
    run_id: str
    mono_ns: int
    wall_ns: int
    ended: bool
    gap_told: str = ""
    boot_id: str | None = None


class BoundElsewhere(BadInput):
    """A run id that belongs to a recording of another board, or from another source."""


class Spool:
    """The spool of one ring of one board, locked by its user."""

    def __init__(self, folder: Folder, pulled: Folder, ids: Folder) -> None:
        self._folder = folder
        self._pulled = pulled
        self._ids = ids

    def bind(self, name: str, run_id: str) -> None:
        """Bind a run id to this spool, which has a part of its recording ``name`` from now on.

        Raises BoundElsewhere while another spool has a part of a recording of that id.  A binding to a spool that has
        none is taken over: its process was killed.
        """
        with self._ids.turn(lambda: None):
            bound_to = self._bound_to(run_id)
            if bound_to is not None and bound_to != self._folder.path.name and self._has_part(bound_to, run_id):
                raise BoundElsewhere(
                    f"run {run_id} is being pulled into the store from another source, "
                    f"{bound_to.rpartition('-')[0]}; if that source no longer exists, remove "
                    f"{self._pulled.path / bound_to}"
                )
            if bound_to != self._folder.path.name:
                self._ids.replace(run_id, self._folder.path.name.encode(), 0o600)
            with suppress(FileExistsError):
                os.close(self._folder.create(name + _PART, 0o600))

    def release(self, name: str, run_id: str) -> None:
        """Remove the part of a recording and the binding of its id; does nothing if there is none."""
        try:
            self._folder.status(name + _PART)
        except FileNotFoundError:
            return
        with self._ids.turn(lambda: None):
            if self._bound_to(run_id) == self._folder.path.name:
                self._ids.remove(run_id)
            self._remove(name)

    def _bound_to(self, run_id: str) -> str | None:
        with suppress(FileNotFoundError):
            spool = self._ids.read(run_id, _MOST_BINDING_BYTES).decode(errors="replace")
            return spool if _FOLDER.fullmatch(spool) else None
        return None

    def _has_part(self, spool: str, run_id: str) -> bool:
        with suppress(FileNotFoundError), self._pulled.below(spool) as folder:
            return any(name.endswith(f"-{run_id}.jsonl{_PART}") for name in folder.names())
        return False

    def names(self) -> list[str]:
        """Names of the incomplete recordings, oldest first."""
        return [name.removesuffix(_PART) for name in self._folder.names() if name.endswith(_PART)]

    def size(self, name: str) -> int:
        """Bytes of a recording received in whole lines; a partial line behind them is removed."""
        try:
            file = os.fdopen(self._folder.append(name + _PART), "rb+")
        except FileNotFoundError:
            return 0
        with file:
            whole = _whole_lines(file)
            os.ftruncate(file.fileno(), whole)
        return whole

    def add(self, name: str, content: bytes) -> None:
        """Append the next data of a recording, which may end within a line."""
        try:
            file = self._folder.append(name + _PART)
        except FileNotFoundError:
            file = self._folder.create(name + _PART, 0o600)
        try:
            write_all(file, content)
        finally:
            os.close(file)

    def sha256(self, name: str) -> str:
        digest = hashlib.sha256()
        with self.opened(name) as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
        return digest.hexdigest()

    def opened(self, name: str) -> BinaryIO:
        return self._folder.open_file(name + _PART)

    def head(self, name: str) -> bytes | None:
        """The head that it will have in the store; None if it has not been written yet."""
        with suppress(FileNotFoundError):
            return self._folder.read(name + _HEAD, _MOST_HEAD_BYTES)
        return None

    def keep_head(self, name: str, line: bytes) -> None:
        self._folder.replace(name + _HEAD, line, 0o600)

    def clear(self, name: str) -> None:
        """Remove the part of a recording but keep the binding of its id."""
        self._folder.remove(name + _HEAD)  # first: a head without its recording would be taken for that of the next
        file = self._folder.append(name + _PART)
        try:
            os.ftruncate(file, 0)
        finally:
            os.close(file)

    def _remove(self, name: str) -> None:
        self._folder.remove(name + _HEAD)
        self._folder.remove(name + _PART)

    def seal(self, lines: Iterable[bytes], run_id: str, runs: Folder) -> RunSummary:
        """Seal a run of these lines here and move it into the folder of all runs."""
        self._folder.remove_tree(run_id)  # of a pull that was killed
        writer = RunWriter(self._folder, RunSummary(run_id, "running"))
        try:
            for line in lines:
                writer.line(line)
            ended = writer.end()
        except BaseException:
            writer.discard()
            raise
        self._folder.move(run_id, runs)
        runs.sync()
        return ended

    def last(self) -> Last | None:
        """The recording stored last; None if there is none or it is unknown."""
        with suppress(OSError, Untrusted, ValueError, TypeError):
            return Last(**json.loads(self._folder.read(_LAST, _MOST_LAST_BYTES)))
        return None

    def refused(self) -> dict[str, str]:
        """Reasons by name of refused recordings, which are not fetched again."""
        with suppress(OSError, Untrusted, ValueError, AttributeError, KeyError, TypeError):
            content = json.loads(self._folder.read(_REFUSED, _MOST_REFUSED_BYTES))
            if content["by"] == __version__:  # a newer version may know what this one does not
                return {str(name): str(why) for name, why in content["recordings"].items()}
        return {}

    def keep_refused(self, refused: Mapping[str, str]) -> None:
        newest = dict(sorted(refused.items())[-_MOST_REFUSED:])
        document = {"by": __version__, "recordings": newest}
        self._folder.replace(_REFUSED, json.dumps(document).encode() + b"\n", 0o600)

    def report(self) -> list[dict[str, Any]]:
        """Entries for the result of a pull that an interrupted one has left, oldest first."""
        with suppress(OSError, Untrusted), self._folder.open_file(_REPORT) as stream:
            return [entry for line in stream.read(_MOST_REPORT_BYTES).split(b"\n") for entry in _entries(line)]
        return []

    def add_report(self, entry: Mapping[str, Any]) -> None:
        """Add an entry, which stays until ``clear_report``, whatever ends the pull."""
        try:
            file = self._folder.append(_REPORT)
        except FileNotFoundError:
            file = self._folder.create(_REPORT, 0o600)
        try:
            write_all(file, b"\n" + json.dumps(entry).encode() + b"\n")  # also after a line that was cut off
            os.fsync(file)
        finally:
            os.close(file)

    def clear_report(self) -> None:
        self._folder.remove(_REPORT)

    def keep_last(self, last: Last) -> None:
        self._folder.replace(_LAST, json.dumps(asdict(last)).encode() + b"\n", 0o600)


def has_spool(store: Folder, board: str, ring: str) -> bool:
    """Whether a ring of a board was pulled under this name."""
    with suppress(OSError, Untrusted), store.below(_PULLED) as pulled, pulled.below(_folder_name(board, ring)):
        return True
    return False


def _entries(line: bytes) -> list[dict[str, Any]]:
    """The entry in a line of a report; none in a line that was cut off."""
    try:
        entry = json.loads(line)
    except ValueError:
        return []
    return [entry] if isinstance(entry, dict) else []


def arriving(store: Folder, board: str, ring: str, name: str) -> bytes:
    """The data received so far of an incomplete recording, also during a pull; its last line may be partial.

    Raises OSError if it is no longer incomplete.
    """
    with (
        store.below(_PULLED) as pulled,
        pulled.below(_folder_name(board, ring)) as folder,
        folder.open_file(name + _PART) as stream,
    ):
        stream.readline()
        return folder.read(name + _HEAD, _MOST_HEAD_BYTES) + stream.read()


def _whole_lines(file: BinaryIO) -> int:
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        begin = max(0, end - _CHUNK)
        file.seek(begin)
        newline = file.read(end - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0


def _folder_name(board: str, ring: str) -> str:
    """A unique folder name for any board and path."""
    prefix = re.sub(r"[^0-9A-Za-z]+", "-", board)[:40].strip("-")
    return f"{prefix}-{hashlib.sha256(json.dumps([board, ring]).encode()).hexdigest()[:16]}"


@contextmanager
def spool_of(store: Folder, board: str, ring: str, waiting: Callable[[], None]) -> Iterator[Spool]:
    """The spool of a board's ring, for one pull at a time; ``waiting`` is called if another one uses it."""
    with (
        store.below(_PULLED, make=True) as pulled,
        pulled.below(_IDS, make=True) as ids,
        pulled.below(_folder_name(board, ring), make=True) as folder,
        folder.turn(waiting),
    ):
        with ids.turn(lambda: None):
            ids.remove_unfinished()
        folder.remove_unfinished()
        yield Spool(folder, pulled, ids)
