# SPDX-License-Identifier: GPL-2.0-or-later
"""Histograms of recordings as rows of one table, for every exporter."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastenough.model import IMPORTED, BadInput, Series
from fastenough.recording import Head, Histogram, Recording

RUN_COLUMNS = ("run", "board", "configuration", "load", "implementation", "probe", "parameters")
"""Columns that identify a run."""
SERIES_COLUMNS = (
    "id",
    "series",
    "cpu",
    "labels",
    "bytes",
    "period_ns",
    "clock",
    "from_event",
    "to_event",
    "corrected",
    "role",
)
"""Columns that identify a series of a run."""
OMITTED_COLUMNS = ("lost", "missed")
"""Numbers of a whole series, the same in each of its rows: values without a bucket, and missed activations."""
COLUMNS = (*RUN_COLUMNS, *SERIES_COLUMNS, "least_ns", "greatest_ns", "count", *OMITTED_COLUMNS)


@dataclass(frozen=True)
class SeriesTotal:
    """A series of a run with its total histogram."""

    recording: Recording
    series: Series
    total: Histogram

    @property
    def labels(self) -> str:
        """Its labels as text."""
        return " ".join(f"{name}={value}" for name, value in sorted(self.series.labels.items()))

    @property
    def identity(self) -> tuple[object, ...]:
        """The values of SERIES_COLUMNS."""
        series = self.series
        return (
            series.id,
            series.name,
            series.cpu,
            self.labels,
            series.bytes,
            series.period_ns,
            series.clock,
            series.from_event,
            series.to_event,
            series.corrected,
            series.role.value,
        )

    @property
    def only_counted(self) -> int:
        """Number of values with only a known range: those in wide buckets."""
        wide = {index for index, _ in self.total.wide}
        return sum(
            count
            for index, count in zip(self.total.index.tolist(), self.total.count.tolist(), strict=True)
            if index in wide
        )

    @property
    def lost(self) -> int | None:
        """Number of values that are in no bucket; None if the source of an import does not state it."""
        source = self.series.source_summary
        unknown = source is not None and source.omitted_count_unknown
        return None if unknown else self.recording.lost(self.series.id)

    @property
    def missed(self) -> int:
        """Number of missed activations."""
        return self.recording.missed(self.series.id)

    @property
    def mean_known(self) -> bool:
        """Whether the sum is known: with wide buckets only from a mean stated by the source."""
        return not self.total.wide or (
            self.series.source_summary is not None and self.series.source_summary.mean is not None
        )

    def buckets_ns(self) -> list[tuple[float, float, int]]:
        """(least, greatest, count) of each bucket, ascending."""
        unit_ns = self.series.unit_ns
        return [
            (low * unit_ns, high * unit_ns, count)
            for low, high, count in zip(
                self.total.lowest().tolist(), self.total.highest().tolist(), self.total.count.tolist(), strict=True
            )
        ]


def series_totals(recordings: Sequence[Recording]) -> Iterator[SeriesTotal]:
    """Every series; raises BadInput for a damaged run."""
    for recording in recordings:
        if recording.damage is not None:
            raise BadInput(
                f"run {recording.run_id} failed its integrity check and cannot be exported: {recording.damage}"
            )
        for series in recording.series:
            yield SeriesTotal(recording, series, recording.totals[series.id])


def known_duration_ns(recording: Recording) -> int | None:
    """The duration of a run; None if the source of an import does not state it."""
    return None if IMPORTED in recording.head.marks and not recording.duration_ns else recording.duration_ns


def run_identity(head: Head) -> dict[str, str | None]:
    """The values of RUN_COLUMNS by name, None if not stated; parameters as JSON."""
    parameters = json.dumps(dict(head.parameters), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return dict(
        zip(
            RUN_COLUMNS,
            (
                head.run_id,
                head.board,
                head.configuration.name if head.configuration else None,
                head.load.name if head.load else None,
                head.implementation,
                head.probe,
                parameters,
            ),
            strict=True,
        )
    )


def rows(recordings: Sequence[Recording]) -> Iterator[tuple[object, ...]]:
    """A row of COLUMNS for each bucket that is not empty; of a series without any, one without edges if it lost or
    missed anything."""
    for held in series_totals(recordings):
        named, omitted = (*run_identity(held.recording.head).values(), *held.identity), (held.lost, held.missed)
        buckets = held.buckets_ns()
        for bucket in buckets:
            yield (*named, *bucket, *omitted)
        if not buckets and (held.lost != 0 or held.missed):
            yield (*named, None, None, 0, *omitted)
