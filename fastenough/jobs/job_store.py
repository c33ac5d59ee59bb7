# SPDX-License-Identifier: GPL-2.0-or-later
"""The store as jobs use it: the runs of one campaign, and the conclusions drawn from several runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastenough.board import Board
from fastenough.campaign.board_name import recorded_board
from fastenough.campaign.runner import has_known_kernel, require_same_system
from fastenough.campaign.transcript import Writer
from fastenough.model import BadInput
from fastenough.recording import Recording
from fastenough.report.document import Section, read_section, stored_form
from fastenough.store import RunSummary, Store
from fastenough.store.conclusions import chapter_of, conclude, conclusions


@dataclass
class OneCampaign:
    """The runs of one campaign by ``position``.  ``made``: run ids by position, including those before a resume."""

    store: Store
    campaign: str = field(default="", kw_only=True)
    position: int = field(default=0, kw_only=True)
    made: dict[int, str] = field(default_factory=dict, kw_only=True)

    def newest(self, sha256: str, what: str) -> list[RunSummary]:
        """Continue the latest campaign with this hash; returns its runs, oldest first.

        ``what``: description of such a campaign.  Raises BadInput if there is none or another bench runs it.
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

    def require_system_of(self, run_ids: Iterable[str], board: Board, configuration: str) -> None:
        """Raise ChangedSystem unless the board, in this configuration, is the system of these stored runs; if their
        system is unknown, the board is not booted."""
        heads = (self.load(run).head for run in run_ids)
        kept = next(filter(has_known_kernel, heads), None)
        if kept is not None:
            with board.boot(configuration) as booted:
                name = recorded_board(board.name, booted.link, self.store).name
                require_same_system(board.name, booted, kept, name, "omit --resume to start anew")

    def placed(self, sha256: str, planned: tuple[str, ...]) -> Writer:
        """Begin the run at the current position; ``planned``: titles of all runs."""
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


def store_conclusion(store: Store, runs: Sequence[str], section: Section) -> None:
    """Store a section for these runs of a board; nothing is stored without runs."""
    board = next((run.board for run in store.runs(brief=True, id=runs[0])), None) if runs else None
    if board is not None:
        conclude(store, board, runs, stored_form(section))


def stored_conclusions(store: Store, runs: Sequence[str]) -> tuple[Section, ...]:
    """Stored sections that cover these runs, the newest of each kind."""
    return tuple({section.id: section for section in reversed(list(_sections(store, set(runs))))}.values())


def _sections(store: Store, runs: set[str]) -> Iterator[Section]:
    for conclusion in conclusions(store):
        if runs and runs <= set(conclusion.runs):
            try:
                yield read_section(chapter_of(store, conclusion.id) or {})
            except BadInput:
                continue
