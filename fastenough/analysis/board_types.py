# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards of one type: runs of several boards that can be pooled, and the board of each run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastenough.analysis.differences import Values, difference, series_values
from fastenough.analysis.keys import FOR_MERGING, MACHINE, RUN_KEYS, SERIES_KEYS, Forbids, Key, UnknownValue
from fastenough.analysis.merged import judged_series, load_name
from fastenough.model import Machines, Series
from fastenough.recording import Head, Recording

_OF_ONE_BOARD = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b"
    r"|(?<=PARTUUID=)[0-9a-f-]+|\b(?:systemd\.machine_id|ip|\S*serial\S*num\S*)=\S+",
    re.IGNORECASE,
)
"""Parts of a command line that differ from board to board: UUIDs, MAC and IP addresses, serial numbers."""


@dataclass(frozen=True)
class _WithoutIdentity:
    """The value of a key, without what belongs to one board only."""

    key: Key

    def __call__(self, head: Head, series: Series | None) -> Any:
        value = self.key.of(head, series)
        if isinstance(value, str):
            return _OF_ONE_BOARD.sub("", value)
        return {name: item for name, item in value.items() if name != "serial"} if isinstance(value, dict) else value


def _pooled(key: Key) -> Key:
    if key.name in ("command line", "instrument"):
        return replace(key, of=_WithoutIdentity(key))
    return replace(key, forbids=Forbids.MERGING) if key.name == "tool" else key


_KEYS = tuple(_pooled(key) for key in RUN_KEYS if key.name not in ("board", MACHINE))
"""All that forbids merging but the board itself, and the version of the measuring program."""
_TYPE_KEYS = tuple(key for key in _KEYS if key.name in ("processor", "device tree"))
_LOAD_KEYS = ("load", "load's commands")
_VERSION_KEYS = tuple(key for key in _KEYS if key.name not in _LOAD_KEYS)
_LOAD_ONLY = tuple(key for key in _KEYS if key.name in _LOAD_KEYS)
POOLED_KEYS = tuple(key.name for key in _KEYS if key.forbids in FOR_MERGING)
"""Names of the keys that runs of several boards must agree in."""


@dataclass(frozen=True)
class RunKind:
    """Keys in which runs of several boards must agree; ``series``: of the first judged series, None without one."""

    run: Values
    series: Values | None

    @classmethod
    def of(cls, recording: Recording) -> RunKind:
        judged = judged_series(recording)
        return cls(
            {key.name: key.of(recording.head, None) for key in _KEYS},
            series_values(recording, judged[0]) if judged else None,
        )

    def difference(self, other: RunKind) -> str | None:
        """Text of the first key, except the load, in which two kinds differ; None if they agree."""
        text = difference(_VERSION_KEYS, self.run, other.run, FOR_MERGING)
        if text is None and self.series is not None and other.series is not None:
            text = difference(SERIES_KEYS, self.series, other.series, FOR_MERGING)
        return text

    @property
    def unknown(self) -> str | None:
        """Text of the first key whose value is not in the run, which then agrees with no other run."""
        named = ((name, self.run[name]) for name in POOLED_KEYS)
        return next((f"{name} is {value}" for name, value in named if isinstance(value, UnknownValue)), None)

    def has_load_of(self, other: RunKind) -> bool:
        """Whether both were measured under one load, in one version."""
        return difference(_LOAD_ONLY, self.run, other.run, FOR_MERGING) is None

    def is_same_type(self, other: RunKind) -> bool:
        """Whether both are of one type of board, by processor and device tree."""
        return difference(_TYPE_KEYS, self.run, other.run, FOR_MERGING) is None


def type_text(recording: Recording) -> str:
    """Text of the type of a board: the model in its device tree or the product in its firmware, and its processor."""
    profile = recording.head.profile or {}
    tree, firmware, cpu = (profile.get(name) or {} for name in ("device_tree", "firmware", "cpu"))
    maker = " ".join(str(firmware[name]) for name in ("sys_vendor", "product_name") if firmware.get(name))
    return ", ".join(str(part) for part in (tree.get("model") or maker, cpu.get("model")) if part) or "unknown type"


@dataclass(frozen=True, eq=False)
class BoardRuns:
    """The runs of one machine.

    ``name``: its name, with a number where several machines have it.  ``names``: all names that it has in the runs.
    ``identified``: whether the runs hold identifiers of the hardware; without them the name stands for the machine.
    ``ambiguous``: they hold none, and several identified machines have the name, so that this may be one of them.
    """

    name: str
    names: tuple[str, ...]
    identified: bool
    recordings: tuple[Recording, ...]
    ambiguous: bool = False

    @property
    def loads(self) -> set[str | None]:
        return {load_name(recording) for recording in self.recordings}

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(recording.run_id for recording in self.recordings)


def boards_of(recordings: Sequence[Recording]) -> list[BoardRuns]:
    """Runs by machine, in order of first appearance.

    Several names of the same hardware are one board.  Runs without identifiers belong to the machine with their name,
    if there is exactly one.
    """
    machines = Machines(recording.head.machine for recording in recordings)
    numbers = [machines.number(recording.head.machine) for recording in recordings]
    machines_by_name: dict[str, set[int]] = {}
    for recording, number in zip(recordings, numbers, strict=True):
        if number is not None:
            machines_by_name.setdefault(_name(recording), set()).add(number)
    groups: dict[int | str, list[Recording]] = {}
    for recording, number in zip(recordings, numbers, strict=True):
        name = _name(recording)
        machines_of_name = machines_by_name.get(name, set())
        only: int | str = next(iter(machines_of_name)) if len(machines_of_name) == 1 else name
        groups.setdefault(only if number is None else number, []).append(recording)
    several = {name for name, machines_of_name in machines_by_name.items() if len(machines_of_name) > 1}
    return [replace(board, ambiguous=not board.identified and board.names[0] in several) for board in _named(groups)]


def _name(recording: Recording) -> str:
    return recording.head.board or "unnamed"


def _named(groups: dict[int | str, list[Recording]]) -> list[BoardRuns]:
    boards: list[BoardRuns] = []
    for machine, members in groups.items():
        names = tuple(dict.fromkeys(map(_name, members)))
        earlier = sum(names[0] == board.names[0] for board in boards)
        name = f"{names[0]} (machine {earlier + 1})" if earlier else names[0]
        boards.append(BoardRuns(name, names, isinstance(machine, int), tuple(members)))
    return boards


def loads_of(boards: Iterable[BoardRuns]) -> list[str | None]:
    """The loads of all boards, each once."""
    return list(dict.fromkeys(load_name(recording) for board in boards for recording in board.recordings))
