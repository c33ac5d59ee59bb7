# SPDX-License-Identifier: GPL-2.0-or-later
"""Writing recordings from Python (gauge runs, imports, tests); the probe writes its own in C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from fastenough.recording.building import line_bytes


class RecordingWriter:
    """Writes lines as they come, one whole line per write, so that a cut never tears more than the last."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def line(self, line: Mapping[str, Any]) -> None:
        """Append one line and hand it to the operating system at once."""
        self._stream.write(line_bytes(line))
        self._stream.flush()
