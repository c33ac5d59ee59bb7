# SPDX-License-Identifier: GPL-2.0-or-later
"""Parsing of lines of version 2, already checked against the schema, into the types of ``head``; raises BadInput."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastenough.model import BadInput, Configuration, Outcome, Requirement, Role, Series, SourceSummary
from fastenough.recording.head import (
    COUNTED_DURING_THE_RUN,
    End,
    Event,
    Head,
    Instant,
    LimitCount,
    LoadProof,
    LoadStated,
    LoadUse,
    Origin,
    Plain,
    RecordedSetting,
    SampleCounts,
    SeriesEnd,
    SettingChange,
    Tool,
)

LineFields = Mapping[str, Any]


def parsed_head(name: str, line: LineFields, version: int) -> Head:
    """``version``: of the file; ``name`` stands for it in messages."""
    series = tuple(_series(name, entry) for entry in line["series"])
    if len({declared.id for declared in series}) != len(series):
        raise BadInput(f"{name}: two series share one id")
    tool = line["tool"]
    return Head(
        version=version,
        tool=Tool(tool["name"], tool["version"], tool.get("build")),
        run_id=line["run_id"],
        probe=line["probe"],
        implementation=line["implementation"],
        parameters=line["parameters"],
        series=series,
        settings=tuple(map(parsed_setting, line["settings"])),
        cost_ns=line["cost"],
        interval_ns=line["interval_ns"],
        begin=instant(line["begin"]),
        boot_id=line.get("boot_id"),
        marks=frozenset(line["marks"]),
        load=parsed_load(line.get("load")),
        profile=line.get("profile"),
        profile_sha256=line.get("profile_sha256"),
        board=line.get("board"),
        address=line.get("address"),
        configuration=Configuration(**line["configuration"]) if "configuration" in line else None,
        instrument=line.get("instrument"),
        planned_n=line.get("planned_n"),
        phase_ns=line.get("phase_ns"),
        requirement=_requirement(name, line["requirement"]) if "requirement" in line else None,
        origin=Origin(**line["origin"]) if "origin" in line else None,
    )


def _series(name: str, entry: LineFields) -> Series:
    series = Series(
        id=entry["id"],
        name=entry["name"],
        unit=entry["unit"],
        clock=entry["clock"],
        from_event=entry["from"],
        to_event=entry["to"],
        k=entry["k"],
        role=Role(entry["role"]),
        two_sided=entry["two_sided"],
        corrected=entry["corrected"],
        relative=entry["relative"],
        cpu=entry.get("cpu"),
        period_ns=entry.get("period_ns"),
        bytes=entry.get("bytes"),
        tick_ps=entry.get("tick_ps"),
        rise_k=entry.get("rise_k"),
        refused=entry.get("refused"),
        labels=entry.get("labels", {}),
        source_summary=SourceSummary(**entry["said"]) if "said" in entry else None,
    )
    fault = next(_contradictions(series), None)
    if fault is not None:
        raise BadInput(f"{name}: series {series.id} {fault}")
    return series


def _requirement(name: str, entry: LineFields) -> Requirement:
    try:
        return Requirement(**entry)
    except BadInput as error:
        raise BadInput(f"{name}: requirement: {error}") from error


def _contradictions(series: Series) -> Iterator[str]:
    """Contradictions in the fields of a series."""
    if series.unit == "ticks" and series.tick_ps is None:
        yield "counts ticks but does not state the length of one (tick_ps)"
    if series.unit == "ns" and series.tick_ps is not None:
        yield "counts ns but states the length of a tick (tick_ps)"
    if (series.role is Role.THROUGHPUT) != (series.bytes is not None):
        yield "must have both the role throughput and bytes per sample, or neither"
    if series.corrected and series.relative:
        yield "is both corrected and relative: a relative method cannot miss activations"
    if series.rise_k is not None and series.rise_k > series.k:
        yield f"has rises (rise_k {series.rise_k}) finer than its buckets (k {series.k})"


def instant(entry: LineFields) -> Instant:
    return Instant(entry["mono_ns"], entry["wall_ns"])


def parsed_setting(entry: LineFields) -> RecordedSetting:
    """A setting of the head, or of the end, which has no requested value."""
    return RecordedSetting(
        entry["name"],
        entry.get("requested"),
        entry["in_effect"],
        entry.get("cpu"),
        entry.get("thread"),
        entry.get("reason"),
    )


def parsed_load(entry: LineFields | None) -> LoadStated | None:
    if entry is None:
        return None
    source, bounds = entry.get("source"), entry.get("bounds")
    return LoadStated(
        entry["name"],
        tuple(tuple(command) for command in entry.get("commands", ())),
        source if isinstance(source, str) else None,
        bounds if isinstance(bounds, dict) else None,
        entry.get("busy_at_least"),
        entry.get("busy_at_most"),
    )


def parsed_event(line: LineFields) -> Event:
    return Event(
        line["kind"],
        instant(line["at"]),
        line.get("series"),
        line.get("cpu"),
        line.get("value"),
        line.get("text"),
        line.get("culprit"),
    )


def parsed_end(name: str, line: LineFields, head: Head) -> End:
    """The end, with the changes since the settings of the head."""
    settings = tuple(map(parsed_setting, line["settings"])) if "settings" in line else None
    samples = line.get("samples")
    try:
        series = {entry["id"]: _series_end(entry) for entry in line["series"]}
    except OverflowError as error:
        raise BadInput(f"{name}: end: a bucket does not fit 64 bits") from error
    if len(series) != len(line["series"]):
        raise BadInput(f"{name}: end: two series share one id")
    return End(
        outcome=Outcome(line["outcome"]),
        reasons=tuple(line["reasons"]),
        at=instant(line["at"]),
        series=series,
        counters=line["counters"],
        settings=settings,
        changes=tuple(changes(head.settings, settings or ())),
        events_dropped=line["events_dropped"],
        load=_load_proof(line.get("load")),
        samples=None if samples is None else SampleCounts(samples["kept"], samples["lost"]),
    )


def changes(before: Sequence[RecordedSetting], after: Sequence[RecordedSetting]) -> Iterator[SettingChange]:
    """Settings whose value after the run differs; those that could not be read again do not count as changed."""
    earlier_values: dict[tuple[str, str | None, int | None], list[Plain]] = {}
    for setting in before:
        earlier_values.setdefault(setting.place, []).append(setting.in_effect)
    for setting in after:
        earlier = earlier_values.get(setting.place) or [0 if setting.name in COUNTED_DURING_THE_RUN else None]
        previous = earlier.pop(0)
        if setting.in_effect is not None and setting.in_effect != previous:
            yield SettingChange(setting.name, previous, setting.in_effect, setting.cpu, setting.thread)


def _series_end(entry: LineFields) -> SeriesEnd:
    buckets = entry.get("buckets", ())
    return SeriesEnd(
        entry["taken"],
        entry["stored"],
        entry["lost"],
        entry["missed"],
        entry.get("min"),
        entry.get("max"),
        entry["sum"],
        int(entry["sum_sq"]),
        tuple((edge, delta) for edge, delta in entry["rises"]) if "rises" in entry else None,
        limit_count(entry.get("limit")),
        entry.get("order_unknown", 0),
        entry.get("k"),
        (array("q", [index for index, _ in buckets]), array("q", [count for _, count in buckets])),
    )


def limit_count(entry: LineFields | None) -> LimitCount | None:
    if entry is None:
        return None
    return LimitCount(entry["ns"], entry["exceeded"], entry["runs"], int(entry["sum_sq_runs"]), entry["longest"])


def load_use(entry: LineFields | None) -> LoadUse | None:
    if entry is None:
        return None
    return LoadUse(entry["cpu_ns"], entry["context_switches"], entry["processes"], entry.get("window_ns"))


def _number(entry: LineFields, name: str) -> float | None:
    value = entry.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(entry: LineFields, name: str) -> int | None:
    value = entry.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _load_proof(entry: LineFields | None) -> LoadProof | None:
    if entry is None:
        return None
    return LoadProof(
        entry.get("name"),
        entry.get("ran"),
        tuple(entry.get("reasons", ())),
        entry.get("stated") not in (None, False),
        _number(entry, "window_s"),
        _number(entry, "cpu_time_s"),
        _count(entry, "voluntary_switches"),
        _count(entry, "involuntary_switches"),
        _count(entry, "bytes_read"),
        _count(entry, "bytes_written"),
        _count(entry, "counted"),
        _count(entry, "processes"),
    )
