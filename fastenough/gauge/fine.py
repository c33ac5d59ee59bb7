# SPDX-License-Identifier: GPL-2.0-or-later
"""Fine histograms from the raw samples that the gauge streams, checked against its own coarse ones."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import replace

from fastenough.gauge.stream import Frame, deviations, latencies
from fastenough.recording import Histogram
from fastenough.recording.histogram import bucket_index

FINE_K = 10
_NUMBERS = 1 << 16


class Fine:
    """Raw samples by series and coarse bucket, from when they come until the gauge's own histogram has counted them.

    The gauge's histogram gives the exact number of samples.  A sample that it has counted, but whose raw sample did not
    arrive, is placed within its coarse bucket; ``coarse`` counts such samples.
    """

    def __init__(self, probe: str, k: int) -> None:
        self._response = probe == "response"
        self._k = k
        self._raw: dict[tuple[int, int], deque[int]] = defaultdict(deque)
        self.seen = 0
        """Samples up to the latest that came, with those before it that did not."""
        self.coarse = 0

    @property
    def left(self) -> int:
        """Raw samples that no histogram has counted yet."""
        return sum(map(len, self._raw.values()))

    def add(self, frames: Iterable[Frame]) -> int:
        """How many frames there were."""
        came = 0
        for frame in frames:
            came += 1
            self.seen += (frame.sequence - self.seen) % _NUMBERS + len(frame.samples)
            samples = latencies(frame) if self._response else [(0, ticks) for ticks in deviations(frame)]
            buckets = bucket_index([ticks for _, ticks in samples], self._k).tolist()
            for (series, ticks), bucket in zip(samples, buckets, strict=True):
                self._raw[series, bucket].append(ticks)
        return came

    def histogram(self, series: int, coarse: Histogram) -> Histogram:
        """As many values as ``coarse`` counts, with its exact statistics, in buckets of k = 10."""
        if coarse.minimum is None or coarse.maximum is None:
            return Histogram(FINE_K)
        values: list[int] = []
        missing: list[tuple[int, int, int]] = []
        tops = coarse.highest().tolist()
        for bucket, count, top in zip(coarse.index.tolist(), coarse.count.tolist(), tops, strict=True):
            waiting = self._raw[series, bucket]
            came = [waiting.popleft() for _ in range(min(count, len(waiting)))]
            values += came
            if len(came) < count:
                missing.append((count - len(came), max(came, default=top), top))
        self.coarse += sum(count for count, _, _ in missing)
        values += _stand_ins(missing, coarse.sum - sum(values))
        fine = Histogram.from_values(_within(sorted(values), coarse.minimum, coarse.maximum), FINE_K)
        return replace(fine, minimum=coarse.minimum, maximum=coarse.maximum, sum=coarse.sum, sum_sq=coarse.sum_sq)


def _stand_ins(missing: list[tuple[int, int, int]], their_sum: int) -> list[int]:
    """Values for samples of which only the coarse bucket is known: how many, the greatest that came of it, its top.

    The greatest sample that arrived is used for those that did not, unless their exact sum shows that this is too
    small.
    """
    if sum(count * greatest for count, greatest, _ in missing) >= their_sum:
        return [greatest for count, greatest, _ in missing for _ in range(count)]
    return [top for count, _, top in missing for _ in range(count)]


def _within(values: list[int], minimum: int, maximum: int) -> list[int]:
    """Values that ascend, the first and the last being the exact ones.

    A sample that came while the histogram was being read may be counted in the next one, and one of the same coarse
    bucket stand in its place here.
    """
    held = [min(max(value, minimum), maximum) for value in values]
    held[-1] = maximum
    if len(held) > 1:
        held[0] = minimum
    return held
