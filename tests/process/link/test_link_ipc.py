# SPDX-License-Identifier: GPL-2.0-or-later
"""System V objects of a load end with the load, even if its processes are killed."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from fastenough.link import Link, LocalLink
from tests.support.agents import agent
from tests.support.privileges import require_root

_KINDS = ("msg", "sem", "shm")
_CREATE = """
import ctypes, sys, time
key, mode, libc = int(sys.argv[1]), 0o1600, ctypes.CDLL(None)
print(*(number >= 0 for number in (libc.msgget(key, mode), libc.semget(key, 1, mode), libc.shmget(key, 4096, mode))))
sys.stdout.flush()
time.sleep(1000)
"""


def _kinds(key: int) -> set[str]:
    """Kinds of the machine's System V objects with this key."""
    return {
        kind
        for kind in _KINDS
        for line in Path("/proc/sysvipc", kind).read_text().splitlines()
        if line.split()[0] == str(key)
    }


@pytest.fixture
def key() -> Iterator[int]:
    key = secrets.randbelow(2**31 - 1) + 1
    yield key
    if _kinds(key):
        subprocess.run(["ipcrm", "-Q", str(key), "-S", str(key), "-M", str(key)], capture_output=True, check=False)


def _local() -> AbstractContextManager[Link]:
    return nullcontext(LocalLink())


@pytest.mark.parametrize("opened", [_local, agent])
def test_a_killed_load_leaves_no_system_v_objects(opened: Callable[[], AbstractContextManager[Link]], key: int) -> None:
    require_root("IPC namespaces")
    if subprocess.run(["unshare", "--ipc", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("the kernel permits no IPC namespaces")
    with opened() as link:
        load = link.start([sys.executable, "-c", _CREATE, str(key)], scratch=link.scratch_name())
        assert next(load.lines(60)) == b"True True True\n"
        load.signal(9)
        load.wait(60)
        assert not _kinds(key)


@pytest.mark.parametrize("opened", [_local, agent])
def test_a_measured_task_uses_the_system_v_objects_of_the_machine(
    opened: Callable[[], AbstractContextManager[Link]], key: int
) -> None:
    """A task has no scratch directory, and may use objects of the application that is measured."""
    with opened() as link:
        task = link.start([sys.executable, "-c", _CREATE, str(key)])
        assert next(task.lines(60)) == b"True True True\n"
        assert _kinds(key) == set(_KINDS)
        task.stop()
