# SPDX-License-Identifier: GPL-2.0-or-later
"""Users sign in at an OpenID provider, and Apache with the documented configuration states them to the website."""

from __future__ import annotations

import json
import stat
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
    code_block,
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
"""Shortest inactivity timeout that the module accepts."""


@dataclass(frozen=True)
class SignInFarm:
    """A farm whose website is behind two servers.

    ``short_session_server``: its sessions end after IDLE_S seconds without a request.  ``token``: of a bench that
    uploads.
    """

    provider: Provider
    apache: Apache
    short_session_server: Apache
    data: FarmData
    token: str

    @property
    def secret(self) -> str:
        return (self.apache.folder / "proxy-secret").read_text().strip()

    def run_of(self, board: str) -> str:
        return next(run.id for run in self.data.store.runs() if run.board == board)

    def conclusion_of(self, board: str) -> str:
        return next(conclusion.id for conclusion in conclusions(self.data.store) if conclusion.board == board)


def _declare(data: FarmData, database: str) -> None:
    history = History.at(database)
    for name, site in SITES.items():
        declare(history, name, rack="r1", site=site, public=True)
    assert not catch_up(history, data.store).faults
    history.close()


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignInFarm]:
    folder = tmp_path_factory.mktemp("openid")
    data = make_store(folder / "store", boards=len(SITES), days=1, cpus=1)
    assert set(data.boards) == set(SITES)
    database = f"sqlite:///{folder}/farm.sqlite"
    _declare(data, database)
    access = folder / "access.toml"
    access.write_text(code_block("toml", "trusted =").replace("/etc/fastenough", str(folder)))
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
        options = "--store", data.store.path, "--database", database, "--access", access, "--uploads", uploads
        _, website = stack.enter_context(command_serving(*command, cwd=ROOT, options=options))
        apache, other = (Apache(folder, place, client, provider.url, website) for place in places)
        short_session_server = replace(other, idle_s=IDLE_S)
        for server in (apache, short_session_server):
            stack.enter_context(server.running())
        yield SignInFarm(provider, apache, short_session_server, data, token)


def first_event(browser: httpx.Client) -> str:
    with browser.stream("GET", "/events") as answer:
        assert answer.status_code == 200
        return next(line for line in answer.iter_lines() if line.startswith("data:"))


def addresses(farm: SignInFarm, board: str) -> list[str]:
    """A page, its data, a part of the API, a metric and a figure of a board, and its run: what a viewer may see."""
    run = farm.run_of(board)
    own = [f"/board/{board}/{part}" for part in ("", "index.json", "maxima-24h.csv", "junit.xml", "badge.svg")]
    return [*own, f"/api/v1/board/{board}", f"/api/v1/board/{board}/runs", f"/run/{run}/", f"/run/{run}/plot.json"]


def recordings(farm: SignInFarm, board: str) -> list[str]:
    """The paths of a run's archived recording, which need an operator."""
    return [f"/run/{farm.run_of(board)}/{name}" for name in ("recording.jsonl.zst", "run.csv", "run.parquet")]


def statuses(browser: httpx.Client, paths: list[str]) -> dict[str, int]:
    return {path: browser.get(path).status_code for path in paths}


def all_answer(status: int, paths: list[str]) -> dict[str, int]:
    return dict.fromkeys(paths, status)


def boards_shown(browser: httpx.Client) -> set[str]:
    """Except the board of recordings that other tests upload."""
    rows = browser.get("/index.json").raise_for_status().json()["boards"]
    return {row["board"]["name"] for row in rows} - {"testboard"}


@pytest.mark.parametrize("forged", [{}, FORGED, FORGED | {SECRET: "0123456789abcdef"}])
def test_a_request_without_sign_in_is_redirected_to_the_provider(farm: SignInFarm, forged: Mapping[str, str]) -> None:
    with farm.apache.browser(forged) as browser:
        for path in ["/", "/index.json", "/events", "/metrics", *addresses(farm, HERE), *recordings(farm, HERE)]:
            goal = urlsplit(begin_sign_in(browser, path))
            assert f"{goal.scheme}://{goal.netloc}{goal.path}" == farm.provider.url + SIGN_IN
            query = {name: value for name, (value,) in parse_qs(goal.query).items()}
            assert query["response_type"] == "code"
            assert query["client_id"] == farm.apache.client.id
            assert query["redirect_uri"] == farm.apache.url + CALLBACK
            assert query["code_challenge_method"] == "S256"
            assert all(query[name] for name in ("state", "nonce", "code_challenge"))


def test_programs_without_a_session_get_401(farm: SignInFarm) -> None:
    """Unless they accept HTML or ``*/*``."""
    paths = ["/", "/events", "/api/v1/boards"]
    for media_types, status in (
        ("text/event-stream", 401),
        ("application/json", 401),
        ("text/html", 302),
        ("application/json, */*", 302),
    ):
        with farm.apache.browser({"Accept": media_types}) as browser:
            assert statuses(browser, paths) == all_answer(status, paths)


