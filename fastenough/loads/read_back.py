# SPDX-License-Identifier: GPL-2.0-or-later
"""A load stated by the user and not started by the bench: verified by the idle time of the CPUs.

In each interval the probe records the idle times of the least and the most idle measured CPU, so that every
deviation from the stated load shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fastenough import words
from fastenough.recording.building import line_bytes, proof_line
from fastenough.recording.head import LoadProof, LoadStated

_STRETCH_NS = 1_000_000_000
"""Minimum length of a stretch of intervals: idle time is counted in ticks."""
_COUNTED_NS = 20_000_000
"""Maximum error of the idle time, from the ticks at both ends."""


@dataclass
class ReadBack:
    """Adds intervals to stretches, and counts those that contradict the stated load."""

    stated: LoadStated
    stretches: int = 0
    wrong: int = 0
    unknown: int = 0
    first: str = ""
    _length_ns: int = 0
    _least_idle_ns: int = 0
    _most_idle_ns: int = 0
    _begin_ns: int | None = None

    def take(self, interval: dict[str, Any]) -> None:
        """A line of the recording."""
        begin_ns, end_ns, counters = interval["begin"]["mono_ns"], interval["end"]["mono_ns"], interval["counters"]
        least, most = counters.get("least_idle_ns"), counters.get("most_idle_ns")
        self._begin_ns = begin_ns if self._begin_ns is None else self._begin_ns
        if least is None or most is None:
            self.unknown += 1
            return
        self._length_ns += end_ns - begin_ns
        self._least_idle_ns += least
        self._most_idle_ns += most
        if self._length_ns >= _STRETCH_NS:
            self._judge(end_ns - self._begin_ns)
            self._length_ns = self._least_idle_ns = self._most_idle_ns = 0

    def _judge(self, since_ns: int) -> None:
        """Judge a stretch; a tick of idle time at each end counts in favour of the stated load."""
        self.stretches += 1
        most_busy = 1 - (self._least_idle_ns + _COUNTED_NS) / self._length_ns
        least_busy = 1 - (self._most_idle_ns - _COUNTED_NS) / self._length_ns
        low, high = self.stated.busy_at_least or 0.0, self.stated.busy_at_most
        over = high is not None and most_busy > high
        if not over and least_busy >= low:
            return
        self.wrong += 1
        busy, bar = (most_busy, f"at most {high:.0%}") if over else (least_busy, f"at least {low:.0%}")
        self.first = self.first or (
            f"a CPU was busy for {max(0.0, busy):.0%} of the {words.duration(self._length_ns)} before "
            f"{words.duration(since_ns)}, and {bar} was stated"
        )

    def proof(self) -> LoadProof:
        reasons = [f"{self.first} ({self.wrong} of {self.stretches:,} stretches)"] * bool(self.wrong)
        if self.unknown or not self.stretches:
            reasons.append(
                f"idle time unknown for {words.counted(self.unknown, 'interval')}"
                if self.unknown
                else "less than a second was measured"
            )
        return LoadProof(self.stated.name, not reasons, tuple(reasons))


def with_proof(lines: Iterable[bytes], stated: LoadStated) -> Iterator[bytes]:
    """The lines after the head of a recording; the proof of the stated load is added to the end."""
    read_back = ReadBack(stated)
    for line in lines:
        if line.startswith(b'{"type":"interval"') and line.endswith(b"\n"):
            read_back.take(json.loads(line))
        elif line.startswith(b'{"type":"end"') and line.endswith(b"\n"):
            line = line_bytes(json.loads(line) | {"load": proof_line(read_back.proof())})  # noqa: PLW2901
        yield line
