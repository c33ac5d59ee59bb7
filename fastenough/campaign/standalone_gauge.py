# SPDX-License-Identifier: GPL-2.0-or-later
"""A stored run of the gauge alone: the bench does not control the board."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from fastenough.board import configuration_in, marks_in
from fastenough.board.base import require_name
from fastenough.campaign.board_name import recorded_board
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
    """The user's statement about the board; None is not stated.

    The board ``local`` is this machine; its profile is then collected.  A stated ``load`` is not proved.
    """

    board: str | None = None
    configuration: str | None = None
    load: str | None = None

    def added(self, store: RunStore) -> HeadAdditions:
        """Return the additions to the head of a recording in a store.

        Raise BadInput if the stated configuration contradicts the kernel of this machine.
        """
        load = LoadStated(self.load) if self.load else None
        stated = Configuration(self.configuration) if self.configuration is not None else None
        if self.board != LOCAL:
            return HeadAdditions(self.board, stated, load)
        profile = collect(LocalLink())
        if stated is not None:
            require_name(profile, stated.name)
        booted = configuration_in(profile)
        return HeadAdditions(
            recorded_board(LOCAL, LocalLink(), store).name,
            replace(booted, name=stated.name if stated else booted.name),
            load,
            profile,
            profile_sha256(profile),
            marks=marks_in(profile),
        )

    def proof(self) -> LoadProof | None:
        """Return the load proof of the recording's end: a statement only."""
        return LoadProof(self.load, True, stated=True) if self.load else None


class StoredRun:
    """File-like object that stores a recording's lines; the run begins in the store with the head."""

    def __init__(self, store: RunStore, probe: str, outside: StatedBoard) -> None:
        self._store = store
        self._outside = outside
        self._campaign = new_campaign(f"gauge-{probe}")
        self._added = outside.added(store)
        self.writer: Writer | None = None

    def write(self, raw: bytes) -> int:
        line = json.loads(raw)
        if self.writer is None:
            self.writer = self._store.begin({"campaign": self._campaign, "position": 0, "positions": 1})
            line = completed_head(line, self.writer.id, self._added)
        elif line["type"] == "end" and (proof := self._outside.proof()) is not None:
            line = completed_end(line, proof)
        self.writer.line(line_bytes(line))
        return len(raw)

    def flush(self) -> None:
        """Do nothing: lines are stored at once."""

    def seal(self) -> None:
        """End the run in the store."""
        if self.writer is not None:
            self.writer.end()
