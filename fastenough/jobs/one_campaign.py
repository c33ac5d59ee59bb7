# SPDX-License-Identifier: GPL-2.0-or-later
"""The store, as a job needs it that makes the runs of one campaign by itself, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fastenough.campaign.transcript import Writer
from fastenough.model import BadInput
from fastenough.recording import Recording
from fastenough.store import RunSummary, Store


@dataclass
class OneCampaign:
    """Each run at its ``position``.  ``made``: the run at each, those of earlier starts included."""

    store: Store
    campaign: str = field(default="", kw_only=True)
    position: int = field(default=0, kw_only=True)
    made: dict[int, str] = field(default_factory=dict, kw_only=True)

    def newest(self, sha256: str, what: str) -> list[RunSummary]:
        """The runs of the newest campaign of these words, which this one is from now on, oldest first.

        ``what``: such a campaign, in words.  Raises BadInput where there is none, or another bench makes it.
        """
        self.store.settle()
        earlier = [run for run in self.store.runs(plan_sha256=sha256) if run.campaign]
        if not earlier:
            raise BadInput(
                f"--resume: {self.store.path} has no {what}; omit --resume to start one (see: fastenough list)"
            )
        self.campaign = earlier[-1].campaign or ""
        mine = [run for run in earlier if run.campaign == self.campaign]
        if any(run.state == "running" for run in mine):
            raise BadInput(f"campaign {self.campaign} is being measured by another bench; wait for it, or stop it")
        return mine

    def placed(self, sha256: str, planned: tuple[str, ...]) -> Writer:
        """Begin the run at the position, of so many that are planned."""
        writer = self.store.begin(
            {
                "campaign": self.campaign,
                "plan_sha256": sha256,
                "position": self.position,
                "positions": len(planned),
                "planned": planned,
            }
        )
        self.made[self.position] = writer.id
        return writer

    def runs(self, **equal: Any) -> list[Any]:
        return self.store.runs(**equal)

    def load(self, run: str) -> Recording:
        return self.store.load(run)

    def settle(self) -> None:
        self.store.settle()

    def fault(self, run_id: str) -> str | None:
        return self.store.fault(run_id)
