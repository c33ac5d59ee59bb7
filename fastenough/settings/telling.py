# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings in words: what an earlier bench left behind, and what is not as it was requested."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fastenough.recording.head import Setting

_NAMED = 3
"""So many places are named in one line; the rest is counted."""


def difference(setting: Setting) -> str | None:
    """What was requested and is not in effect; None where it is, or where nothing was requested."""
    if not setting.differs:
        return None
    where = "" if setting.cpu is None else f" of CPU {setting.cpu}"
    reason = f" ({setting.reason})" if setting.reason else ""
    found = "not in effect" if setting.in_effect is None else f"in effect {setting.in_effect}"
    return f"setting {setting.name}{where}: requested {setting.requested}, {found}{reason}"


def restored_text(places: Sequence[str]) -> str:
    """One line on what was put back."""
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    return f"put back what a fastenough that was killed had left changed: {', '.join(places[:_NAMED])}{more}"


def tell_settings(
    restored: Sequence[str], skipped: Iterable[str], entries: Iterable[Setting], tell: Callable[[str], None] | None
) -> None:
    """A line for what was put back, one for each line of the journal skipped, one for each setting not made."""
    if tell is None:
        return
    for line in skipped:
        tell(line)
    if restored:
        tell(restored_text(restored))
    for line in filter(None, map(difference, entries)):
        tell(line)
