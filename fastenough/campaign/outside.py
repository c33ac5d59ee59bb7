# SPDX-License-Identifier: GPL-2.0-or-later
"""A run of the gauge alone, beside a board the bench has no hand on, kept in the store like any other."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from typing import Any

from fastenough.campaign.transcript import Keeper, Writer, complete_end, complete_head, raw_line
from fastenough.facts import collect, profile_sha256
from fastenough.link import LocalLink

LOCAL = "local"


@dataclass(frozen=True)
class Outside:
    """What the person at the bench says of the board; None is not stated.

    ``board`` ``local`` is this machine, whose profile is then collected.  A ``load`` is that person's word: nobody has
    proved that it ran.
    """

    board: str | None = None
    configuration: str | None = None
    load: str | None = None

    def added(self) -> dict[str, Any]:
        """For the recording's head."""
        added: dict[str, Any] = {}
        if self.board == LOCAL:
            profile = collect(LocalLink())
            kernel = profile.get("kernel") or {}
            marks = [mark for mark, fact in (("emulated", "emulated"), ("virtual-machine", "hypervisor"))
                     if profile.get(fact)]
            added = {"profile": profile, "profile_sha256": profile_sha256(profile), "marks": marks,
                     "configuration": f"{kernel.get('release', 'unknown')} {kernel.get('version', '')}".strip()}
        hostname = (added.get("profile") or {}).get("hostname")
        said = {"board": hostname or self.board, "configuration": self.configuration,
                "load": {"name": self.load, "commands": []} if self.load else None}
        return added | {name: value for name, value in said.items() if value is not None}

    def proof(self) -> dict[str, Any] | None:
        """For the recording's end: that nothing but a statement is there."""
        return {"name": self.load, "ran": True, "reasons": [], "stated": True} if self.load else None


class StoredRun:
    """Takes a recording's lines as a file does; the run begins in the store with the head."""

    def __init__(self, keeper: Keeper, probe: str, outside: Outside) -> None:
        self._keeper = keeper
        self._outside = outside
        self._campaign = f"gauge-{probe}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(2)}"
        self._added = outside.added()
        self.writer: Writer | None = None

    def write(self, raw: bytes) -> int:
        line = json.loads(raw)
        if self.writer is None:
            self.writer = self._keeper.begin({"campaign": self._campaign, "position": 0, "positions": 1})
            line = complete_head(line, self.writer.id, self._added)
        elif line["type"] == "end" and (proof := self._outside.proof()) is not None:
            line = complete_end(line, proof)
        self.writer.line(raw_line(line))
        return len(raw)

    def flush(self) -> None:
        """Nothing is held back."""

    def seal(self) -> None:
        """The run is over, whatever its end says."""
        if self.writer is not None:
            self.writer.end()

