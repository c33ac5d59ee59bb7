# SPDX-License-Identifier: GPL-2.0-or-later
"""Users see the boards of their sites: every answer is the same whether the boards of other sites exist or not."""

from __future__ import annotations

import http.client
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import ip_network
from pathlib import Path

import pytest
from starlette.routing import Route

from fastenough.history import NOBODY, PUBLIC, History, catch_up, declare, rename
from fastenough.store import Store
from fastenough.store.conclusions import conclusions
from fastenough.web import live
from fastenough.web.app import make_app
from fastenough.web.asset_files import assets
from fastenough.web.identity import AccessGrant, AccessRules
from fastenough.web.site import Page, Site, SiteRole
from fastenough.web.uploads import upload_route
from tests.support.farm_data import FarmData, make_store
from tests.support.websites import Answer, Served, serving

pytestmark = pytest.mark.untimed

RULES = AccessRules(
    (ip_network("127.0.0.1"),),
    {
        "view-a": AccessGrant(SiteRole.VIEWER, frozenset({"a"})),
        "work-a": AccessGrant(SiteRole.OPERATOR, frozenset({"a"})),
        "nowhere": AccessGrant(SiteRole.OPERATOR, frozenset({"c"})),
        "chiefs": AccessGrant(SiteRole.ADMINISTRATOR),
    },
)
SITES = {"r1s1": "a", "r1s2": "b", "r1s3": "a", "r1s4": "b", "r1s5": ""}
"""The second boots another kernel, the fourth is silent, the third and the last have a conclusion."""
HERE, THERE = "r1s1", "r1s2"
STATIC = {"/api/openapi.json", *(f"/assets/{name}" for name in assets())}
"""Addresses whose content is in the program."""
SOON_S = 3.0
AT_ONCE = 6
OF_THE_MOMENT = {"date", "content-length", "etag", "transfer-encoding"}
"""Headers that depend on when a page is complete: one that takes longer is sent in parts, without length and ETag."""
UPLOAD = "/upload/{run}"
"""Its route checks tokens, not users."""
QUERIES: Mapping[str, tuple[str, ...]] = {
    "/groups": ("by=site", "by=rack", "by=type", "by=kernel", "by=site&page=2"),
    "/api/v1/groups": ("by=site", "by=rack&limit=1", "by=kernel"),
    "/metrics": ("group=site:a", "group=site:b", "group=rack:r1", "group=site:"),
    "/compare": ("base={here}&other={there}", "base={there}&other={here}", "base={here}"),
    "/board/{name}/selection.json": ("begin={begin}&end={end}",),
    "/api/v1/boards": ("limit=1", "q=r1", f"q={THERE}", "group=site:b", "cursor=r1s1", "state=silent"),
}
SEARCHES = (
    "sort=board",
    "sort=-max_30d&page=1",
    "page=2",
    "q=r1",
    f"q={THERE}",
    "q=6.12.0-rt3",
    f"board={THERE}",
    f"board={HERE}",
    "group=site:a",
    "group=site:b",
    "group=site:",
    "group=rack:r1",
    "group=kernel:6.12.0-rt3",
    "state=silent",
    "verdict=none",
    "within=100000",
)


@dataclass(frozen=True)
class Worlds:
    """Two farms with the same boards at site a; ``whole`` has others as well."""

    whole: Served
    part: Served
    farm: FarmData
    routes: tuple[Route, ...]


def _served(farm: FarmData, store: Store, folder: Path) -> Site:
    history = History.at(f"sqlite:///{folder}/{store.path.name}.sqlite")
    for name, site in SITES.items():
        if site == "a" or store is farm.store:
            declare(history, name, rack="r1", type=f"of-{site}", limit_ns=100_000, public=True, site=site)
    assert not catch_up(history, store).faults
    return Site(history, PUBLIC, store, now=lambda: farm.end_s + 360)


