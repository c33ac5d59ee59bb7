# SPDX-License-Identifier: GPL-2.0-or-later
"""What has to be put back: on disk before anything is changed, and replayed by whoever comes next."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from fastenough.model import FastenoughError


class Journal:
    """Original values, oldest first, in a file that one bench at a time may hold."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise FastenoughError(f"{path}: {error.strerror}; make it writable, for nothing is changed on a board "
                                  "without noting down how it was") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._file)
            raise FastenoughError(f"another fastenough is measuring on this board (it holds {path}); "
                                  "wait until it has ended, or end it") from error

    def entries(self) -> list[dict[str, Any]]:
        """What was noted; a torn last line was never followed by a change and does not count."""
        found = []
        for line in self._path.read_bytes().splitlines():
            try:
                found.append(dict(json.loads(line)))
            except ValueError:
                continue
        return found

    def note(self, entry: dict[str, Any]) -> None:
        """Append one entry; on disk when this returns."""
        try:
            os.write(self._file, json.dumps(entry).encode() + b"\n")
            os.fsync(self._file)
        except OSError as error:
            raise FastenoughError(f"{self._path}: {error.strerror}; nothing was changed") from error

    def replace(self, entries: list[dict[str, Any]]) -> None:
        """Keep these entries only."""
        os.ftruncate(self._file, 0)
        for entry in entries:
            self.note(entry)
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)
