# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits of ordinary users for real-time priority and locked memory (limits.conf(5))."""

from __future__ import annotations

from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs

_FILES = ("/etc/security/limits.conf", "/etc/security/limits.d/*.conf")
_GROUPS = "/etc/group"
_ITEMS = ("rtprio", "memlock")
_NAMED = ("realtime", "rtkit", "audio", "pipewire", "video")


class LimitLine(TypedDict):
    """One line of limits.conf(5): user or group, limited item, value."""

    who: str
    item: str
    value: str


class LimitsFact(TypedDict):
    """Lines for rtprio and memlock, and the groups intended for them."""

    lines: list[LimitLine]
    groups: list[str]


def _lines(inputs: Inputs) -> list[LimitLine]:
    texts = [text for pattern in _FILES for _, text in inputs.matching(pattern)]
    if not texts and not any(path in inputs.files for path in _FILES):
        raise Absent("there is no /etc/security/limits.conf: who may have real-time priority is decided elsewhere")
    rows = (line.partition("#")[0].split() for text in texts for line in text.splitlines())
    return [{"who": row[0], "item": row[2], "value": row[3]} for row in rows if len(row) == 4 and row[2] in _ITEMS]


def _groups(inputs: Inputs) -> list[str]:
    """The existing groups of those to which distributions grant real-time priority."""
    known = {line.partition(":")[0] for line in inputs.text(_GROUPS).splitlines()}
    return sorted(known.intersection(_NAMED))


def _limits(inputs: Inputs) -> LimitsFact:
    return {"lines": _lines(inputs), "groups": _groups(inputs)}


FACTS = (Fact("real_time_limits", _limits, files=(*_FILES, _GROUPS)),)
