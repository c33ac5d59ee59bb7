# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole farm in one folder, without hardware: labgrid, a rack, guests, a database, the farm and its pages.

    python -m fastenough.farm.trial FOLDER BOARDS GUESTS PORT

``fastenough farm try`` starts it under a guard (link/guard.py): SIGTERM or SIGKILL ends it and all processes that it
started, and the folder is then removed.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from fastenough.farm.config import read_farm
from fastenough.farm.lab import Lab, SimulatedTimes
from fastenough.farm.postgres import private_server
from fastenough.farm.run import FarmRun
from fastenough.model import FastenoughError, NotApplicable
from fastenough.store import Store
from fastenough.virtual.kernels import KERNELS
from fastenough.words import output_lines

Say = Callable[[str], None]
_LIMIT = "10ms"
_PAGES_S = 90.0
_FARM = """# Written by fastenough farm try.
coordinator = "{coordinator}"
store = "store"
state = "state"
database = "{database}"
reconcile = "15s"
"""
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_BOARD = """
[[board]]
name = "{name}"
place = "{name}"
link = "local"
ring = "{ring}"
rack = "1"
public = {public}
limit = "{limit}"
simulated = true
pull = "15s"
boot = "60s"
patience = "60s"
retry = "10s"
"""
_GUEST = """
[[board]]
name = "guest-{kernel}"
link = "virtual:{kernel}"
rack = "virtual"
public = true
[[board.plan]]
file = "guest-{kernel}.toml"
every = "5min"
"""
_GUEST_PLAN = """name = "guest"
configurations = ["{kernel}"]
[[run]]
probe = "timer"
duration = "60s"
parameters = {{interval = "10ms", report = "5s"}}
"""
"""Each cycle boots a guest of its own, which ends with it."""


def guests_here(most: int) -> tuple[list[str], str]:
    """The kernels of the available guests, and the reason if they are fewer than requested, else an empty text."""
    if most and shutil.which("qemu-system-aarch64") is None:
        return [], "no guests: qemu-system-aarch64 is missing (apt-get install qemu-system-arm)"
    cpus = os.cpu_count() or 1
    room = cpus * 3 // 2
    if most > room:
        return list(KERNELS)[:room], f"{room} of {most} guests: {cpus} CPUs can run {room} (3 for every 2 CPUs)"
    return list(KERNELS)[:most], ""


def _database(folder: Path, say: Say) -> str:
    try:
        return private_server(folder / "postgresql")
    except NotApplicable as reason:
        say(f"using SQLite instead of PostgreSQL: {reason}")
        return f"sqlite:///{folder}/history.sqlite"


def _farm_file(folder: Path, lab: Lab, guests: list[str], database: str) -> Path:
    """The last board is not public, so that it can be seen to be nowhere."""
    boards = [
        _BOARD.format(name=name, ring=lab.rings[name], limit=_LIMIT, public=str(name != lab.names[-1]).lower())
        for name in lab.names
    ]
    for kernel in guests:
        (folder / f"guest-{kernel}.toml").write_text(_GUEST_PLAN.format(kernel=kernel))
    path = folder / "farm.toml"
    path.write_text(
        _FARM.format(coordinator=lab.coordinator, database=database)
        + "".join((*boards, *(_GUEST.format(kernel=kernel) for kernel in guests)))
    )
    return path


def _pages(folder: Path, database: str, port: int) -> subprocess.Popen[bytes]:
    """Start the website."""
    Store(folder / "store").close()
    with (folder / "web.log").open("wb") as log:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "fastenough",
                "web",
                "--store",
                folder / "store",
                "--database",
                database,
                "--listen",
                f"127.0.0.1:{port}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


async def _tell_pages(folder: Path, pages: subprocess.Popen[bytes], address: str, outside: Executor, say: Say) -> None:
    """Once they can be looked at from ``outside``, a thread in the network of the website."""
    loop, deadline = asyncio.get_running_loop(), time.monotonic() + _PAGES_S
    while not await loop.run_in_executor(outside, _answers, address):
        if time.monotonic() > deadline or pages.poll() is not None:
            last = (output_lines((folder / "web.log").read_bytes()) or ["nothing"])[-1]
            say(f"the website did not start; its last output: {last}")
            return
        await asyncio.sleep(0.5)
    say(f"website: {address}")


def leave_network(say: Say) -> None:
    """Move this process and its later children into a network namespace with its own loopback.  labgrid has no
    authentication, so any local user could otherwise switch the boards of root's trial.  The website, started before,
    remains reachable.

    If the kernel permits no network namespace, as in a container, ``say`` gets a warning.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) == 0:
        with socket.socket() as own:
            fcntl.ioctl(own, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))
        return
    say(
        f"no network namespace ({os.strerror(ctypes.get_errno())}): other local users can reach labgrid and disturb "
        "this trial farm"
    )


def trial(folder: Path, boards: int, guests: int, port: int, say: Say) -> None:
    """Run the whole trial until this process is ended."""
    folder.chmod(0o711)  # PostgreSQL, which never runs as root, passes through
    (folder / "tmp").mkdir()
    os.environ["TMPDIR"] = str(folder / "tmp")  # so that what guests leave when they are killed goes with the folder
    kernels, fewer = guests_here(guests)
    if fewer:
        say(fewer)
    database = _database(folder, say)
    pages = _pages(folder, database, port)
    outside = ThreadPoolExecutor(1)
    outside.submit(int).result()  # its thread is there from now on, and stays in this network
    if os.geteuid() == 0:
        leave_network(say)
    lab = Lab(folder, [f"board-{number:02}" for number in range(1, boards + 1)], SimulatedTimes())
    lab.start()
    say(f"labgrid coordinator: {lab.coordinator}; {boards} simulated boards")
    path = _farm_file(folder, lab, kernels, database)
    say(f"farm file: {path}; show its status in another shell: fastenough farm status {path}")

    async def run() -> None:
        telling = asyncio.ensure_future(_tell_pages(folder, pages, f"http://127.0.0.1:{port}/", outside, say))
        await FarmRun(read_farm(path), say).run()
        telling.cancel()

    asyncio.run(run())


if __name__ == "__main__":
    try:
        board_count, guest_count, web_port = map(int, sys.argv[2:5])
        trial(Path(sys.argv[1]), board_count, guest_count, web_port, partial(print, flush=True))
    except FastenoughError as error:
        sys.exit(str(error))
