# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines that Xenomai's latency and EVL's latmus both print: mode (RTT), rounds (RTD) and summary (RTS) of one run."""

from __future__ import annotations

import re
from decimal import Decimal

from fastenough.exchange.source import GrowingValues, LineReader, Source

_LATENCY = r"\s*(-?\d+\.\d{3})"
_MODE = re.compile(r"(?:RTT\||#)\s*(\d+):(\d\d):(\d\d)\s+(\(.*\))\s*")
_ROUND = re.compile(rf"RTD\|(?:{_LATENCY}\|){{3}}\s*(\d+)\|\s*(\d+)\|{_LATENCY}\|{_LATENCY}\s*")
_SUMMARY = re.compile(rf"(?:RTS\||#)(?:{_LATENCY}\|){{3}}\s*(\d+)\|\s*(\d+)\|.*")
_ONCE = (re.compile("== Sampling period:"), re.compile("warming up"), _SUMMARY)


def require_one_run(source: Source) -> None:
    """Raises BadInput if the lines are of several runs: repeated titles, other modes, or values that decrease."""
    reading = LineReader(source)
    growing = GrowingValues(reading)
    seen: set[object] = set()
    modes: set[str] = set()
    for line in reading:
        once = next((pattern for pattern in _ONCE if pattern.match(line)), None)
        if once in seen or (_SUMMARY in seen and line.startswith(("RT", "==", "warming up"))):
            reading.refuse_second()
        seen |= {once} - {None}
        if match := _MODE.fullmatch(line):
            modes.add(match[4])
            growing.take("time", 3600 * int(match[1]) + 60 * int(match[2]) + int(match[3]))
        elif match := _ROUND.fullmatch(line):
            growing.take("worst", Decimal(match[5]), int(match[2]), int(match[3]))
        elif match := _SUMMARY.fullmatch(line):
            growing.take("worst", Decimal(match[1]), int(match[2]), int(match[3]))
    if len(modes) > 1:
        reading.refuse_second()
