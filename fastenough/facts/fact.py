# SPDX-License-Identifier: GPL-2.0-or-later
"""Definition of a fact: its files and commands, and a pure function that parses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastenough.link.base import path_matches

Profile = Mapping[str, Any]
"""Facts by name, as JSON has them: open, since a stored profile may be of another version."""


class Absent(Exception):
    """The fact is not available on this board; the message is the reason."""


class Unread(Exception):
    """A command did not end on this board, so the fact is unknown; the message is the reason."""


@dataclass(frozen=True)
class Inputs:
    """Data read from a board: contents by path, outputs by command line.

    ``unread``: why the output of a command is unknown, by command line.
    """

    files: Mapping[str, str]
    outputs: Mapping[str, str]
    unread: Mapping[str, str] = field(default_factory=dict)

    def text(self, path: str) -> str:
        """The content of a file without surrounding white space and NULs; raises Absent."""
        if path not in self.files:
            raise Absent(f"{path} is not there")
        return self.files[path].strip(" \n\t\0")

    def get(self, path: str) -> str | None:
        return self.text(path) if path in self.files else None

    def number(self, path: str) -> int | None:
        """The integer in a file, None if there is no such file or number."""
        try:
            return int(self.text(path), 0)
        except (Absent, ValueError):
            return None

    def output(self, command: str) -> str:
        """The output of a command; raises Absent and Unread."""
        output = self.optional_output(command)
        if output is None:
            raise Absent(f"{command.split(maxsplit=1)[0]} is not there")
        return output

    def optional_output(self, command: str) -> str | None:
        """The output of a command, None without the command; raises Unread."""
        if command in self.unread:
            raise Unread(self.unread[command])
        return self.outputs.get(command)

    def matching(self, pattern: str) -> Iterator[tuple[tuple[str, ...], str]]:
        """For each matching file, the values of its wildcards, and its content."""
        expected = pattern.split("/")
        for path, content in self.files.items():
            if path_matches(path, pattern):
                parts = zip(path.split("/"), expected, strict=True)
                starred = (part for part, pattern_part in parts if part != pattern_part)
                yield tuple(starred), content.strip(" \n\t\0")


@dataclass(frozen=True)
class Fact:
    """One fact of a profile.

    ``files`` may hold patterns.  ``parse`` gets the content of ``binary_files`` in hexadecimal.  A command is one
    line, split at blanks.  ``further`` names files that are known only once those were read, and raises nothing.
    ``parse`` returns what JSON can hold, or raises Absent or Unread.  A ``volatile`` fact changes from run to run on
    the same board and stays out of the profile's hash.
    """

    name: str
    parse: Callable[[Inputs], object]
    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    volatile: bool = False
    further: Callable[[Inputs], list[str]] | None = None
    binary_files: tuple[str, ...] = ()
