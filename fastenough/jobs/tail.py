# SPDX-License-Identifier: GPL-2.0-or-later
"""A file that another process appends to: its whole lines as they come, each read once, and what became of the file."""

from __future__ import annotations

import os
from enum import StrEnum

from fastenough.folder import Folder
from fastenough.model import BadInput
from fastenough.recording.lines import MOST_LINE_BYTES

_AT_ONCE = 1 << 20
"""A long recording is caught up with in pieces, so that what is shown follows and Ctrl-C is heard."""


class FileFate(StrEnum):
    """What stands where the file was opened."""

    THERE = "there"
    GONE = "gone"
    REPLACED = "replaced"
    SHORTENED = "shortened"


class FileTail:
    """The open file: what is renamed or removed meanwhile can be read to its end.  Raises OSError and Untrusted.

    What stands behind the last newline is read again until it is a line: a writer may take back half of one.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        self._folder = folder
        self._name = name
        self._stream = folder.open_file(name)
        self._file = self._stream.fileno()
        self._taken = 0

    def close(self) -> None:
        self._stream.close()

    @property
    def behind_bytes(self) -> int:
        """How much of the file has not been taken."""
        return max(0, os.fstat(self._file).st_size - self._taken)

    @property
    def grown_wall_ns(self) -> int:
        """When something was last written to the file."""
        return os.fstat(self._file).st_mtime_ns

    def take(self) -> list[bytes]:
        """Whole lines that were not taken before, at most about a megabyte; none where nothing was added."""
        most = _AT_ONCE
        while True:
            piece = os.pread(self._file, most, self._taken)
            whole = piece.rfind(b"\n") + 1
            if whole or len(piece) < most:
                break
            if most > MOST_LINE_BYTES:
                raise BadInput(
                    f"{self._folder.path / self._name}: a line is longer than {MOST_LINE_BYTES} bytes, "
                    "which no recording's is"
                )
            most *= 4
        self._taken += whole
        return [line + b"\n" for line in piece[:whole].split(b"\n")[:-1]]

    def fate(self) -> FileFate:
        """Whether it still is the file of its name, and holds what was taken of it."""
        mine = os.fstat(self._file)
        if mine.st_size < self._taken:
            return FileFate.SHORTENED
        try:
            there = self._folder.status(self._name)
        except FileNotFoundError:
            return FileFate.GONE
        return FileFate.THERE if (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino) else FileFate.REPLACED
