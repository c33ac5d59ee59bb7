# SPDX-License-Identifier: GPL-2.0-or-later
"""Interfaces of links and processes: the only access of the bench to a board."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from fastenough.model import FastenoughError


@dataclass(frozen=True)
class Completed:
    """Result of a command on the board; ``status``: exit status, or 128 + number of the signal that ended it."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")


class Stalled(FastenoughError):
    """A process on the board exceeded its time limit without output."""


class BoardGone(FastenoughError):
    """The board has ended or cannot be reached any more; its settings cannot be read or restored."""


MOST_OUTPUT = 64 << 20
"""Upper limit for the standard output [bytes] of a command that is run to its end."""
MOST_LINE = 272 << 20
"""Upper limit for a line [bytes] of a command that is followed; lines of a recording are shorter."""
_SLOWEST_BYTES_PER_S = 20_000
_MOST_MORE_S = 300.0


class Flood(FastenoughError):
    """A process on the board exceeded its output limit."""


class Patience:
    """Limits of a command's output and time.

    Received bytes extend the time limit, by up to five minutes: a slow transport is allowed, while occasional bytes do
    not extend it without end.
    """

    def __init__(self, name: str, timeout_s: float | None, most: int) -> None:
        self._name = name
        self._timeout_s = timeout_s
        self._most = most
        self.renew()

    def renew(self, taken: int = 0) -> None:
        """Restart both limits, for example after a whole line; ``taken``: bytes already received of the next one."""
        self._begun_s = time.monotonic()
        self._taken = taken

    @property
    def left_s(self) -> float | None:
        if self._timeout_s is None:
            return None
        more_s = min(self._taken / _SLOWEST_BYTES_PER_S, _MOST_MORE_S)
        return max(0.0, self._begun_s + self._timeout_s + more_s - time.monotonic())

    def take(self, size: int) -> None:
        """Count received bytes; raise Flood above the limit."""
        self._taken += size
        if self._taken > self._most:
            raise Flood(f"{self._name} wrote more than {self._most >> 20} MB of output; reading stopped")

    def stalled(self) -> Stalled:
        """Return the error for an exceeded time limit."""
        if not self._taken:
            return Stalled(f"{self._name}: no output for {self._timeout_s:g} s")
        return Stalled(f"{self._name} has not finished: {self._taken} bytes received in over {self._timeout_s:g} s")


def split_lines(chunks: Iterator[bytes], patience: Patience) -> Iterator[bytes]:
    """Yield the lines of chunks that ``patience`` has counted; the last line may be incomplete."""
    pending: list[bytes] = []
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*pending, line, b"\n"])
            pending = []
        if whole:
            patience.renew(len(rest))  # the time that the consumer of the lines took does not count
        if rest:
            pending.append(rest)
    if pending:
        yield b"".join(pending)


