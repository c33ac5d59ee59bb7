# SPDX-License-Identifier: GPL-2.0-or-later
"""Users sign in at an OpenID provider, and Apache with the documented configuration states them to the website."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import numpy as np
import pytest

from fastenough.farm.tokens import Tokens
from fastenough.history import History, catch_up, declare
from fastenough.store.conclusions import conclusions
from tests.support.cli_calls import ROOT
from tests.support.farm_data import FarmData, make_store
from tests.support.openid_connect import (
    CALLBACK,
    SIGN_IN,
    Apache,
    Provider,
    RegisteredClient,
    begin_sign_in,
    documented,
    finish_sign_in,
    free_places,
    issued_tokens,
    make_certificate,
    provider_running,
    write_secrets,
)
from tests.support.recordings import Plan, write
from tests.support.websites import command_serving

pytestmark = [pytest.mark.slow, pytest.mark.untimed]

SITES = {"r1s1": "graz", "r1s2": "vienna", "r1s3": "linz", "r1s4": "vienna", "r1s5": ""}
HERE, THERE = "r1s1", "r1s2"
"""A board of graz and one of vienna."""
GROUPS = {
    "vera": ["staff", "lab-graz"],
    "oscar": ["bench-graz"],
    "anna": ["rt-chiefs"],
    "eve": ["staff"],
    "bob": None,
}
"""The groups of each user at the provider.  The documented access file knows those of vera, oscar and anna."""
VISIBLE = {"vera": {"r1s1", "r1s3"}, "oscar": {"r1s1"}, "anna": set(SITES)}
FORGED = {"X-Forwarded-User": "anna", "X-Forwarded-Groups": "rt-chiefs"}
SECRET = "X-Fastenough-Secret"
IDLE_S = 10
"""The shortest time after which the module ends a session."""


@dataclass(frozen=True)
class SignInFarm:
    """A farm whose website is behind two servers: sessions of ``hasty`` end after IDLE_S seconds without a request.

    ``token``: of a bench that uploads.
    """

    provider: Provider
    apache: Apache
    hasty: Apache
    farm: FarmData
    token: str

    @property
    def secret(self) -> str:
        return (self.apache.folder / "proxy-secret").read_text().strip()

    def run_of(self, board: str) -> str:
        return next(run.id for run in self.farm.store.runs() if run.board == board)

    def conclusion_of(self, board: str) -> str:
        return next(known.id for known in conclusions(self.farm.store) if known.board == board)


def _declare(farm: FarmData, database: str) -> None:
    history = History.at(database)
    for name, site in SITES.items():
        declare(history, name, rack="r1", site=site, public=True)
    assert not catch_up(history, farm.store).faults
    history.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignInFarm]:
    folder = tmp_path_factory.mktemp("openid")
    farm = make_store(folder / "store", boards=len(SITES), days=1, cpus=1)
    assert set(farm.boards) == set(SITES)
    database = f"sqlite:///{folder}/farm.sqlite"
    _declare(farm, database)
    access = folder / "access.toml"
    access.write_text(documented("toml", "trusted =").replace("/etc/fastenough", str(folder)))
    uploads = folder / "tokens.json"
    token = Tokens(uploads).add("rack-1", ["testboard"])
    with ExitStack() as stack:
        provider = stack.enter_context(provider_running())
        for user, groups in GROUPS.items():
            provider.set_groups(user, groups)
        places = free_places(2)
        client = provider.register(*(f"https://{place}{CALLBACK}" for place in places))
        write_secrets(folder, client)
        make_certificate(folder)
        command = sys.executable, "-m", "fastenough"
        options = "--store", farm.store.path, "--database", database, "--access", access, "--uploads", uploads
        _, website = stack.enter_context(command_serving(*command, cwd=ROOT, options=options))
        apache, hasty = (Apache(folder, place, client, provider.url, website) for place in places)
        hasty = replace(hasty, idle_s=IDLE_S)
        for server in (apache, hasty):
            stack.enter_context(server.running())
        yield SignInFarm(provider, apache, hasty, farm, token)


def first_event(browser: httpx.Client) -> str:
    with browser.stream("GET", "/events") as answer:
        assert answer.status_code == 200
        return next(line for line in answer.iter_lines() if line.startswith("data:"))


def addresses(world: SignInFarm, board: str) -> list[str]:
    """A page, its data, a part of the API, a metric and a figure of a board, and its run: what a viewer may see."""
    run = world.run_of(board)
    own = [f"/board/{board}/{part}" for part in ("", "index.json", "maxima-24h.csv", "junit.xml", "badge.svg")]
    return [*own, f"/api/v1/board/{board}", f"/api/v1/board/{board}/runs", f"/run/{run}/", f"/run/{run}/plot.json"]


def recordings(world: SignInFarm, board: str) -> list[str]:
    """The paths of a run's archived recording, which need an operator."""
    return [f"/run/{world.run_of(board)}/{name}" for name in ("recording.jsonl.zst", "run.csv", "run.parquet")]


