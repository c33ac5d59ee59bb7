# SPDX-License-Identifier: GPL-2.0-or-later
"""Live: what is measured at this moment, of all boards."""

from __future__ import annotations

from fastenough.web.pages.overview import overview
from fastenough.web.rendering import shown

PAGES = shown("/live", "live.html.j2", overview, published=False)
