# SPDX-License-Identifier: GPL-2.0-or-later
"""Helpers of tests: the command line as a process of its own, and a store with one small recording in it."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.fork_server import ForkServer

ROOT = Path(__file__).resolve().parents[2]
_NAME = re.compile(r"[a-z][a-z-]*")
_NOTICE = re.compile(rb"^(fastenough: )?not root: .*\n", re.MULTILINE)


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


class _Commands:
    """Commands of one test process: the first of each name starts as for a user, further ones are forked."""

    def __init__(self) -> None:
        self._started: set[tuple[str, ...]] = set()
        self._idle: list[ForkServer] = []

    def run(
        self, arguments: Sequence[str], cwd: Path, variables: dict[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[bytes]:
        name = tuple(itertools.takewhile(_NAME.fullmatch, arguments[:2]))
        server = self._server(variables) if name in self._started else None
        self._started.add(name)
        if server is None:
            return _start([sys.executable, "-m", "fastenough", *arguments], cwd, variables, timeout_s)
        try:
            done = server.run(arguments, cwd, variables, timeout_s)
        except BaseException:
            server.close()
            raise
        self._idle.append(server)
        return done

    def _server(self, variables: dict[str, str]) -> ForkServer | None:
        """A server that has no request and can fork a command with these variables; None if there is no such."""
        try:
            server = self._idle.pop()
        except IndexError:
            server = ForkServer(environment())
        if server.can_fork(variables):
            return server
        self._idle.append(server)
        return None


_commands = _Commands()


def _start(
    command: Sequence[str], cwd: Path, variables: dict[str, str], timeout_s: float
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, timeout=timeout_s, check=False)


def fastenough(
    *arguments: str,
    cwd: Path,
    more: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
    timeout_s: float = 120,
) -> subprocess.CompletedProcess[bytes]:
    """Run one command; ``before`` is put in front of it, as in ``["setpriv", ...]``.

    The notice that an ordinary user's command uses sudo is left out: no test of an answer is about it.
    """
    variables = environment(**(more or {}))
    if before:
        done = _start([*before, sys.executable, "-m", "fastenough", *arguments], cwd, variables, timeout_s)
    else:
        done = _commands.run(arguments, cwd, variables, timeout_s)
    done.stderr = _NOTICE.sub(b"", done.stderr)
    return done


def command_line(
    *arguments: str,
    cwd: Path = ROOT,
    more: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
    timeout_s: float = 120,
) -> subprocess.CompletedProcess[str]:
    """The same, said as text."""
    done = fastenough(*arguments, cwd=cwd, more=more, before=before, timeout_s=timeout_s)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
