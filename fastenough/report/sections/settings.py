# SPDX-License-Identifier: GPL-2.0-or-later
"""Requested settings and the values read back."""

from __future__ import annotations

from fastenough.analysis import load_name, words
from fastenough.recording.head import Setting
from fastenough.report.context import Context
from fastenough.report.document import Column, Folded, Part, Section, Table, Text

_DIFFERS, _NOT_VERIFIED = "DIFFERS", "not verified"
_JUDGED = 4
"""Index of the column state."""


def _scope(setting: Setting) -> str:
    parts = [] if setting.thread is None else [f"thread {setting.thread}"]
    parts += [] if setting.cpu is None else [f"CPU {setting.cpu}"]
    return ", ".join(parts) or "the run"


def _title(setting: Setting) -> str:
    """Its name without the unit."""
    return setting.name.removesuffix("_ns").removesuffix("_us").replace("_", " ")


def _value(setting: Setting, value: object) -> str:
    """The value with its unit; -1 means no limit to the kernel."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    unit = next((unit for suffix, unit in (("_ns", "ns"), ("_us", "µs")) if setting.name.endswith(suffix)), None)
    if not isinstance(value, int) or unit is None:
        return str(value)
    return f"{value:,} {unit}" if value >= 0 else f"{value}: no limit"


def _judged(setting: Setting) -> str:
    if setting.requested is None:
        return "not requested"
    if setting.in_effect is None:
        return _NOT_VERIFIED
    return _DIFFERS if setting.differs else "as requested"


def section(context: Context) -> Section | None:
    rows: dict[tuple[str, ...], list[str]] = {}
    measured = [recording for group in context.groups for recording in group.recordings]
    for recording in measured:
        for setting in recording.head.settings:
            row = (
                _title(setting),
                _scope(setting),
                _value(setting, setting.requested),
                _value(setting, setting.in_effect),
                _judged(setting),
                setting.reason or "",
            )
            rows.setdefault(row, []).append(load_name(recording) or "not stated")
    if not rows:
        return None
    columns = tuple(
        Column(title, numeric=False)
        for title in ("setting", "scope", "requested", "in effect", "state", "reason", "loads")
    )
    shown = [
        (*row, "all runs" if len(loads) == len(measured) else ", ".join(dict.fromkeys(loads)))
        for row, loads in rows.items()
    ]
    odd = [row for row in shown if row[_JUDGED] in (_DIFFERS, _NOT_VERIFIED)]
    parts: list[Part] = (
        [Table("settings-differing", "Requested settings that are not, or not verifiably, in effect", columns, odd)]
        if odd
        else [Text("All requested settings were in effect.")]
    )
    parts.append(
        Folded(
            f"All {words.counted(len(shown), 'setting')}",
            [Table("settings", "Settings as read back from the running system", columns, shown)],
        )
    )
    return Section(
        "settings",
        "Settings",
        "Every value in effect was read back from the system before the run.",
        parts,
    )
