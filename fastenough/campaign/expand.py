# SPDX-License-Identifier: GPL-2.0-or-later
"""Expansion of a plan into its runs, ordered so that each board is booted once per configuration."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from fastenough.board import AS_BOOTED
from fastenough.campaign.plan import DEFAULT_BOARD, WARM_UP_S, Entry, Plan
from fastenough.implementations import DEFAULT, Value
from fastenough.model import Requirement
from fastenough.units import parse_duration_ns

ACTS_WARM_UP = "warm-up"
"""Parameter of the probe: duration at the start of the run in which acts are not counted."""
PLAN_FILE = "plan.toml.zst"
"""Name under which the text of the plan's file is stored with each run."""
WHOLE = ""
OWN = ", the board's own"
MONITORED = ", the monitor beside it"
"""Suffixes of titles.  One run of a plan has up to three recordings: the run itself, the board's own recording if an
instrument measured, and the monitor's recording."""


PHASES_WITHIN_NS = 20_000_000
"""Range of the phases: several periods of the kernel's tick."""
_GOLDEN = (5**0.5 - 1) / 2


def phases_ns(number: int) -> list[int]:
    """Return so many different phases, even in their range; those of a smaller number are the first ones."""
    return [round(count * _GOLDEN % 1 * PHASES_WITHIN_NS) for count in range(1, number + 1)]


@dataclass(frozen=True)
class RunSpec:
    """One run of a plan; ``position`` counts from 0.

    ``phase_ns``: by how much later the measurement begins than without a phase, on a deterministic board.
    """

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
    phase_ns: int | None = None

    def key(self) -> dict[str, object]:
        """Return the fields that identify the run, in a form with a reproducible hash."""
        content = asdict(self) | {"parameters": dict(sorted(self.parameters.items()))}
        keys, phase_ns = dict(sorted(content.pop("keys").items())), content.pop("phase_ns")
        return content | ({"keys": keys} if keys else {}) | ({} if phase_ns is None else {"phase_ns": phase_ns})

    @property
    def whole_s(self) -> float:
        """Duration [s] from the start of the load to the end of the act, the act's own warm-up included."""
        own_s = 0.0
        with suppress(ValueError):
            own_s = parse_duration_ns(str(self.parameters.get(ACTS_WARM_UP, ""))) / 1e9
        return self.warm_up_s + own_s + self.duration_s

    @property
    def place(self) -> str:
        """Implementation, board and configuration in words; empty if all are the defaults."""
        board = "" if self.board == DEFAULT_BOARD else self.board
        on = " ".join(part for part in (board, "" if self.configuration == AS_BOOTED else self.configuration) if part)
        return " ".join(part for part in (self._by, f"on {on}" if on else "") if part)

    @property
    def _by(self) -> str:
        return "" if self.implementation == DEFAULT else f"by {self.implementation}"

    @property
    def _request(self) -> str:
        """The probe and its parameters."""
        return " ".join(
            [self.probe, *(name if value is True else f"{name}={value}" for name, value in self.parameters.items())]
        )

    @property
    def what(self) -> str:
        """Probe, parameters and implementation in words, without board and load."""
        return " ".join(filter(None, (self._request, self._by)))

    @property
    def title(self) -> str:
        """Title of the run: probe, parameters, implementation, board, configuration, load and phase."""
        phase = "" if self.phase_ns is None else f", phase {self.phase_ns / 1000:,.0f} µs"
        return f"{' '.join(filter(None, (self._request, self.place)))}, load {self.load}{phase}"


def expand(plan: Plan) -> list[RunSpec]:
    """Return the runs, ordered by board, configuration, entry, repetition, implementation, parameters, load, phase."""
    return list(_generate_runs(plan))


def _generate_runs(plan: Plan) -> Iterator[RunSpec]:
    positions = itertools.count()
    places = itertools.product(plan.boards or (DEFAULT_BOARD,), plan.configurations)
    for (board, configuration), entry in itertools.product(places, plan.entries):
        for _, implementation, parameters, load, phase_ns in itertools.product(
            range(entry.repeat), entry.implementations, combinations(entry), entry.loads, _phases(entry)
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
                phase_ns,
            )


def _phases(entry: Entry) -> Sequence[int | None]:
    return phases_ns(entry.phases) if entry.phases > 1 else [entry.phase_ns]


def combinations(entry: Entry) -> list[dict[str, Value]]:
    """Return every combination of the values of an entry's parameters."""
    return [
        dict(zip(entry.parameters, values, strict=True)) for values in itertools.product(*entry.parameters.values())
    ]


def recordings_of(plan: Plan) -> tuple[str, ...]:
    """Return the title suffixes of the recordings that each run has, the run's own first."""
    return WHOLE, *([OWN] if plan.instrument else []), *([MONITORED] if plan.monitor else [])


def titles(plan: Plan, specs: list[RunSpec]) -> tuple[str, ...]:
    """Return the titles of all planned recordings by position in the store; those of one run are consecutive."""
    return tuple(f"{spec.title}{suffix}" for spec in specs for suffix in recordings_of(plan))


def plan_sha256(plan: Plan, specs: list[RunSpec]) -> str:
    """Return a hash that is equal for plans with the same runs; ``specs``: the runs of this plan."""
    content: dict[str, object] = {
        "runs": [spec.key() for spec in specs],
        "settings": dict(sorted(plan.settings.items())),
        "loads": {name: asdict(load) for name, load in sorted(plan.loads.items())},
        "instrument": asdict(plan.instrument) if plan.instrument else None,
        "wires": asdict(plan.wires) if plan.wires else None,
    }
    if plan.monitor:
        content["monitor"] = True
    if plan.guest:
        content["guest"] = plan.guest
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
