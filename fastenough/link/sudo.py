# SPDX-License-Identifier: GPL-2.0-or-later
"""The bench's own machine for an ordinary user with sudo: root measures and makes settings, all else is the user's.

The bench stays the user's process, so the store, the journal and the report are the user's, and root writes into no
folder of theirs.  What root runs is Python in isolated mode with the guard's file, and below it the command named.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from fastenough.files import require_trusted
from fastenough.link import guard
from fastenough.link.base import Link, Stalled
from fastenough.link.local import LocalLink, LocalProcess

_SUDO = ("sudo", "-n", "--")
_TIMEOUT_S = 10.0
_WRITE = 'printf %s "$2" >"$1"'


class _Root(LocalLink):
    """Commands and writes with root's rights."""

    def _started(self, argv: Sequence[str], input: bytes, scratch: str | None, limit_s: float) -> LocalProcess:
        program = self.which(argv[0])
        if program is None:
            raise FileNotFoundError(2, "no such command", argv[0])
        if input:
            raise ValueError("standard input is taken by the lifeline")
        for path in (sys.executable, f"{sys.prefix}/pyvenv.cfg", guard.__file__, program):
            require_trusted(path)
        return LocalProcess([program, *argv[1:]], b"", scratch, limit_s, through=_SUDO)

    def write(self, path: str, content: bytes) -> None:
        done = self.run(["sh", "-c", _WRITE, "sh", path, content.decode()], _TIMEOUT_S)
        if done.status:
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["refused"]
            raise OSError(1, said[-1].removeprefix("sh: "), path)


class SudoLink(LocalLink):
    """The local board of a user who may become root without being asked."""

    @property
    def raised(self) -> Link:
        return _Root()


def may_sudo() -> bool:
    """Whether sudo runs a command as root, started the way it will be, without asking for a password.

    Raises Untrusted where it does and root is not to run what it would be given.
    """
    if shutil.which(_SUDO[0]) is None:
        return False
    try:
        return all(
            link.run(words, _TIMEOUT_S).status == 0
            for link, words in ((LocalLink(), [*_SUDO, "true"]), (_Root(), ["true"]))
        )
    except Stalled:
        return False