@pytest.mark.parametrize("user", VISIBLE)
def test_a_user_sees_the_boards_of_their_sites_only(farm: SignInFarm, user: str) -> None:
    hidden = set(SITES) - VISIBLE[user]
    with farm.apache.signed_in(user) as browser:
        assert boards_shown(browser) == VISIBLE[user]
        event = first_event(browser)
        assert set(json.loads(event.removeprefix("data:"))["boards"]) == VISIBLE[user]
        for path in ("/", "/boards.csv", "/metrics", "/api/v1/boards", "/groups", "/live", "/compare"):
            page = browser.get(path).raise_for_status().text
            assert not [board for board in hidden if board in page], path
        assert "r1s1" in browser.get("/metrics").text
        for board in SITES:
            paths = addresses(farm, board)
            assert statuses(browser, paths) == all_answer(404 if board in hidden else 200, paths)
        for board, users in (("r1s3", {"vera", "anna"}), ("r1s5", {"anna"})):
            answer = browser.get(f"/conclusion/{farm.conclusion_of(board)}/")
            assert answer.status_code == (200 if user in users else 404)


def test_whole_recordings_need_an_operator(farm: SignInFarm) -> None:
    with farm.apache.signed_in("vera") as viewer:
        for board in SITES:
            assert statuses(viewer, recordings(farm, board)) == all_answer(403, recordings(farm, board))
    with farm.apache.signed_in("oscar") as operator:
        for board in SITES:
            paths = recordings(farm, board)
            assert statuses(operator, paths) == all_answer(200 if board == HERE else 404, paths)
        recording = operator.get(recordings(farm, HERE)[0]).content
    with farm.apache.signed_in("anna") as administrator:
        for board in SITES:
            assert statuses(administrator, recordings(farm, board)) == all_answer(200, recordings(farm, board))
        assert administrator.get(recordings(farm, HERE)[0]).content == recording


@pytest.mark.parametrize("user", ["eve", "bob", "a user whom the provider first sees now"])
def test_a_user_without_a_role_is_refused(farm: SignInFarm, user: str) -> None:
    with farm.apache.signed_in(user) as browser:
        paths = ["/", "/index.json", "/events", "/metrics", *addresses(farm, HERE), *recordings(farm, HERE)]
        assert statuses(browser, paths) == all_answer(403, paths)


def test_headers_that_a_browser_forges_are_replaced(farm: SignInFarm) -> None:
    for forged in (FORGED, FORGED | {SECRET: "0123456789abcdef"}, FORGED | {"OIDC_CLAIM_groups": "rt-chiefs"}):
        with farm.apache.signed_in("vera", forged) as browser:
            assert boards_shown(browser) == VISIBLE["vera"]
            assert browser.get(f"/board/{THERE}/").status_code == 404
        with farm.apache.signed_in("eve", forged) as browser:
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
    farm: SignInFarm, forged: dict[str, str]
) -> None:
    """Those with _ for -, and those by which the proxy drops its own."""
    with farm.apache.signed_in("vera") as browser:
        assert browser.get("/index.json", headers=FORGED | forged).status_code == 403
        assert boards_shown(browser) == VISIBLE["vera"]


def direct(farm: SignInFarm, headers: Mapping[str, str], path: str = "/index.json") -> int:
    return httpx.get(farm.apache.website.rstrip("/") + path, headers=headers, trust_env=False, timeout=60).status_code


def test_headers_sent_to_the_website_itself_need_the_secret(farm: SignInFarm) -> None:
    for path in ("/", "/index.json", "/metrics", "/events", *recordings(farm, HERE)):
        assert direct(farm, FORGED, path) == 403
        assert direct(farm, FORGED | {SECRET: farm.secret[:-1]}, path) == 403
        assert direct(farm, {SECRET: farm.secret}, path) == 403
    assert direct(farm, FORGED | {SECRET: farm.secret}) == 200, "what the proxy sends"


def test_benches_upload_without_a_sign_in(farm: SignInFarm, tmp_path: Path) -> None:
    body = write(tmp_path / "run-1.jsonl", Plan([[np.full(100, 5_000, dtype=np.int64)]], "run-1")).read_bytes()
    with farm.apache.browser() as bench:
        assert bench.post("/upload/run-1", content=body).status_code == 401
        assert bench.post("/upload/run-1", content=body, headers={"Authorization": "Bearer x"}).status_code == 401
        headers = {"Authorization": f"Bearer {farm.token}"}
        assert bench.post("/upload/run-1", content=body, headers=headers).status_code == 201
    assert (farm.data.store.path / "runs" / "run-1").is_dir()


@pytest.mark.parametrize("path", ["/upload/../index.json", "/upload/%2e%2e/index.json", "/upload/..%2findex.json"])
def test_addresses_of_uploads_lead_to_no_page(farm: SignInFarm, path: str) -> None:
    with farm.apache.browser() as browser:
        request = browser.build_request("GET", "/", headers=FORGED)
        request.url = request.url.copy_with(raw_path=path.encode())
        answer = browser.send(request)
        assert answer.status_code in (302, 403, 404)
        assert not [board for board in SITES if board in answer.text]