def statuses(browser: httpx.Client, paths: list[str]) -> dict[str, int]:
    return {path: browser.get(path).status_code for path in paths}


def all_answer(status: int, paths: list[str]) -> dict[str, int]:
    return dict.fromkeys(paths, status)


def boards_shown(browser: httpx.Client) -> set[str]:
    return {row["board"]["name"] for row in browser.get("/index.json").raise_for_status().json()["boards"]}


@pytest.mark.parametrize("forged", [{}, FORGED, FORGED | {SECRET: "0123456789abcdef"}])
def test_a_request_without_sign_in_is_redirected_to_the_provider(world: SignInFarm, forged: Mapping[str, str]) -> None:
    with world.apache.browser(forged) as browser:
        for path in ["/", "/index.json", "/events", "/metrics", *addresses(world, HERE), *recordings(world, HERE)]:
            goal = urlsplit(begin_sign_in(browser, path))
            assert f"{goal.scheme}://{goal.netloc}{goal.path}" == world.provider.url + SIGN_IN
            query = {name: value for name, (value,) in parse_qs(goal.query).items()}
            assert query["response_type"] == "code"
            assert query["client_id"] == world.apache.client.id
            assert query["redirect_uri"] == world.apache.url + CALLBACK
            assert query["code_challenge_method"] == "S256"
            assert all(query[name] for name in ("state", "nonce", "code_challenge"))


def test_programs_are_told_that_they_are_not_signed_in(world: SignInFarm) -> None:
    """They cannot sign in: they are not redirected."""
    for kind in ("text/event-stream", "application/json"):
        with world.apache.browser({"Accept": kind}) as browser:
            assert statuses(browser, ["/", "/events", "/api/v1/boards"]) == all_answer(
                401, ["/", "/events", "/api/v1/boards"]
            )


@pytest.mark.parametrize("user", VISIBLE)
def test_a_user_sees_the_boards_of_their_sites_only(world: SignInFarm, user: str) -> None:
    hidden = set(SITES) - VISIBLE[user]
    with world.apache.signed_in(user) as browser:
        assert boards_shown(browser) == VISIBLE[user]
        event = first_event(browser)
        assert set(json.loads(event.removeprefix("data:"))["boards"]) == VISIBLE[user]
        for path in ("/", "/boards.csv", "/metrics", "/api/v1/boards", "/groups", "/live", "/compare"):
            shown = browser.get(path).raise_for_status().text
            assert not [board for board in hidden if board in shown], path
        assert "r1s1" in browser.get("/metrics").text
        for board in SITES:
            paths = addresses(world, board)
            assert statuses(browser, paths) == all_answer(404 if board in hidden else 200, paths)
        for board, shown_to in (("r1s3", {"vera", "anna"}), ("r1s5", {"anna"})):
            answer = browser.get(f"/conclusion/{world.conclusion_of(board)}/")
            assert answer.status_code == (200 if user in shown_to else 404)


