# SPDX-License-Identifier: GPL-2.0-or-later
"""The ring of recordings that a service on a board writes: what lies in it, and pieces of it, over any link.

It needs no program of ours there: a shell and the tools that every Linux has, busybox among them.  What a board says is
hostile until checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fastenough.link.base import Completed, Link
from fastenough.model import BadInput, FastenoughError

CHUNK = 4 << 20
"""So much of a recording is fetched at once."""
MOST_BYTES = 1 << 30
"""Of one recording; a day of a machine of 64 CPUs is a tenth of it."""
_MOST_FILES = 100_000
_TIMEOUT_S = 120.0
_LINE = re.compile(r"(?P<bytes>\d{1,12}) (?P<name>(?P<serial>\d{10})-(?P<run>[0-9A-Za-z-]{1,60})\.jsonl)")
_NO_FOLDER, _NO_FILE = 3, 4
_LIST = f"""[ -n "$1" ] && cd -- "$1" 2>/dev/null && [ -r . ] || exit {_NO_FOLDER}
for file in [0-9]*.jsonl; do [ -L "$file" ] || [ ! -f "$file" ] || stat -c '%s %n' -- "$file" 2>/dev/null; done; true"""
_READ = f"""cd -- "$1" && [ -f "$2" ] && [ ! -L "$2" ] || exit {_NO_FILE}
tail -c "+$3" -- "$2" | head -c "$4\""""
_HASH = f"""cd -- "$1" && [ -f "$2" ] && [ ! -L "$2" ] || exit {_NO_FILE}
head -c "$3" -- "$2" | sha256sum"""


@dataclass(frozen=True)
class RingFile:
    """One recording: ``serial`` ascends in the order they were made; ``bytes``: how long it was when it was listed."""

    serial: int
    run_id: str
    name: str
    bytes: int


class RecordingGone(FastenoughError):
    """The recording has made room for a newer one."""


class Ring:
    """A ring in a folder of a board.  All raise FastenoughError where the board does not answer as one does."""

    def __init__(self, link: Link, folder: str) -> None:
        self._link = link
        self.folder = folder

    def listed(self) -> list[RingFile]:
        """What lies there, oldest first, files of other names passed over; raises BadInput where there is no ring."""
        said = self._link.run(["sh", "-c", _LIST, "sh", self.folder], _TIMEOUT_S)
        if said.status == _NO_FOLDER:
            raise BadInput(
                f"{self._link.name}: no readable ring of recordings in {self.folder}; "
                "give the folder that the service writes to (--ring), see docs/monitor-service.md"
            )
        if said.status:
            raise FastenoughError(f"{self._link.name}: {self.folder} cannot be listed (status {said.status})")
        found = [_LINE.fullmatch(line) for line in said.text.split("\n")[:_MOST_FILES]]
        files = [RingFile(int(one["serial"]), one["run"], one["name"], int(one["bytes"])) for one in found if one]
        return sorted(files, key=lambda file: (file.serial, file.run_id))

    def read(self, file: RingFile, offset: int) -> bytes:
        """At most a chunk from an offset on, nothing behind the end; raises Gone."""
        said = self._ask(_READ, file, str(offset + 1), str(CHUNK))
        if said.status or len(said.stdout) > CHUNK:
            raise FastenoughError(f"{self._link.name}: {file.name} cannot be read (status {said.status})")
        return said.stdout

    def sha256(self, file: RingFile, size: int) -> str:
        """The hash of its first bytes; raises Gone."""
        said = self._ask(_HASH, file, str(size))
        found = re.match(r"[0-9a-f]{64}\b", said.text)
        if said.status or found is None:
            raise FastenoughError(f"{self._link.name}: cannot compute the hash of {file.name}; install coreutils there")
        return found[0]

    def _ask(self, script: str, file: RingFile, *words: str) -> Completed:
        """A shell's answer about one recording; raises Gone."""
        said = self._link.run(["sh", "-c", script, "sh", self.folder, file.name, *words], _TIMEOUT_S)
        if said.status == _NO_FILE:
            raise RecordingGone(f"{file.name} is no longer in the ring")
        return said
