# SPDX-License-Identifier: GPL-2.0-or-later
"""Helpers of tests: control groups of the test's own, and commands that run inside them."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.privileges import require_root

ROOT = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def own_group(controller: str) -> Iterator[Path]:
    """A new group of version 1 below the root of a controller; skips where there is no such hierarchy to write to."""
    parent = ROOT / controller
    require_root("control groups")
    if not (parent / "cgroup.procs").exists() or not (parent / "tasks").exists():
        pytest.skip(f"no control groups of version 1 with {controller} to write to")
    group = parent / f"fastenough-test-{secrets.token_hex(4)}"
    group.mkdir()
    try:
        yield group
    finally:
        deadline = time.monotonic() + 20
        while group.exists():
            try:
                group.rmdir()
            except OSError:
                assert time.monotonic() < deadline, f"{group} still holds processes"
                time.sleep(0.05)


def inside(group: Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command whose whole tree belongs to the group."""
    join = f'echo $$ > {group}/cgroup.procs && exec "$@"'
    return subprocess.run(["sh", "-c", join, "sh", *command], capture_output=True, text=True, check=False, timeout=120)
