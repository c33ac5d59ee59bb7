# SPDX-License-Identifier: GPL-2.0-or-later
"""Histograms of recordings as rows of one table, for every exporter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastenough.model import BadInput, Series
from fastenough.recording import Histogram, Recording

COLUMNS = ("run", "probe", "series", "cpu", "labels", "role", "least_ns", "greatest_ns", "count")


@dataclass(frozen=True)
class Held:
    """One series of one run with all its values."""

    recording: Recording
    series: Series
    total: Histogram

    @property
    def labels(self) -> str:
        """What tells it from others of its name, but for the CPU."""
        return " ".join(f"{name}={value}" for name, value in sorted(self.series.labels.items()))

    @property
    def only_counted(self) -> int:
        """Values of which it is only known between which times they lie: those in wide buckets."""
        wide = {index for index, _ in self.total.wide}
        return sum(count for index, count in zip(self.total.index.tolist(), self.total.count.tolist(), strict=True)
                   if index in wide)

    @property
    def mean_known(self) -> bool:
        """Whether the sum is that of these values: where some were only counted, only a mean that is told says it."""
        return not self.total.wide or (self.series.said is not None and self.series.said.mean is not None)

    def buckets_ns(self) -> list[tuple[float, float, int]]:
        """(least, greatest, count) of each bucket, ascending."""
        unit_ns = self.series.unit_ns
        return [(low * unit_ns, high * unit_ns, count) for low, high, count in zip(
            self.total.lowest().tolist(), self.total.highest().tolist(), self.total.count.tolist(), strict=True)]


def held_in(recordings: Sequence[Recording]) -> Iterator[Held]:
    """Every series; raises BadInput for a run that is not believed."""
    for recording in recordings:
        if recording.damage is not None:
            raise BadInput(f"run {recording.run_id} is not believed and cannot be exported: {recording.damage}")
        for series in recording.series:
            yield Held(recording, series, recording.totals[series.id])


def rows(recordings: Sequence[Recording]) -> Iterator[tuple[object, ...]]:
    """As COLUMNS says, one for each bucket that is not empty."""
    for held in held_in(recordings):
        named = (held.recording.run_id, held.recording.head.probe, held.series.name, held.series.cpu, held.labels,
                 held.series.role.value)
        for bucket in held.buckets_ns():
            yield (*named, *bucket)
