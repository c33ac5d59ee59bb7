# SPDX-License-Identifier: GPL-2.0-or-later
"""The files beside the pages: one style sheet, which is the report's with some rules more, and what draws figures.

uPlot comes with the wheel.  From a checkout it is found where setup/install puts it; without it pages show tables.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent / "assets"
_CHECKOUT = Path(__file__).parents[2] / "build" / "npm" / "node_modules" / "uplot" / "dist"
_STYLE = (Path(__file__).parents[1] / "report" / "style.css", _HERE / "site.css")
SCRIPTS = ("site.js", "figures.js", "lines.js", "overview.js", "board.js", "run.js", "live.js")
UPLOT = ("uPlot.iife.min.js", "uPlot.min.css")
_KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
HOW_TO_GET = "Figures need uPlot, which is not here: run 'setup/install test' in the checkout, or install the wheel."


def _uplot(name: str) -> Path | None:
    return next((path for path in (_HERE / name, _CHECKOUT / name) if path.is_file()), None)


def draws() -> bool:
    """Whether figures can be drawn."""
    return all(_uplot(name) is not None for name in UPLOT)


@cache
def assets() -> dict[str, tuple[str, bytes]]:
    """By name, the kind and the content of every file."""
    found = {"site.css": "\n".join(path.read_text().replace("RUN-IDENTITY", "website") for path in _STYLE).encode()}
    found |= {name: (_HERE / name).read_bytes() for name in SCRIPTS}
    found |= {name: path.read_bytes() for name in UPLOT if (path := _uplot(name)) is not None}
    return {name: (_KINDS[Path(name).suffix], content) for name, content in found.items()}
