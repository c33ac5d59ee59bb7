# SPDX-License-Identifier: GPL-2.0-or-later
"""What every section gets: the recordings in groups that may be added, with names for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fastenough.analysis import Assessment, Merged, grouped, load_name, merge_samples, words
from fastenough.analysis.merged import judged_series, run_key, series_key
from fastenough.model import Outcome, Series
from fastenough.recording import Recording


@dataclass(frozen=True)
class Kind:
    """Series of a group that differ in their CPU only.  ``judged``: a limit applies to it."""

    name: str
    judged: bool
    all_cpus: Merged
    per_cpu: tuple[Merged, ...]
    series: Series


def series_name(series: Series) -> str:
    """A series' name with its labels, for people."""
    labels = ", ".join(f"{name} {value}" for name, value in series.labels.items())
    return f"{series.name} ({labels})" if labels else series.name


@dataclass(frozen=True)
class Group:
    """Runs of one key.  ``setup`` tells the group from others under the same load; empty where none differs."""

    recordings: tuple[Recording, ...]
    setup: str

    @property
    def load(self) -> str:
        return load_name(self.recordings[0]) or "not stated"

    @property
    def title(self) -> str:
        return f"load {self.load}" + (f" · {self.setup}" if self.setup else "")

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        parts: dict[str, list[tuple[Recording, Series]]] = {}
        for recording in self.recordings:
            for series in recording.series:
                if series.refused is None:
                    parts.setdefault(json.dumps(series_key(series), sort_keys=True), []).append((recording, series))
        judged = {series.id for series in judged_series(self.recordings[0])}
        return tuple(self._kind(members, members[0][1].id in judged) for members in parts.values())

    @staticmethod
    def _kind(members: list[tuple[Recording, Series]], judged: bool) -> Kind:
        by_cpu: dict[int | None, list[tuple[Recording, Series]]] = {}
        for recording, series in members:
            by_cpu.setdefault(series.cpu, []).append((recording, series))
        first = members[0][1]
        per_cpu = tuple(merge_samples(part) for part in by_cpu.values())
        return Kind(series_name(first), judged, merge_samples(members), per_cpu, first)

    @property
    def judged_kinds(self) -> tuple[Kind, ...]:
        return tuple(kind for kind in self.kinds if kind.judged)

    @property
    def configuration(self) -> str:
        """Which system this is, in a few words."""
        head = self.recordings[0].head
        kernel = (head.get("profile") or {}).get("kernel") or {}
        said = [str(part) for part in (head.get("board"), head.get("configuration")) if part]
        said += [str(part) for part in (kernel.get("release"), kernel.get("preemption"))
                 if part and part != "none" and not any(str(part) in word for word in said)]
        return " ".join(said) or "configuration not stated"

    @property
    def instrument(self) -> str:
        """What took the times."""
        head = self.recordings[0].head
        gauge = head.get("instrument")
        who = f"gauge {gauge.get('name', gauge.get('id', ''))}".strip() if gauge else "measured by the board itself"
        return who + (", emulated" if "emulated" in head["marks"] else "")

    def label(self, values: Merged) -> str:
        """What every figure and table states: n, duration, load, configuration, instrument."""
        runs = f"{len(self.recordings)} runs, " if len(self.recordings) > 1 else ""
        return (f"n = {values.n:,}, {runs}{words.duration(values.duration_ns)}, {self.title}, {self.configuration}, "
                f"{self.recordings[0].head['implementation']}, {self.instrument}")


@dataclass(frozen=True)
class Context:
    """Recordings and their assessment, as the sections see them."""

    recordings: tuple[Recording, ...]
    assessment: Assessment
    groups: tuple[Group, ...]

    def beside(self, group: Group, kind: Kind) -> list[Merged]:
        """The same kind under every load of one setup, where it holds samples: what shares an axis."""
        return [other.all_cpus for one in self.groups if one.setup == group.setup
                for other in one.judged_kinds if other.name == kind.name and other.all_cpus.n]

    @property
    def conditions(self) -> str:
        """Of all groups together: what the caption of a table over all of them states."""
        judged = [kind.all_cpus for group in self.groups for kind in group.judged_kinds]
        n = sum(values.n for values in judged)
        duration_ns = sum(recording.duration_ns for group in self.groups for recording in group.recordings)
        loads = ", ".join(dict.fromkeys(group.load for group in self.groups)) or "none measured"
        systems = ", ".join(dict.fromkeys(group.configuration for group in self.groups))
        instruments = ", ".join(dict.fromkeys(group.instrument for group in self.groups))
        return f"n = {n:,} in {words.duration(duration_ns)}; loads: {loads}; {systems}; {instruments}"


def _short(name: str, value: Any) -> str:
    if name == "kernel" and isinstance(value, dict):
        return str(value.get("release", value))
    if isinstance(value, dict):
        return ", ".join(key if item is None else f"{key} {item}" for key, item in value.items())
    return f"{value}" if name in ("board", "configuration", "probe", "implementation") else f"{name} {value}"


_IN_A_NAME = ("board", "kernel", "configuration", "probe", "implementation", "parameters", "settings", "marks")


def _setups(keys: Sequence[dict[str, Any]]) -> list[str]:
    """Per run key the words that tell it from the others, the load apart."""
    telling = [name for name in _IN_A_NAME if any(key[name] != keys[0][name] for key in keys)]
    names = [" · ".join(_short(name, _differing(name, key, keys)) for name in telling) for key in keys]
    return names if telling else [""] * len(keys)


def _differing(name: str, key: dict[str, Any], keys: Sequence[dict[str, Any]]) -> Any:
    """Of parameters and settings only those that differ."""
    if name == "settings":
        common = [entry for entry in keys[0][name] if all(entry in other[name] for other in keys)]
        return dict.fromkeys(f"{setting} {granted}" for setting, cpu, granted in key[name]
                             if (setting, cpu, granted) not in common)
    if name != "parameters":
        return key[name]
    return {parameter: value for parameter, value in key[name].items()
            if any(other[name].get(parameter) != value for other in keys)}


def make_context(recordings: Sequence[Recording], assessment: Assessment) -> Context:
    """Group the recordings that hold measurements; what was not applicable is in the assessment."""
    groups = grouped(r for r in recordings if r.outcome is not Outcome.NOT_APPLICABLE and r.damage is None)
    setups = _setups([run_key(group[0]) for group in groups]) if groups else []
    return Context(tuple(recordings), assessment,
                   tuple(Group(tuple(group), setup) for group, setup in zip(groups, setups, strict=True)))
