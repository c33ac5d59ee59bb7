# SPDX-License-Identifier: GPL-2.0-or-later
"""A run of the gauge alone, beside a board the bench has no hand on, kept in the store like any other."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from fastenough.board import configuration_in, marks_in
from fastenough.campaign.ledger import new_campaign
from fastenough.campaign.transcript import RunStore, Writer
from fastenough.facts import collect, profile_sha256
from fastenough.link import LocalLink
from fastenough.model import Configuration
from fastenough.recording import LoadProof, LoadStated
from fastenough.recording.building import HeadAdditions, completed_end, completed_head, line_bytes

LOCAL = "local"


@dataclass(frozen=True)
class StatedBoard:
    """What the person at the bench says of the board; None is not stated.

    ``board`` ``local`` is this machine, whose profile is then collected.  A ``load`` is that person's word: nobody has
    proved that it ran.
    """

    board: str | None = None
    configuration: str | None = None
    load: str | None = None

    def added(self) -> HeadAdditions:
        """For the recording's head."""
        load = LoadStated(self.load) if self.load else None
        stated = Configuration(self.configuration) if self.configuration is not None else None
        if self.board != LOCAL:
            return HeadAdditions(self.board, stated, load)
        profile = collect(LocalLink())
        found = configuration_in(profile)
        return HeadAdditions(
            profile.get("hostname") or self.board,
            replace(found, name=stated.name if stated else found.name),
            load,
            profile,
            profile_sha256(profile),
            marks=marks_in(profile),
        )

    def proof(self) -> LoadProof | None:
        """For the recording's end: that nothing but a statement is there."""
        return LoadProof(self.load, True, stated=True) if self.load else None


class StoredRun:
    """Takes a recording's lines as a file does; the run begins in the store with the head."""

    def __init__(self, keeper: RunStore, probe: str, outside: StatedBoard) -> None:
        self._keeper = keeper
        self._outside = outside
        self._campaign = new_campaign(f"gauge-{probe}")
        self._added = outside.added()
        self.writer: Writer | None = None

    def write(self, raw: bytes) -> int:
        line = json.loads(raw)
        if self.writer is None:
            self.writer = self._keeper.begin({"campaign": self._campaign, "position": 0, "positions": 1})
            line = completed_head(line, self.writer.id, self._added)
        elif line["type"] == "end" and (proof := self._outside.proof()) is not None:
            line = completed_end(line, proof)
        self.writer.line(line_bytes(line))
        return len(raw)

    def flush(self) -> None:
        """Nothing is held back."""

    def seal(self) -> None:
        """The run is over, whatever its end says."""
        if self.writer is not None:
            self.writer.end()
