# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs are called."""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import UTC, datetime, timedelta

_TIME_LENGTH = len("20261231T235959999Z")
_LEAST = timedelta(milliseconds=1)


def new_run_id(after: str = "") -> str:
    """Sorts by time of begin, and is unique without asking anybody; behind the id ``after`` even if the clock was set
    back.  An ``after`` that tells no time is none of ours."""
    begin = datetime.now(UTC)
    with suppress(ValueError, OverflowError):
        begin = max(begin, datetime.strptime(after[:_TIME_LENGTH], "%Y%m%dT%H%M%S%fZ").replace(tzinfo=UTC) + _LEAST)
    return f"{begin:%Y%m%dT%H%M%S}{begin.microsecond // 1000:03d}Z-{secrets.token_hex(3)}"
