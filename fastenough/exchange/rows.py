# SPDX-License-Identifier: GPL-2.0-or-later
"""Histograms of recordings as rows of one table, for every exporter."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fastenough.model import BadInput, Series
from fastenough.recording import Head, Histogram, Recording

RUN_COLUMNS = ("run", "board", "configuration", "load", "implementation", "probe", "parameters")
"""What distinguishes one run from another."""
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
"""What distinguishes one series of a run from another."""
COLUMNS = (*RUN_COLUMNS, *SERIES_COLUMNS, "least_ns", "greatest_ns", "count")


@dataclass(frozen=True)
class SeriesTotal:
    """One series of one run with all its values."""

    recording: Recording
    series: Series
    total: Histogram

    @property
    def labels(self) -> str:
        """What tells it from others of its name, but for the CPU."""
        return " ".join(f"{name}={value}" for name, value in sorted(self.series.labels.items()))

    @property
    def identity(self) -> tuple[object, ...]:
        """The values of SERIES_COLUMNS."""
        one = self.series
        return (
            one.id,
            one.name,
            one.cpu,
            self.labels,
            one.bytes,
            one.period_ns,
            one.clock,
            one.from_event,
            one.to_event,
            one.corrected,
            one.role.value,
        )

    @property
    def only_counted(self) -> int:
        """Values of which it is only known between which times they lie: those in wide buckets."""
        wide = {index for index, _ in self.total.wide}
        return sum(
            count
            for index, count in zip(self.total.index.tolist(), self.total.count.tolist(), strict=True)
            if index in wide
        )

    @property
    def mean_known(self) -> bool:
        """Whether the sum is that of these values: where some were only counted, only a mean that is told says it."""
        return not self.total.wide or (self.series.said is not None and self.series.said.mean is not None)

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
    """Every series; raises BadInput for a run that is not believed."""
    for recording in recordings:
        if recording.damage is not None:
            raise BadInput(
                f"run {recording.run_id} failed its integrity check and cannot be exported: {recording.damage}"
            )
        for series in recording.series:
            yield SeriesTotal(recording, series, recording.totals[series.id])


def run_identity(head: Head) -> dict[str, Any]:
    """The values of RUN_COLUMNS by their names, None where the run does not state one; parameters as JSON."""
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
    """As COLUMNS says, one for each bucket that is not empty."""
    for held in series_totals(recordings):
        named = (*run_identity(held.recording.head).values(), *held.identity)
        for bucket in held.buckets_ns():
            yield (*named, *bucket)
