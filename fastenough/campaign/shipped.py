# SPDX-License-Identifier: GPL-2.0-or-later
"""The plans that come with fastenough, by their names."""

from __future__ import annotations

from fastenough.virtual.module import CHECKOUT

SHIPPED = {path.stem: path for path in sorted((CHECKOUT / "campaigns").glob("*.toml"))}
