# SPDX-License-Identifier: GPL-2.0-or-later
"""Read ``farm.toml``: folders and addresses, the boards, and the plans of each board.

The file contains no secrets, and no part of it is passed to a shell.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, replace
from pathlib import Path

from fastenough.board import open_board
from fastenough.campaign import read_plan
from fastenough.campaign.plan import shipped_plans
from fastenough.campaign.plan_file import read_requirement
from fastenough.campaign.toml import Table, read_toml
from fastenough.farm.calendar import Dates, ScheduledPlan, parse_dates
from fastenough.model import BadInput, Requirement
from fastenough.recording import LoadStated
from fastenough.words import LINE_CHARS

COORDINATOR = "127.0.0.1:20408"
RING = "/var/lib/fastenough/ring"
"""Default path of the ring of a board's service (docs/monitor-service.md)."""
DEFAULT_PLAN = "osadl-cycle"
"""The plan of a board that has neither a ring nor a plan."""
IDLE = 0.1
"""Share of each measured CPU's time that an idle board may use, including the probe and pulls."""
FALSE_CHANGES = 1.0
"""Changes of the tail that all boards of a farm may have noted in a year by chance."""
_KEYS = ("name", "coordinator", "store", "database", "state", "reconcile", "false-changes", "board")
FORMER_KEYS = {"formerly": "former-names"}
"""Former keys of a board, which are still read, with their present names."""
_BOARD_KEYS = (
    "name",
    "place",
    "link",
    "rack",
    "type",
    "site",
    "public",
    "limit",
    "requirement",
    "ring",
    "load",
    "pull",
    "boot",
    "patience",
    "retry",
    "plan",
    "simulated",
    "retired",
    "former-names",
    *FORMER_KEYS,
)
_PLAN_KEYS = ("file", "every", "days", "at")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_ADDRESS = re.compile(r"[A-Za-z0-9.\[\]:_-]{1,255}:[0-9]{1,5}", re.ASCII)
_CYCLE_NS = 12 * 3600 * 10**9
_EXAMPLE = "docs/farm.md"


@dataclass(frozen=True)
class Times:
    """Periods and time limits in seconds.

    ``pull_s``: between pulls.  ``boot_s``: from power-on until the board records or answers.  ``patience_s``: time
    without new data after which the board is power-cycled.  ``retry_s``: first pause after a board that did not boot.
    """

    pull_s: float = 300.0
    boot_s: float = 180.0
    patience_s: float = 7200.0
    retry_s: float = 60.0


@dataclass(frozen=True)
class BoardEntry:
    """One board.

    ``place``: its name at labgrid's coordinator; empty: it cannot be switched.  ``link``: its address, as for
    ``--board``; empty: the network service of its place.  ``ring``: directory of its recordings on the board; empty:
    none.  ``load``: its load while its service records, which is verified; None: not stated.  ``requirement``: applies
    to cycles whose plan has none.  ``simulated``: its recordings are marked as emulated.  ``retired``: it is no longer
    measured, and its pages stay.  ``former_names``: former names in the store, the first one first.
    """

    name: str
    place: str = ""
    link: str = ""
    rack: str = ""
    public: bool = False
    requirement: Requirement | None = None
    ring: str = ""
    load: LoadStated | None = None
    times: Times = Times()
    plans: tuple[ScheduledPlan, ...] = ()
    simulated: bool = False
    retired: bool = False
    former_names: tuple[str, ...] = ()
    type: str = ""
    site: str = ""

    @property
    def first_name(self) -> str:
        """The name under which its partial recordings are stored."""
        return (*self.former_names, self.name)[0]


@dataclass(frozen=True)
class Farm:
    """A farm file.  ``database``: an SQLAlchemy URL; ``state``: the folder of the farm's state file;
    ``false_changes``: changes of the tail that all its boards may have noted in a year by chance."""

    name: str
    coordinator: str
    store: Path
    database: str
    state: Path
    reconcile_s: float
    boards: tuple[BoardEntry, ...]
    false_changes: float = FALSE_CHANGES

    @property
    def id(self) -> str:
        """Identifies this farm's boards in a history that several farms share."""
        return f"{socket.gethostname()}:{self.store.resolve()}"[:300]