def sign_in_with_tokens(
    farm: SignInFarm, issuer: Provider, client: RegisteredClient, nonce: str | None = None
) -> tuple[int, str]:
    """Sign in, while the provider sends the tokens that ``issuer`` issued to ``client``.

    Return the status of a page after that, and the lines that Apache logged meanwhile.

    ``nonce``: that of the ID token; None for the one of this sign-in.
    """
    earlier = len(farm.apache.log)
    with farm.apache.browser() as browser:
        form = begin_sign_in(browser)
        (own_nonce,) = parse_qs(urlsplit(form).query)["nonce"]
        farm.provider.substitute = issued_tokens(issuer, client, nonce or own_nonce, farm.provider.url)
        try:
            finish_sign_in(browser, form, "vera")
        finally:
            farm.provider.substitute = None
        return browser.get("/index.json").status_code, farm.apache.log[earlier:]


def test_id_tokens_that_are_not_of_this_sign_in_are_refused(farm: SignInFarm) -> None:
    """Each differs from the accepted one in one respect only: its key, its audience, or its nonce."""
    client, other_client = farm.apache.client, farm.provider.register("http://localhost/other")
    reasons = {"signature", '"aud"', "nonce"}

    def reasons_of_refusal(issuer: Provider, client: RegisteredClient, nonce: str | None = None) -> set[str]:
        status, log = sign_in_with_tokens(farm, issuer, client, nonce)
        assert status == 302
        return {reason for reason in reasons if reason in log}

    status, log = sign_in_with_tokens(farm, farm.provider, client)
    assert (status, [reason for reason in reasons if reason in log]) == (200, [])
    with provider_running(knows_clients=False) as forger:
        assert reasons_of_refusal(forger, client) == {"signature"}
    assert reasons_of_refusal(farm.provider, other_client) == {'"aud"'}
    assert reasons_of_refusal(farm.provider, client, nonce="another") == {"nonce"}


def test_an_answer_of_the_provider_counts_only_in_the_browser_that_asked(farm: SignInFarm) -> None:
    with farm.apache.browser() as browser, farm.apache.browser() as victim:
        redirect = browser.post(begin_sign_in(browser), data={"sub": "anna"})
        callback = redirect.headers["location"]
        victim.get(callback)
        begin_sign_in(victim)
        victim.get(callback)
        assert victim.get("/index.json").status_code == 302, "the victim has no session"
        assert browser.get(callback).status_code == 302
        assert boards_shown(browser) == VISIBLE["anna"]


def test_signing_out_ends_the_session_in_the_server(farm: SignInFarm) -> None:
    with farm.apache.signed_in("vera") as browser, farm.apache.browser() as copy:
        copy.cookies.update(browser.cookies)
        assert boards_shown(copy) == VISIBLE["vera"]
        answer = browser.get(CALLBACK, params={"logout": f"{farm.apache.url}/"})
        assert answer.status_code == 302
        assert answer.headers["location"].startswith(f"{farm.provider.url}/oauth2/end_session")
        for client in (browser, copy):
            assert begin_sign_in(client).startswith(farm.provider.url + SIGN_IN)
        assert finish_sign_in(browser, begin_sign_in(browser), "vera").status_code == 302
        assert boards_shown(browser) == VISIBLE["vera"]


def test_sessions_outlast_a_reload_of_the_server(farm: SignInFarm) -> None:
    """Debian reloads Apache daily, when it rotates the logs."""
    with farm.apache.signed_in("vera") as browser:
        farm.apache.reload()
        assert boards_shown(browser) == VISIBLE["vera"]


def test_secrets_are_in_files_that_only_their_owner_can_read(farm: SignInFarm) -> None:
    folder = farm.apache.folder
    assert not (folder / "client-secret").exists()
    for name in ("fastenough-secrets.conf", "proxy-secret"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


def test_a_guessed_cookie_is_no_session(farm: SignInFarm) -> None:
    with farm.apache.signed_in("vera") as browser:
        ((name, value),) = browser.cookies.items()
    for cookie, status in ((value, 200), (value[::-1], 302)):
        with farm.apache.browser({"Cookie": f"{name}={cookie}"}) as browser:
            assert browser.get("/index.json").status_code == status


def test_a_session_that_has_expired_asks_for_a_new_sign_in(farm: SignInFarm) -> None:
    with farm.short_session_server.signed_in("vera") as browser, farm.apache.signed_in("vera") as lasting:
        assert boards_shown(browser) == VISIBLE["vera"]
        time.sleep(IDLE_S + 2)
        assert begin_sign_in(browser).startswith(farm.provider.url + SIGN_IN)
        assert boards_shown(lasting) == VISIBLE["vera"]


def test_changed_groups_take_effect_at_the_next_sign_in(farm: SignInFarm) -> None:
    farm.provider.set_groups("cora", ["rt-chiefs"])
    with farm.apache.signed_in("cora") as before:
        assert boards_shown(before) == VISIBLE["anna"]
        farm.provider.set_groups("cora", ["lab-graz"])
        with farm.apache.signed_in("cora") as after:
            assert boards_shown(after) == VISIBLE["vera"]
        assert boards_shown(before) == VISIBLE["anna"]
