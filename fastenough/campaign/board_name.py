# SPDX-License-Identifier: GPL-2.0-or-later
"""The name of a board in its runs: a machine has one name in a store, however it is reached."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from fastenough.campaign.plan import DEFAULT_BOARD
from fastenough.campaign.transcript import RunStore
from fastenough.facts import collect
from fastenough.link import Link
from fastenough.model import Identifiers, identifiers_of, is_same_machine

_SSH = "ssh://"
_USER = re.compile(r"ssh://[^@/]*@")
_MOST_READ = 50
"""So many runs of a store are read at most, the newest ones of each board and configuration."""


@dataclass(frozen=True)
class RecordedBoard:
    """Name of a board in its runs, and the address by which it was reached (None: locally, or by a name).

    ``note``: that earlier runs under this name are of another machine.  ``machine``: empty if it is unknown.
    ``same``: all names of its runs in the store.  ``others``: names of which all identified runs are of other machines.
    """

    name: str
    address: str | None = None
    note: str | None = None
    machine: Identifiers = frozenset()
    same: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()


def name_in_runs(board: str, profile: Mapping[str, Any]) -> str:
    """Return the name of a board that no earlier run has named.

    The bench's own machine has its host name, even if reached by ssh (its boot id shows that).  The user of an ssh
    address is not part of the name, since the machine is the same for every user.
    """
    here = board == DEFAULT_BOARD or (board.startswith(_SSH) and profile.get("boot_id") == _own_boot_id())
    hostname = profile.get("hostname") if here else None
    return str(hostname or _without_user(board))


def _without_user(board: str) -> str:
    return _USER.sub(_SSH, board)


@cache
def _own_boot_id() -> str:
    """Return the boot id of the bench's machine; empty if it cannot be read."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def recorded_board(board: str, link: Link, store: RunStore) -> RecordedBoard:
    """Return the name and address of a board for its runs in a store.

    A machine that is given by its address, or as the local one, keeps the name of its newest run in the store.  Any
    other name was chosen by the user and stays.
    """
    profile = collect(link, ("hostname", "boot_id", "machine"))
    machine, name = identifiers_of(profile), name_in_runs(board, profile)
    address = _without_user(board) if board.startswith(_SSH) else None
    if not machine:
        return RecordedBoard(name, address)
    chosen = {} if board == DEFAULT_BOARD or address else {"board": name}
    known = list(_newest(store, **chosen))
    name = next((earlier for earlier, other in known if is_same_machine(machine, other)), name)
    same = frozenset(earlier for earlier, other in known if is_same_machine(machine, other))
    others = frozenset(earlier for earlier, _ in known) - same
    return RecordedBoard(name, address, _replaced(name) if name in others else None, machine, same, others)


def former_names(board: str, recorded: RecordedBoard, store: RunStore) -> tuple[str, ...]:
    """Return the other names of a board in a store: those of its machine, its address with any user, and as typed.

    Earlier versions stored pulled recordings under the address as typed.  An address whose runs are of another machine
    is no name of this one.
    """
    stored = {run.board for run in store.runs(brief=True) if run.board}
    alike = {other for other in stored if _without_user(other) == _without_user(board)}
    return tuple(sorted(({board, *alike} - recorded.others | recorded.same) - {recorded.name}))


def _newest(store: RunStore, **equal: Any) -> Iterator[tuple[str, Identifiers]]:
    """Name and machine of the newest run of each board in each configuration, newest first, where it is known."""
    identified: set[tuple[str, str | None]] = set()
    ended = (run for run in reversed(store.runs(brief=True, state="ended", **equal)) if run.board)
    unread = (run for run in ended if (run.board, run.configuration) not in identified)
    for run in islice(unread, _MOST_READ):
        machine = store.load(run.id).head.machine
        if machine:
            identified.add((run.board, run.configuration))
            yield run.board, machine


def _replaced(name: str) -> str:
    return (
        f"board {name}: earlier runs in the store are of another machine (machine ID or hardware differ); "
        "they are never merged with these"
    )
