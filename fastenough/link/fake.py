# SPDX-License-Identifier: GPL-2.0-or-later
"""A board of recorded answers: files and output of another machine, readable anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fastenough.link.base import Completed, Link, Process, path_matches
from fastenough.model import NotApplicable


class FakeLink:
    """``files`` maps paths to contents; ``commands`` maps a command line (words joined by blanks) to its output."""

    name = "fake"
    near = True
    own_directory: Path | None = None

    @property
    def raised(self) -> Link:
        return self

    def __init__(self, files: Mapping[str, str], commands: Mapping[str, str] | None = None) -> None:
        self._files = {path: content.encode() for path, content in files.items()}
        self._commands = dict(commands or {})

    def run(self, argv: Sequence[str], timeout_s: float = 10.0, input: bytes = b"") -> Completed:
        line = " ".join(argv)
        if line not in self._commands:
            raise FileNotFoundError(2, "no such command", argv[0])
        return Completed(0, self._commands[line].encode(), b"")

    def start(
        self, argv: Sequence[str], *, input: bytes = b"", scratch: str | None = None, limit_s: float = 0.0
    ) -> Process:
        raise NotApplicable("a fake board runs nothing")

    def read(self, path: str) -> bytes:
        if path not in self._files:
            raise FileNotFoundError(2, "no such file", path)
        return self._files[path]

    def write(self, path: str, content: bytes) -> None:
        self._files[path] = content

    def exists(self, path: str) -> bool:
        return path in self._files or any(known.startswith(path.rstrip("/") + "/") for known in self._files)

    def glob(self, pattern: str) -> list[str]:
        depth = pattern.count("/")
        prefixes = {"/".join(known.split("/")[: depth + 1]) for known in self._files if known.count("/") >= depth}
        return sorted(path for path in prefixes if path_matches(path, pattern))

    def scratch_name(self) -> str:
        raise NotApplicable("a fake board has no directories of its own")

    def which(self, tool: str) -> str | None:
        return f"/usr/bin/{tool}" if any(line.split()[0] == tool for line in self._commands) else None