def _only_here(farm: FarmData, path: Path) -> Store:
    """A copy of the store without the runs and conclusions of other sites."""
    gone = [f"*-{name}-*" for name, site in SITES.items() if site != "a"]
    gone += [f"{known.id}*" for known in conclusions(farm.store) if SITES[known.board] != "a"]
    shutil.copytree(farm.store.path, path, ignore=shutil.ignore_patterns("index.sqlite*", *gone))
    return Store(path)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    folder = tmp_path_factory.mktemp("worlds")
    farm = make_store(folder / "whole", boards=5, days=1, cpus=1)
    assert set(farm.boards) == set(SITES)
    whole, part = _served(farm, farm.store, folder), _served(farm, _only_here(farm, folder / "part"), folder)
    app = make_app(whole, more=[upload_route(farm.store.path, lambda _: None)], rules=RULES)
    routes = tuple(route for route in app.routes if isinstance(route, Route))
    assert len(routes) == len(app.routes), "only routes of this kind are checked here"
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(live, "HEART_S", SOON_S)
    with serving(whole, farm, rules=RULES) as first, serving(part, farm, rules=RULES) as second:
        yield Worlds(first, second, farm, routes)
    monkeypatch.undo()


def signed_in(group: str) -> dict[str, str]:
    return {"X_Forwarded_User": "ada", "X_Forwarded_Groups": group}


def get(served: Served, address: str, group: str | None) -> Answer:
    """An answer, or the first event of a stream."""
    given = {} if group is None else signed_in(group)
    if not address.startswith("/events"):
        return served.get(address, **given)
    with stream(served, address, given) as answer:
        return Answer(answer.status, {}, event(answer) if answer.status == 200 else answer.read())


@contextmanager
def stream(served: Served, address: str, given: Mapping[str, str]) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    connection.request("GET", address, headers={name.replace("_", "-"): value for name, value in given.items()})
    yield connection.getresponse()
    connection.close()


def event(answer: http.client.HTTPResponse) -> bytes:
    """The next event, without its number, or that there is none for `SOON_S`."""
    lines = iter(answer.readline, b"")
    return next(line for line in lines if line.startswith((b"data:", b": keep-alive")))


def addresses(worlds: Worlds, route: Route) -> list[str]:
    """What a user could ask a route for, of all sites.  A name in an address that this does not know fails."""
    summaries = worlds.farm.store.runs()
    values = {
        "name": [HERE, THERE, "r1s5", "r9s9"],
        "run": [*(next(run.id for run in summaries if run.board == name) for name in (HERE, THERE, "r1s5")), "none"],
        "conclusion": [*(known.id for known in conclusions(worlds.farm.store)), "none"],
        "span": ["24h"],
    }
    here, there = (next(run.id for run in summaries if run.board == name) for name in (HERE, THERE))
    known = {"here": here, "there": there, "begin": worlds.farm.begin_s, "end": worlds.farm.end_s}
    path = re.sub(r":[a-z]+}", "}", route.path)
    found = [path]
    for name in re.findall(r"{(\w+)}", path):
        found = [address.replace(f"{{{name}}}", value) for address in found for value in values[name]]
    queries = QUERIES.get(path.removesuffix(".json"), QUERIES.get(path))
    if queries is None:
        queries = SEARCHES[:: 3 if path == "/events" else 1] if len(found) == 1 and path not in STATIC else ()
    return [*found, *(f"{address}?{query.format(**known)}" for address in found for query in queries)]


def visible(answer: Answer) -> tuple[int, bytes, Mapping[str, str]]:
    headers = {name: value for name, value in answer.headers.items() if name not in OF_THE_MOMENT}
    return answer.status, answer.body, headers


