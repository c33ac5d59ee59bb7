# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the edges that instrument and board counted: they must agree, or the difference must be explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastenough.recording import Recording


@dataclass(frozen=True)
class EdgeAgreement:
    """Counts of one run; None where such a count has no meaning or could not be read.

    ``sent`` by the instrument, ``seen`` and ``answered`` by the board, ``returned`` as the instrument saw it; an answer
    that came too late for the instrument is a ``timeout``, an edge that another overtook is ``overtaken``.  In a
    periodic task the board sends of its own accord: ``answered`` are the edges it made, and ``dropped`` those that came
    faster than the instrument takes them in; a time-out there is a pause of the board and costs no edge.
    """

    sent: int | None
    seen: int | None
    answered: int | None
    returned: int | None
    timeouts: int
    overtaken: int
    dropped: int = 0

    @property
    def complete(self) -> bool:
        """Whether no edge was lost and all counts are equal."""
        counts = {count for count in (self.sent, self.seen, self.answered, self.returned) if count is not None}
        return len(counts) == 1 and self.answered is not None and self.returned is not None

    @property
    def lost_uncounted(self) -> int | None:
        """Number of unexplained edges: 0 unless the measurement itself is faulty."""
        if self.answered is None or self.returned is None:
            return None
        if self.sent is None:
            return max(0, self.answered - self.returned - self.dropped)
        return max(0, self.sent - self.returned - self.timeouts)

    @property
    def not_made(self) -> int | None:
        """Number of edges that the instrument took for answers, but that the board did not make: noise on a wire.

        Unknown after a time-out of a response: the edges of the resynchronisation after it are not answers.
        """
        if self.answered is None or self.returned is None or (self.sent is not None and self.timeouts):
            return None
        return max(0, self.returned - self.answered)

    @property
    def text(self) -> str:
        """Text for tables and reasons."""
        if self.answered is None or self.returned is None:
            return "not-applicable: the board's own count is missing"
        if self.complete:
            return "agree"
        return (
            f"differ: sent {_count_text(self.sent)}, seen {_count_text(self.seen)}, answered {self.answered}, returned "
            f"{self.returned}; {self.timeouts} timed out, {self.overtaken} overtaken, {self.dropped} dropped, "
            f"{self.lost_uncounted} lost and not counted"
        )


def _count_text(count: int | None) -> str:
    return "–" if count is None else str(count)


def agreement(recording: Recording) -> EdgeAgreement | None:
    """The counts at the end of a recording of an instrument; None if it has none."""
    counters: Mapping[str, Any] = recording.end.counters if recording.end else {}
    if "edges_returned" not in counters:
        return None
    return EdgeAgreement(
        counters.get("edges_sent"),
        counters.get("edges_seen"),
        counters.get("edges_answered"),
        counters["edges_returned"],
        counters.get("edges_timed_out") or 0,
        counters.get("edges_overtaken") or 0,
        counters.get("edges_dropped", counters.get("edges_shed")) or 0,
    )
