# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of a machine in a store: all under which it was reached, and none that another machine had."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from fastenough.campaign import board_name
from fastenough.campaign.board_name import former_names, recorded_board
from fastenough.link import FakeLink

OURS, FOREIGN = "0f" * 16, "f0" * 16
STORED = {"ssh://pi": OURS, "ssh://10.0.0.5": FOREIGN, "ssh://root@pi.local": "", "ssh://10.0.0.7": OURS}
"""Machine of the runs of each name, oldest first; empty: unknown."""


class _NamedRuns:
    """A store with one run of each name."""

    def __init__(self, machines: Mapping[str, str]) -> None:
        self._machines = machines

    def runs(self, **_: object) -> list[SimpleNamespace]:
        return [SimpleNamespace(id=name, board=name, configuration=None) for name in self._machines]

    def load(self, run_id: str) -> SimpleNamespace:
        machine = self._machines[run_id]
        return SimpleNamespace(head=SimpleNamespace(machine=frozenset({machine} - {""})))


@pytest.mark.parametrize(
    ("typed", "former"),
    [
        ("ssh://10.0.0.7", {"ssh://pi"}),
        ("ssh://root@10.0.0.7", {"ssh://pi", "ssh://root@10.0.0.7"}),
        ("ssh://pi", {"ssh://pi"}),
        ("ssh://pi.local", {"ssh://pi", "ssh://pi.local", "ssh://root@pi.local"}),
        ("ssh://10.0.0.5", {"ssh://pi"}),
    ],
)
def test_all_names_of_a_machine_are_its_former_names(
    monkeypatch: pytest.MonkeyPatch, typed: str, former: set[str]
) -> None:
    """Its name is that of its newest run; an address whose runs are of another machine is none of its names."""
    monkeypatch.setattr(board_name, "collect", lambda link, facts: {"machine": [OURS]})
    store: Any = _NamedRuns(STORED)
    recorded = recorded_board(typed, FakeLink({}), store)
    assert recorded.name == "ssh://10.0.0.7" and recorded.others == {"ssh://10.0.0.5"}
    assert set(former_names(typed, recorded, store)) == former
