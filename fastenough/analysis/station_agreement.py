# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare a monitor's stations with the latencies of a task, wake-up by wake-up, joined on the exact timer expiry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fastenough.analysis.station_delays import Wakeups
from fastenough.recording.samples import Samples

QUANTILES = (0.0, 0.5, 0.99, 1.0)


@dataclass(frozen=True)
class StationAgreement:
    """Of ``taken`` acts that the task counted, ``joined`` are wake-ups of the monitor's too; ``awake`` were due before
    the act before them began, so that the task did not sleep at all.

    ``remainder_ns``: what the task saw beyond the sum of the stations, smallest, median, 99 % and greatest: from the
    return into user space to the task's own reading of the clock.  ``counted``: by reason, what the monitor counted of
    wake-ups that it has not.
    """

    taken: int
    joined: int
    awake: int
    remainder_ns: tuple[int, ...]
    counted: tuple[tuple[str, int], ...]

    @property
    def absent(self) -> int:
        """Wake-ups of the task that the monitor has not."""
        return self.taken - self.joined - self.awake

    @property
    def unexplained(self) -> int:
        """Of these, as many as no reason was counted for."""
        return max(0, self.absent - sum(count for _, count in self.counted))

    @property
    def share(self) -> float:
        """Joined, of all that were woken."""
        return self.joined / (self.taken - self.awake) if self.taken > self.awake else 0.0

    @property
    def later(self) -> bool:
        """The task never read its clock before the monitor says that it was back in user space."""
        return not self.remainder_ns or self.remainder_ns[0] >= 0


def agreement(task: Samples, seen: Wakeups, counted: Mapping[str, int | None]) -> StationAgreement:
    """Join a task's samples with the monitor's wake-ups of its CPU."""
    joined = np.isin(task.due_ns, seen.due_ns)
    passed = task.due_ns[1:] <= task.due_ns[:-1] + task.latency_ns[:-1]
    awake = int(np.count_nonzero(passed & ~joined[1:]))
    _, ours, theirs = np.intersect1d(task.due_ns, seen.due_ns, return_indices=True)
    remainder = task.latency_ns[ours] - seen.sum_ns[theirs]
    quantiles = np.quantile(remainder, QUANTILES, method="nearest") if remainder.size else ()
    return StationAgreement(
        len(task.due_ns) + task.lost,
        len(ours),
        awake,
        tuple(int(value) for value in quantiles),
        tuple((reason, count) for reason, count in counted.items() if count),
    )
