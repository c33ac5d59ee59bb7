# SPDX-License-Identifier: GPL-2.0-or-later
"""Untrusted files of other tools: bounded in size, and rejected with one line that has place and reason."""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from fastenough.model import BadInput

MOST_BYTES = 256 << 20
"""Four times the size of a histogram of 10,000 rows for 512 CPUs, or of 2 million raw samples."""
MOST_JSON = 16 << 20
"""A histogram of 10,000 rows for 64 CPUs; parsing JSON takes about 400 times as long as reading the bytes."""
MOST_LINE = 1 << 20
MOST_NUMBER = 2**62
_MOST_DEPTH = 32
_BLANK_MOST = 4096
_QUOTED_CHARS = 80
_INTEGER = re.compile(r"-?\d{1,19}\Z")
_ENDLESS = re.compile(r"\d{100}")
"""No tool writes such a number; Python raises an error for more than 4,300 digits."""
_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")
"""Python accepts the digits of every script."""


@dataclass(frozen=True)
class Source:
    """A file to import: ``path`` as given; ``content`` of at most 256 MiB.

    ``unit_ns``: unit of its values as stated by the user, for files that do not state it.
    """

    path: str
    content: bytes = field(repr=False)
    unit_ns: int | None = None

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def text(self) -> str:
        """The content as text, empty if it is binary."""
        if b"\0" in self.content:
            return ""
        try:
            return self.content.decode().replace("\r\n", "\n")
        except UnicodeDecodeError:
            return ""

    @cached_property
    def lines(self) -> list[str]:
        """The lines without line ends."""
        return self.text.split("\n")

    @cached_property
    def json(self) -> dict[str, Any]:
        """The JSON object in the file, empty for other content; raises BadInput for truncated or invalid JSON."""
        if not self.content[:_BLANK_MOST].lstrip().startswith(b"{"):
            return {}
        if len(self.content) > MOST_JSON:
            self.refuse(f"it contains {len(self.content) >> 20} MiB of JSON; the tools write at most {MOST_JSON >> 20}")
        try:
            document = json.loads(
                self.text, object_pairs_hook=_each_once, parse_constant=_no_number, parse_int=_integer
            )
        except RecursionError:
            self.refuse(f"its JSON is nested more than {_MOST_DEPTH} deep")
        except ValueError as error:
            self.refuse(f"its JSON is truncated or damaged: {str(error)[:_QUOTED_CHARS]}")
        return dict(document)

    def refuse(self, reason: str, line: int | None = None) -> NoReturn:
        """Raises BadInput; ``line`` counts from 1."""
        where = self.path if line is None else f"{self.path}:{line}"
        raise BadInput(f"{where}: not imported: {reason}")

    def readable(self) -> None:
        """Raises BadInput for numbers that no tool writes."""
        if _ENDLESS.search(self.text):
            self.refuse("it contains a number of a hundred digits or more: file modified")
        if match := _FOREIGN_DIGIT.search(self.text):
            self.refuse(
                f"it contains a digit that no tool writes, {match[0]!a}: file modified",
                self.text.count("\n", 0, match.start()) + 1,
            )

    def whole(self) -> None:
        """Raises BadInput if the last line is incomplete."""
        if not self.text.endswith("\n"):
            self.refuse("it ends within a line: file truncated, or the tool was killed")


def _each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name appears twice in one object")
    return members


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _integer(text: str) -> int:
    if len(text) > 20 or abs(int(text)) > MOST_NUMBER:
        raise ValueError("a number exceeds 62 bits")
    return int(text)


def read_source(path: Path, unit_ns: int | None = None) -> Source:
    """Read a file; ``unit_ns`` as in :class:`Source`.

    Raises BadInput if it cannot be read, or is not a regular file, empty or too long.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise BadInput(f"{path}: not imported: it is a directory; name a file in it")
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(f"{path}: not imported: not a regular file")
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(f"{path}: cannot be read: {error}") from error
    if len(content) > MOST_BYTES:
        raise BadInput(f"{path}: not imported: it is longer than {MOST_BYTES >> 20} MiB, the maximum size")
    if not content.strip():
        raise BadInput(f"{path}: not imported: it is empty")
    return Source(str(path), content, unit_ns)


@dataclass
class LineReader:
    """Reader of the lines of a source; ``number`` is that of the last line, from 1."""

    source: Source
    number: int = 0

    def __iter__(self) -> Iterator[str]:
        for line in self.source.lines[self.number :]:
            self.number += 1
            if len(line) > MOST_LINE:
                self.refuse("the line is too long")
            yield line

    def refuse(self, reason: str) -> NoReturn:
        self.source.refuse(reason, self.number or None)

    def refuse_second(self) -> NoReturn:
        """Raises BadInput for a file that holds the outputs of several runs, of which one would hide the others."""
        self.refuse("it contains more than one output: split it, and import each output by itself")

    def integer(self, text: str, what: str) -> int:
        """An integer of at most 62 bits; raises BadInput with ``what`` in the message."""
        if not _INTEGER.match(text) or abs(int(text)) > MOST_NUMBER:
            self.refuse(f"{what} is not an integer: {text[:_QUOTED_CHARS]!r}")
        return int(text)

    def count(self, text: str, what: str) -> int:
        """A non-negative integer."""
        number = self.integer(text, what)
        if number < 0:
            self.refuse(f"{what} is negative: {number}")
        return number


@dataclass
class GrowingValues:
    """Values of a live display that one run never decreases, by thread or CPU: raises BadInput for a second output."""

    reading: LineReader
    last: dict[Hashable, Sequence[int | Decimal]] = field(default_factory=dict)
    tasks: dict[Hashable, int] = field(default_factory=dict)

    def take(self, place: Hashable, *values: int | Decimal) -> None:
        """``values``: count, maximum, duration; a minimum with its sign changed."""
        if any(value < before for before, value in zip(self.last.get(place, values), values, strict=True)):
            self.reading.refuse_second()
        self.last[place] = values

    def take_task(self, place: Hashable, task: int) -> None:
        """``task``: the task id of a thread, 0 before it runs."""
        if task and self.tasks.setdefault(place, task) != task:
            self.reading.refuse_second()
