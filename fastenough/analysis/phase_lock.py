# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the due times of a timer keep a fixed phase to the kernel's tick, so that a disturbance may stay unseen."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastenough import words
from fastenough.analysis.machine import cpus_of_fact
from fastenough.recording import Recording

_PROBE = "timer"
_LEAST_NS = 10_000
"""A gap that hides at most this much more latency than was measured is not worth a caveat."""
_MOST_DITHER_NS = 1_000_000_000
"""Longest dither of the probe."""


@dataclass(frozen=True)
class PhaseLock:
    """Due times every ``interval_ns`` meet a disturbance in step with a tick of ``tick_ns`` every ``gap_ns`` only.

    Disturbances in step with the tick begin at instants of the interval that are ``gap_ns`` apart, the greatest common
    divisor of both times.  A due time lies within the first ``gap_ns`` of each that lasts longer; so the latency that
    it causes may exceed the measured maximum by up to ``gap_ns``.
    """

    interval_ns: int
    tick_ns: int

    @property
    def gap_ns(self) -> int:
        return math.gcd(self.interval_ns, self.tick_ns)

    @property
    def text(self) -> str:
        dither_ns = max(1, min(self.interval_ns // 2, _MOST_DITHER_NS) // 1000) * 1000
        return (
            f"The interval ({words.exact_time(self.interval_ns)}) keeps a fixed phase to the kernel's tick "
            f"({words.exact_time(self.tick_ns)}): a disturbance in step with the tick is met always or never, and may "
            f"delay by up to {words.exact_time(self.gap_ns)} more than the maximum shows. To exclude it, measure with "
            f"random due times: fastenough run timer interval={_argument(self.interval_ns)} "
            f"dither={_argument(dither_ns)}"
        )


def _argument(time_ns: int) -> str:
    """A time as the command line takes it, in the longest unit of which it is a multiple."""
    units = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))
    return next(f"{time_ns // unit_ns}{name}" for unit_ns, name in units if time_ns % unit_ns == 0)


def phase_lock_cautions(recordings: Sequence[Recording]) -> Iterator[str]:
    """The caveat for the widest gap of these runs; none where each gap is narrow."""
    locks = [lock for recording in recordings for lock in _locks(recording) if lock.gap_ns >= _LEAST_NS]
    if locks:
        yield max(locks, key=lambda lock: lock.gap_ns).text


def _locks(recording: Recording) -> Iterator[PhaseLock]:
    """Phase locks of the series on a fixed grid, on CPUs with a periodic tick."""
    head = recording.head
    tick_ns = _tick_ns(recording)
    if head.probe != _PROBE or "dither_ns" in head.parameters or tick_ns is None:
        return
    tickless = cpus_of_fact(recording, "nohz_full")
    drifts = {series.cpu for series in recording.series if series.relative}
    for series in recording.series:
        if series.period_ns and series.cpu not in tickless | drifts:
            yield PhaseLock(series.period_ns, tick_ns)


def _tick_ns(recording: Recording) -> int | None:
    """The length of a tick; None if the profile does not state CONFIG_HZ."""
    config = (recording.head.profile or {}).get("kernel_config")
    options = config.get("of_interest") if isinstance(config, dict) else None
    text = str(options.get("CONFIG_HZ") or "") if isinstance(options, dict) else ""
    return 10**9 // int(text) if re.fullmatch(r"[1-9]\d{1,4}", text) else None
