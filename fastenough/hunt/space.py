# SPDX-License-Identifier: GPL-2.0-or-later
"""The search space: stressors with ordered levels of their parameters, and recipes, which combine stressors."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StressorParameter:
    """``values``: as they are written, the plainest or smallest first, which a minimal recipe goes back to.

    ``factors``: by how much each multiplies the memory of its stressor; empty where it does not.
    """

    name: str
    values: tuple[str, ...]
    factors: tuple[int, ...] = ()


@dataclass(frozen=True)
class Stressor:
    """``memory_bytes``: of one, before the factors of its parameters."""

    name: str
    parameters: tuple[StressorParameter, ...]
    memory_bytes: int = 0


@dataclass(frozen=True, order=True)
class Part:
    """One stressor at work: the level of each of its parameters, counted from 0."""

    stressor: str
    levels: tuple[int, ...]


Recipe = tuple[Part, ...]
"""In the order of the stressors' names, each at most once."""


@dataclass(frozen=True)
class Space:
    """``memory_bytes``: what all parts of a recipe may take together; ``most``: how many parts it may have."""

    stressors: Mapping[str, Stressor]
    memory_bytes: int
    most: int

    def value(self, part: Part, parameter: str) -> str:
        """How a part has a parameter, as it is written; empty where it has none of that name."""
        for level, each in zip(part.levels, self.stressors[part.stressor].parameters, strict=True):
            if each.name == parameter:
                return each.values[level]
        return ""

    def memory_of(self, part: Part) -> int:
        stressor = self.stressors[part.stressor]
        return stressor.memory_bytes * math.prod(
            parameter.factors[level]
            for level, parameter in zip(part.levels, stressor.parameters, strict=True)
            if parameter.factors
        )

    def fitting(self, parts: Sequence[Part]) -> Recipe:
        """As many of these, in the order given, as the bounds allow."""
        taken: list[Part] = []
        free_bytes = self.memory_bytes
        for part in parts[: self.most]:
            needed = self.memory_of(part)
            if needed <= free_bytes:
                taken.append(part)
                free_bytes -= needed
        return tuple(sorted(taken))

    @property
    def group_size(self) -> int:
        """How many stressors a group has: half of all, where the bounds allow that many."""
        return max(1, min(self.most, len(self.stressors) // 2))

    def drawn_part(self, name: str, random_: random.Random) -> Part:
        parameters = self.stressors[name].parameters
        return Part(name, tuple(random_.randrange(len(each.values)) for each in parameters))

    def drawn(self, size: int, random_: random.Random) -> Recipe:
        """So many stressors, and their levels, each as likely as any other."""
        names = random_.sample(sorted(self.stressors), min(size, len(self.stressors)))
        return self.fitting([self.drawn_part(name, random_) for name in names])