def visible_answers(served: Served, asked: Sequence[str], group: str) -> list[tuple[int, bytes, Mapping[str, str]]]:
    """The answers to addresses in their order.  Several are asked at once: a stream without boards keeps silent."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda address: visible(get(served, address, group)), asked))


@pytest.mark.slow
def test_no_answer_depends_on_the_boards_of_other_sites(worlds: Worlds) -> None:
    """Also counts, groups, search, order, pages, metrics, streams and downloads; each route shows an administrator
    more, so a route for which this test proves nothing fails."""
    for route in worlds.routes:
        if route.path == UPLOAD:
            continue
        asked = addresses(worlds, route)
        for group in ("work-a", "nowhere"):  # who only views sees less: a page is the same for both, or refused
            pairs = zip(*(visible_answers(served, asked, group) for served in (worlds.whole, worlds.part)), strict=True)
            differing = [address for address, (whole, part) in zip(asked, pairs, strict=True) if whole != part]
            assert differing == [], group
        of_both = [visible_answers(served, asked, "chiefs") for served in (worlds.whole, worlds.part)]
        more = any(whole[:2] != part[:2] for whole, part in zip(*of_both, strict=True))
        assert more == (route.path not in STATIC), route.path


def test_users_see_what_they_may(worlds: Worlds) -> None:
    def names(group: str, query: str = "") -> set[str]:
        return {one["name"] for one in worlds.whole.get(f"/api/v1/boards{query}", **signed_in(group)).json["boards"]}

    assert names("view-a") == names("work-a") == {"r1s1", "r1s3"}
    assert names("nowhere") == set()
    assert names("chiefs") == set(SITES)
    run = next(run.id for run in worlds.farm.store.runs(board=HERE))
    for part, least in (
        ("", "view-a"),
        ("plot.json", "view-a"),
        ("recording.jsonl.zst", "work-a"),
        ("run.csv", "work-a"),
    ):
        address = f"/run/{run}/{part}"
        assert worlds.whole.get(address, **signed_in(least)).status == 200, address
        assert least == "view-a" or worlds.whole.get(address, **signed_in("view-a")).status == 403, address


def test_nothing_is_answered_without_a_known_group(worlds: Worlds) -> None:
    for route in worlds.routes:
        if route.path == UPLOAD:
            continue
        bodies = set()
        for address in addresses(worlds, route)[:2]:
            for group in (None, "unknown", ""):
                answer = get(worlds.whole, address, group)
                assert answer.status == 403, address
                bodies.add(answer.body)
        assert len(bodies) == 1, route.path


def test_forged_headers_are_refused(worlds: Worlds) -> None:
    """Of a client that is not the proxy, or that adds headers to those of the proxy."""
    good = {"X-Forwarded-User": "ada", "X-Forwarded-Groups": "view-a"}
    for more in ({"X_Forwarded_Groups": "chiefs"}, {"X_Forwarded_User": "eve"}, {"x-forwarded_groups": "chiefs"}):
        assert raw(worlds.whole, [*good.items(), *more.items()]) == 403
    assert raw(worlds.whole, [*good.items(), ("X-Forwarded-Groups", "chiefs")]) == 403
    assert raw(worlds.whole, [*good.items()]) == 200
    away = replace(RULES, trusted=(ip_network("10.1.0.1"),))
    with serving(worlds.whole.site, worlds.farm, rules=away) as served:
        for forwarded in ("10.1.0.1", "127.0.0.1"):
            assert (
                raw(served, [*good.items(), ("X-Forwarded-For", forwarded), ("Forwarded", f"for={forwarded}")]) == 403
            )
    assert raw(worlds.whole, [*good.items(), ("X-Forwarded-For", "192.0.2.1")]) == 200, "the proxy states its client"


def raw(served: Served, headers: list[tuple[str, str]]) -> int:
    """Status of a request with these headers as they are."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.putrequest("GET", "/index.json")
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_stream_sends_no_change_of_another_site(worlds: Worlds) -> None:
    history = worlds.whole.site.history
    with stream(worlds.whole, "/events", signed_in("view-a")) as answer:
        first = event(answer)
        assert b"r1s1" in first and b"r1s2" not in first
        with stream(worlds.whole, "/events", signed_in("chiefs")) as whole:
            assert b"r1s2" in event(whole)
            declare(history, "r1s2", state="dead")
            while b"r1s2" not in event(whole):
                pass
            declare(history, "r1s1", state="dead")
            changed = event(answer)
            while changed.startswith(b":"):
                changed = event(answer)
            assert changed.startswith(b'data: {"boards":{"r1s1":'), "and nothing before it"
    for name in ("r1s1", "r1s2"):
        declare(history, name, state="ok")


