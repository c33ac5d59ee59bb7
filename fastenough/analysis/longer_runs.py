# SPDX-License-Identifier: GPL-2.0-or-later
"""A longer run of the same kind: its maxima are a test of what shorter runs let expect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastenough.analysis.differences import kind_text
from fastenough.analysis.merged import merge_samples
from fastenough.model import Series
from fastenough.recording import Recording


@dataclass(frozen=True)
class LongerRun:
    """A run of the same kind that is longer than the runs of an estimate; its maximum on that CPU."""

    run_id: str
    duration_ns: float
    maximum_ns: float


@dataclass(frozen=True)
class LongerRecording:
    """The maxima of a run in ns, by kind of series and CPU."""

    run_id: str
    duration_ns: int
    maxima_ns: Mapping[tuple[str, int | None], float]

    def maximum_of(self, recording: Recording, series: Series) -> LongerRun | None:
        """The maximum of the same kind of series on the same CPU; None if it is unknown or there is no value."""
        maximum_ns = self.maxima_ns.get(_key(recording, series))
        return None if maximum_ns is None else LongerRun(self.run_id, self.duration_ns, maximum_ns)


def longer_recording(recording: Recording) -> LongerRecording:
    """The part of a recording that is compared with estimates."""
    return LongerRecording(
        recording.run_id,
        recording.duration_ns,
        {
            _key(recording, series): maximum_ns
            for series in recording.series
            if series.refused is None
            and (maximum_ns := merge_samples([(recording, series)]).known_maximum_ns) is not None
        },
    )


def _key(recording: Recording, series: Series) -> tuple[str, int | None]:
    return kind_text(recording, series), series.cpu
