# SPDX-License-Identifier: GPL-2.0-or-later
"""What every link can do; the only way by which the bench touches a board."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from fastenough.model import FastenoughError


@dataclass(frozen=True)
class Completed:
    """How a command on the board ended; ``status`` is 128 + the signal's number where one ended it."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")


class Stalled(FastenoughError):
    """A process on the board said nothing for longer than it was given."""


class BoardGone(FastenoughError):
    """The board has ended or cannot be reached any more; nothing can be asked of it, or put back on it."""


MOST_OUTPUT = 64 << 20
"""Bytes of standard output of a command that is run to its end."""
MOST_LINE = 32 << 20
"""Bytes of a line of a command that is followed; no line of a recording is as long."""
_SLOWEST_BYTES_PER_S = 20_000
_MOST_MORE_S = 300.0


class Flood(FastenoughError):
    """A process on the board wrote more than any of its kind does."""


class Patience:
    """How much a command may still write, and how long it may still take: what has come extends the time, up to five
    minutes, so that a slow transport may be slow, while a byte now and then does not hold anyone.
    """

    def __init__(self, name: str, timeout_s: float | None, most: int) -> None:
        self._name = name
        self._timeout_s = timeout_s
        self._most = most
        self.renew()

    def renew(self, taken: int = 0) -> None:
        """Begin anew, such as after a whole line; ``taken`` bytes of what is next have come."""
        self._begun_s = time.monotonic()
        self._taken = taken

    @property
    def left_s(self) -> float | None:
        if self._timeout_s is None:
            return None
        more_s = min(self._taken / _SLOWEST_BYTES_PER_S, _MOST_MORE_S)
        return max(0.0, self._begun_s + self._timeout_s + more_s - time.monotonic())

    def take(self, size: int) -> None:
        """Raises Flood."""
        self._taken += size
        if self._taken > self._most:
            raise Flood(f"{self._name} wrote more than {self._most >> 20} MB of output; reading stopped")

    def stalled(self) -> Stalled:
        """What to raise when the time is over."""
        if not self._taken:
            return Stalled(f"{self._name}: no output for {self._timeout_s:g} s")
        return Stalled(f"{self._name} has not finished: {self._taken} bytes received in over {self._timeout_s:g} s")


def split_lines(chunks: Iterator[bytes], patience: Patience) -> Iterator[bytes]:
    """The lines of chunks, of which the patience has taken each; the last one may be torn."""
    pending: list[bytes] = []
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*pending, line, b"\n"])
            pending = []
        if whole:
            patience.renew(len(rest))  # from now on: whoever takes the lines may have needed some time
        if rest:
            pending.append(rest)
    if pending:
        yield b"".join(pending)


class Process(Protocol):
    """A running process on the board, with everything it starts: none of it outlives this object or the bench."""

    @property
    def pid(self) -> int:
        """The root of the process tree, on the board."""

    @property
    def running(self) -> bool:
        """Whether the command has not ended yet."""

    def lines(self, timeout_s: float | None = None) -> Iterator[bytes]:
        """Lines of standard output as they come, newline included.

        Raises Stalled where a whole line takes longer than ``timeout_s``, Flood for one that does not end.
        """

    def signal(self, number: int) -> None:
        """Send a signal to the started command (not to its children); nothing happens when it has ended."""

    def wait(self, timeout_s: float | None = None) -> int:
        """The exit status of the command, once no process of its tree is left; raises Stalled."""

    def stop(self) -> int:
        """Ask the command to end, kill what has not ended after a short grace, and return its exit status."""

    def stderr(self) -> bytes:
        """What the tree has written to standard error so far."""


class Link(Protocol):
    """A board, as seen from the bench.  Paths are the board's; files are read whole."""

    @property
    def name(self) -> str:
        """What this board is called where several are."""

    @property
    def near(self) -> bool:
        """Each question is answered at once; of a board farther away many things are asked at a time."""

    @property
    def raised(self) -> Link:
        """The same board with all the rights the bench has there: for the probe and for settings, not for loads."""

    def run(self, argv: Sequence[str], timeout_s: float = 10.0, input: bytes = b"") -> Completed:
        """Run a command to its end; raises FileNotFoundError where there is no such command, Stalled when too slow,
        Flood (BoardGone of another machine) where its output does not end."""

    def start(
        self, argv: Sequence[str], *, input: bytes = b"", scratch: str | None = None, limit_s: float = 0.0
    ) -> Process:
        """Start a command; the directory ``scratch``, if given, is made before and removed after its last process.

        After ``limit_s``, unless 0, the tree is ended whatever the bench does.
        """

    def read(self, path: str) -> bytes:
        """The content of a file; raises OSError."""

    def write(self, path: str, content: bytes) -> None:
        """Write into a file, in one write; raises OSError."""

    def exists(self, path: str) -> bool: ...

    def glob(self, pattern: str) -> list[str]:
        """The paths that match, sorted."""

    def scratch_name(self) -> str:
        """A path nobody uses, on a disk rather than in memory, for ``start`` to make a directory of and remove."""

    def which(self, tool: str) -> str | None:
        """Where a command lies, or None."""


_HEADER = re.compile(rb"(?:\A|\n)==> (/[^\n]+) <==\n")
_TIMEOUT_S = 60.0
_AT_ONCE = 500
"""Patterns on one command line, whose length is bounded."""


def read_matching(link: Link, patterns: Iterable[str]) -> dict[str, bytes]:
    """Content by path of every file that matches any of the patterns and can be read."""
    wanted = sorted(set(patterns))
    if link.near:
        return _one_by_one(link, wanted)
    compressed = [pattern for pattern in wanted if pattern.endswith(".gz")]
    return _one_by_one(link, compressed) | _all_at_once(link, [each for each in wanted if each not in compressed])


def _one_by_one(link: Link, patterns: list[str]) -> dict[str, bytes]:
    contents = {}
    for path in sorted({path for pattern in patterns for path in _expanded(link, pattern)}):
        try:
            contents[path] = link.read(path)
        except OSError:
            continue
    return contents


def _expanded(link: Link, pattern: str) -> list[str]:
    return link.glob(pattern) if _is_pattern(pattern) else [pattern]


def _is_pattern(path: str) -> bool:
    return re.search(r"[*?\[]", path) is not None


def _all_at_once(link: Link, patterns: list[str]) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for begin in range(0, len(patterns), _AT_ONCE):
        contents |= _some_at_once(link, patterns[begin : begin + _AT_ONCE])
    return contents


def _some_at_once(link: Link, patterns: list[str]) -> dict[str, bytes]:
    """By ``head``, which names each file before its content; /dev/null makes sure that there are several."""
    words = " ".join(path if _is_pattern(path) else shlex.quote(path) for path in patterns)
    try:
        completed = link.run(["sh", "-c", f"head -n 1000000 /dev/null {words} 2>/dev/null"], _TIMEOUT_S)
    except (OSError, Stalled):
        return _one_by_one(link, patterns)
    _, *parts = _HEADER.split(completed.stdout)
    return {
        path.decode(errors="replace"): content
        for path, content in zip(parts[::2], parts[1::2], strict=True)
        if path != b"/dev/null"
    }
