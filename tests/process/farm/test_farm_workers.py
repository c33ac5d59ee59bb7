# SPDX-License-Identifier: GPL-2.0-or-later
"""The processes that pull and take: few, used again and again, each act held to its deadline; no pull looks at runs
that are stored."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fastenough.farm import acts
from fastenough.farm.config import read_farm
from fastenough.farm.processes import ActResult, WorkerPool
from fastenough.farm.run import FarmRun
from fastenough.farm.state_file import FarmState
from fastenough.farm.state_machine import BoardPhase, BoardState
from fastenough.folder import Folder
from fastenough.model import BadInput
from tests.process.jobs.test_ring_pull import put

pytestmark = pytest.mark.machines


def own_pid(order: Mapping[str, Any]) -> Mapping[str, Any]:
    time.sleep(order.get("for_s", 0.0))
    return {"pid": os.getpid(), "at_s": time.monotonic()}


def fail(order: Mapping[str, Any]) -> Mapping[str, Any]:
    raise ValueError("no such thing")


def end(order: Mapping[str, Any]) -> Mapping[str, Any]:
    os._exit(1)


async def all_of(workers: WorkerPool, count: int, limit_s: float = 60.0, for_s: float = 0.0) -> list[ActResult]:
    try:
        return await asyncio.gather(
            *(workers.act(f"act {number}", own_pid, {"for_s": for_s}, limit_s) for number in range(count))
        )
    finally:
        await workers.end()


@pytest.mark.slow
def test_few_processes_do_many_acts() -> None:
    answers = asyncio.run(all_of(WorkerPool(2), 8, for_s=0.05))
    assert [answer.fault for answer in answers] == [""] * 8
    assert len({answer.fields["pid"] for answer in answers}) == 2


def test_pulls_that_are_due_at_once_are_spread_over_their_period(tmp_path: Path) -> None:
    """As after a start, when every board is due."""
    names = [f"b{number}" for number in range(10)]
    (tmp_path / "farm.toml").write_text(
        "".join(f'[[board]]\nname = "{name}"\nlink = "local"\nring = "/{name}"\npull = "100s"\n' for name in names)
    )
    farm = read_farm(tmp_path / "farm.toml")
    with closing(FarmState(farm.state)) as kept:
        for name in names:
            kept.put(name, BoardState(phase=BoardPhase.MEASURING))
    states = FarmRun(farm, print).states.values()
    due_s = sorted(state.pull_s for state in states)
    assert [round(at_s - due_s[0]) for at_s in due_s] == [10 * place for place in range(10)]


@pytest.mark.timeout(120)
def test_the_farm_ends_if_the_end_of_an_act_cannot_be_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk, say: the board would stay busy until the farm is started again."""
    (tmp_path / "farm.toml").write_text('[[board]]\nname = "b"\nlink = "local"\nring = "/nowhere"\npull = "1s"\n')
    farm = read_farm(tmp_path / "farm.toml")
    with closing(FarmState(farm.state)) as before:
        before.put("b", BoardState(phase=BoardPhase.MEASURING))
    store = FarmState.put

    def full(state_file: FarmState, name: str, state: BoardState) -> None:
        if asyncio.current_task() in run._tasks:
            raise BadInput("no space")
        store(state_file, name, state)

    monkeypatch.setattr(FarmState, "put", full)
    run = FarmRun(farm, print)
    with pytest.raises(BadInput, match="no space"):
        asyncio.run(run.run())


def test_a_worker_that_hangs_or_dies_is_replaced_and_one_that_waits_can_be_stopped() -> None:
    async def acted() -> list[ActResult]:
        workers = WorkerPool(1)
        hangs = asyncio.ensure_future(workers.act("hangs", own_pid, {"for_s": 60.0}, 1.0))
        await asyncio.sleep(0.1)
        waits = asyncio.ensure_future(workers.act("waits", own_pid, {}, 60.0))
        await asyncio.sleep(0.1)
        workers.stop("waits")
        found = [await hangs, await waits]
        for work in (fail, end, own_pid):
            found.append(await workers.act("next", work, {}, 60.0))
        await workers.end()
        return found

    hung, stopped, failed, died, well = asyncio.run(acted())
    assert hung.fault.startswith("no answer within 1 s")
    assert stopped.fault and failed.fault == "ValueError: no such thing" and died.fault
    assert well.fields["pid"]


def test_a_pull_lists_no_stored_runs_once_the_store_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = tmp_path / "ring"
    recording = put(ring, 1, begin_ns=0, intervals=6)
    lines = recording.read_bytes().splitlines(keepends=True)
    order: acts.BoardOrder = {
        "farm": "farm",
        "coordinator": "",
        "state": str(tmp_path / "state"),
        "database": "",
        "link": "local",
        "board": "board",
        "ring": str(ring),
        "store": str(tmp_path / "store"),
        "newest": "",
        "simulated": True,
        "load": None,
    }
    listed: list[Path] = []
    subfolders = Folder.subfolders

    def counted(folder: Folder) -> list[str]:
        listed.append(folder.path)
        return subfolders(folder)

    monkeypatch.setattr(Folder, "subfolders", counted)
    for number, count in enumerate((2, 3, 4, len(lines))):
        recording.write_bytes(b"".join(lines[:count]))
        listed.clear()
        assert acts.pull_ring(order)["grown"]
        assert (tmp_path / "store" / "runs" in listed) == (number == 0)
    assert acts.opened_store(order["store"]).load(recording.stem[11:]).end is not None
    assert tmp_path / "store" / "runs" not in listed
    acts.opened_store.cache_clear()
