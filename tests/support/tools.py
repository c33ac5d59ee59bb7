# SPDX-License-Identifier: GPL-2.0-or-later
"""Building with the tools of the environment that runs the tests; the PATH of a bare system has none of them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fastenough.virtual.meson_build import tools_path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(sys.executable).parent
"""Where meson, ninja, ruff and the others of setup/*.lock lie."""
ENVIRONMENT = {**os.environ, "PATH": tools_path()}
"""In which they find each other: meson starts ninja by its name."""


def require(*programs: str) -> None:
    """Fails where a program of a package in setup/debian-*.txt is absent: a test that skips then proves nothing."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.fail(
            f"{', '.join(missing)}: not installed, though setup/debian-*.txt has the package; run: setup/install test"
        )


def configure(directory: Path, *arguments: str, root: Path = ROOT) -> None:
    """``meson setup`` of a checkout in a directory of its own; raises CalledProcessError."""
    subprocess.run(
        [TOOLS / "meson", "setup", directory, root, "-Dpython_package=false", *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        env=ENVIRONMENT,
    )


def _as_owner(directory: Path) -> list[str]:
    """Put before a command: what root builds in a user's checkout belongs to the user."""
    found = directory.stat()
    if os.geteuid() != 0 or found.st_uid == 0:
        return []
    return ["setpriv", f"--reuid={found.st_uid}", f"--regid={found.st_gid}", "--clear-groups"]


def build(directory: Path, *targets: str) -> None:
    """``ninja`` there, alone, as tests may run side by side; raises CalledProcessError."""
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(
            [*_as_owner(directory), TOOLS / "ninja", "-j2", "-C", directory, *targets],
            check=True,
            stdout=subprocess.DEVNULL,
            env=ENVIRONMENT,
        )
    finally:
        os.close(lock)


def program(directory: Path, place: str) -> Path:
    """A program of a configured build, built there."""
    build(directory, place)
    return directory / place


def build_probe(directory: Path, *arguments: str) -> Path:
    """The probe, built in a directory of its own; arguments are meson's."""
    configure(directory, *arguments)
    return program(directory, "target/probe/fastenough-probe")
