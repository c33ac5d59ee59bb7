# SPDX-License-Identifier: GPL-2.0-or-later
"""The ZIP file of a pack: one byte sequence for given members, and a reader that accepts no other.

Members are stored without compression, in the order in which they were added, with fixed times and permissions.  The
reader walks the members from the first byte and requires that headers and directory are those that the writer makes.
So nothing can be hidden, repeated, linked, encrypted or expanded, and no byte can change unnoticed.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from fastenough import words
from fastenough.model import BadInput

MOST_MEMBERS = 3000
MOST_BYTES = (1 << 32) - 2
"""Length of the whole file; longer ones need ZIP64."""
_MOST_NAME = 200
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]*(\.[0-9A-Za-z_-]+)*(/[0-9A-Za-z][0-9A-Za-z_-]*(\.[0-9A-Za-z_-]+)*)?")
_CHUNK = 1 << 20
_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_LOCAL_MAGIC, _CENTRAL_MAGIC, _END_MAGIC = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_VERSION = 20
_MADE_BY = 3 << 8 | _VERSION
"""Unix, which gives the upper half of the external attributes its meaning: type and permissions of a file."""
_REGULAR_0644 = 0o100644 << 16
_MIDNIGHT, _FIRST_DAY = 0, 1 << 5 | 1
"""1980-01-01 00:00, the earliest time of the format."""
_ENCRYPTED = 1


@dataclass(frozen=True)
class Entry:
    """A member: its name, the offset of its header, its length, CRC-32 and SHA-256."""

    name: str
    offset: int
    bytes: int
    crc: int
    sha256: str

    @property
    def data_offset(self) -> int:
        return self.offset + _LOCAL.size + len(self.name)


def _local(name: str, size: int, crc: int) -> bytes:
    fixed = _LOCAL.pack(_LOCAL_MAGIC, _VERSION, 0, 0, _MIDNIGHT, _FIRST_DAY, crc, size, size, len(name), 0)
    return fixed + name.encode()


def _central(entry: Entry) -> bytes:
    name = entry.name.encode()
    content_fields = (_MIDNIGHT, _FIRST_DAY, entry.crc, entry.bytes, entry.bytes)
    lengths = (len(name), 0, 0)
    fixed = (_CENTRAL_MAGIC, _MADE_BY, _VERSION, 0, 0, *content_fields, *lengths, 0, 0, _REGULAR_0644, entry.offset)
    return _CENTRAL.pack(*fixed) + name


def _directory(entries: Sequence[Entry], offset: int) -> bytes:
    """The data after the members: one record for each, and the end record."""
    records = b"".join(map(_central, entries))
    return records + _END.pack(_END_MAGIC, 0, 0, len(entries), len(entries), len(records), offset, 0)


class ArchiveWriter:
    """Writes members to a stream; ``entries`` are those written so far."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._offset = 0
        self._directory_bytes = _END.size
        self.entries: list[Entry] = []

    def add(self, name: str, content: bytes) -> None:
        """Raises BadInput for more members or bytes than a pack can have."""
        entry = Entry(name, self._offset, len(content), zlib.crc32(content), hashlib.sha256(content).hexdigest())
        length = entry.data_offset + entry.bytes
        self._directory_bytes += len(_central(entry))
        if length + self._directory_bytes > MOST_BYTES or len(self.entries) >= MOST_MEMBERS:
            raise BadInput(f"a pack holds at most {MOST_MEMBERS} files and {MOST_BYTES} bytes; pack fewer runs")
        self._stream.write(_local(name, entry.bytes, entry.crc))
        self._stream.write(content)
        self._offset = length
        self.entries.append(entry)

    def end(self) -> None:
        self._stream.write(_directory(self.entries, self._offset))


class _Section(io.RawIOBase):
    """A section of an open file, with its own position."""

    def __init__(self, file: int, offset: int, size: int) -> None:
        self._file, self._offset, self._size, self._at = file, offset, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        size = max(0, min(len(buffer), self._size - self._at))
        chunk = os.pread(self._file, size, self._offset + self._at)
        buffer[: len(chunk)] = chunk
        self._at += len(chunk)
        return len(chunk)


