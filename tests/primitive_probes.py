# SPDX-License-Identifier: GPL-2.0-or-later
"""Probes of other builds than the shipped one, made for tests of the primitives."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def build_probe(directory: Path, name: str) -> Path:
    """The program ``name`` of target/probe, built in a directory of its own."""
    subprocess.run(["meson", "setup", str(directory), str(ROOT), "-Dpython_package=false"], check=True,
                   stdout=subprocess.DEVNULL)
    target = f"target/probe/{name}"
    subprocess.run(["ninja", "-j2", "-C", str(directory), target], check=True, stdout=subprocess.DEVNULL)
    return directory / target
