# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs that a plan expands into, in an order in which each board is booted once per configuration."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from fastenough.board import AS_BOOTED
from fastenough.campaign.plan import DEFAULT_BOARD, WARM_UP_S, Entry, Plan
from fastenough.implementations import DEFAULT, Value
from fastenough.model import Requirement
from fastenough.units import parse_duration_ns

ACTS_WARM_UP = "warm-up"
"""The probe's parameter: acts take place for so long before any is counted."""
PLAN_FILE = "plan.toml.zst"
"""What each run of a plan that was a file is kept with: the text of that file."""
WHOLE = ""
OWN = ", the board's own"
MONITORED = ", the monitor beside it"
"""How the titles end of the recordings that are kept of one run of a plan: of the run itself; of the board's own, where
an instrument measured; of what the monitor saw meanwhile."""


@dataclass(frozen=True)
class RunSpec:
    """One run to be made; ``position`` counts from 0."""

    position: int
    probe: str
    parameters: Mapping[str, Value]
    load: str
    duration_s: float
    board: str = DEFAULT_BOARD
    configuration: str = AS_BOOTED
    implementation: str = DEFAULT
    warm_up_s: float = WARM_UP_S
    requirement: Requirement | None = None
    keys: Mapping[str, Value] = field(default_factory=dict)

    def key(self) -> dict[str, Any]:
        """What makes this run the same as another, in a form that hashes alike everywhere."""
        content = asdict(self) | {"parameters": dict(sorted(self.parameters.items()))}
        keys = dict(sorted(content.pop("keys").items()))
        return content | ({"keys": keys} if keys else {})

    @property
    def whole_s(self) -> float:
        """From the begin of the load to the end of the act, which may have a warm-up of its own."""
        own_s = 0.0
        with suppress(ValueError):
            own_s = parse_duration_ns(str(self.parameters.get(ACTS_WARM_UP, ""))) / 1e9
        return self.warm_up_s + own_s + self.duration_s

    @property
    def place(self) -> str:
        """Where and how it is done, in words; empty where that goes without saying."""
        board = "" if self.board == DEFAULT_BOARD else self.board
        on = " ".join(word for word in (board, "" if self.configuration == AS_BOOTED else self.configuration) if word)
        return " ".join(word for word in (self._by, f"on {on}" if on else "") if word)

    @property
    def _by(self) -> str:
        return "" if self.implementation == DEFAULT else f"by {self.implementation}"

    @property
    def _asked(self) -> str:
        """The probe and its parameters."""
        return " ".join(
            [self.probe, *(name if value is True else f"{name}={value}" for name, value in self.parameters.items())]
        )

    @property
    def what(self) -> str:
        """In words, what is measured, and by whom where that has to be said; not where, nor under which load."""
        return " ".join(filter(None, (self._asked, self._by)))

    @property
    def title(self) -> str:
        """In words, which run of the plan this is."""
        return f"{' '.join(filter(None, (self._asked, self.place)))}, load {self.load}"


def expand(plan: Plan) -> list[RunSpec]:
    """The runs of a plan, in order: board, configuration, entry, repetition, implementation, parameters, load."""
    return list(_expanded(plan))


def _expanded(plan: Plan) -> Iterator[RunSpec]:
    positions = itertools.count()
    places = itertools.product(plan.boards or (DEFAULT_BOARD,), plan.configurations)
    for (board, configuration), entry in itertools.product(places, plan.entries):
        for _, implementation, parameters, load in itertools.product(
            range(entry.repeat), entry.implementations, combinations(entry), entry.loads
        ):
            yield RunSpec(
                next(positions),
                entry.probe,
                parameters,
                load,
                entry.duration_s,
                board,
                configuration,
                implementation,
                entry.warm_up_s,
                entry.requirement,
                entry.keys,
            )


def combinations(entry: Entry) -> list[dict[str, Value]]:
    """Every combination of the values of an entry's parameters."""
    return [
        dict(zip(entry.parameters, values, strict=True)) for values in itertools.product(*entry.parameters.values())
    ]


def recordings_of(plan: Plan) -> tuple[str, ...]:
    """The recordings that are kept of each run, the run's own first, by how their titles end."""
    return WHOLE, *([OWN] if plan.instrument else []), *([MONITORED] if plan.monitor else [])


def titles(plan: Plan, specs: list[RunSpec]) -> tuple[str, ...]:
    """What is planned, by position in the store: each run has those that are kept beside it behind it."""
    return tuple(f"{spec.title}{which}" for spec in specs for which in recordings_of(plan))


def plan_sha256(plan: Plan, specs: list[RunSpec]) -> str:
    """Equal for plans that would make the same runs; ``specs`` are those that this plan expands into."""
    content = {
        "runs": [spec.key() for spec in specs],
        "settings": dict(sorted(plan.settings.items())),
        "loads": {name: asdict(load) for name, load in sorted(plan.loads.items())},
        "instrument": asdict(plan.instrument) if plan.instrument else None,
        "wires": asdict(plan.wires) if plan.wires else None,
    } | ({"monitor": True} if plan.monitor else {})
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