def test_whole_recordings_need_an_operator(world: SignInFarm) -> None:
    with world.apache.signed_in("vera") as viewer:
        for board in SITES:
            assert statuses(viewer, recordings(world, board)) == all_answer(403, recordings(world, board))
    with world.apache.signed_in("oscar") as operator:
        for board in SITES:
            paths = recordings(world, board)
            assert statuses(operator, paths) == all_answer(200 if board == HERE else 404, paths)
        taken = operator.get(recordings(world, HERE)[0]).content
    with world.apache.signed_in("anna") as administrator:
        for board in SITES:
            assert statuses(administrator, recordings(world, board)) == all_answer(200, recordings(world, board))
        assert administrator.get(recordings(world, HERE)[0]).content == taken


@pytest.mark.parametrize("user", ["eve", "bob", "a user whom the provider first sees now"])
def test_a_user_without_a_role_is_refused(world: SignInFarm, user: str) -> None:
    with world.apache.signed_in(user) as browser:
        paths = ["/", "/index.json", "/events", "/metrics", *addresses(world, HERE), *recordings(world, HERE)]
        assert statuses(browser, paths) == all_answer(403, paths)


def test_headers_that_a_browser_forges_are_replaced(world: SignInFarm) -> None:
    for forged in (FORGED, FORGED | {SECRET: "0123456789abcdef"}, FORGED | {"OIDC_CLAIM_groups": "rt-chiefs"}):
        with world.apache.signed_in("vera", forged) as browser:
            assert boards_shown(browser) == VISIBLE["vera"]
            assert browser.get(f"/board/{THERE}/").status_code == 404
        with world.apache.signed_in("eve", forged) as browser:
            assert browser.get("/index.json").status_code == 403


@pytest.mark.parametrize(
    "forged",
    [
        {"X_Forwarded_Groups": "rt-chiefs"},
        {"X_Forwarded_User": "anna"},
        {"Connection": "X-Forwarded-Groups"},
        {"Connection": f"close, {SECRET}"},
    ],
)
def test_headers_that_reach_the_website_beside_those_of_the_proxy_are_refused(
    world: SignInFarm, forged: dict[str, str]
) -> None:
    """Those with _ for -, and those by which the proxy drops its own."""
    with world.apache.signed_in("vera") as browser:
        assert browser.get("/index.json", headers=FORGED | forged).status_code == 403
        assert boards_shown(browser) == VISIBLE["vera"]


def direct(world: SignInFarm, headers: Mapping[str, str], path: str = "/index.json") -> int:
    return httpx.get(world.apache.website.rstrip("/") + path, headers=headers, trust_env=False, timeout=60).status_code


def test_headers_sent_to_the_website_itself_need_the_secret(world: SignInFarm) -> None:
    for path in ("/", "/index.json", "/metrics", "/events", *recordings(world, HERE)):
        assert direct(world, FORGED, path) == 403
        assert direct(world, FORGED | {SECRET: world.secret[:-1]}, path) == 403
        assert direct(world, {SECRET: world.secret}, path) == 403
    assert direct(world, FORGED | {SECRET: world.secret}) == 200, "what the proxy sends"


def test_benches_upload_without_a_sign_in(world: SignInFarm, tmp_path: Path) -> None:
    body = write(tmp_path / "run-1.jsonl", Plan([[np.full(100, 5_000, dtype=np.int64)]], "run-1")).read_bytes()
    with world.apache.browser() as bench:
        assert bench.post("/upload/run-1", content=body).status_code == 401
        assert bench.post("/upload/run-1", content=body, headers={"Authorization": "Bearer x"}).status_code == 401
        shown = {"Authorization": f"Bearer {world.token}"}
        assert bench.post("/upload/run-1", content=body, headers=shown).status_code == 201
    assert (world.farm.store.path / "runs" / "run-1").is_dir()


@pytest.mark.parametrize("path", ["/upload/../index.json", "/upload/%2e%2e/index.json", "/upload/..%2findex.json"])
def test_addresses_of_uploads_lead_to_no_page(world: SignInFarm, path: str) -> None:
    with world.apache.browser() as browser:
        request = browser.build_request("GET", "/", headers=FORGED)
        request.url = request.url.copy_with(raw_path=path.encode())
        answer = browser.send(request)
        assert answer.status_code in (302, 403, 404)
        assert not [board for board in SITES if board in answer.text]


