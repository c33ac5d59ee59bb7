# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests that need root: skipped for an ordinary user with that reason, and listed, so that sudo can run them later.

``tests/tiers.py`` runs the listed tests through sudo where sudo asks for no password.  Tests state the need here only.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PREFIX = "needs root: "
_LIST = "fastenough/needs-root"
"""Key of the list of tests in pytest's cache."""
_OWN_PID_NAMESPACE = 0xEFFFFFFC
"""Inode of the machine's own PID namespace: PROC_PID_INIT_INO of the kernel's linux/proc_ns.h."""
_OF_THE_USER = ("HOME", "USER", "LOGNAME", "MAIL", "SHELL", "XDG_")
"""Variables, or their beginnings, that name places of the user who calls sudo."""


def needs_root(purpose: str) -> pytest.MarkDecorator:
    """Mark of a test, or of a module's tests, that only root can run; ``purpose`` completes the reason."""
    return pytest.mark.skipif(os.geteuid() != 0, reason=PREFIX + purpose)


def require_root(purpose: str) -> None:
    """Skip the test, or the tests of the fixture, that calls this as an ordinary user."""
    if os.geteuid() != 0:
        pytest.skip(PREFIX + purpose)


_OTHER_PIDS = Path("/proc/self/ns/pid").stat().st_ino != _OWN_PID_NAMESPACE
_WHY_OTHER_PIDS = "process IDs of this PID namespace are not those of the kernel"
needs_kernel_pids = pytest.mark.skipif(_OTHER_PIDS, reason=_WHY_OTHER_PIDS)
"""Mark of a test in which the monitor selects a task by its process ID."""


def require_kernel_pids() -> None:
    """Skip the test that calls this where the monitor cannot select a task by its process ID."""
    if _OTHER_PIDS:
        pytest.skip(_WHY_OTHER_PIDS)


def own_mounts(*, as_user: bool = False) -> list[str]:
    """Put before a command: it sees file systems that nothing else sees; skips where the kernel permits none.

    ``as_user``: an ordinary user gets them in a user namespace of its own, as its root.
    """
    if not as_user:
        require_root("file systems of its own")
    prefix = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() != 0 else [])]
    tried = subprocess.run(
        [*prefix, "mount", "-t", "tmpfs", "none", "/tmp"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"no file systems of its own: {tried.stderr.strip()}")
    return prefix


@dataclass
class SkippedForRoot:
    """Plugin of pytest: keeps the list of the tests that were skipped because they need root."""

    tests: list[str] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple) and PREFIX in report.longrepr[2]:
            self.tests.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.config.pluginmanager.hasplugin("cacheprovider"):
            session.config.cache.set(_LIST, self.tests)


def list_of(cache: Path) -> Path:
    """The file in a cache directory of pytest that holds the list, as JSON."""
    return cache / "v" / _LIST


def sudo_prefix() -> list[str]:
    """Words before a command that run it as root with this environment; empty where sudo is missing or asks."""
    try:
        allowed = (
            subprocess.run(
                ["sudo", "-n", "--", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False
            ).returncode
            == 0
        )
    except FileNotFoundError:
        allowed = False
    passed = [f"{name}={value}" for name, value in os.environ.items() if not name.startswith(_OF_THE_USER)]
    return ["sudo", "-n", "--", "env", *passed, "PYTHONDONTWRITEBYTECODE=1"] if allowed else []
