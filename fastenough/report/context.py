# SPDX-License-Identifier: GPL-2.0-or-later
"""The context of all sections: recordings in groups that may be merged, with readable names."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from fastenough.analysis import (
    Assessment,
    Judgment,
    Measures,
    Merged,
    grouped,
    load_name,
    measure,
    merge_samples,
    words,
)
from fastenough.analysis.advice import Advice
from fastenough.analysis.checks import findings_of, is_broken
from fastenough.analysis.differences import kind_text, run_values
from fastenough.analysis.longer_runs import LongerRecording, LongerRun
from fastenough.analysis.merged import judged_series
from fastenough.analysis.task_set import TaskAnswer
from fastenough.campaign import Plan, expand
from fastenough.campaign.progress import Row, matrix_of
from fastenough.model import IMPORTED, Outcome, Series
from fastenough.recording import Recording
from fastenough.recording.wakeups import STATIONS, SUMS, is_monitor
from fastenough.reference import Reference
from fastenough.report.document import Cell, Section
from fastenough.report.setups import setups


@dataclass(frozen=True)
class SeriesKind:
    """Series of a group that differ in their CPU only.  ``judged``: a limit applies to it."""

    name: str
    judged: bool
    all_cpus: Merged
    per_cpu: tuple[Merged, ...]
    series: Series

    @cached_property
    def measures(self) -> Measures:
        """All CPUs combined."""
        return measure(self.all_cpus)

    @property
    def worst_cpu(self) -> Merged:
        """The CPU with the greatest maximum."""
        return max(self.per_cpu, key=lambda values: -math.inf if values.maximum_ns is None else values.maximum_ns)


def series_name(series: Series) -> str:
    """The readable name of a series: its name and labels, without a label that repeats the name."""
    labels = ", ".join(f"{name} {value}" for name, value in series.labels.items() if value != series.name)
    return f"{series.name} ({labels})" if labels else series.name


def configuration_label(recording: Recording) -> str:
    """The first word of the configuration's name."""
    configuration = recording.head.configuration
    return configuration.name.split()[0] if configuration and configuration.name.strip() else "–"


def maximum_cell(measures: Measures) -> Cell | float | None:
    """The maximum in ns, of one that is unknown its lower bound."""
    least_ns = measures.maximum_at_least_ns
    return measures.maximum_ns if least_ns is None else Cell(None, words.microseconds_or_least(None, least_ns))


@dataclass(frozen=True)
class RunGroup:
    """Runs of one key.  ``setup``: the differences from other groups under the same load; empty if there are none."""

    recordings: tuple[Recording, ...]
    setup: str

    @property
    def watched(self) -> bool:
        """Whether the monitor made them: they explain latency; the verdict does not use them."""
        return is_monitor(self.recordings[0].head)

    @property
    def load(self) -> str:
        return load_name(self.recordings[0]) or "not stated"

    @property
    def title(self) -> str:
        return f"load {self.load}" + (f" · {self.setup}" if self.setup else "")

    @cached_property
    def kinds(self) -> tuple[SeriesKind, ...]:
        parts: dict[str, list[tuple[Recording, Series]]] = {}
        for recording in self.recordings:
            for series in recording.series:
                if series.refused is None:
                    parts.setdefault(kind_text(recording, series), []).append((recording, series))
        judged = {(one.run_id, series.id) for one in self.recordings for series in judged_series(one)}
        return tuple(
            self._kind(members, any((recording.run_id, series.id) in judged for recording, series in members))
            for members in parts.values()
        )

    @staticmethod
    def _kind(members: list[tuple[Recording, Series]], judged: bool) -> SeriesKind:
        by_cpu: dict[int | None, list[tuple[Recording, Series]]] = {}
        for recording, series in members:
            by_cpu.setdefault(series.cpu, []).append((recording, series))
        first = members[0][1]
        per_cpu = tuple(merge_samples(part) for part in by_cpu.values())
        return SeriesKind(series_name(first), judged, merge_samples(members), per_cpu, first)

    @property
    def judged_kinds(self) -> tuple[SeriesKind, ...]:
        return tuple(kind for kind in self.kinds if kind.judged)

    @property
    def longest_way(self) -> SeriesKind | None:
        """The longest monitored path of a wake-up that has values; None without wake-ups."""
        kinds_by_name = {kind.series.name: kind for kind in self.kinds if kind.all_cpus.n}
        return next((kinds_by_name[name] for name in (*SUMS, *STATIONS) if name in kinds_by_name), None)

    def measured_kind(self, kind: SeriesKind) -> SeriesKind | None:
        """The uncorrected kind of a kind corrected for coordinated omission; None if no period was charged."""
        if not kind.series.corrected or not kind.all_cpus.missed:
            return None
        return next(
            (
                other
                for other in self.kinds
                if not other.series.corrected and act_of(other.series) == act_of(kind.series)
            ),
            None,
        )

    @property
    def configuration(self) -> str:
        """The system in a few words."""
        head = self.recordings[0].head
        kernel = (head.profile or {}).get("kernel") or {}
        labels = [part for part in (head.board, head.configuration and head.configuration.name) if part]
        labels += [
            str(part)
            for part in (kernel.get("release"), kernel.get("preemption"))
            if part and part != "none" and not any(str(part) in label for label in labels)
        ]
        return " ".join(labels) or "configuration not stated"

    @property
    def instrument(self) -> str:
        """The instrument, or the board itself; the tool of an import, whose file does not state the instrument."""
        head = self.recordings[0].head
        gauge = head.instrument
        if IMPORTED in head.marks:
            name = f"imported from {head.tool.name}"
        elif gauge:
            name = f"gauge {gauge.get('name', gauge.get('id', ''))}".strip()
        else:
            name = "measured by the board itself"
        return name + (", emulated" if "emulated" in head.marks else "")

    def label(self, values: Merged) -> str:
        """n, duration, load and instrument, stated by every figure."""
        runs = f"{len(self.recordings)} runs, " if len(self.recordings) > 1 else ""
        return f"n = {values.n:,}, {runs}{words.measured_time(values.duration_ns)}, {self.title}, {self.instrument}"


