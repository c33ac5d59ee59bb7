# SPDX-License-Identifier: GPL-2.0-or-later
"""The plans that come with fastenough."""

from __future__ import annotations

from pathlib import Path

from fastenough.virtual.module import CHECKOUT


def shipped() -> dict[str, Path]:
    """By name."""
    return {path.stem: path for path in sorted((CHECKOUT / "campaigns").glob("*.toml"))}
