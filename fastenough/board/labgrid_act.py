# SPDX-License-Identifier: GPL-2.0-or-later
"""One act on one place of a labgrid coordinator, as a process of its own: the only file that knows labgrid's client.

    python labgrid_act.py COORDINATOR PLACE ACT        ACT: acquire, release, on, off, cycle

It prints one object in JSON.  labgrid's back ends may block for ever, so whoever starts this kills it in time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any

import grpc
from labgrid.remote.client import start_session
from labgrid.remote.generated import labgrid_coordinator_pb2 as messages

_DEADLINE_S = 25.0
"""The coordinator waits 10 s for each resource of a silent exporter, with its one lock held: others wait behind it."""
_POWER_DELAY_S = 1.0


def _call(session: Any, name: str, place: str) -> None:
    """One request; raises SystemExit with the coordinator's own words."""
    async def ask() -> None:
        request = getattr(messages, f"{name}Request")(placename=place)
        try:
            await getattr(session.stub, name)(request, timeout=_DEADLINE_S)
        except grpc.aio.AioRpcError as error:
            raise SystemExit(f"{name} {place}: {error.details() or error.code().name}") from error
        await asyncio.wait_for(session.sync_with_coordinator(), _DEADLINE_S)

    session.loop.run_until_complete(ask())


def _acquire(session: Any, place: str) -> dict[str, Any]:
    """Make the place ours, and say what it has.

    A coordinator grants a place whose exporter is away, and keeps it acquired without its resources when the exporter
    goes: what is held so is released and acquired once more.
    """
    me = f"{session.gethostname()}/{session.getuser()}"
    holder = session.places[place].acquired
    if holder and holder != me:
        raise SystemExit(f"it is lent to {holder}")
    if not holder:
        _call(session, "AcquirePlace", place)
    if not session.places[place].acquired_resources:
        _call(session, "ReleasePlace", place)
        _call(session, "AcquirePlace", place)
    if not session.places[place].acquired_resources:
        _call(session, "ReleasePlace", place)
        raise SystemExit("its exporter is away, so it has no resources")
    found = {kind: dict(resource.args) | {"extra": resource.extra}
             for (_, kind), resource in session.get_target_resources(session.places[place]).items()}
    return {"service": found.get("NetworkService"), "console": found.get("NetworkSerialPort")}


def main(coordinator: str, place: str, act: str) -> int:
    arguments = argparse.Namespace(action=act, delay=_POWER_DELAY_S, name=None, place=place)
    session = start_session(coordinator, extra={"args": arguments})
    if place not in session.places:
        raise SystemExit("the coordinator knows no such place")
    answer: dict[str, Any] = {}
    if act == "acquire":
        answer = _acquire(session, place)
    elif act == "release":
        _call(session, "ReleasePlace", place)
    else:
        session.power()
    print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