def session_with(world: SignInFarm, issuing: Provider, client: RegisteredClient, nonce: str | None = None) -> int:
    """Status of a page after a sign-in for which the provider sends the tokens that ``issuing`` issued to ``client``.

    ``nonce``: that of the ID token; None for the one of this sign-in.
    """
    with world.apache.browser() as browser:
        form = begin_sign_in(browser)
        (asked,) = parse_qs(urlsplit(form).query)["nonce"]
        world.provider.substitute = issued_tokens(issuing, client, nonce or asked, world.provider.url)
        try:
            finish_sign_in(browser, form, "vera")
        finally:
            world.provider.substitute = None
        return browser.get("/index.json").status_code


def test_id_tokens_that_are_not_of_this_sign_in_are_refused(world: SignInFarm) -> None:
    """Each differs from the accepted one in one respect only: its key, its audience, or its nonce."""
    mine, other = world.apache.client, world.provider.register("http://localhost/other")
    assert session_with(world, world.provider, mine) == 200
    with provider_running(knows_clients=False) as forger:
        assert session_with(world, forger, mine) == 302
        assert "signature" in world.apache.log
    assert session_with(world, world.provider, other) == 302
    assert '"aud"' in world.apache.log
    assert session_with(world, world.provider, mine, nonce="another") == 302
    assert "nonce" in world.apache.log


def test_an_answer_of_the_provider_counts_only_in_the_browser_that_asked(world: SignInFarm) -> None:
    with world.apache.browser() as browser, world.apache.browser() as victim:
        allowed = browser.post(begin_sign_in(browser), data={"sub": "anna"})
        answer = allowed.headers["location"]
        victim.get(answer)
        begin_sign_in(victim)
        victim.get(answer)
        assert victim.get("/index.json").status_code == 302, "it has no session of another's"
        assert browser.get(answer).status_code == 302
        assert boards_shown(browser) == VISIBLE["anna"]


def test_signing_out_ends_the_session_in_the_server(world: SignInFarm) -> None:
    with world.apache.signed_in("vera") as browser, world.apache.browser() as copy:
        copy.cookies.update(browser.cookies)
        assert boards_shown(copy) == VISIBLE["vera"]
        left = browser.get(CALLBACK, params={"logout": f"{world.apache.url}/"})
        assert left.status_code == 302
        assert left.headers["location"].startswith(f"{world.provider.url}/oauth2/end_session")
        for one in (browser, copy):
            assert begin_sign_in(one).startswith(world.provider.url + SIGN_IN)
        assert finish_sign_in(browser, begin_sign_in(browser), "vera").status_code == 302
        assert boards_shown(browser) == VISIBLE["vera"]


def test_a_guessed_cookie_is_no_session(world: SignInFarm) -> None:
    with world.apache.signed_in("vera") as browser:
        ((name, value),) = browser.cookies.items()
    for cookie, status in ((value, 200), (value[::-1], 302)):
        with world.apache.browser({"Cookie": f"{name}={cookie}"}) as browser:
            assert browser.get("/index.json").status_code == status


def test_a_session_that_has_expired_asks_for_a_new_sign_in(world: SignInFarm) -> None:
    with world.hasty.signed_in("vera") as browser, world.apache.signed_in("vera") as lasting:
        assert boards_shown(browser) == VISIBLE["vera"]
        time.sleep(IDLE_S + 2)
        assert begin_sign_in(browser).startswith(world.provider.url + SIGN_IN)
        assert boards_shown(lasting) == VISIBLE["vera"]


def test_changed_groups_take_effect_at_the_next_sign_in(world: SignInFarm) -> None:
    world.provider.set_groups("cora", ["rt-chiefs"])
    with world.apache.signed_in("cora") as before:
        assert boards_shown(before) == VISIBLE["anna"]
        world.provider.set_groups("cora", ["lab-graz"])
        with world.apache.signed_in("cora") as after:
            assert boards_shown(after) == VISIBLE["vera"]
        assert boards_shown(before) == VISIBLE["anna"]
