# SPDX-License-Identifier: GPL-2.0-or-later
"""How the boards of a plan come into its configurations, where they do not boot them by themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from fastenough.board import AS_BOOTED, Board
from fastenough.board.changed import Ask, Change, ChangedBoard, require_far
from fastenough.campaign.expand import expand, kept
from fastenough.campaign.plan import Plan
from fastenough.campaign.transcript import Keeper
from fastenough.model import Configuration


def changing(
    plan: Plan, opened: Callable[[str], Board], ask: Ask, seen: Mapping[str, Mapping[str, Configuration]]
) -> Callable[[str], Board]:
    """As ``opened``, but a board that is measured as it is found is changed as the plan says, or by hand.

    ``seen``: by board, what its configurations were found to be so far.  A plan with one configuration of which it
    says nothing gives it a name, and changes nothing.
    """
    changes = {name: plan.changes.get(name, Change()) for name in plan.configurations}

    @cache
    def of(name: str) -> Board:
        board = opened(name)
        if board.configurations() != (AS_BOOTED,) or (len(changes) < 2 and not plan.changes):
            return board
        require_far(board, changes)
        return ChangedBoard(board, changes, ask, dict(seen.get(name, {})))

    return of


def seen_before(plan: Plan, keeper: Keeper, done: Mapping[int, str]) -> dict[str, dict[str, Configuration]]:
    """By board, what its configurations were when they were measured; ``done``: run ids by position in the store."""
    specs, each = expand(plan), len(kept(plan))
    seen: dict[str, dict[str, Configuration]] = {}
    for position, run in done.items():
        spec = specs[position // each]
        found = seen.setdefault(spec.board, {})
        if spec.configuration not in found:
            configuration = keeper.load(run).head.configuration
            if configuration is not None and configuration.kernel_release is not None:
                found[spec.configuration] = configuration
    return seen