def due_s(board: BoardEntry) -> float:
    """Return the longest regular time between new data of a board: the pull interval or the longest pause of a plan."""
    pauses_s = (plan.dates.longest_pause_s for plan in board.plans)
    return board.times.pull_s if board.ring else max(pauses_s, default=0.0)


def _name(table: Table, key: str, example: str, default: str | None = None) -> str:
    """A name that is valid in paths, addresses and tables of other programs."""
    name = table.text(key, example, default)
    if name and _NAME.fullmatch(name) is None:
        raise table.fault(
            f"{key} = {name[:LINE_CHARS]!r} is not a valid name; use up to 64 letters, digits, dots, "
            "dashes and underscores, starting with a letter or digit",
            key,
        )
    return name


def _path(table: Table, key: str, base: Path, default: str) -> Path:
    text = table.text(key, f'"{default}"', default)
    if not text.isprintable():
        raise table.fault(f"{key} = {text[:LINE_CHARS]!r} contains unprintable characters; give a plain path", key)
    return base / text


def _ring(table: Table) -> str:
    ring = table.text("ring", f'"{RING}"', "")
    if ring and (not ring.startswith("/") or not ring.isprintable() or ".." in ring.split("/")):
        raise table.fault(
            f'ring = {ring[:LINE_CHARS]!r} is not an absolute path; use a path such as ring = "{RING}"', "ring"
        )
    return ring


def _load(table: Table, ring: str) -> LoadStated | None:
    """The stated load of the board, with the greatest busy share of an idle board or the least of a loaded one."""
    if "load" not in table:
        return None
    if not ring:
        raise table.fault("load requires ring; remove load (a plan states its own loads)", "load")
    load = table.table("load", "load")
    name = _name(load, "name", '"none"')
    idle = name == "none"
    key = "busy-at-most" if idle else "busy-at-least"
    share = load.share(key, IDLE if idle else 0.0)
    load.finish(("name", key))
    if not 0 < share < 1:
        raise load.fault(
            f"{key} is missing or not between 0 and 1; give the busy share of each measured CPU, such as {key} = 0.5",
            key,
        )
    return LoadStated(
        name,
        source="stated by the farm, and read back",
        busy_at_least=None if idle else share,
        busy_at_most=share if idle else None,
    )


def _link(table: Table, place: str) -> str:
    link = table.text("link", '"ssh://root@board"', "")
    if not link and not place:
        raise table.fault('place and link are missing; add place = "rack1-slot1" or link = "ssh://root@board"')
    if link:
        try:
            open_board(link)
        except BadInput as error:
            raise table.fault(f"link: {error}", "link") from error
    return link


def _requirement(table: Table) -> Requirement | None:
    """As a table, or a limit by itself, which is never to be exceeded."""
    if "limit" not in table:
        return read_requirement(table)
    if "requirement" in table:
        raise table.fault("limit and requirement are both set; remove limit", "limit")
    return Requirement(table.duration_ns("limit", None))


def _seconds(table: Table, key: str, default_s: float) -> float:
    return table.duration_ns(key, round(default_s * 1e9)) / 1e9


def _times(table: Table) -> Times:
    usual = Times()
    return Times(
        _seconds(table, "pull", usual.pull_s),
        _seconds(table, "boot", usual.boot_s),
        _seconds(table, "patience", usual.patience_s),
        _seconds(table, "retry", usual.retry_s),
    )


def _dates(table: Table) -> Dates:
    every_ns = table.duration_ns("every", _CYCLE_NS)
    days, at = table.texts("days", ()), table.text("at", '"06:00"', "00:00")
    try:
        return parse_dates(every_ns / 1e9, days, at)
    except ValueError as error:
        raise table.fault(str(error)) from error


