# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of a recording from an untrusted file: bounded in length, hashed, printable."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import zstandard

from fastenough.model import BadInput

MOST_LINE_BYTES = 16 << 20
"""The length of an interval of 512 series with 3,000 buckets each."""
MOST_END_BYTES = 256 << 20
"""The length of an end, with the whole run at a finer resolution, of 2,000 series."""
MOST_BYTES = 4 << 30
ALWAYS_BYTES = 64 << 20
MOST_GROWTH = 200
"""A compressed recording may grow to ALWAYS_BYTES and so many times its own size, but never beyond MOST_BYTES."""
MOST_DEPTH = 32
"""Maximum nesting depth of the JSON of a recording."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_MOST_WINDOW_BYTES = 64 << 20
_CHUNK = 1 << 20
_END = b'{"type":"end",'
_SUSPICIOUS = re.compile(rb"\\[ubf]|\x7f")
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


JsonLine = dict[str, Any]
"""One line of a recording as a JSON object."""


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class JsonFloat(float):
    """A number written with a point or an exponent: never an integer, whatever its value."""

    def is_integer(self) -> bool:
        return False


def printable(text: str) -> str:
    """The text with control characters, lone surrogates and marks of writing direction replaced."""
    return _UNPRINTABLE.sub("\ufffd", text)


def _plain(value: Any, depth: int = 0) -> Any:
    """The value with printable texts; raises ValueError if it is nested too deep or has a number that is not finite."""
    if depth > MOST_DEPTH:
        raise ValueError(f"it is nested more than {MOST_DEPTH} deep")
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {sys.intern(printable(name)): _plain(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list):
        return value if {*map(type, value)} <= {int} else [_plain(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it contains a number that is not finite")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def parse_line(raw: bytes) -> Any:
    """One line of JSON with printable texts; raises ValueError.

    Most lines are intervals, and the schema checks them completely: they are walked only if they contain
    characters that no writer uses.
    """
    try:
        line = json.loads(raw.decode(), parse_constant=_refuse_constant, parse_float=JsonFloat)
        common = isinstance(line, dict) and line.get("type") == "interval"
        return line if common and raw.isascii() and not _SUSPICIOUS.search(raw) else _plain(line)
    except RecursionError as error:
        raise ValueError(f"it is nested more than {MOST_DEPTH} deep") from error


def plain_content(stream: BinaryIO) -> _Readable:
    """The uncompressed bytes of a recording that may be compressed."""
    start = stream.read(len(_ZSTD_MAGIC))
    stream.seek(0)
    if start != _ZSTD_MAGIC:
        return stream
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES)
    reader: _Readable = decompressor.stream_reader(stream, read_across_frames=True, closefd=False)
    return reader


def most_line_bytes(line: bytes) -> int:
    """How long a line may be, by its begin."""
    return MOST_END_BYTES if line.startswith(_END) else MOST_LINE_BYTES


def read_line(stream: BinaryIO) -> bytes:
    """The next line, cut at the maximum of a line (``most_line_bytes``)."""
    line = stream.readline(MOST_LINE_BYTES)
    if len(line) < MOST_LINE_BYTES or line.endswith(b"\n"):
        return line
    return line + stream.readline(most_line_bytes(line) - MOST_LINE_BYTES)


def _size(stream: BinaryIO) -> int:
    position = stream.tell()
    size = stream.seek(0, os.SEEK_END)
    stream.seek(position)
    return size


class Lines:
    """Whole lines of a recording; a partial line behind the last newline is skipped.  ``most_bytes``: of any line.

    Raises BadInput, with ``name`` in the message, for data longer than a recording can be, and OSError.  After the
    last line, ``sha256`` is the hash of the content, and ``fault`` is the reason if reading ended early.
    """

    def __init__(self, stream: BinaryIO, name: str, most_bytes: int = MOST_END_BYTES) -> None:
        self._stream = stream
        self._name = name
        self._most_line_bytes = most_bytes
        self._digest = hashlib.sha256()
        self._most_bytes = min(MOST_BYTES, ALWAYS_BYTES + MOST_GROWTH * _size(stream))
        self.fault: str | None = None

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """The content in chunks."""
        total_bytes = 0
        try:
            content = plain_content(self._stream)
            while chunk := content.read(_CHUNK):
                self._digest.update(chunk)
                total_bytes += len(chunk)
                if total_bytes > self._most_bytes:
                    raise BadInput(
                        f"{self._name}: it expands to more than {self._most_bytes} bytes, "
                        "too many for a file of its size"
                    )
                yield chunk
        except zstandard.ZstdError as error:
            self.fault = f"its compression is damaged: {error}"

    def __iter__(self) -> Iterator[bytes]:
        pending: list[bytes] = []
        size = 0
        for chunk in self.chunks():
            *complete, last = chunk.split(b"\n")
            if complete:
                yield b"".join([*pending, complete[0], b"\n"])
                yield from (line + b"\n" for line in complete[1:])
                pending, size = [], 0
            pending.append(last)
            size += len(last)
            if size > MOST_LINE_BYTES:
                most_bytes = min(self._most_line_bytes, most_line_bytes(b"".join(pending[:2])))
                if size > most_bytes:
                    raise BadInput(f"{self._name}: a line is longer than {most_bytes} bytes, the maximum of a line")


@dataclass(frozen=True)
class Content:
    """The hash of a recording's uncompressed content, and its first and last whole line, empty if there is none."""

    sha256: str
    first: bytes
    last: bytes


def content_of(stream: BinaryIO, name: str) -> Content:
    """The content of a recording in one pass; raises BadInput or OSError."""
    lines = Lines(stream, name)
    first = last = b""
    for last in lines:
        first = first or last
    if lines.fault is not None:
        raise BadInput(f"{name}: {lines.fault}")
    return Content(lines.sha256, first, last)
