# SPDX-License-Identifier: GPL-2.0-or-later
"""What was requested and what was in effect, as read back."""

from __future__ import annotations

from fastenough.analysis import load_name
from fastenough.recording.head import Setting
from fastenough.report.context import Context
from fastenough.report.document import Column, Section, Table


def _whose(setting: Setting) -> str:
    parts = [] if setting.thread is None else [f"thread {setting.thread}"]
    parts += [] if setting.cpu is None else [f"CPU {setting.cpu}"]
    return ", ".join(parts) or "the run"


def _judged(setting: Setting) -> str:
    if setting.requested is None:
        return "only read"
    if setting.in_effect is None:
        return "not verified"
    return "DIFFERS" if setting.differs else "as requested"


def section(context: Context) -> Section | None:
    rows: dict[tuple[str, ...], list[str]] = {}
    measured = [recording for group in context.groups for recording in group.recordings]
    for recording in measured:
        for setting in recording.head.settings:
            row = (setting.name, _whose(setting), *("–" if value is None else str(value)
                                                    for value in (setting.requested, setting.in_effect)),
                   _judged(setting), setting.reason or "")
            rows.setdefault(row, []).append(load_name(recording) or "not stated")
    if not rows:
        return None
    columns = tuple(Column(title, numeric=False) for title in
                    ("setting", "of", "requested", "in effect", "", "reason", "loads"))
    table = Table("settings", f"Settings as read back from the running system. {context.conditions}", columns,
                  [(*row, "all runs" if len(loads) == len(measured) else ", ".join(dict.fromkeys(loads)))
                   for row, loads in rows.items()])
    return Section("settings", "Settings requested and in effect",
                   "Every value in effect was read back from the system before the run.", [table])
