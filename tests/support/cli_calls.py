# SPDX-License-Identifier: GPL-2.0-or-later
"""Helpers of tests: the command line as a process of its own, and a store with one small recording in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_NOTICE = re.compile(rb"^(fastenough: )?not root: .*\n", re.MULTILINE)


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


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
    done = subprocess.run(
        [*before, sys.executable, "-m", "fastenough", *arguments],
        cwd=cwd,
        env=environment(**(more or {})),
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
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
