# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings in words: what an earlier bench left behind, and what is not as it was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

_NAMED = 3
"""So many places are named in one line; the rest is counted."""


def difference(entry: Mapping[str, Any]) -> str | None:
    """What a setting asked for and did not get, None where it got it or asked for nothing."""
    asked, granted = entry["asked"], entry["granted"]
    if asked is None or asked == granted:
        return None
    where = f" of CPU {entry['cpu']}" if entry.get("cpu") is not None else ""
    reason = f" ({entry['reason']})" if entry.get("reason") else ""
    got = "not granted" if granted is None else f"granted {granted}"
    return f"setting {entry['name']}{where}: asked {asked}, {got}{reason}"


def restored_text(places: Sequence[str]) -> str:
    """One line on what was put back."""
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    return f"put back what a fastenough that was killed had left changed: {', '.join(places[:_NAMED])}{more}"


def tell_settings(restored: Sequence[str], skipped: Iterable[str], entries: Iterable[Mapping[str, Any]],
                  tell: Callable[[str], None] | None) -> None:
    """A line for what was put back, one for each line of the journal skipped, one for each setting not made."""
    if tell is None:
        return
    for line in skipped:
        tell(line)
    if restored:
        tell(restored_text(restored))
    for line in filter(None, map(difference, entries)):
        tell(line)
