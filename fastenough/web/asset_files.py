# SPDX-License-Identifier: GPL-2.0-or-later
"""The files beside the pages: a style sheet (that of reports with additions), and scripts that draw figures.

uPlot (MIT, uPlot.LICENSE) is a copy of its package's files; its source is in packaging/debian/missing-sources.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent / "assets"
_STYLE = (Path(__file__).parents[1] / "report" / "style.css", _HERE / "site.css")
_KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


@cache
def assets() -> dict[str, tuple[str, bytes]]:
    """By name, the kind and the content of every file."""
    contents = {"site.css": "\n".join(path.read_text().replace("RUN-IDENTITY", "website") for path in _STYLE).encode()}
    files = sorted(path for path in _HERE.iterdir() if path.suffix in _KINDS and path.name not in contents)
    contents |= {path.name: path.read_bytes() for path in files}
    return {name: (_KINDS[Path(name).suffix], content) for name, content in contents.items()}
