# SPDX-License-Identifier: GPL-2.0-or-later
"""Writing recordings from Python (gauge runs, imports, tests); the probe writes its own in C."""

from __future__ import annotations

import json
from typing import IO, Any

from fastenough.recording.histogram import Histogram


def interval_series(series_id: int, histogram: Histogram, lost: int = 0, missed: int = 0) -> dict[str, Any]:
    """One entry of an interval's ``series`` list."""
    entry: dict[str, Any] = {"id": series_id, "count": histogram.total, "lost": lost, "missed": missed}
    if histogram.total:
        entry |= {"min": histogram.minimum, "max": histogram.maximum}
    buckets = [[int(i), int(n)] for i, n in zip(histogram.index, histogram.count, strict=True)]
    return entry | {"sum": histogram.sum, "sum_sq": str(histogram.sum_sq), "buckets": buckets}


def end_series(series_id: int, total: Histogram, lost: int = 0, missed: int = 0) -> dict[str, Any]:
    """One entry of the end's ``series`` list."""
    entry: dict[str, Any] = {"id": series_id, "taken": total.total + lost, "stored": total.total, "lost": lost,
                             "missed": missed}
    if total.total:
        entry |= {"min": total.minimum, "max": total.maximum}
    return entry | {"sum": total.sum, "sum_sq": str(total.sum_sq)}


class RecordingWriter:
    """Writes lines as they come, one whole line per write, so that a cut never tears more than the last."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def line(self, line: dict[str, Any]) -> None:
        """Append one line and hand it to the operating system at once."""
        self._stream.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self._stream.flush()
