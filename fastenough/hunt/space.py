# SPDX-License-Identifier: GPL-2.0-or-later
"""The search space: stressors with ordered levels of their parameters, and recipes, which combine stressors."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StressorParameter:
    """``values``: as written, the plainest or smallest first, to which minimisation returns.

    ``factors``: factor of each value for the memory of the stressor; empty if it has no influence.
    """

    name: str
    values: tuple[str, ...]
    factors: tuple[int, ...] = ()


@dataclass(frozen=True)
class Stressor:
    """``memory_bytes``: of one worker, before the factors of its parameters."""

    name: str
    parameters: tuple[StressorParameter, ...]
    memory_bytes: int = 0


@dataclass(frozen=True, order=True)
class Part:
    """One stressor of a recipe; ``levels``: index of the value of each of its parameters."""

    stressor: str
    levels: tuple[int, ...]


Recipe = tuple[Part, ...]
"""In the order of the stressors' names, each at most once."""


@dataclass(frozen=True)
class Space:
    """``memory_bytes``: limit for all parts of a recipe together; ``most``: maximum number of parts; ``options``:
    added to each command."""

    stressors: Mapping[str, Stressor]
    memory_bytes: int
    most: int
    options: tuple[str, ...] = ()

    def value(self, part: Part, parameter: str) -> str:
        """Value of a parameter of a part, as written; empty if there is no such parameter."""
        for level, declared in zip(part.levels, self.stressors[part.stressor].parameters, strict=True):
            if declared.name == parameter:
                return declared.values[level]
        return ""

    def memory_of(self, part: Part) -> int:
        stressor = self.stressors[part.stressor]
        return stressor.memory_bytes * math.prod(
            parameter.factors[level]
            for level, parameter in zip(part.levels, stressor.parameters, strict=True)
            if parameter.factors
        )

    def fits(self, name: str) -> bool:
        """Whether a stressor fits into the memory with its plainest parameters."""
        return self.memory_of(Part(name, (0,) * len(self.stressors[name].parameters))) <= self.memory_bytes

    def fitting(self, parts: Sequence[Part]) -> Recipe:
        """As many of these parts, in this order, as the bounds allow."""
        fitting: list[Part] = []
        free_bytes = self.memory_bytes
        for part in parts[: self.most]:
            needed = self.memory_of(part)
            if needed <= free_bytes:
                fitting.append(part)
                free_bytes -= needed
        return tuple(sorted(fitting))

    @property
    def group_size(self) -> int:
        """Number of stressors of a group: half of all, if the bounds allow it."""
        return max(1, min(self.most, len(self.stressors) // 2))

    def draw_part(self, name: str, random_: random.Random) -> Part:
        parameters = self.stressors[name].parameters
        return Part(name, tuple(random_.randrange(len(parameter.values)) for parameter in parameters))

    def draw(self, size: int, random_: random.Random) -> Recipe:
        """Random stressors and levels, uniformly distributed."""
        names = random_.sample(sorted(self.stressors), min(size, len(self.stressors)))
        return self.fitting([self.draw_part(name, random_) for name in names])