def act_of(series: Series) -> tuple[Any, ...]:
    """The key that the plain and the corrected series of one act share."""
    return series.from_event, series.clock, series.period_ns, json.dumps(series.labels, sort_keys=True)


@dataclass(frozen=True)
class SeriesEntry:
    """One kind of series under one load in one setup, named by its differences from the others."""

    group: RunGroup
    kind: SeriesKind
    name: str


@dataclass(frozen=True)
class Context:
    """Recordings and their assessment, as the sections see them.

    ``watched``: groups of the monitor; they are also in ``groups`` if there are no others.  ``references``: published
    systems to compare with.  ``advice``: the path to draw.  ``note``: the plan, if all runs are of one campaign.
    ``tasks``: the analysis of a task set.  ``answers``: sections of the command that made the runs; they come first.
    ``longer``: by the id of a group's first run, a longer run of the same kind that is in the store.
    """

    recordings: tuple[Recording, ...]
    assessment: Assessment
    groups: tuple[RunGroup, ...]
    watched: tuple[RunGroup, ...] = ()
    references: tuple[Reference, ...] = ()
    advice: Advice | None = None
    note: Note | None = None
    tasks: TaskAnswer | None = None
    answers: tuple[Section, ...] = ()
    longer: Mapping[str, LongerRecording] = field(default_factory=dict)

    @cached_property
    def entries(self) -> tuple[SeriesEntry, ...]:
        """All kinds with values to which a limit applies, in the order of the groups."""
        return named_entries([(group, kind) for group in self.groups for kind in group.judged_kinds if kind.all_cpus.n])

    @cached_property
    def ways(self) -> tuple[SeriesEntry, ...]:
        """The longest monitored path of each watched group; its name includes the path if there are entries too."""
        merged = named_entries([(group, way) for group in self.watched if (way := group.longest_way) is not None])
        return tuple(replace(way, name=f"{way.name} · {way.kind.name}") for way in merged) if self.entries else merged

    def beside(self, entry: SeriesEntry) -> list[SeriesEntry]:
        """The same kind under every load of one setup; they share axes."""
        return [
            other
            for other in (*self.entries, *self.ways)
            if (other.group.setup, other.kind.name) == (entry.group.setup, entry.kind.name)
        ]

    def limits_ns(self, group: RunGroup) -> tuple[int, ...]:
        """The limits of these runs, each once, the least first."""
        requirements = self.assessment.requirements_of(group.recordings[0].run_id)
        return tuple(dict.fromkeys(requirement.limit_ns for requirement in requirements))

    def longer_run(self, group: RunGroup, values: Merged) -> LongerRun | None:
        """The longer run with its maximum of these series, which are of one CPU; None without one."""
        longer = self.longer.get(group.recordings[0].run_id)
        return None if longer is None else longer.maximum_of(*values.parts[0])

    def judgment(self, group: RunGroup) -> Judgment | None:
        """A judgment of these runs.  Those by several requirements have the same bound and the same damage."""
        runs = {recording.run_id for recording in group.recordings}
        return next((judgment for judgment in self.assessment.judgments if runs & set(judgment.run_ids)), None)

    def is_broken(self, group: RunGroup) -> bool:
        """Whether the data of one of these runs cannot be trusted; the verdict is FAIL if others show that."""
        judgment = self.judgment(group)
        return (
            judgment is not None
            and is_broken(judgment.findings)
            and any(is_broken(findings_of(recording)) for recording in group.recordings)
        )


