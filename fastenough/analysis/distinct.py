# SPDX-License-Identifier: GPL-2.0-or-later
"""One measurement counts once, however often and under whatever name it is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastenough.analysis.differences import Values, difference, series_values
from fastenough.analysis.keys import FOR_MERGING, SERIES_KEYS
from fastenough.recording import Histogram, Recording, unbelievable

_Data = tuple[object, ...]
_TELLING = 10
"""So many values are never the same in two series: threads of one CPU each have one under the same name."""


def _content(total: Histogram) -> _Data:
    """All that a histogram says of its values, but for the extremes."""
    return (total.sum, total.sum_sq, total.index.tobytes(), total.count.tobytes())


def _data(recording: Recording) -> _Data | None:
    """What no second measurement can have in common with this one; None where nothing was measured."""
    if not any(total.total for total in recording.totals.values()):
        return None
    totals = [(total.minimum, total.maximum, *_content(total)) for total in recording.totals.values()]
    begin = recording.head.begin
    lost = tuple((recording.lost(series.id), recording.missed(series.id)) for series in recording.series)
    return (begin.mono_ns, begin.wall_ns, recording.duration_ns, lost, *totals)


def distinct(recordings: Iterable[Recording]) -> tuple[list[Recording], tuple[str, ...]]:
    """The recordings without those given twice, and the ids of these.

    A recording whose data is that of another run, or whose id is that of a run with other data, is not believed.
    """
    kept: list[Recording] = []
    by_id: dict[str, _Data | None] = {}
    by_data: dict[_Data, str] = {}
    again: list[str] = []
    for recording in recordings:
        data = _data(recording)
        if recording.run_id in by_id and by_id[recording.run_id] == data:
            again.append(recording.run_id)
            continue
        why = _doubt(recording, data, by_id, by_data) or _doubled(recording) or _contradicting(recording)
        by_id.setdefault(recording.run_id, data)
        if data is not None:
            by_data.setdefault(data, recording.run_id)
        kept.append(recording if why is None else unbelievable(why, recording.head))
    return kept, tuple(again)


def _doubt(recording: Recording, data: _Data | None, by_id: dict[str, _Data | None],
           by_data: dict[_Data, str]) -> str | None:
    if recording.run_id in by_id:
        return "another recording with other data has its id"
    if data is not None and data in by_data:
        return f"it holds the data of run {by_data[data]}: a copy is no second measurement"
    return None


def _doubled(recording: Recording) -> str | None:
    """Whether a series stands in the recording twice, and its values would count twice."""
    seen: set[_Data] = set()
    for series in recording.series:
        total = recording.totals[series.id]
        data = (series.name, series.cpu, series.bytes, repr(sorted(series.labels.items())), *_content(total))
        if total.total >= _TELLING and data in seen:
            return f"two of its series, both {series.name}, hold the same data: a copy is no second measurement"
        seen.add(data)
    return None


def _contradicting(recording: Recording) -> str | None:
    """Whether two of its series, alike by name, are told to be different things: they could not be added up."""
    alike: dict[object, Values] = {}
    for series in recording.series:
        values = series_values(recording, series)
        first = alike.setdefault((series.name, series.role, series.bytes, repr(sorted(series.labels.items()))), values)
        found = difference(SERIES_KEYS, first, values, FOR_MERGING)
        if found is not None:
            return f"two of its series, both {series.name}, are not of one kind: {found}"
    return None


def said_of(again: Sequence[str]) -> list[str]:
    """In words, which runs were given more than once."""
    return [f"Run {run_id} was given more than once and counts once" for run_id in dict.fromkeys(again)]
