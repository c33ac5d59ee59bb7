# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a campaign stands, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastenough.campaign.expand import RunSpec
from fastenough.model import Outcome

_FIRST_GUESS_OVERHEAD_S = 2.5


@dataclass(frozen=True)
class Progress:
    """Where a campaign stands.

    ``run`` counts from 1; ``worst_ns`` is the live maximum by series name; ``reasons`` say why a run ended as it did.
    ``profile``: what is known of the board, once that is.
    """

    campaign: str
    run: int
    runs: int
    spec: RunSpec
    phase: str
    elapsed_s: float
    remaining_s: float
    worst_ns: Mapping[str, int] = field(default_factory=dict)
    run_id: str | None = None
    outcome: Outcome | None = None
    reasons: tuple[str, ...] = ()
    profile: Mapping[str, Any] | None = None


class Clock:
    """Says how long the rest will take, learning what a run takes beyond its measuring."""

    def __init__(self, specs: list[RunSpec]) -> None:
        self._left = [spec.duration_s for spec in specs]
        self._overheads: list[float] = []
        self._begun_s = time.monotonic()

    def begin_run(self) -> None:
        self._begun_s = time.monotonic()

    def end_run(self) -> None:
        self._overheads.append(max(0.0, self.elapsed_s() - self._left.pop(0)))

    def elapsed_s(self) -> float:
        return time.monotonic() - self._begun_s

    def remaining_s(self) -> float:
        known = self._overheads or [_FIRST_GUESS_OVERHEAD_S]
        overhead_s = sum(known) / len(known)
        return max(0.0, sum(self._left) + overhead_s * len(self._left) - self.elapsed_s())
