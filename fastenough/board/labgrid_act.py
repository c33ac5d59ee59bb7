# SPDX-License-Identifier: GPL-2.0-or-later
"""One act on one place of a labgrid coordinator, as a process of its own: the only file that knows labgrid's client.

    python labgrid_act.py COORDINATOR PLACE ACT        ACT: acquire, release, on, off, cycle, states, transition STATE,
                                                            places (all of them, whatever PLACE is)

It prints one JSON object, and nothing else, to standard output; ``fault`` is the reason of a failure, and
``reservation`` the place's entry of ``places``, if the reason is that a person has reserved it.  labgrid's back ends
may block forever, so the caller kills this process after a time limit; it also ends, with its process group, when its
standard input closes.  ``LG_ENV`` names labgrid's environment file, if any.
"""

from __future__ import annotations

import argparse
import asyncio
import enum
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, TypedDict

import attr
import grpc
from labgrid import Environment, target_factory
from labgrid.config import Config
from labgrid.remote.client import find_role_by_place, start_session
from labgrid.remote.generated import labgrid_coordinator_pb2 as messages
from labgrid.strategy import GraphStrategy, Strategy

_ENVIRONMENT = os.environ.get("LG_ENV", "")
_DEADLINE_S = 25.0
"""The coordinator waits 10 s for each resource of a silent exporter and holds its only lock meanwhile."""
_POWER_DELAY_S = 1.0
_NO_STATE = "unknown"
"""The initial state of a strategy by labgrid's convention; it cannot be requested."""


class PlaceReservation(TypedDict):
    """The holder of a place (empty for nobody), and when the coordinator created and last changed it."""

    holder: str
    created_s: float
    changed_s: float


class LabgridAnswer(TypedDict, total=False):
    """The answer of an act.

    ``fault``: the reason of a failure; ``reservation``: the place, if the reason is that a person has reserved it.
    ``service`` and ``console``: arguments of the place's NetworkService and NetworkSerialPort, from ``acquire``.
    ``states``: those of the strategy.  ``places``: all places by name, and ``me``: the name of this user there.
    """

    fault: str
    reservation: PlaceReservation
    service: Mapping[str, Any] | None
    console: Mapping[str, Any] | None
    states: list[str]
    places: Mapping[str, PlaceReservation]
    me: str


class Fault(Exception):
    """An act failed for a reason that this program states itself."""


class Reserved(Fault):
    """The place is reserved by a person."""

    def __init__(self, place: Any) -> None:
        super().__init__(f"in use by {place.acquired}")
        self.place = place


def _call(session: Any, name: str, place: str) -> None:
    """Send one request; raise Fault with the coordinator's message."""

    async def ask() -> None:
        request = getattr(messages, f"{name}Request")(placename=place)
        try:
            await getattr(session.stub, name)(request, timeout=_DEADLINE_S)
        except grpc.aio.AioRpcError as error:
            raise Fault(f"{name} {place}: {error.details() or error.code().name}") from None
        await asyncio.wait_for(session.sync_with_coordinator(), _DEADLINE_S)

    session.loop.run_until_complete(ask())


def _own_name(session: Any) -> str:
    return f"{session.gethostname()}/{session.getuser()}"


def _acquire(session: Any, place: str) -> LabgridAnswer:
    """Acquire the place and return its resources.

    A coordinator grants a place whose exporter is offline, and keeps it acquired without resources when the exporter
    disconnects.  Such a place is released and acquired again.
    """
    holder = session.places[place].acquired
    if holder and holder != _own_name(session):
        raise Reserved(session.places[place])
    if not holder:
        _call(session, "AcquirePlace", place)
    if not session.places[place].acquired_resources:
        _call(session, "ReleasePlace", place)
        _call(session, "AcquirePlace", place)
    if not session.places[place].acquired_resources:
        _call(session, "ReleasePlace", place)
        raise Fault(why_no_resources(session.places[place], session.resources))
    resources = {
        kind: dict(resource.args) | {"extra": resource.extra}
        for (_, kind), resource in session.get_target_resources(session.places[place]).items()
    }
    return {"service": resources.get("NetworkService"), "console": resources.get("NetworkSerialPort")}


