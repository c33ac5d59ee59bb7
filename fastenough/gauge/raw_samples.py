# SPDX-License-Identifier: GPL-2.0-or-later
"""Fine histograms from the raw samples that the gauge streams, checked against its coarse histograms."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import replace

from fastenough.gauge.stream import Frame, deviations, latencies
from fastenough.recording import Histogram
from fastenough.recording.histogram import bucket_index

FINE_K = 10
_SEQUENCE_NUMBERS = 1 << 16


class RawSamples:
    """Raw samples by series and coarse bucket that the gauge's own histogram has not yet counted.

    The gauge's histogram gives the exact number of samples.  If it has counted a sample whose raw value did not arrive,
    a value within its coarse bucket is substituted; ``coarse`` counts such samples.
    """

    def __init__(self, probe: str, k: int) -> None:
        self._response = probe == "response"
        self._k = k
        self._raw: dict[tuple[int, int], deque[int]] = defaultdict(deque)
        self.sent = 0
        """Number of samples that the gauge has sent, including those that did not arrive before the latest."""
        self.coarse = 0

    @property
    def uncounted(self) -> int:
        """Number of raw samples that no histogram has counted yet."""
        return sum(map(len, self._raw.values()))

    def add(self, frames: Iterable[Frame]) -> int:
        """Store the samples of frames; returns the number of frames."""
        frame_count = 0
        for frame in frames:
            frame_count += 1
            self.sent += (frame.sequence - self.sent) % _SEQUENCE_NUMBERS + len(frame.samples)
            samples = latencies(frame) if self._response else [(0, ticks) for ticks in deviations(frame)]
            buckets = bucket_index([ticks for _, ticks in samples], self._k).tolist()
            for (series, ticks), bucket in zip(samples, buckets, strict=True):
                self._raw[series, bucket].append(ticks)
        return frame_count

    def histogram(self, series: int, coarse: Histogram) -> Histogram:
        """The histogram of the values that ``coarse`` counts, with its exact statistics, in buckets of k = 10."""
        if coarse.minimum is None or coarse.maximum is None:
            return Histogram(FINE_K)
        values: list[int] = []
        missing: list[tuple[int, int, int]] = []
        tops = coarse.highest().tolist()
        for bucket, count, top in zip(coarse.index.tolist(), coarse.count.tolist(), tops, strict=True):
            waiting = self._raw[series, bucket]
            received = [waiting.popleft() for _ in range(min(count, len(waiting)))]
            values += received
            if len(received) < count:
                missing.append((count - len(received), max(received, default=top), top))
        self.coarse += sum(count for count, _, _ in missing)
        values += _substitute_values(missing, coarse.sum - sum(values))
        fine = Histogram.from_values(_clamp(sorted(values), coarse.minimum, coarse.maximum), FINE_K)
        return replace(fine, minimum=coarse.minimum, maximum=coarse.maximum, sum=coarse.sum, sum_sq=coarse.sum_sq)


def _substitute_values(missing: list[tuple[int, int, int]], exact_sum: int) -> list[int]:
    """Values for samples of which only the coarse bucket is known.

    ``missing`` has per bucket: the number of such samples, the greatest value received, the top of the bucket.  The
    greatest received value is substituted, unless the exact sum of the samples is greater; then the top is.
    """
    if sum(count * greatest for count, greatest, _ in missing) >= exact_sum:
        return [greatest for count, greatest, _ in missing for _ in range(count)]
    return [top for count, _, top in missing for _ in range(count)]


def _clamp(values: list[int], minimum: int, maximum: int) -> list[int]:
    """Ascending values, with the exact minimum first and the exact maximum last.

    The gauge may count a sample that arrives during a take in the next take; another value of the same coarse bucket is
    in its place here.
    """
    clamped = [min(max(value, minimum), maximum) for value in values]
    clamped[-1] = maximum
    if len(clamped) > 1:
        clamped[0] = minimum
    return clamped
