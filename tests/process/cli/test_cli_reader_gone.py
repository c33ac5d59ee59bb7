# SPDX-License-Identifier: GPL-2.0-or-later
"""A reader that goes away, as ``head`` does, never makes the status the one that means FAIL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli_calls import environment

pytestmark = pytest.mark.untimed


@pytest.mark.parametrize(
    "arguments",
    [
        ("list-probes",),
        ("list-probes", "timer"),
        ("run", "--help"),
        ("--help",),
        ("list-probes", "--json"),
        ("nonsense",),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_gone_is_no_fail(tmp_path: Path, arguments: tuple[str, ...], unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "fastenough", *arguments],
        cwd=tmp_path,
        stdout=writing,
        env=environment(PYTHONUNBUFFERED=unbuffered),
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert ended.returncode == (2 if arguments == ("nonsense",) else 128 + signal.SIGPIPE), ended.stderr
    assert b"Traceback" not in ended.stderr
