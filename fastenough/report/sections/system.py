# SPDX-License-Identifier: GPL-2.0-or-later
"""The system: its activity during the runs, settings, audit findings, and profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastenough.analysis import load_name, words
from fastenough.analysis.machine import COUNTERS, counter_total
from fastenough.audit import Finding, FindingState, audit, ordered
from fastenough.recording.head import RecordedSetting
from fastenough.report.context import Context
from fastenough.report.document import Column, Folded, Part, ReportTable, Section, Text

_OF_CORES = {"core_overruns"}
"""Counters of tasks that a real-time core schedules; not applicable to others."""
_NAMED = 2
"""Columns before those of the counters."""


def _counter_title(counter: str) -> str:
    return counter.removesuffix("_ns").replace("_", " ")


def _show(counter: str) -> Column:
    if counter.endswith("_ns"):
        return Column(
            _counter_title(counter), lambda ns: "unknown" if ns is None else words.duration(ns) if ns else "0"
        )
    return Column(_counter_title(counter), lambda n: "unknown" if n is None else f"{n:,}")


def _meanings(counters: Sequence[str], state: str) -> list[Text]:
    return [Text(f"{state}: {'; '.join(COUNTERS[counter] for counter in counters)}.")] if counters else []


def activity(context: Context) -> Section | None:
    measured = [recording for group in context.groups for recording in group.recordings]
    if not measured:
        return None
    rows = [
        (load_name(recording), recording.run_id, *(counter_total(recording, counter) for counter in COUNTERS))
        for recording in measured
    ]
    values = {counter: {row[column] for row in rows} for column, counter in enumerate(COUNTERS, _NAMED)}
    counted = [column for column, counter in enumerate(COUNTERS, _NAMED) if values[counter] not in ({0}, {None})]
    columns = (Column("load", numeric=False), Column("run", numeric=False), *(_show(counter) for counter in COUNTERS))
    places = [*range(_NAMED), *counted]
    table = ReportTable(
        "machine",
        "Counted during each run; unknown: not available on this system",
        [columns[column] for column in places],
        [[row[column] for column in places] for row in rows],
        csv=([column.title for column in columns], rows),
    )
    meanings = "; ".join(
        f"{_counter_title(counter)}: {COUNTERS[counter]}"
        for counter in COUNTERS
        if values[counter] not in ({0}, {None})
    )
    parts: list[ReportTable | Text] = [table] if counted else []
    parts += _meanings([counter for counter in COUNTERS if values[counter] == {0}], "0 in every run")
    unknown = [counter for counter in COUNTERS if values[counter] == {None} and counter not in _OF_CORES]
    parts += _meanings(unknown, "Unknown (not available on this system)")
    return Section(
        "machine", "System activity during the runs", f"{meanings[0].upper()}{meanings[1:]}." if meanings else "", parts
    )


_DIFFERS, _NOT_VERIFIED = "DIFFERS", "not verified"
_JUDGED = 4
"""Index of the column state."""


def _scope(setting: RecordedSetting) -> str:
    parts = [] if setting.thread is None else [f"thread {setting.thread}"]
    parts += [] if setting.cpu is None else [f"CPU {setting.cpu}"]
    return ", ".join(parts) or "the run"


def _setting_title(setting: RecordedSetting) -> str:
    """Its name without the unit."""
    return setting.name.removesuffix("_ns").removesuffix("_us").replace("_", " ")


def _setting_value(setting: RecordedSetting, value: object) -> str:
    """The value with its unit; -1 means no limit to the kernel."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    unit = next((unit for suffix, unit in (("_ns", "ns"), ("_us", "µs")) if setting.name.endswith(suffix)), None)
    if not isinstance(value, int) or unit is None:
        return str(value)
    return f"{value:,} {unit}" if value >= 0 else f"{value}: no limit"


def _judged(setting: RecordedSetting) -> str:
    if setting.requested is None:
        return "not requested"
    if setting.in_effect is None:
        return _NOT_VERIFIED
    return _DIFFERS if setting.differs else "as requested"


def settings(context: Context) -> Section | None:
    rows: dict[tuple[str, ...], list[str]] = {}
    measured = [recording for group in context.groups for recording in group.recordings]
    for recording in measured:
        for setting in recording.head.settings:
            row = (
                _setting_title(setting),
                _scope(setting),
                _setting_value(setting, setting.requested),
                _setting_value(setting, setting.in_effect),
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
    rows_with_loads = [
        (*row, "all runs" if len(loads) == len(measured) else ", ".join(dict.fromkeys(loads)))
        for row, loads in rows.items()
    ]
    odd = [row for row in rows_with_loads if row[_JUDGED] in (_DIFFERS, _NOT_VERIFIED)]
    parts: list[Part] = (
        [
            ReportTable(
                "settings-differing", "Requested settings that are not, or not verifiably, in effect", columns, odd
            )
        ]
        if odd
        else [Text("All requested settings were in effect.")]
    )
    parts.append(
        Folded(
            f"All {words.counted(len(rows_with_loads), 'setting')}",
            [ReportTable("settings", "Settings as read back from the running system", columns, rows_with_loads)],
        )
    )
    return Section(
        "settings",
        "Settings",
        "Every value in effect was read back from the system before the run.",
        parts,
    )


_AUDIT_COLUMNS = tuple(
    Column(title, numeric=False) for title in ("severity", "check", "state", "why it matters", "fix", "cost of the fix")
)


def _audit_row(finding: Finding) -> tuple[str, ...]:
    hides = " (hides latency)" if finding.state is FindingState.HIDES else ""
    changes = "; ".join(f"{change.when}: {change.instruction}" for change in finding.changes) or "–"
    return (finding.severity, f"{finding.title}{hides}", finding.text, finding.reason, changes, finding.trade_off)


def _audit_tables(context: Context) -> Iterator[ReportTable]:
    """One table for each measured system that has findings."""
    profiles: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for recording in context.recordings:
        if recording.head.profile:
            profiles.setdefault(recording.head.profile_sha256 or "", (recording.run_id, recording.head.profile))
    for number, (run_id, profile) in enumerate(profiles.values(), start=1):
        findings = audit(profile)
        listed = [finding for finding in ordered(findings) if finding.state in (FindingState.COSTS, FindingState.HIDES)]
        if listed:
            unknown = sum(finding.state is FindingState.UNKNOWN for finding in findings)
            name = profile.get("hostname") or "A system"
            yield ReportTable(
                f"audit-{number}",
                f"{name}, at run {run_id}",
                _AUDIT_COLUMNS,
                [_audit_row(finding) for finding in listed],
                note=f"{unknown} of {len(findings)} checks are unknown from these facts.",
            )


def system_audit(context: Context) -> Section | None:
    tables = list(_audit_tables(context))
    if not tables:
        return None
    return Section(
        "audit",
        "System audit",
        "Settings and facts that may cause or hide latency, most severe first. Only a measurement shows whether "
        "one does, and by how much (fastenough audit --measure). Not printed.",
        [Folded(words.counted(len(table.rows), "finding"), [table], printed=False) for table in tables],
    )


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), item)
    elif isinstance(value, list) and all(isinstance(item, (dict, list)) for item in value) and value:
        for place, item in enumerate(value):
            yield from _flat(f"{name}[{place}]", item)
    else:
        yield name, ", ".join(map(str, value)) if isinstance(value, list) else "–" if value is None else str(value)


def profile(context: Context) -> Section | None:
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
        table = ReportTable(
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