def named_entries(members: Sequence[tuple[RunGroup, SeriesKind]]) -> tuple[SeriesEntry, ...]:
    """Entries with unique names, made of their differences in load, setup, series and labels."""
    parts: list[dict[str, str]] = [
        {"load": f"load {group.load}", "setup": group.setup}
        | {
            label: labelled
            for label, value in kind.series.labels.items()
            if value != kind.series.name and (labelled := f"{label} {value}") not in group.setup.split(" · ")
        }
        | {"series": kind.series.name}
        for group, kind in members
    ]
    distinguishing = [
        name
        for name in dict.fromkeys(name for part in parts for name in part)
        if name != "series" and len({part[name] for part in parts if name in part}) > 1
    ]
    if _apart(parts, [*distinguishing, "series"]) > _apart(parts, distinguishing):
        distinguishing.append("series")
    distinguishing = distinguishing or ["load"]
    entry_names = [" · ".join(filter(None, (part.get(name) for name in distinguishing))) for part in parts]
    unique = numbered(entry_names, "{} ({})")
    return tuple(SeriesEntry(group, kind, name) for (group, kind), name in zip(members, unique, strict=True))


def distinctions(members: Sequence[tuple[RunGroup, Hashable]]) -> list[str]:
    """For each group with a label what distinguishes it from the other groups of that label; empty if there is none."""
    alike: dict[Hashable, dict[str, RunGroup]] = {}
    for group, label in members:
        alike.setdefault(label, {})[group.recordings[0].run_id] = group
    titles = {
        (label, run_id): title
        for label, groups in alike.items()
        for run_id, title in zip(groups, _titles(list(groups.values())), strict=True)
    }
    return [titles[label, group.recordings[0].run_id] for group, label in members]


def _titles(groups: Sequence[RunGroup]) -> list[str]:
    """The load and the setup of each of these groups, as far as they differ in it."""
    loads = [group.load for group in groups]
    labels = setups(loads, [run_values(group.recordings[0]) for group in groups])
    stated = [f"load {load}" if len(set(loads)) > 1 else "" for load in loads]
    return [" · ".join(filter(None, title)) for title in zip(stated, labels, strict=True)]


def numbered(names: Sequence[str], form: str = "{}-{}") -> list[str]:
    """Names of which a repeated one has its number.  ``form``: of name and number."""
    again = [names[:place].count(name) for place, name in enumerate(names)]
    return [form.format(name, times + 1) if times else name for name, times in zip(names, again, strict=True)]


def _apart(parts: Sequence[Mapping[str, str]], names: Sequence[str]) -> int:
    """How many parts differ in these names."""
    return len({tuple(entry.get(name) for name in names) for entry in parts})


def _groups(recordings: Iterable[Recording]) -> tuple[RunGroup, ...]:
    """Groups of recordings that may be merged, named by their differences."""
    groups = grouped(recordings)
    labels = setups([load_name(group[0]) or "" for group in groups], [run_values(group[0]) for group in groups])
    return tuple(RunGroup(tuple(group), setup) for group, setup in zip(groups, labels, strict=True))


def make_context(
    recordings: Sequence[Recording],
    assessment: Assessment,
    references: Sequence[Reference] = (),
    advice: Advice | None = None,
    note: Note | None = None,
) -> Context:
    """Groups the recordings that have measurements; those that were not applicable are in the assessment only."""
    measured = [run for run in recordings if run.outcome is not Outcome.NOT_APPLICABLE and run.damage is None]
    watched = _groups(run for run in measured if is_monitor(run.head))
    others = _groups(run for run in measured if not is_monitor(run.head))
    return Context(tuple(recordings), assessment, others or watched, watched, tuple(references), advice, note)


@dataclass(frozen=True)
class Note:
    """What the plan of a campaign states.

    ``rows``: planned runs; ``loads``: each with its source; ``settings`` as requested; ``text``: the plan itself.
    """

    campaign: str
    title: str
    question: str
    rows: tuple[Row, ...]
    loads: Mapping[str, str]
    settings: Mapping[str, object]
    text: str


def note_of(campaign: str, plan: Plan) -> Note:
    """The note of the campaign with this id.  A plan without a question gets one from its probes and loads."""
    specs = expand(plan)
    loads = {spec.load: plan.load(spec.load).source for spec in specs}
    probes = ", ".join(dict.fromkeys(spec.probe for spec in specs))
    question = plan.question or f"What is the latency measured by {probes} under the loads {', '.join(loads)}?"
    return Note(campaign, plan.title or plan.name, question, matrix_of(specs).rows, loads, plan.settings, plan.text)
