# SPDX-License-Identifier: GPL-2.0-or-later
"""The profile: all recorded facts of the board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastenough.report.context import Context
from fastenough.report.document import Column, Folded, Section, Table, Text


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), item)
    elif isinstance(value, list) and all(isinstance(item, (dict, list)) for item in value) and value:
        for place, item in enumerate(value):
            yield from _flat(f"{name}[{place}]", item)
    else:
        yield name, ", ".join(map(str, value)) if isinstance(value, list) else "–" if value is None else str(value)


def section(context: Context) -> Section | None:
    profiles: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for recording in context.recordings:
        profile = recording.head.profile
        if profile:
            profiles.setdefault(recording.head.profile_sha256 or "", (recording.run_id, profile))
    if not profiles:
        return Section("profile", "System profile", "", [Text("These recordings have no profile.")])
    folded = []
    for number, (digest, (run_id, profile)) in enumerate(profiles.items(), start=1):
        board = str(profile.get("hostname") or f"profile {number}")
        table = Table(
            f"profile-{number}",
            f"Recorded with run {run_id}; SHA-256 {digest or 'not recorded'}",
            (Column("fact", numeric=False), Column("value", numeric=False)),
            list(_flat("", profile)),
        )
        folded.append(Folded(f"{board}: {len(table.rows):,} facts", [table], printed=False))
    return Section(
        "profile",
        "System profile",
        "All recorded facts of the system. Not printed.",
        folded,
    )