class Process(Protocol):
    """A process tree on the board; it ends with this object or with the bench."""

    @property
    def pid(self) -> int:
        """Process id, on the board, of the root of the process tree."""

    @property
    def running(self) -> bool:
        """Whether the command is running."""

    def lines(self, timeout_s: float | None = None) -> Iterator[bytes]:
        """Yield the lines of standard output as they arrive, newline included.

        Raises Stalled if a whole line takes longer than ``timeout_s``, Flood for a line without an end.
        """

    def signal(self, number: int) -> None:
        """Send a signal to the command (not to its children); without effect when it has ended."""

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait until the whole tree has ended, and return the exit status of the command; raise Stalled."""

    def stop(self) -> int:
        """Ask the command to end, kill the tree after a short grace, and return the exit status of the command."""

    def stderr(self) -> bytes:
        """Return what the tree has written to standard error so far."""


class Link(Protocol):
    """A board as seen from the bench.  Paths are paths on the board; files are read as a whole."""

    @property
    def name(self) -> str:
        """Name of this board."""

    @property
    def near(self) -> bool:
        """Whether each request is answered at once; on other boards several requests are combined."""

    @property
    def own_directory(self) -> Path | None:
        """Directory on this machine for a board that ends with this process; None for any other board."""

    @property
    def raised(self) -> Link:
        """The same board with all privileges that the bench has there: for the probe and settings, not for loads."""

    def run(self, argv: Sequence[str], timeout_s: float = 10.0, input: bytes = b"") -> Completed:
        """Run a command to its end.

        Raises FileNotFoundError for an unknown command, Stalled when the time limit is exceeded, Flood (on another
        machine: BoardGone) when the output limit is exceeded.
        """

    def start(
        self, argv: Sequence[str], *, input: bytes = b"", scratch: str | None = None, limit_s: float = 0.0
    ) -> Process:
        """Start a command; the directory ``scratch``, if given, is created before and removed after its last process.

        After ``limit_s``, unless 0, the tree is ended even if the bench does nothing.
        """

    def read(self, path: str) -> bytes:
        """Return the content of a file; raise OSError."""

    def write(self, path: str, content: bytes) -> None:
        """Write a file in one write; raise OSError."""

    def exists(self, path: str) -> bool: ...

    def glob(self, pattern: str) -> list[str]:
        """Return the matching paths, sorted."""

    def scratch_name(self) -> str:
        """Return an unused path, on a disk rather than in memory, for the directory ``scratch`` of ``start``."""

    def which(self, tool: str) -> str | None:
        """Return the path of a command, or None."""


_HEADER = re.compile(rb"(?:\A|\n)==> (/[^\n]+) <==\n")
HEAD = "head -n 1000000 /dev/null"
"""Prints each file behind it, after a line with its name."""
_TIMEOUT_S = 60.0
_AT_ONCE = 500
"""Upper limit for the patterns on one command line, whose length is limited."""


def read_matching(link: Link, patterns: Iterable[str]) -> dict[str, bytes]:
    """Return, by path, the content of every readable file that matches any of the patterns; several per request."""
    distinct = sorted(set(patterns))
    if link.near:
        return _one_by_one(link, distinct)
    compressed = [pattern for pattern in distinct if pattern.endswith(".gz")]
    plain = [pattern for pattern in distinct if pattern not in compressed]
    return _one_by_one(link, compressed) | _all_at_once(link, plain)


def _one_by_one(link: Link, patterns: list[str]) -> dict[str, bytes]:
    contents = {}
    for path in sorted({path for pattern in patterns for path in _paths(link, pattern)}):
        try:
            contents[path] = link.read(path)
        except OSError:
            continue
    return contents


def _paths(link: Link, pattern: str) -> list[str]:
    return link.glob(pattern) if _is_pattern(pattern) else [pattern]


def _is_pattern(path: str) -> bool:
    return re.search(r"[*?\[]", path) is not None


def _all_at_once(link: Link, patterns: list[str]) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for begin in range(0, len(patterns), _AT_ONCE):
        contents |= _some_at_once(link, patterns[begin : begin + _AT_ONCE])
    return contents


def _some_at_once(link: Link, patterns: list[str]) -> dict[str, bytes]:
    """Read by ``head``, which prints each file's name before its content if there are several: hence /dev/null."""
    arguments = " ".join(path if _is_pattern(path) else shlex.quote(path) for path in patterns)
    try:
        completed = link.run(["sh", "-c", f"{HEAD} {arguments} 2>/dev/null"], _TIMEOUT_S)
    except (OSError, Stalled):
        return _one_by_one(link, patterns)
    return printed_files(completed.stdout, patterns)


def printed_files(output: bytes, patterns: Iterable[str]) -> dict[str, bytes]:
    """Return, by path, the contents that ``HEAD`` printed of files that match the patterns.

    The name of a task may have line ends and look like a header, but is too short for the path of a requested file.
    """
    expected = {"/dev/null", *patterns}
    wild = [pattern for pattern in expected if _is_pattern(pattern)]
    contents: dict[str, bytes] = {}
    path, begin = "/dev/null", 0
    for header in _HEADER.finditer(output):
        name = header[1].decode(errors="replace")
        if name in expected or any(path_matches(name, pattern) for pattern in wild):
            contents[path] = output[begin : header.start()]
            path, begin = name, header.end()
    contents[path] = output[begin:]
    del contents["/dev/null"]
    return contents


def path_matches(path: str, pattern: str) -> bool:
    """Return whether a path matches, component by component as in a shell: a star does not match a slash."""
    names, parts = path.split("/"), pattern.split("/")
    return len(names) == len(parts) and all(map(fnmatchcase, names, parts))