def _scheduled_plan(table: Table, base: Path) -> ScheduledPlan:
    path = _path(table, "file", base, DEFAULT_PLAN)
    path = shipped_plans().get(str(path.relative_to(base)), path) if path.is_relative_to(base) else path
    planned = ScheduledPlan(path, _dates(table))
    table.finish(_PLAN_KEYS)
    plan = read_plan(path)
    if plan.boards:
        raise table.fault(f"{path} sets board; remove board from plans of a farm", "file")
    if plan.changes:
        raise table.fault(
            f"{path} has [[configuration]] tables; a farm does not change configurations, so remove them",
            "file",
        )
    return planned


def _board(table: Table, base: Path) -> BoardEntry:
    name = _name(table, "name", '"board-1"')
    place, ring = _name(table, "place", '"rack1-slot1"', ""), _ring(table)
    board = BoardEntry(
        name,
        place,
        _link(table, place),
        _name(table, "rack", '"1"', ""),
        table.take("public", bool, "true", False),
        _requirement(table),
        ring,
        _load(table, ring),
        _times(table),
        tuple(_scheduled_plan(entry, base) for entry in table.tables("plan", [])),
        table.take("simulated", bool, "true", False),
        table.take("retired", bool, "true", False),
        (*table.texts("formerly", ()), *table.texts("former-names", ())),
        _name(table, "type", '"gateway-2"', ""),
        _name(table, "site", '"vienna"', ""),
    )
    table.finish(_BOARD_KEYS)
    if board.ring or board.plans:
        return board
    return replace(board, plans=(ScheduledPlan(shipped_plans()[DEFAULT_PLAN], Dates(12 * 3600.0)),))


def _require_distinct(table: Table, boards: tuple[BoardEntry, ...]) -> None:
    for key in ("name", "place"):
        names: set[str] = set()
        for number, board in enumerate(boards):
            value = getattr(board, key)
            if value and value in names:
                raise table.fault(
                    f"two boards have the {key} {value!r}; use a different {key} for each board",
                    "board",
                    number,
                    key,
                )
            names.add(value)


def _require_new_names(table: Table, boards: tuple[BoardEntry, ...]) -> None:
    names = [board.name for board in boards]
    for number, board in enumerate(boards):
        for name in board.former_names:
            if _NAME.fullmatch(name) is None or names.count(name):
                raise table.fault(
                    f"former-names: {name[:LINE_CHARS]!r} is invalid or already used; "
                    "list former names of this board only",
                    "board",
                    number,
                    "former-names",
                )
            names.append(name)


def _false_changes(table: Table) -> float:
    value = float(table.take("false-changes", (int, float), "1", FALSE_CHANGES))
    if not 0.001 <= value <= 1000:
        raise table.fault(f"false-changes = {value:g} is not between 0.001 and 1000 per year", "false-changes")
    return value


def read_farm(path: Path) -> Farm:
    """A farm's file, every key checked; raises BadInput with file, line and key.  Paths in it start at its folder."""
    table, base = read_toml(path, _EXAMPLE), path.resolve().parent
    coordinator = table.text("coordinator", f'"{COORDINATOR}"', COORDINATOR)
    if _ADDRESS.fullmatch(coordinator) is None:
        raise table.fault(
            f'coordinator = {coordinator[:LINE_CHARS]!r} is not HOST:PORT; use coordinator = "{COORDINATOR}"',
            "coordinator",
        )
    store = _path(table, "store", base, "fastenough-data")
    boards = tuple(_board(entry, base) for entry in table.tables("board"))
    _require_distinct(table, boards)
    _require_new_names(table, boards)
    farm = Farm(
        _name(table, "name", '"farm"', "farm"),
        coordinator,
        store,
        table.text("database", '"postgresql+psycopg:///farm"', f"sqlite:///{store}/history.sqlite"),
        _path(table, "state", base, "farm-state"),
        _seconds(table, "reconcile", 60.0),
        boards,
        _false_changes(table),
    )
    table.finish(_KEYS)
    if not boards:
        raise table.fault("no board is defined; add a [[board]] table")
    return farm