class Archive:
    """The members of a pack in an open file.

    Raises BadInput, with ``name`` in the message, unless the file is one that ArchiveWriter makes.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self.name = name
        self.bytes = stream.seek(0, os.SEEK_END)
        if self.bytes > MOST_BYTES:
            raise BadInput(f"{name}: longer than the {MOST_BYTES} bytes that a pack has at most")
        stream.seek(0)
        self.entries = self._read()

    def open_member(self, entry: Entry) -> BinaryIO:
        """The content of a member, for reading."""
        return io.BufferedReader(_Section(self._stream.fileno(), entry.data_offset, entry.bytes))

    def read(self, entry: Entry, most: int) -> bytes:
        """The content of a member; raises BadInput if it is longer than ``most`` bytes."""
        if entry.bytes > most:
            raise BadInput(f"{self.name}: {entry.name} is longer than the {most} bytes it has at most")
        with self.open_member(entry) as member:
            return member.read()

    def _read(self) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        names: set[str] = set()
        while (magic := self._stream.read(len(_LOCAL_MAGIC))) == _LOCAL_MAGIC:
            if len(entries) == MOST_MEMBERS:
                raise BadInput(f"{self.name}: more than the {MOST_MEMBERS} files that a pack has at most")
            entry = self._member()
            if entry.name.casefold() in names:
                raise BadInput(f"{self.name}: two files are named {entry.name}")
            names.add(entry.name.casefold())
            entries.append(entry)
        self._check_directory(entries, magic)
        return tuple(entries)

    def _member(self) -> Entry:
        offset = self._stream.tell() - len(_LOCAL_MAGIC)
        header = _LOCAL_MAGIC + self._exactly(_LOCAL.size - len(_LOCAL_MAGIC))
        _, _, flags, method, _, _, crc, _, size, name_size, _ = _LOCAL.unpack(header)
        name = self._member_name(name_size)
        if header + name.encode() != _local(name, size, crc):
            storage = "encrypted" if flags & _ENCRYPTED else "compressed" if method else "not stored as in a pack"
            raise BadInput(f"{self.name}: not an evidence pack: {name} is {storage}")
        digest, checksum = hashlib.sha256(), 0
        for position in range(0, size, _CHUNK):
            chunk = self._exactly(min(_CHUNK, size - position))
            digest.update(chunk)
            checksum = zlib.crc32(chunk, checksum)
        if checksum != crc:
            raise BadInput(f"{self.name}: {name} is damaged: its checksum does not match")
        return Entry(name, offset, size, crc, digest.hexdigest())

    def _member_name(self, size: int) -> str:
        raw = self._exactly(min(size, _MOST_NAME + 1))
        name = raw.decode("ascii", errors="replace")
        if len(raw) > _MOST_NAME or not _NAME.fullmatch(name):
            raise BadInput(f"{self.name}: a pack has no file named {name[:80]!r}")
        return name

    def _exactly(self, size: int) -> bytes:
        content = self._stream.read(size)
        if len(content) < size:
            raise BadInput(f"{self.name}: truncated after {words.counted(self.bytes, 'byte')}")
        return content

    def _check_directory(self, entries: Sequence[Entry], magic: bytes) -> None:
        """Raises BadInput unless the rest of the file, which begins with ``magic``, is the directory of the entries."""
        if not entries:
            raise BadInput(f"{self.name}: not an evidence pack: no ZIP file that fastenough pack wrote")
        offset = self._stream.tell() - len(magic)
        expected = _directory(entries, offset)
        rest = magic + self._stream.read(len(expected) + 1 - len(magic))
        if rest == expected:
            return
        if rest.startswith(expected):
            raise BadInput(f"{self.name}: there is data after its end")
        if expected.startswith(rest):
            raise BadInput(f"{self.name}: truncated after {words.counted(self.bytes, 'byte')}")
        raise BadInput(f"{self.name}: its directory contradicts its files: damaged, or not written by fastenough pack")
