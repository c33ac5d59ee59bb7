# SPDX-License-Identifier: GPL-2.0-or-later
"""The last output of a labgrid place's serial console, read by a separate process (labgrid_console.py)."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastenough.words import LINE_CHARS, output_lines

_READER = Path(__file__).with_name("labgrid_console.py")
_ANSWER_S = 5.0
_ANSWER_MOST = 65536
_LAST_LINES = 12


def console_sentence(reply: bytes | str) -> list[str]:
    """Return one sentence from an answer of the reader; raise ValueError for an invalid answer."""
    answer = json.loads(reply)
    lines = output_lines(base64.b64decode(answer["output"]))[-_LAST_LINES:]
    if lines:
        return [f"last console output: {' | '.join(lines)}"]
    if answer["fault"]:
        why = output_lines(str(answer["fault"]).encode())
        return [f"console not readable: {' '.join(why)[:LINE_CHARS]}"]
    return ["no console output"]


class Console:
    """The console at an exported NetworkSerialPort; ``port``: its arguments, None for a place without one."""

    def __init__(self, port: Mapping[str, Any] | None) -> None:
        self._process = (
            None
            if port is None
            else subprocess.Popen(
                [sys.executable, "-P", str(_READER), json.dumps(port)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
            )
        )
        self._unanswered = 0
        self._received = b""

    def last_words(self) -> list[str]:
        """Return at most one sentence: the last lines, printable and of bounded length, or why there are none."""
        if self._process is None:
            return []
        try:
            return console_sentence(self._ask())
        except (OSError, ValueError):
            return ["console not readable: labgrid has not answered"]

    def _ask(self) -> bytes:
        """Return the answer; raise OSError if it does not arrive in time.

        The answers to earlier requests come first, if they were late, and are discarded.
        """
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        self._unanswered += 1
        deadline_mono_s = time.monotonic() + _ANSWER_S
        while self._received.count(b"\n") < self._unanswered and len(self._received) < self._unanswered * _ANSWER_MOST:
            remaining_s = max(0.0, deadline_mono_s - time.monotonic())
            if not select.select([self._process.stdout], [], [], remaining_s)[0]:
                raise TimeoutError
            part = os.read(self._process.stdout.fileno(), _ANSWER_MOST)
            if not part:
                raise BrokenPipeError
            self._received += part
        answers = self._received.splitlines()
        self._unanswered, self._received = 0, b""
        return answers[-1]

    def close(self) -> None:
        """End the reader and everything it has started."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout):
            if file is not None:
                file.close()
