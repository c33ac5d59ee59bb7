# SPDX-License-Identifier: GPL-2.0-or-later
"""Every act is a process of its own with a deadline, killed as a group; the farm's loop only waits for them.

labgrid's back ends may block for ever, and a board may stop in the middle of anything.  Processes are forked from one
that has loaded all they need, so that an act costs milliseconds, and that itself ends with the farm.  An act ends with
the farm as well, however the farm ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import context, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fastenough.farm.leash import end_with_parent
from fastenough.model import FastenoughError

Order = Mapping[str, Any]
"""What an act is to do, as JSON has it."""
Work = Callable[[Order], Mapping[str, Any]]
_MOST_BYTES = 1 << 22
_PRELOADED = ["fastenough.farm.leashed", "fastenough.cli", "fastenough.farm.acts", "fastenough.farm.taking"]
_GRACE_S = 20.0


@dataclass(frozen=True)
class Answer:
    """What an act came to; ``fault``: why it failed, empty where it did not."""

    said: Mapping[str, Any]

    @property
    def fault(self) -> str:
        return str(self.said.get("fault", ""))


class Nursery:
    """The processes of one farm."""

    def __init__(self) -> None:
        _findable()
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(_PRELOADED)
        self._running: dict[str, context.ForkServerProcess] = {}

    async def act(self, key: str, work: Work, order: Order, limit_s: float) -> Answer:
        """The answer of one act, never later than ``limit_s`` and the time it takes to kill it."""
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_child, args=(work, dict(order), theirs), daemon=False)
        process.start()
        theirs.close()
        self._running[key] = process
        try:
            said = await asyncio.wait_for(_readable(ours), limit_s)
            return _answer(said, process)
        except TimeoutError:
            return Answer({"fault": f"it has not ended within {limit_s:g} s"})
        finally:
            ours.close()
            del self._running[key]
            _kill(process)
            await _gone(process)

    def stop(self, key: str) -> None:
        """End an act at once, if it is under way."""
        if key in self._running:
            _kill(self._running[key])

    async def end(self) -> None:
        """Let every act end in order for a while, then at once."""
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid or 0, signal.SIGTERM)
        deadline = asyncio.get_running_loop().time() + _GRACE_S
        while self._running and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.05)
        for key in list(self._running):
            self.stop(key)


def _findable() -> None:
    """Wherever this package lies, the process that is forked from finds it."""
    ways = [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(ways))


def _answer(said: bytes, process: context.ForkServerProcess) -> Answer:
    try:
        return Answer(dict(json.loads(said)))
    except (ValueError, TypeError):
        return Answer({"fault": f"its process ({process.pid}) ended without an answer"})


async def _readable(pipe: Connection) -> bytes:
    """What comes through a pipe up to its end."""
    loop, said = asyncio.get_running_loop(), b""
    while True:
        ready = asyncio.Event()
        loop.add_reader(pipe.fileno(), ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(pipe.fileno())
        part = os.read(pipe.fileno(), 65536)
        said += part
        if not part or len(said) > _MOST_BYTES:
            return said


def _kill(process: context.ForkServerProcess) -> None:
    """The process and its group; one that has not made its group yet has nobody in it."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(process.pid or 0, signal.SIGKILL)


async def _gone(process: context.ForkServerProcess) -> None:
    while process.is_alive():
        await asyncio.sleep(0.01)
    process.close()


def _child(work: Work, order: Order, pipe: Connection) -> None:
    """In the process of the act; nothing but the answer goes to the farm, whatever drivers print."""
    os.setsid()
    end_with_parent()
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    try:
        said = work(order)
    except FastenoughError as error:
        said = {"fault": str(error)}
    except Exception as error:  # of labgrid, its drivers or a database: the farm goes on
        said = {"fault": f"{type(error).__name__}: {error}"}
    os.write(pipe.fileno(), json.dumps(said).encode())
