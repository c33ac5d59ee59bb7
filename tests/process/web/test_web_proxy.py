# SPDX-License-Identifier: GPL-2.0-or-later
"""The website behind the proxies of packaging/proxy: people are asked who they are, benches show their tokens."""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fastenough.farm.push import Goal
from fastenough.farm.tokens import Tokens
from fastenough.history import PUBLIC, History, declare
from fastenough.store import Store
from fastenough.web.app import make_app
from fastenough.web.site import Site
from fastenough.web.uploads import upload_route
from tests.support.recordings import Plan, write
from tests.support.served import asked, served
from tests.support.tools import require

pytestmark = pytest.mark.untimed

CONFIGURATIONS = Path(__file__).resolve().parents[3] / "packaging/proxy"
PERSON = {"Authorization": "Basic " + base64.b64encode(b"engineer:let me in").decode()}

HASHED = "$2a$04$l7hQRmuzySxMqjacOMEm/ON1nV.msnV4drkALRMqzW6SdHwvNK/pC"
"""Her password with bcrypt, at little cost: each request is checked anew."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def shipped(name: str, *changed: tuple[str, str]) -> str:
    """A configuration as it is shipped, but for its addresses, its certificate and its users."""
    site = (CONFIGURATIONS / name).read_text()
    for was, now in changed:
        assert was in site
        site = site.replace(was, now)
    return site


def caddy(folder: Path, port: int, behind: int) -> Sequence[str | Path]:
    """Its command, with a configuration in this folder."""
    require("caddy")
    site = shipped(
        "Caddyfile",
        ("farm.example {", f"http://127.0.0.1:{port} {{"),
        ("HASH", HASHED),
        ("127.0.0.1:8731", f"127.0.0.1:{behind}"),
    )
    whole = folder / "Caddyfile"
    whole.write_text(f"{{\nadmin off\nstorage file_system {folder}\n}}\n{site}")
    return ["caddy", "run", "--config", whole, "--adapter", "caddyfile"]


def nginx(folder: Path, port: int, behind: int) -> Sequence[str | Path]:
    """The same."""
    require("nginx")
    site = shipped(
        "nginx.conf",
        ("listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        ("127.0.0.1:8731", f"127.0.0.1:{behind}"),
        ("/etc/nginx/fastenough.users", f"{folder}/users"),
    )
    site = "".join(line for line in site.splitlines(keepends=True) if "ssl_certificate" not in line)
    (folder / "users").write_text("engineer:{PLAIN}let me in\n")
    paths = "".join(
        f"{what}_temp_path {folder}/{what};\n" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = folder / "nginx.conf"
    whole.write_text(
        f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{paths}{site}}}\n"
    )
    return ["nginx", "-p", folder, "-c", whole]


@pytest.fixture(scope="module", params=[nginx, caddy])
def farm(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Goal, Store, str]]:
    """Where a proxy listens, the store behind it, and a token."""
    proxy: Callable[[Path, int, int], Sequence[str | Path]] = request.param
    folder = tmp_path_factory.mktemp("farm")
    store = Store(folder / "store")
    history = History.at(f"sqlite:///{folder}/history.sqlite")
    declare(history, "open", public=True)
    declare(history, "secret", public=False)
    tokens = Tokens(folder / "tokens.json")
    token = tokens.add("rack-1", ["testboard"])
    with served(make_app(Site(history, PUBLIC, store), more=[upload_route(store.path, tokens.known)])) as behind:
        port = free_port()
        with subprocess.Popen(
            proxy(folder, port, behind.port or 0), stderr=subprocess.DEVNULL, env={**os.environ, "HOME": str(folder)}
        ) as running:
            try:
                goal = replace(behind, port=port)
                _wait(goal, running)
                yield goal, store, token
            finally:
                running.kill()  # asked to, Caddy waits a minute for the streams that the site has open


def _wait(goal: Goal, proxy: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + 30
    while time.monotonic() < until_s:
        assert proxy.poll() is None
        try:
            with socket.create_connection((goal.host, goal.port or 0)):
                return
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise AssertionError("the proxy does not listen")


def test_people_are_asked_who_they_are(farm: tuple[Goal, Store, str]) -> None:
    goal, _, _ = farm
    assert asked(goal, "GET", "/")[0] == 401
    assert asked(goal, "GET", "/board/open/")[0] == 401
    status, shown, headers = asked(goal, "GET", "/", headers=PERSON)
    assert status == 200
    assert b"open" in shown
    assert b"secret" not in shown
    assert "default-src 'none'" in {name.lower(): value for name, value in headers.items()}["content-security-policy"]


def test_what_is_not_public_is_as_unknown_as_what_is_not(farm: tuple[Goal, Store, str]) -> None:
    goal, _, _ = farm
    hidden, unknown = (asked(goal, "GET", f"/board/{name}/", headers=PERSON)[:2] for name in ("secret", "never-was"))
    assert hidden == unknown
    assert hidden[0] == 404


def test_nothing_is_written_but_uploads_and_metrics_stay_inside(farm: tuple[Goal, Store, str]) -> None:
    goal, _, _ = farm
    for method in ("POST", "PUT", "DELETE"):
        assert asked(goal, method, "/", b"x", PERSON)[0] in (403, 405)
    assert asked(goal, "GET", "/metrics", headers=PERSON)[0] == 403


def test_benches_upload_with_their_own_tokens(farm: tuple[Goal, Store, str], tmp_path: Path) -> None:
    goal, store, token = farm
    body = write(tmp_path / "run-1.jsonl", Plan([[np.full(100, 5_000, dtype=np.int64)]], "run-1")).read_bytes()
    assert asked(goal, "POST", "/upload/run-1", body, PERSON)[0] == 401
    assert asked(goal, "POST", "/upload/run-1", body, {"Authorization": f"Bearer {token}"})[0] == 201
    with contextlib.suppress(ConnectionError):  # it may be cut off before it has said all
        said, _, _ = asked(goal, "POST", "/upload/run-1", bytes(65 << 20), {"Authorization": f"Bearer {token}"})
        assert said in (413, 502)
    assert (store.path / "runs" / "run-1").is_dir()


def test_events_come_at_once(farm: tuple[Goal, Store, str]) -> None:
    goal, _, _ = farm
    connection = http.client.HTTPConnection(goal.host, goal.port, timeout=30)
    connection.request("GET", "/events", headers=PERSON)
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.getheader("content-type", "").startswith("text/event-stream")
    assert answer.read1(1) != b""
    connection.close()
