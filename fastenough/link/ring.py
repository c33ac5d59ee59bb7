# SPDX-License-Identifier: GPL-2.0-or-later
"""The ring of recordings that a service on a board writes: its list and pieces of its files, over any link.

It requires a shell and common tools on the board (busybox is enough), and no program of fastenough.  A board's answers
are untrusted until checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fastenough.link.base import Completed, Link
from fastenough.model import BadInput, FastenoughError

CHUNK = 4 << 20
"""Bytes of a recording that are fetched at once."""
MOST_BYTES = 1 << 30
"""Upper limit for one recording; a day of a machine with 64 CPUs is a tenth of it."""
_MOST_FILES = 100_000
_TIMEOUT_S = 120.0
_LINE = re.compile(r"(?P<bytes>\d{1,12}) (?P<name>(?P<serial>\d{10})-(?P<run>[0-9A-Za-z-]{1,60})\.jsonl)")
_NO_FOLDER, _NO_FILE, _NOT_READABLE = 3, 4, 5
_LIST = f"""[ -n "$1" ] && cd -- "$1" 2>/dev/null && [ -r . ] || exit {_NO_FOLDER}
for file in [0-9]*.jsonl; do
[ -L "$file" ] || [ ! -f "$file" ] || stat -c '%s %n' -- "$file" 2>/dev/null || [ ! -f "$file" ] || exit {_NOT_READABLE}
done; true"""
_READ = f"""cd -- "$1" && [ -f "$2" ] && [ ! -L "$2" ] || exit {_NO_FILE}
true 2>/dev/null <"./$2" || {{ [ -f "$2" ] && exit {_NOT_READABLE}; exit {_NO_FILE}; }}
tail -c "+$3" -- "$2" | head -c "$4\""""
_HASH = f"""cd -- "$1" && [ -f "$2" ] && [ ! -L "$2" ] || exit {_NO_FILE}
head -c "$3" -- "$2" | sha256sum"""


@dataclass(frozen=True)
class RingFile:
    """One recording: ``serial`` ascends with time; ``bytes``: its length when it was listed."""

    serial: int
    run_id: str
    name: str
    bytes: int


class RecordingGone(FastenoughError):
    """The recording has been removed for a newer one."""


class Ring:
    """A ring in a folder of a board.  All methods raise FastenoughError for an invalid answer of the board."""

    def __init__(self, link: Link, folder: str) -> None:
        self._link = link
        self.folder = folder

    def list_files(self) -> list[RingFile]:
        """Return the recordings, oldest first, without files of other names; raise BadInput if there is no ring."""
        listing = self._link.run(["sh", "-c", _LIST, "sh", self.folder], _TIMEOUT_S)
        if listing.status == _NO_FOLDER:
            raise BadInput(
                f"{self._link.name}: no readable ring of recordings in {self.folder}; "
                "give the folder that the service writes to (--ring), see docs/monitor-service.md"
            )
        if listing.status == _NOT_READABLE:
            raise FastenoughError(
                f"{self._link.name}: stat -c failed in {self.folder}; install coreutils or busybox there"
            )
        if listing.status:
            raise FastenoughError(f"{self._link.name}: {self.folder} cannot be listed (status {listing.status})")
        lines = [_LINE.fullmatch(line) for line in listing.text.split("\n")[:_MOST_FILES]]
        files = [RingFile(int(line["serial"]), line["run"], line["name"], int(line["bytes"])) for line in lines if line]
        return sorted(files, key=lambda file: (file.serial, file.run_id))

    def read(self, file: RingFile, offset: int) -> bytes:
        """Return at most a chunk from an offset on, empty behind the end; raise RecordingGone.

        A chunk is also shorter if the board could not read the file to its end: its length must be compared.
        """
        answer = self._ask(_READ, file, str(offset + 1), str(CHUNK))
        if answer.status == _NOT_READABLE:
            raise FastenoughError(
                f"{self._link.name}: no permission to read {self.folder}/{file.name}; log in as the owner of the ring "
                "or as a user who may use sudo"
            )
        if answer.status or len(answer.stdout) > CHUNK:
            raise FastenoughError(f"{self._link.name}: {file.name} cannot be read (status {answer.status})")
        return answer.stdout

    def sha256(self, file: RingFile, size: int) -> str:
        """Return the SHA-256 hash of its first bytes; raise RecordingGone."""
        answer = self._ask(_HASH, file, str(size))
        digest = re.match(r"[0-9a-f]{64}\b", answer.text)
        if answer.status or digest is None:
            raise FastenoughError(f"{self._link.name}: cannot compute the hash of {file.name}; install coreutils there")
        return digest[0]

    def _ask(self, script: str, file: RingFile, *arguments: str) -> Completed:
        """Return the output of a script for one recording; raise RecordingGone."""
        answer = self._link.run(["sh", "-c", script, "sh", self.folder, file.name, *arguments], _TIMEOUT_S)
        if answer.status == _NO_FILE:
            raise RecordingGone(f"{file.name} is no longer in the ring")
        return answer
