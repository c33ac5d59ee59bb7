# SPDX-License-Identifier: GPL-2.0-or-later
"""What was requested and what was in effect, as read back."""

from __future__ import annotations

from fastenough.analysis import load_name, words
from fastenough.recording.head import Setting
from fastenough.report.context import Context
from fastenough.report.document import Column, Folded, Part, Section, Table, Text

_DIFFERS, _NOT_VERIFIED = "DIFFERS", "not verified"
_JUDGED = 4
"""The column that says so."""


def _whose(setting: Setting) -> str:
    parts = [] if setting.thread is None else [f"thread {setting.thread}"]
    parts += [] if setting.cpu is None else [f"CPU {setting.cpu}"]
    return ", ".join(parts) or "the run"


def _title(setting: Setting) -> str:
    """Its name without the unit, which stands with the values."""
    return setting.name.removesuffix("_ns").removesuffix("_us").replace("_", " ")


def _value(setting: Setting, value: object) -> str:
    """As it was read, with its unit; -1 is the kernel's word for no bound."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    unit = next((unit for suffix, unit in (("_ns", "ns"), ("_us", "µs")) if setting.name.endswith(suffix)), None)
    if not isinstance(value, int) or unit is None:
        return str(value)
    return f"{value:,} {unit}" if value >= 0 else f"{value}: no bound"


def _judged(setting: Setting) -> str:
    if setting.requested is None:
        return "only read"
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
                _whose(setting),
                _value(setting, setting.requested),
                _value(setting, setting.in_effect),
                _judged(setting),
                setting.reason or "",
            )
            rows.setdefault(row, []).append(load_name(recording) or "not stated")
    if not rows:
        return None
    columns = tuple(
        Column(title, numeric=False) for title in ("setting", "of", "requested", "in effect", "so", "reason", "loads")
    )
    shown = [
        (*row, "all runs" if len(loads) == len(measured) else ", ".join(dict.fromkeys(loads)))
        for row, loads in rows.items()
    ]
    odd = [row for row in shown if row[_JUDGED] in (_DIFFERS, _NOT_VERIFIED)]
    parts: list[Part] = (
        [Table("settings-differing", "Requested, and not or not surely in effect", columns, odd)]
        if odd
        else [Text("Whatever was requested was in effect.")]
    )
    parts.append(
        Folded(
            f"All {words.counted(len(shown), 'setting')}",
            [Table("settings", "Settings as read back from the running system", columns, shown)],
        )
    )
    return Section(
        "settings",
        "Settings requested and in effect",
        "Every value in effect was read back from the system before the run.",
        parts,
    )
