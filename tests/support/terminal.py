# SPDX-License-Identifier: GPL-2.0-or-later
"""Helpers of tests: a command on a real pseudo-terminal of a given size, and what its screen showed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.cli_calls import environment

_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*([A-Za-z])")


def screen(said: str) -> list[str]:
    """The lines of all pictures, one after the other, without what moves the cursor or colours them."""
    apart = said.replace("\r\x1b[2K", "\n")
    return [line.rstrip() for line in _SEQUENCE.sub("", apart).replace("\r", "").split("\n")]


class Terminal:
    """``fastenough`` with a terminal for all its streams; use as a context, at whose end it has been killed."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path,
        columns: int = 80,
        lines: int = 24,
        before: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        given = {} if variables is None else variables
        env = environment(**{"TERM": "xterm", **given})
        for name in ("COLUMNS", "LINES"):
            env.pop(name, None)
        self.process = subprocess.Popen(
            [*before, sys.executable, "-m", "fastenough", *arguments],
            cwd=cwd,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._bytes = b""
        self._encoding = given.get("PYTHONIOENCODING", "utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    @property
    def said(self) -> str:
        """Everything that was written to the terminal so far."""
        return self._bytes.decode(self._encoding)

    def type(self, keys: str) -> None:
        """As at the keyboard."""
        os.write(self._master, keys.encode())

    def _read(self, timeout_s: float) -> bool:
        """Whether it can go on saying something."""
        if not select.select([self._master], [], [], timeout_s)[0]:
            return True
        try:
            piece = os.read(self._master, 65536)
        except OSError:
            return False
        self._bytes += piece
        return bool(piece)

    def until(self, holds: Callable[[str], bool], timeout_s: float = 60) -> str:
        """What was said when that came to hold of it; fails where it ends, or takes longer."""
        deadline = time.monotonic() + timeout_s
        while not holds(self.said):
            assert time.monotonic() < deadline, self.said
            if not self._read(0.1):
                assert holds(self.said), self.said
        return self.said

    def picture(self, words: str) -> str:
        """What was said up to a second picture with these words, which each has once: the first of them is whole."""
        said = self.until(lambda said: said.count(words) > 1)
        return said[: said.rindex(words)]

    def end(self, timeout_s: float = 60) -> tuple[int, str]:
        """Its exit status, and all that it said."""
        deadline = time.monotonic() + timeout_s
        while self._read(0.2):
            assert time.monotonic() < deadline, self.said
        return self.process.wait(timeout_s), self.said
