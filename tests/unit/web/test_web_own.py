# SPDX-License-Identifier: GPL-2.0-or-later
"""All boards are shown on the own machine only, and only while no farm has declared a board."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest
from starlette.requests import Request

from fastenough.cli.web import _is_own
from fastenough.history import PUBLIC, History, Viewer, catch_up, declare
from fastenough.model import Unavailable
from fastenough.store import Store
from fastenough.web.app import _IDENTITY, _site_for
from fastenough.web.identity import AccessGrant, AccessRules
from fastenough.web.live import rows
from fastenough.web.selection import Selection
from fastenough.web.site import Site, SiteRole
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


@pytest.mark.parametrize("declared", [False, True])
def test_a_live_view_of_a_user_shows_the_boards_of_their_sites(site: Site, declared: bool) -> None:
    if declared:
        declare(site.history, "here", site="a")
        declare(site.history, "there", site="b", public=True)
    rules = AccessRules((ip_network("127.0.0.1"),), {"view-a": AccessGrant(SiteRole.VIEWER, frozenset({"a"}))})
    signed_in = [(b"x-forwarded-user", b"ada"), (b"x-forwarded-groups", b"view-a")]
    request = Request({"type": "http", "headers": [], _IDENTITY: rules.identity("127.0.0.1", signed_in)})
    seen = asyncio.run(_site_for(request, site))
    assert seen.viewer == Viewer(sites=frozenset({"a"}))
    assert list(rows(seen, Selection())) == (["here"] if declared else [])


def test_a_live_view_tells_of_a_database_that_does_not_answer_as_pages_do(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Site) -> Site:
        raise Unavailable("database is locked")

    with serving(site) as server:
        monkeypatch.setattr(Site, "present", fail)
        answers = [server.get(address) for address in ("/events", "/")]
    assert [(answer.status, "locked" in answer.text) for answer in answers] == [(503, False)] * 2


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
