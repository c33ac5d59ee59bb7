# SPDX-License-Identifier: GPL-2.0-or-later
"""A demonstration of the website, of a farm that is generated: ``make site``."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from fastenough.farm.judging import verdicts_on
from fastenough.history import declare
from fastenough.hunt.recipes import description_of
from fastenough.jobs.job_store import store_conclusion
from fastenough.report.conclusions import hunt_section
from fastenough.report.document import Section
from fastenough.web.pages import PAGES
from fastenough.web.published import publish
from tests.support.farm_data import CYCLE_S, LIMIT_NS, FarmData, make_store
from tests.support.hunt_machines import searched
from tests.support.websites import site_of

NOTE = "this farm is generated to show the pages; none of its numbers was measured."
BOARDS = 16
DAYS = 8


def demonstrate(farm: FarmData, folder: Path, into: Path) -> int:
    """Publish what the public sees of a farm, its newest cycles judged; returns how many files that are."""
    site = replace(site_of(farm, folder), note=NOTE, served=False)
    for name in farm.boards:
        declare(site.history, name, **verdicts_on(farm.store, name, {"limit_ns": LIMIT_NS}))
    return publish(site, into, PAGES)


def hunt() -> Section:
    """Of a machine that is made up, as the farm is."""
    search, made = searched()
    assert search.result is not None
    return hunt_section(
        search,
        made,
        f"worse than load {search.result.reference}: {description_of(search.space, search.result.recipe)}",
        "",
        "",
    )


def main(into: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="fastenough-site-") as folder:
        farm = make_store(Path(folder) / "store", BOARDS, DAYS, cpus=4, end_s=int(time.time()) // CYCLE_S * CYCLE_S)
        store_conclusion(farm.store, [run.id for run in farm.store.runs(board=farm.changed)], hunt())
        print(
            f"{demonstrate(farm, Path(folder), into):,} files in {into}; look at it with: "
            f"python3 -m http.server --directory {into}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
