# SPDX-License-Identifier: GPL-2.0-or-later
"""Run acts in processes with a deadline.  A process that misses it is killed with its group; the farm only waits.

labgrid's back ends may block for ever, and a board may stop in the middle of anything.  labgrid's managers are
singletons of a process, so each act that switches boards is a process of its own (`ActProcesses`).  Pulls and
history updates, which repeat often, share a few long-lived processes that keep the store open
(`WorkerPool`).  All are forked from one that has loaded what they need, and end with the farm, however it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import context, get_context, parent_process
from multiprocessing.connection import Connection
from typing import Any

from fastenough.farm.child_process import end_with_parent, python_path
from fastenough.files import write_all
from fastenough.model import FastenoughError

Order = Mapping[str, object]
"""The input of an act: one of the typed dictionaries of its module."""
Work = Callable[[Any], Mapping[str, Any]]
_MOST_BYTES = 1 << 22
_PRELOADED = [
    "fastenough.farm.forkserver_preload",
    "fastenough.cli",
    "fastenough.farm.acts",
    "fastenough.farm.history_update",
]
_GRACE_S = 20.0


@dataclass(frozen=True)
class ActResult:
    """The result of an act; ``fault``: why it failed, empty if it did not."""

    fields: Mapping[str, Any]

    @property
    def fault(self) -> str:
        return str(self.fields.get("fault", ""))


class ActProcesses:
    """One process per act."""

    def __init__(self) -> None:
        self._context = _context()
        self._running: dict[str, context.ForkServerProcess] = {}

    async def act(self, key: str, work: Work, order: Order, limit_s: float) -> ActResult:
        """The answer of one act, never later than ``limit_s`` and the time it takes to kill it."""
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_child, args=(work, dict(order), theirs), daemon=False)
        process.start()
        theirs.close()
        self._running[key] = process
        try:
            reply = await asyncio.wait_for(_readable(ours), limit_s)
            return _answer(reply)
        except TimeoutError:
            return ActResult({"fault": f"no answer within {limit_s:g} s; the process was killed"})
        finally:
            ours.close()
            del self._running[key]
            _kill(process)
            await _wait_until_dead(process)

    def stop(self, key: str) -> None:
        """End an act at once, if it is under way."""
        if key in self._running:
            _kill(self._running[key])

    async def end(self) -> None:
        """Stop every act; kill those that have not ended after a grace period."""
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid or 0, signal.SIGTERM)
        deadline = asyncio.get_running_loop().time() + _GRACE_S
        while self._running and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.05)
        for key in list(self._running):
            self.stop(key)


@dataclass
class _Worker:
    """A process that reads orders from a pipe, one after another."""

    process: context.ForkServerProcess
    pipe: Connection

    async def answer(self, work: Work, order: Order) -> bytes:
        """The answer, empty if the process ended without one."""
        try:
            self.pipe.send((work, dict(order)))
        except OSError:
            return b""
        return await _readable(self.pipe, until=b"\n")

    async def end(self) -> None:
        _kill(self.process)
        self.pipe.close()
        await _wait_until_dead(self.process)


class WorkerPool:
    """At most ``most`` processes, each at one act at a time; further acts wait for their turn, in order.

    A worker whose act fails to end in time is killed with all it has started, and another one takes its place.
    """

    def __init__(self, most: int) -> None:
        self._context = _context()
        self._turns = asyncio.Semaphore(most)
        self._idle: list[_Worker] = []
        self._running: dict[str, _Worker | None] = {}
        self._ended = False

    async def act(self, key: str, work: Work, order: Order, limit_s: float) -> ActResult:
        """The answer of one act, never later than ``limit_s`` after its turn came and the time it takes to kill it."""
        self._running[key] = None
        try:
            async with self._turns:
                if key not in self._running or self._ended:
                    return ActResult({"fault": "stopped before it started"})
                self._running[key] = worker = self._idle.pop() if self._idle else self._start_worker()
                return await self._answer(worker, work, order, limit_s)
        finally:
            self._running.pop(key, None)

    async def _answer(self, worker: _Worker, work: Work, order: Order, limit_s: float) -> ActResult:
        reply = b""
        try:
            reply = await asyncio.wait_for(worker.answer(work, order), limit_s)
        except TimeoutError:
            return ActResult({"fault": f"no answer within {limit_s:g} s; the process was killed"})
        finally:
            if reply.endswith(b"\n") and not self._ended:
                self._idle.append(worker)
            else:
                await worker.end()
        return _answer(reply)

    def _start_worker(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs,), daemon=False)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def stop(self, key: str) -> None:
        """End an act at once, if it is under way or waits for its turn."""
        if key in self._running:
            worker = self._running.pop(key)
            if worker is not None:
                _kill(worker.process)

    async def end(self) -> None:
        """Let acts that are under way end for a while, then at once; none begins any more."""
        self._ended = True
        deadline = asyncio.get_running_loop().time() + _GRACE_S
        while any(self._running.values()) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.05)
        for key in list(self._running):
            self.stop(key)
        for worker in self._idle:
            await worker.end()
        self._idle.clear()


def _context() -> context.ForkServerContext:
    os.environ["PYTHONPATH"] = python_path()
    made = get_context("forkserver")
    made.set_forkserver_preload(_PRELOADED)
    return made


def _answer(reply: bytes) -> ActResult:
    try:
        return ActResult(dict(json.loads(reply)))
    except (ValueError, TypeError):
        return ActResult({"fault": "the process ended without an answer"})


async def _readable(pipe: Connection, until: bytes = b"") -> bytes:
    """Read a pipe up to its end, or up to ``until``."""
    loop, content = asyncio.get_running_loop(), b""
    while True:
        ready = asyncio.Event()
        loop.add_reader(pipe.fileno(), ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(pipe.fileno())
        part = os.read(pipe.fileno(), 65536)
        content += part
        if not part or len(content) > _MOST_BYTES or (until and content.endswith(until)):
            return content


def _kill(process: context.ForkServerProcess) -> None:
    """Kill the process and its group; a process without a group of its own yet is killed alone."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(process.pid or 0, signal.SIGKILL)


async def _wait_until_dead(process: context.ForkServerProcess) -> None:
    while process.is_alive():
        await asyncio.sleep(0.01)
    process.close()


def _child(work: Work, order: Order, pipe: Connection) -> None:
    """In the process of the act."""
    _become_act()
    os.write(pipe.fileno(), json.dumps(_done(work, order)).encode())


def _serve(pipe: Connection) -> None:
    """In the process of a worker: one act after another, until the farm closes its end of the pipe."""
    _become_act()
    while True:
        try:
            work, order = pipe.recv()
            write_all(pipe.fileno(), json.dumps(_done(work, order)).encode() + b"\n")
        except (EOFError, BrokenPipeError):
            return


def _become_act() -> None:
    """Become a session leader that ends with the farm; output of drivers is discarded."""
    os.setsid()
    end_with_parent()
    farm = parent_process()
    if farm is None or not farm.is_alive():  # it ended before this process could ask to end with it
        os._exit(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)


def _done(work: Work, order: Order) -> Mapping[str, Any]:
    try:
        return work(order)
    except FastenoughError as error:
        return {"fault": str(error)}
    except Exception as error:  # of labgrid, its drivers or a database: the farm goes on
        return {"fault": f"{type(error).__name__}: {error}"}