def why_no_resources(place: Any, exported: Mapping[str, Mapping[str, Any]]) -> str:
    """Return why an acquired place has no resources; ``exported``: resource groups by exporter."""
    if not place.matches:
        return (
            f"no resources: the place has no matches; run: labgrid-client -p {place.name} add-match "
            f"EXPORTER/{place.name}/*"
        )
    matches = ", ".join(map(str, place.matches))
    connected = ", ".join(sorted(exported)) or "none"
    for match in place.matches:
        groups = [name for exporter in exported if fnmatchcase(exporter, match.exporter) for name in exported[exporter]]
        if groups and not any(fnmatchcase(name, match.group) for name in groups):
            return (
                f"no resources: the place matches {matches}, but exporter {match.exporter} exports no such group; "
                f"it exports {', '.join(sorted(groups))}"
            )
        if groups:
            return f"no resources: {matches} are exported, but not available now"
    return (
        f"no resources: the place matches {matches}, but no exporter of this name is connected (connected: "
        f"{connected}); start it with labgrid-exporter -n NAME, or correct the match"
    )


def _reservation(place: Any) -> PlaceReservation:
    return {"holder": place.acquired or "", "created_s": place.created, "changed_s": place.changed}


def _own_service(place: str) -> dict[str, Any] | None:
    """Return the place's NetworkService in the environment, for boards whose exporter knows no address."""
    targets = Config(_ENVIRONMENT).get_targets() if _ENVIRONMENT else {}
    role = find_role_by_place(targets, place)
    resources, _ = target_factory.normalize_config(targets[role]) if role else ({}, {})
    return next((dict(arguments) for (arguments,) in resources.get("NetworkService", {}).values()), None)


def _states(place: str) -> list[str]:
    """Return the states of the place's strategy, empty without one; nothing is switched."""
    targets = Environment(_ENVIRONMENT).config.get_targets()
    role = find_role_by_place(targets, place)
    if role is None:
        return []
    _, drivers = target_factory.normalize_config(targets[role])
    unknown = next((name for name in drivers if name not in target_factory.drivers), None)
    if unknown is not None:
        raise Fault(f"unknown driver {unknown}; list the file that defines it under imports")
    strategies = [kind for name in drivers if issubclass(kind := target_factory.drivers[name], Strategy)]
    if len(strategies) > 1:
        raise Fault(f"the target {role} has {len(strategies)} strategies; keep only one")
    return [name for strategy in strategies for name in _states_of(strategy) if name != _NO_STATE]


def _states_of(strategy: type[Any]) -> list[str]:
    if issubclass(strategy, GraphStrategy):
        return [name.removeprefix("state_") for name in dir(strategy) if name.startswith("state_")]
    status = attr.fields_dict(strategy).get("status")
    if status is None or not isinstance(status.default, enum.Enum):
        raise Fault(f"{strategy.__name__} does not declare its states: its status has no Enum member as default")
    return list(type(status.default).__members__)


def _coordinate(coordinator: str, place: str, act: str, state: str | None) -> LabgridAnswer:
    """Run an act that needs the coordinator, at the address that labgrid would use."""
    environment = Environment(_ENVIRONMENT) if state else None
    if _ENVIRONMENT:
        coordinator = Config(_ENVIRONMENT).get_option("coordinator_address", coordinator)
    arguments = argparse.Namespace(
        action=act, delay=_POWER_DELAY_S, name=None, place=place, state=state, initial_state=None
    )
    session = start_session(coordinator, extra={"args": arguments, "env": environment})
    if act == "places":
        return {
            "places": {name: _reservation(place) for name, place in session.places.items()},
            "me": _own_name(session),
        }
    if place not in session.places:
        raise Fault("no such place on the coordinator")
    if act == "acquire":
        resources = _acquire(session, place)
        return {**resources, "service": resources["service"] or _own_service(place)}
    if act == "release":
        _call(session, "ReleasePlace", place)
    elif act == "transition":
        session._get_target(session.places[place])
    else:
        session.power()
    return {}


def _why(error: BaseException) -> str:
    """Return the first cause, and on another line the error that labgrid made of it: long lines are truncated."""
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    cause, effect = (str(e) if isinstance(e, Fault) else f"{type(e).__name__}: {e}" for e in (first, error))
    return cause if first is error else f"{cause}\n({effect})"


def main(coordinator: str, place: str, act: str, state: str | None = None) -> LabgridAnswer:
    """Return the answer, which contains the fault of a failed act."""
    try:
        return {"states": _states(place)} if act == "states" else _coordinate(coordinator, place, act, state)
    except Reserved as error:
        return {"fault": str(error), "reservation": _reservation(error.place)}
    except (Exception, SystemExit) as error:  # drivers and imports are third-party code
        return {"fault": f"LG_ENV={_ENVIRONMENT}:\n{_why(error)}" if act == "states" else _why(error)}


def _end_with(lifeline: int) -> None:
    """Kill this process group when the caller has ended."""
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(os.dup(0),), daemon=True).start()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    print(json.dumps(main(*sys.argv[1:5])), file=answer, flush=True)
