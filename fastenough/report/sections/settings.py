# SPDX-License-Identifier: GPL-2.0-or-later
"""What was asked and what was granted, as read back."""

from __future__ import annotations

from typing import Any

from fastenough.analysis import load_name
from fastenough.report.context import Context
from fastenough.report.document import Column, Section, Table


def _whose(setting: dict[str, Any]) -> str:
    parts = [f"thread {setting['thread']}"] if "thread" in setting else []
    parts += [f"CPU {setting['cpu']}"] if "cpu" in setting else []
    return ", ".join(parts) or "the run"


def _judged(setting: dict[str, Any]) -> str:
    if setting["asked"] is None:
        return "only read"
    if setting["granted"] is None:
        return "not verified"
    return "as asked" if setting["asked"] == setting["granted"] else "DIFFERS"


def section(context: Context) -> Section | None:
    rows: dict[tuple[str, ...], list[str]] = {}
    measured = [recording for group in context.groups for recording in group.recordings]
    for recording in measured:
        for setting in recording.head["settings"]:
            row = (setting["name"], _whose(setting), *(str(setting[part]) if setting[part] is not None else "–"
                                                       for part in ("asked", "granted")),
                   _judged(setting), setting.get("reason", ""))
            rows.setdefault(row, []).append(load_name(recording) or "not stated")
    if not rows:
        return None
    columns = tuple(Column(title, numeric=False) for title in
                    ("setting", "of", "asked", "granted", "", "reason", "loads"))
    table = Table("settings", f"Settings as read back from the running system. {context.conditions}", columns,
                  [(*row, "all runs" if len(loads) == len(measured) else ", ".join(dict.fromkeys(loads)))
                   for row, loads in rows.items()])
    return Section("settings", "What was asked and what was granted",
                   "Nothing here is what was hoped for: every granted value was read back.", [table])
