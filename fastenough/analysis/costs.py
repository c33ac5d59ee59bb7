# SPDX-License-Identifier: GPL-2.0-or-later
"""Costs of wake-up paths, as the cost model of a deterministic board counts them beside the instructions."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fastenough.model import BadInput
from fastenough.recording.content import COSTS_FILE

COUNTED = ("instructions", "misses of the instruction cache", "misses of the data cache")
"""What a line of COSTS_FILE has, in its order."""


@dataclass(frozen=True)
class CostFigures:
    """Figures of one of COUNTED over a number of wake-ups; the median is a counted value, the lower one of two."""

    counted: str
    wakeups: int
    minimum: int
    median: int
    maximum: int


def read_costs(content: bytes) -> list[tuple[int, ...]]:
    """The counts of each wake-up, in order; raises BadInput for content that no cost model writes."""
    try:
        paths = [tuple(map(int, line.split(","))) for line in content.decode("ascii").splitlines()]
    except ValueError as error:
        raise BadInput(f"{COSTS_FILE} has a line that is no list of counts ({error})") from error
    if any(len(path) != len(COUNTED) or min(path) < 0 for path in paths):
        raise BadInput(f"{COSTS_FILE} has a line without {len(COUNTED)} counts")
    return paths


def cost_figures(contents: Iterable[bytes]) -> Sequence[CostFigures]:
    """The figures of runs together; none without a wake-up."""
    paths = [path for content in contents for path in read_costs(content)]
    return [
        CostFigures(name, len(values), min(values), statistics.median_low(values), max(values))
        for name, values in zip(COUNTED, zip(*paths, strict=True), strict=False)
    ]
