# SPDX-License-Identifier: GPL-2.0-or-later
"""Count each measurement once, even if it is given several times or under several names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fastenough.analysis.differences import Values, difference, series_values
from fastenough.analysis.keys import FOR_MERGING, SERIES_KEYS
from fastenough.model import IMPORTED
from fastenough.recording import Histogram, Recording, damaged_recording

_Data = tuple[object, ...]
_TELLING = 10
"""Number of values that two series never have in common (threads of one CPU have series of the same name)."""


def _content(total: Histogram) -> _Data:
    """The content of a histogram except the extremes."""
    return (total.sum, total.sum_sq, total.index.tobytes(), total.count.tobytes())


_RICH = 20
"""Number of buckets in whose counts two measurements never agree, whenever they began."""


def _data(recording: Recording) -> _Data | None:
    """Data that no other measurement can share; None if nothing was measured."""
    if not any(total.total for total in recording.totals.values()):
        return None
    totals = [(total.minimum, total.maximum, *_content(total)) for total in recording.totals.values()]
    lost = tuple((recording.lost(series.id), recording.missed(series.id)) for series in recording.series)
    if any(total.index.size >= _RICH for total in recording.totals.values()):
        return (lost, *totals)
    begin = recording.head.begin
    return (begin.mono_ns, begin.wall_ns, recording.duration_ns, lost, *totals)


def distinct(recordings: Iterable[Recording]) -> tuple[list[Recording], tuple[str, ...]]:
    """The recordings without those given twice, and the ids of these.

    A recording fails the integrity check if its data is that of another run, if its id is that of a run with other
    data, or if it was made at the same time as another on the same CPU of its board.
    """
    single: list[tuple[Recording, _Data | None]] = []
    by_id: dict[str, _Data | None] = {}
    repeated: list[str] = []
    for recording in recordings:
        data = _data(recording)
        if recording.run_id in by_id and by_id[recording.run_id] == data:
            repeated.append(recording.run_id)
        else:
            by_id.setdefault(recording.run_id, data)
            single.append((recording, data))
    timed = [recording for recording, data in single if data is not None and _begin_known(recording)]
    reasons = _overlapping(timed) | _copies(single)
    reasons = {
        id(recording): reason
        for recording, _ in single
        if (reason := reasons.get(id(recording)) or _doubled(recording) or _contradicting(recording))
    }
    checked = [
        damaged_recording(reasons[id(recording)], recording.head) if id(recording) in reasons else recording
        for recording, _ in single
    ]
    return checked, tuple(repeated)


def _begin_known(recording: Recording) -> bool:
    """False for an import whose file does not state when it was measured: its begin is stored as 0."""
    return IMPORTED not in recording.head.marks or recording.head.begin.wall_ns != 0


def _copies(recordings: Sequence[tuple[Recording, _Data | None]]) -> dict[int, str]:
    """By ``id()`` of a recording: why it is a copy (its run id or data is that of another one)."""
    ids: set[str] = set()
    by_data: dict[_Data, str] = {}
    reasons: dict[int, str] = {}
    for recording, data in recordings:
        if recording.run_id in ids:
            reasons[id(recording)] = "another recording with different data has the same run id"
        elif data is not None and data in by_data:
            reasons[id(recording)] = f"its data is a copy of run {by_data[data]}"
        ids.add(recording.run_id)
        if data is not None:
            by_data.setdefault(data, recording.run_id)
    return reasons


def _overlapping(recordings: Sequence[Recording]) -> dict[int, str]:
    """The same for recordings that overlap another one of their board and probe."""
    alike: dict[_Data, list[_PlacedRecording]] = {}
    for recording in recordings:
        head = recording.head
        key = (head.board, head.probe, head.implementation, head.instrument is None)
        alike.setdefault(key, []).append(_PlacedRecording.of(recording))
    reasons_by_id: dict[int, str] = {}
    for group in alike.values():
        begins, ends = (
            np.array([instants[end] for instants in map(_bounds, (placed.recording for placed in group))])
            for end in (0, 1)
        )
        for number, placed in enumerate(group):
            before = slice(0, number)
            together = ((begins[before] < ends[number]) & (begins[number] < ends[before])).all(axis=1)
            together |= (begins[before] == begins[number]).all(axis=1)
            doubts = (placed.doubt(group[other]) for other in np.flatnonzero(together).tolist())
            reason = next(filter(None, doubts), None)
            if reason is not None:
                reasons_by_id[id(placed.recording)] = reason
    return reasons_by_id


@dataclass(frozen=True, eq=False)
class _PlacedRecording:
    """A recording, and on which CPUs it was made (None: on any)."""

    recording: Recording
    cpus: frozenset[int | None]

    @classmethod
    def of(cls, recording: Recording) -> _PlacedRecording:
        return cls(recording, frozenset(series.cpu for series in recording.series))

    def doubt(self, other: _PlacedRecording) -> str | None:
        """Why this one and another cannot both be measurements."""
        recording, other_recording = self.recording, other.recording
        if self._on_one_cpu(other) and (recording.head.begin == other_recording.head.begin or self._overlaps(other)):
            return f"it was made at the same time as run {other_recording.run_id}, on the same CPU of the same board"
        return None

    def _on_one_cpu(self, other: _PlacedRecording) -> bool:
        return bool(self.cpus & other.cpus) or None in self.cpus | other.cpus

    def _overlaps(self, other: _PlacedRecording) -> bool:
        """By both clocks: either may have been set back between two runs, or have begun anew with a boot."""
        boots = {_boot(self.recording), _boot(other.recording)}
        if len(boots) == 2 and None not in boots:
            return False
        (begins, ends), (other_begins, other_ends) = _bounds(self.recording), _bounds(other.recording)
        return all(
            first < second_end and second < first_end
            for first, first_end, second, second_end in zip(begins, ends, other_begins, other_ends, strict=True)
        )


def _boot(recording: Recording) -> str | None:
    boot = (recording.head.profile or {}).get("boot_id")
    return boot if isinstance(boot, str) else None


def _bounds(recording: Recording) -> tuple[tuple[int, int], tuple[int, int]]:
    """Begin and end, each by the monotonic clock and by the wall clock."""
    length_ns, begin_ns = recording.duration_ns, recording.aggregate.begin_mono_ns
    wall_ns = recording.head.begin.wall_ns + begin_ns - recording.head.begin.mono_ns
    return (begin_ns, wall_ns), (begin_ns + length_ns, wall_ns + length_ns)


def _doubled(recording: Recording) -> str | None:
    """The reason if a series is in the recording twice."""
    contents: set[_Data] = set()
    for series in recording.series:
        total = recording.totals[series.id]
        data = (series.name, series.cpu, series.bytes, repr(sorted(series.labels.items())), *_content(total))
        if total.total >= _TELLING and data in contents:
            return f"two of its series, both {series.name}, hold the same data; one is a copy"
        contents.add(data)
    return None


_KEYS_OF_ALL_CPUS = tuple(key for key in SERIES_KEYS if key.name != "period")
"""What agrees on all CPUs of a run in which their periods differ."""


def _contradicting(recording: Recording) -> str | None:
    """The reason if two series of the same name have different keys and so cannot be merged."""
    alike: dict[object, Values] = {}
    of_all = _KEYS_OF_ALL_CPUS if recording.head.parameters.get("distance_ns") else SERIES_KEYS
    for series in recording.series:
        values = series_values(recording, series)
        named = (series.name, series.role, series.bytes, repr(sorted(series.labels.items())))
        for keys, same in ((of_all, named), (SERIES_KEYS, (*named, series.cpu))):
            text = difference(keys, alike.setdefault(same, values), values, FOR_MERGING)
            if text is not None:
                return f"two of its series, both {series.name}, contradict each other: {text}"
    return None


def repetition_cautions(repeated: Sequence[str]) -> list[str]:
    """One caveat per run that was given more than once."""
    return [f"Run {run_id} was given more than once and counts once" for run_id in dict.fromkeys(repeated)]
