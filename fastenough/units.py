# SPDX-License-Identifier: GPL-2.0-or-later
"""Durations, shares and times as people type them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_UNITS_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_DURATION = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([a-zµ]{1,3})")
_SHOWN = 60
"""Characters of a text that a message repeats."""


def parse_share(text: str) -> float:
    """``95%``, ``0.95``, ``1e-6`` as a share from 0 to 1; raises ValueError that says how to fix it."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError as error:
        raise ValueError(f"'{text[:_SHOWN]}' is no share; write 95%, 0.95 or 1e-6") from error
    if not 0 <= share <= 1:
        raise ValueError(f"'{text[:_SHOWN]}' must lie between 0 and 1, or 0% and 100%")
    return share


def parse_duration_ns(text: str) -> int:
    """``100us``, ``1.5ms``, ``2m`` in nanoseconds; raises ValueError that says how to fix it."""
    match = _DURATION.fullmatch(text.strip())
    if not match or match[2] not in _UNITS_NS:
        raise ValueError(
            f"'{text[:_SHOWN]}' is no duration; write a number and a unit, as in 100us, 20ms, 2m "
            f"(units: {', '.join(_UNITS_NS)})"
        )
    duration_ns = round(float(match[1]) * _UNITS_NS[match[2]])
    if not 0 < duration_ns < 2**62:
        raise ValueError(f"'{text[:_SHOWN]}' must be longer than 0 and shorter than a century")
    return duration_ns


def parse_instant_s(text: str) -> int:
    """``2026-11-28`` or ``2026-11-28T12:00Z`` (ISO 8601; UTC unless stated) in seconds since 1970.

    Raises ValueError that says how to fix it.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"'{text[:_SHOWN]}' is not a time; write it as 2026-11-28T12:00Z") from None
    at_s = int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
    if not 0 <= at_s * 10**9 < 2**63:
        raise ValueError(f"'{text[:_SHOWN]}' is not between 1970 and 2262")
    return at_s
