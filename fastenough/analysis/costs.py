# SPDX-License-Identifier: GPL-2.0-or-later
"""Costs of wake-up paths, as the cost model of a deterministic board counts them in addition to instructions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fastenough.model import BadInput
from fastenough.recording.content import COSTS_FILE
from fastenough.recording.head import Head

COST_MODEL = "cost_model"
"""Name of the model in the fact ``emulator``."""
COUNTED = ("instructions", "misses of the instruction cache", "misses of the data cache")
"""What a line of COSTS_FILE has, in its order."""


@dataclass(frozen=True)
class CostFigures:
    """Figures of one of COUNTED over a number of paths; median and upper quartile are values of paths.

    There is no maximum: some paths belong to other threads of the probe, or to a switch without a wake-up.
    """

    counted: str
    paths: int
    minimum: int
    median: int
    upper_quartile: int


def cost_model_of(head: Head) -> str | None:
    """What the emulator models beyond the instructions; None if it models nothing."""
    emulator = (head.profile or {}).get("emulator")
    model = emulator.get(COST_MODEL) if isinstance(emulator, Mapping) else None
    return None if model is None else str(model)


def read_costs(content: bytes) -> list[tuple[int, ...]]:
    """The counts of each path, in order; raises BadInput for content that no cost model writes."""
    try:
        paths = [tuple(map(int, line.split(","))) for line in content.decode("ascii").splitlines()]
    except ValueError as error:
        raise BadInput(f"{COSTS_FILE} has a line that is no list of counts ({error})") from error
    if any(len(path) != len(COUNTED) or min(path) < 0 for path in paths):
        raise BadInput(f"{COSTS_FILE} has a line without {len(COUNTED)} counts")
    return paths


def cost_figures(contents: Iterable[bytes]) -> Sequence[CostFigures]:
    """The figures of runs together; none without a path."""
    paths = [path for content in contents for path in read_costs(content)]
    return [_figures(name, sorted(values)) for name, values in zip(COUNTED, zip(*paths, strict=True), strict=False)]


def _figures(name: str, values: Sequence[int]) -> CostFigures:
    """The figures of ascending values; the quantile q of n values is that of rank ⌈q · n⌉."""
    n = len(values)
    return CostFigures(name, n, values[0], values[(n + 1) // 2 - 1], values[(3 * n + 3) // 4 - 1])
