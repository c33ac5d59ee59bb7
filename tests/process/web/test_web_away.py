# SPDX-License-Identifier: GPL-2.0-or-later
"""A page is asked for while the database is away or hangs, or of a run that was removed or cut: that is said, and
nothing else of the site falls."""

from __future__ import annotations

import logging
import shutil
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from fastenough.history import OWNER, History, declare
from fastenough.web.pages import PAGES
from fastenough.web.published import files
from fastenough.web.site import Site
from tests.support.farm_data import make_store
from tests.support.postgresql import running_server
from tests.support.processes import eventually
from tests.support.websites import Answer, Served, serving, site_of

pytestmark = pytest.mark.untimed

_PATIENCE_S = 2.0


def _not_now(answer: Answer) -> None:
    assert (answer.status, answer.headers["retry-after"]) == (503, "60")
    assert "does not respond" in answer.text


def _is_served(served: Served, address: str) -> bool:
    return served.get(address).status == 200


def _stands(served: Served) -> None:
    """All is as before; a machine that is busy may take longer for a page than this server's patience."""
    for address in ("/assets/site.css", "/board/r1s1/", "/boards.csv"):
        assert eventually(partial(_is_served, served, address), 60), address


@pytest.mark.slow
def test_a_page_says_that_the_database_is_away_or_hangs_and_comes_when_it_answers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        running_server() as server,
        serving(Site(history := History.later(server.url), OWNER), patience_s=_PATIENCE_S) as served,
    ):
        server.stop()
        _not_now(served.get("/"))  # it is away since the site began
        server.start()
        declare(history, "r1s1")
        _stands(served)
        server.stop()
        try:
            _not_now(away := served.get("/"))
            assert str(server.directory) not in away.text, "where the database is concerns nobody"
            assert served.get("/assets/site.css").status == 200
        finally:
            server.start()
        _stands(served)
        server.send(signal.SIGSTOP)
        try:
            _not_now(served.get("/index.json"))
            _not_now(served.get("/index.json"))
            assert served.get("/assets/site.css").status == 200
        finally:
            server.send(signal.SIGCONT)
        _stands(served)
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len([one for one in said if "page unavailable" in one.getMessage()]) >= 3
    assert not any(one.exc_info for one in said), "a line each, and no traceback"
    assert not any("\n" in one.getMessage() for one in said)


def test_a_run_that_was_removed_or_cut_costs_no_other_page_and_no_published_site(tmp_path: Path) -> None:
    farm = make_store(tmp_path / "store", 4, 1)
    site = site_of(farm, tmp_path)
    removed, cut, *others = (run.id for run in farm.store.runs())
    shutil.rmtree(farm.store.path / "runs" / removed)
    recording = farm.store.path / "runs" / cut / "recording.jsonl.zst"
    recording.chmod(0o600)
    recording.write_bytes(recording.read_bytes()[:100])
    with serving(site, farm) as served:
        for name in ("", "index.json", "plot.json", "run.csv"):
            answer = served.get(f"/run/{removed}/{name}")
            assert (answer.status, str(tmp_path) in answer.text) == (404, False)
        assert 'class="verdict BROKEN"' in served.get(f"/run/{cut}/").text
        assert served.get(f"/run/{cut}/run.csv").status == 400
    tables = [page for page in PAGES if page.pattern.endswith("/run.csv")]
    written = {name for name, _ in files(replace(site, served=False), tables)}
    assert f"run/{others[0]}/run.csv" in written
    assert not written & {f"run/{removed}/run.csv", f"run/{cut}/run.csv"}
