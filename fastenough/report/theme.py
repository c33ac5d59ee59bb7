# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures in the colours of the page they stand in: dark where the reader wants it dark."""

from __future__ import annotations

import re

from fastenough.report import plot

_NAMED = {
    "#000000": "ink",
    "#ffffff": "paper",
    "#dddddd": "grid",
    plot.UNNAMED: "unnamed",
    plot.LIMIT: "limit",
    **{colour: f"colour-{place}" for place, colour in enumerate(plot.COLOURS)},
}
"""Colours that figures are drawn in, and the page's variables for them (style.css)."""

_COLOUR = re.compile(r"(fill|stroke): (#[0-9a-f]{6})\b")


def _themed(found: re.Match[str]) -> str:
    name = _NAMED.get(found[2])
    return f"{found[1]}: var(--{name}, {found[2]})" if name else found[0]


def themed(svg: str) -> str:
    """The same drawing with variables for its colours, which keep their value where a page does not set them."""
    return _COLOUR.sub(_themed, svg)
