# SPDX-License-Identifier: GPL-2.0-or-later
"""All boards are shown on the own machine only, and only while no farm has declared a board."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.cli.web import _is_own
from fastenough.history import PUBLIC, History, catch_up, declare
from fastenough.store import Store
from fastenough.web.live import rows
from fastenough.web.selection import Selection
from fastenough.web.site import Site
from tests.support.fleet_stores import add_run
from tests.support.websites import serving

pytestmark = pytest.mark.check


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store, history = Store(tmp_path / "store"), History.at(f"sqlite:///{tmp_path}/history.sqlite")
    add_run(store, "mine", None, seed=1, intervals=1)
    assert not catch_up(history, store).faults
    yield Site(history, PUBLIC, store, own=True)
    history.close()


def test_boards_are_hidden_at_the_next_request_after_a_farm_declared_one(site: Site) -> None:
    with serving(site) as server:
        before = server.get("/board/mine/").status
        declare(site.history, "farmed", public=False)
        after = server.get("/board/mine/").status
    assert (before, after) == (200, 404)


def test_a_live_view_that_is_open_hides_them_too(site: Site) -> None:
    assert list(rows(site.present(), Selection())) == ["mine"]
    declare(site.history, "farmed", public=True)
    assert list(rows(site.present(), Selection())) == list(rows(site, Selection())) == ["farmed"]


@pytest.mark.parametrize(
    ("host", "names", "database", "own"),
    [
        ("127.0.0.1", (), None, True),
        ("127.0.0.1", ("farm.example",), None, False),
        ("127.0.0.1", (), "sqlite:///farm.sqlite", False),
        ("192.0.2.1", (), None, False),
    ],
)
def test_a_site_behind_a_proxy_is_not_only_for_this_machine(
    host: str, names: tuple[str, ...], database: str | None, own: bool
) -> None:
    assert _is_own(host, names, database) is own
