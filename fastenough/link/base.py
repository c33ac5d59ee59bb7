# SPDX-License-Identifier: GPL-2.0-or-later
"""What every link can do; the only way by which the bench touches a board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


class Process(Protocol):
    """A running process on the board, with everything it starts: none of it outlives this object or the bench."""

    @property
    def pid(self) -> int:
        """The root of the process tree, on the board."""

    @property
    def running(self) -> bool:
        """Whether the command has not ended yet."""

    def lines(self, timeout_s: float | None = None) -> Iterator[bytes]:
        """Lines of standard output as they come, newline included; raises Stalled after ``timeout_s`` of silence."""

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
        """Run a command to its end; raises FileNotFoundError where there is no such command, Stalled when too slow."""

    def start(self, argv: Sequence[str], *, input: bytes = b"", scratch: str | None = None,
              limit_s: float = 0.0) -> Process:
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
