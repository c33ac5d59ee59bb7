# SPDX-License-Identifier: GPL-2.0-or-later
"""A board's profiles, and the load that was stated, by the recordings that began under them.

The service on a board records neither.  They are taken when a recording is first seen, and kept in the farm's state
until the recording is in the store, whose head then has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastenough.board import Booted, configuration_in, marks_in
from fastenough.facts import collect, profile_sha256
from fastenough.farm.nursery import Order
from fastenough.files import replace_whole
from fastenough.model import EMULATED
from fastenough.recording.building import Added
from fastenough.recording.parsing import parsed_load


@dataclass
class Profiles:
    """Of one board; without ``booted``, which it is asked for what is new, only those that are kept."""

    board: str
    path: Path
    simulated: bool = False
    load: Mapping[str, Any] | None = None
    booted: Booted | None = None
    _kept: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with suppress(OSError, ValueError):
            self._kept = dict(json.loads(self.path.read_bytes()))

    @classmethod
    def of(cls, order: Order, booted: Booted | None = None) -> Profiles:
        path = Path(order["state"]) / f"{order['board']}.profiles.json"
        return cls(str(order["board"]), path, bool(order.get("simulated")), order.get("load"), booted)

    def added(self, run_id: str) -> Added:
        """What only the bench knows of a recording; raises KeyError where nobody does."""
        if run_id not in self._kept:
            self._kept[run_id] = self._new(run_id)
        kept = self._kept[run_id]
        profile = kept["profile"]
        return Added(self.board, configuration_in(profile), parsed_load(kept.get("load")), profile,
                     profile_sha256(profile), (), tuple(kept["marks"]))

    def _new(self, run_id: str) -> dict[str, Any]:
        if self.booted is None:
            raise KeyError(run_id)
        profile = collect(self.booted.link)
        marks = (*self.booted.marks, *marks_in(profile), *((EMULATED,) if self.simulated else ()))
        return {"profile": profile, "marks": list(dict.fromkeys(marks)), "load": self.load}

    def keep(self, run_ids: Iterable[str]) -> None:
        """These are on their way, and no others."""
        self._kept = {run_id: self._kept[run_id] for run_id in run_ids if self.added(run_id)}
        replace_whole(self.path, json.dumps(self._kept).encode(), 0o600)
