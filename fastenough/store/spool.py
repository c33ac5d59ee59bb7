# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings on their way from a board's ring into the store: as far as each has come, and the one that came last.

A recording's place is ``STORE/pulled/RING/NAME.part``, whole lines only: how long it is says where to go on, whatever
cut the last pull off.  ``NAME.head`` is the head that it will have in the store.  ``last.json`` tells which recording
was the last to be stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import BinaryIO

from fastenough.files import Untrusted, write_all
from fastenough.folder import Folder
from fastenough.store.directory import RunWriter
from fastenough.store.summary import RunSummary

_PULLED = "pulled"
_LAST = "last.json"
_PART = ".part"
_HEAD = ".head"
_MOST_LAST_BYTES = 4096
_MOST_HEAD_BYTES = 32 << 20
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Last:
    """The recording stored last: its serial, and the instant at which its last interval ended.

    ``gap_told``: the recording behind it of which the gap between the two was told.
    """

    serial: int
    run_id: str
    mono_ns: int
    wall_ns: int
    ended: bool
    gap_told: str = ""


class Spool:
    """Of one ring of one board; whoever holds it is alone with it."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        """Of the recordings that are on their way, oldest first."""
        return [name.removesuffix(_PART) for name in self._folder.names() if name.endswith(_PART)]

    def size(self, name: str) -> int:
        """How much of a recording is here, in whole lines; what a cut left behind them is removed."""
        try:
            file = os.fdopen(self._folder.append(name + _PART), "rb+")
        except FileNotFoundError:
            return 0
        with file:
            whole = _whole_lines(file)
            os.ftruncate(file.fileno(), whole)
        return whole

    def add(self, name: str, content: bytes) -> None:
        """Append what comes next of a recording, which may tear a line until more comes."""
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
        """The head that it will have in the store; None where nobody has written it down yet."""
        with suppress(FileNotFoundError):
            return self._folder.read(name + _HEAD, _MOST_HEAD_BYTES)
        return None

    def keep_head(self, name: str, line: bytes) -> None:
        self._folder.replace(name + _HEAD, line, 0o600)

    def remove(self, name: str) -> None:
        self._folder.remove(name + _HEAD)  # first: a head without its recording would be taken for that of the next
        self._folder.remove(name + _PART)

    def seal(self, lines: Iterable[bytes], run_id: str, runs: Folder) -> RunSummary:
        """A run of these lines, made here and moved whole into the folder of all runs."""
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
        """None where none was stored yet, or nobody knows any more."""
        with suppress(OSError, Untrusted, ValueError, TypeError):
            return Last(**json.loads(self._folder.read(_LAST, _MOST_LAST_BYTES)))
        return None

    def keep_last(self, last: Last) -> None:
        self._folder.replace(_LAST, json.dumps(asdict(last)).encode() + b"\n", 0o600)


def arriving(store: Folder, board: str, ring: str, name: str) -> bytes:
    """What has come so far of a recording that is on its way, while pulls may go on; its last line may be torn.

    Raises OSError where it is not on its way any more.
    """
    with store.below(_PULLED) as pulled, pulled.below(_folder_name(board, ring)) as folder, \
            folder.open_file(name + _PART) as stream:
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
    """Any board and path as a name that tells them apart."""
    told = re.sub(r"[^0-9A-Za-z]+", "-", board)[:40].strip("-")
    return f"{told}-{hashlib.sha256(json.dumps([board, ring]).encode()).hexdigest()[:16]}"


@contextmanager
def spool_of(store: Folder, board: str, ring: str, waiting: Callable[[], None]) -> Iterator[Spool]:
    """The spool of a board's ring, for one at a time; ``waiting`` is called where another pull has it."""
    with store.below(_PULLED, make=True) as pulled, pulled.below(_folder_name(board, ring), make=True) as folder, \
            folder.turn(waiting):
        yield Spool(folder)