def test_a_stream_begins_with_the_boards_of_now(worlds: Worlds) -> None:
    """Not with those that the last listener had, some of which may be at another site since."""
    history = worlds.whole.site.history
    with stream(worlds.whole, "/events?q=r1", signed_in("view-a")) as answer:
        assert b"r1s3" in event(answer)
    time.sleep(2 * live.POLL_S + 1)
    declare(history, "r1s3", site="b")
    try:
        with stream(worlds.whole, "/events?q=r1", signed_in("view-a")) as answer:
            first = event(answer)
            assert b"r1s1" in first and b"r1s3" not in first
    finally:
        declare(history, "r1s3", site="a")


def test_a_former_name_of_a_board_shows_nothing_of_it(worlds: Worlds, tmp_path: Path) -> None:
    """Board r1s3 of site b has another name now, and its former one is that of a board at site a."""
    history = History.at(f"sqlite:///{tmp_path}/renamed.sqlite")
    for name, site in (SITES | {"r1s3": "b"}).items():
        declare(history, name, site=site)
    assert not catch_up(history, worlds.farm.store).faults
    rename(history, "r1s3", "moved", ["r1s3"])
    rename(history, "r1s1", "r1s3", ["r1s1"])
    (conclusion,) = (known for known in conclusions(worlds.farm.store) if known.board == "r1s3")
    with serving(replace(worlds.whole.site, history=history), worlds.farm, rules=RULES) as served:
        address = f"/conclusion/{conclusion.id}/index.json"
        assert served.get("/api/v1/board/r1s3", **signed_in("view-a")).status == 200
        assert served.get(address, **signed_in("view-a")).status == 404
        assert served.get(address, **signed_in("chiefs")).json["conclusion"]["board"] == "moved"
        assert "-r1s3-" not in served.get("/compare", **signed_in("view-a")).text
        assert "-r1s3-" in served.get("/compare", **signed_in("chiefs")).text
        assert conclusion.id not in served.get("/board/r1s3/", **signed_in("view-a")).text
    history.close()


def test_answers_are_stored_by_no_cache(worlds: Worlds) -> None:
    for address in ("/", "/boards.csv", "/metrics", "/nothing", "/assets/site.css"):
        for given in (signed_in("view-a"), {}):
            assert worlds.whole.get(address, **given).headers["cache-control"] == "private, no-cache"


def test_a_page_that_forgets_the_viewer_shows_nothing(worlds: Worlds) -> None:
    """The site that routes are given is that of nobody; only `_site_for` makes it that of a user."""
    seen: list[Site] = []

    def page(site: Site) -> bytes:
        seen.append(site)
        return b""

    added = Page("/added", "text/plain", page)
    with serving(worlds.whole.site, worlds.farm, pages=[added], rules=RULES) as served:
        assert served.get("/added", **signed_in("view-a")).status == 200
        assert served.get("/added", **signed_in("nobody")).status == 403
    assert [site.viewer.sites for site in seen] == [frozenset({"a"})]
    app = make_app(worlds.whole.site, pages=[added], rules=RULES)
    shown = [
        cell.cell_contents
        for route in app.routes
        if isinstance(route, Route)
        for cell in route.endpoint.__closure__ or ()
    ]
    sites = [value for value in shown if isinstance(value, Site)]
    assert sites and all(site.viewer == NOBODY for site in sites)
