# SPDX-License-Identifier: GPL-2.0-or-later
"""A load for deterministic guests that uses a part of the data cache: ``tests/sources/cache_walk.c``."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fastenough.virtual.deterministic import Background
from fastenough.virtual.module import compiler
from fastenough.virtual.packages import GUEST_ARCH
from tests.support.tools import ROOT

NEAR, FAR = 64, 65_536
"""Sizes of the memory that is read: one line of the cache, and twice the modelled cache."""


def build_walk(folder: Path) -> bytes:
    """The loop as a static program for the guest."""
    program = folder / "cache-walk"
    source = ROOT / "tests/sources/cache_walk.c"
    subprocess.run([compiler(GUEST_ARCH), "-O2", "-static", "-s", "-o", program, source], check=True, timeout=60)
    return program.read_bytes()


def walk_load(walk: bytes, size: int) -> Background:
    """The loop beside a command, from 0.1 s of the guest's time before it."""
    return Background((("cache-walk", str(size)),), ("/var/tmp/walk",), 0.1, {"tools/bin/cache-walk": walk})
