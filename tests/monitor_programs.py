# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of target/monitor, as they are built or built now."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import ROOT, build, configure, require

_FOLDERS = {"fastenough-inject": "target/monitor/inject", "fastenough-monitor": "target/monitor"}


def built(name: str, places: pytest.TempPathFactory) -> str:
    """Where it lies; fails where clang and its like are absent."""
    require("clang")
    found = ROOT / "build" / _FOLDERS[name] / name
    if not found.is_file():
        directory = places.mktemp("build")
        configure(directory, "-Dmonitor=enabled")
        build(directory, f"{_FOLDERS[name]}/{name}")
        found = Path(directory) / _FOLDERS[name] / name
    return str(found)
