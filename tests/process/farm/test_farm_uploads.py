# SPDX-License-Identifier: GPL-2.0-or-later
"""Uploads of recordings: for who has a token, each once, and nothing that the reader does not believe."""

from __future__ import annotations

import asyncio
import io
import json
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import numpy as np
import pytest
import zstandard
from click.testing import CliRunner
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from fastenough.cli import cli
from fastenough.cli.farm_uploads import TOKEN_SETTING
from fastenough.farm.push import Goal, parse_goal, push
from fastenough.farm.tokens import Tokens
from fastenough.history import OWNER, History, UploadFollower, board_status
from fastenough.model import BadInput
from fastenough.recording.building import line_bytes
from fastenough.store import Store
from fastenough.web import uploads
from fastenough.web.server import Bounds
from fastenough.web.uploads import UploadRate, upload_route
from tests.process.jobs.test_ring_pull import check_all_there, pulled, put
from tests.support.json_documents import require_valid
from tests.support.mutant_trial import sealed
from tests.support.recordings import Plan, write
from tests.support.served import asked, served

pytestmark = pytest.mark.machines


@dataclass
class Place:
    """A store that may be uploaded to; ``hour_s`` is what its clock shows."""

    store: Path
    tokens: Tokens
    token: str
    goal: Goal
    clock: list[float]

    def post(
        self, run: str, body: bytes | Iterator[bytes], token: str | None = None, **headers: str
    ) -> tuple[int, str]:
        said = {"Authorization": f"Bearer {self.token if token is None else token}", **headers}
        status, answer, _ = asked(self.goal, "POST", f"/upload/{run}", body, said)
        return status, answer.decode()

    def runs(self) -> list[str]:
        with closing(Store(self.store)) as store:
            return [run.id for run in store.runs()]

    def left(self) -> list[str]:
        """Files and folders of what was uploaded, but for the runs that are stored."""
        return [path.name for path in (self.store / "pulled").rglob("*") if path.is_file()]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    store, tokens, clock = tmp_path / "store", Tokens(tmp_path / "tokens.json"), [0.0]
    store.mkdir()
    token = tokens.add("rack-1", ["testboard"])
    app = Starlette(routes=[upload_route(store, tokens.known, UploadRate(lambda: clock[0]))])
    with served(app) as goal:
        yield Place(store, tokens, token, goal, clock)


def recording(tmp_path: Path, run: str = "run-1", value_ns: int = 5_000, board: str = "testboard") -> bytes:
    values = [[np.full(100, value_ns, dtype=np.int64)] * 3]
    return write(tmp_path / f"{run}.jsonl", Plan(values, run, head={"board": board})).read_bytes()


def test_push_prints_what_its_schema_says(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_SETTING, place.token)
    with closing(Store(tmp_path / "own")) as own:
        run = sealed(own, recording(tmp_path))
    goal = f"http://{place.goal.host}:{place.goal.port}"
    words = ["farm", "push", run, "--to", goal, "--store", str(tmp_path / "own"), "--json"]
    for new in (True, False):
        done = CliRunner().invoke(cli, words, obj=SimpleNamespace(listen=lambda: None), catch_exceptions=False)
        assert require_valid("farm push", done.stdout)["stored"] == {run: new}
    assert place.runs() == [run]


def test_a_recording_is_stored_once_however_often_it_comes(place: Place, tmp_path: Path) -> None:
    plain = recording(tmp_path)
    packed = zstandard.compress(plain)
    assert push(place.goal, place.token, "run-1", io.BytesIO(packed), len(packed)) is True
    assert push(place.goal, place.token, "run-1", io.BytesIO(packed), len(packed)) is False
    assert place.post("run-1", plain) == (200, '{"run":"run-1","stored":false}')
    with closing(Store(place.store)) as store:
        assert store.verify() == {}
        assert [run.id for run in store.runs()] == ["run-1"]
        assert store.load("run-1").totals[0].total == 300
        assert store.runs()[0].board == "testboard"
    assert place.left() == []


def test_an_upload_is_read_into_a_history_that_a_farm_updates(place: Place, tmp_path: Path) -> None:
    history = History.at(f"sqlite:///{tmp_path}/farm.sqlite")
    with closing(Store(place.store)) as store, closing(history):
        follower = UploadFollower(history, store)
        app = Starlette(routes=[upload_route(place.store, place.tokens.known, stored=follower.uploaded.append)])
        with served(app) as goal:
            assert replace(place, goal=goal).post("run-1", recording(tmp_path))[0] == 201
        assert list(follower.uploaded) == ["run-1"]
        follower()
        assert not follower.uploaded
        assert board_status(history, OWNER, "testboard", 0).max_ever_ns == 5_000


def test_another_recording_of_a_name_that_is_taken_is_refused(place: Place, tmp_path: Path) -> None:
    assert place.post("run-1", recording(tmp_path))[0] == 201
    status, said = place.post("run-1", recording(tmp_path, value_ns=6_000))
    assert status == 409
    assert "different recording" in said
    with closing(Store(place.store)) as store:
        assert store.load("run-1").totals[0].maximum == 5_000


def test_who_has_no_token_or_one_for_other_boards_is_refused(place: Place, tmp_path: Path) -> None:
    other = place.tokens.add("rack-2", ["another"])
    body = recording(tmp_path)
    for token in ("", "nonsense", place.token[:-1]):
        assert place.post("run-1", body, token)[0] == 401
    assert place.post("run-1", body, other)[0] == 403
    place.tokens.revoke("rack-1")
    assert place.post("run-1", body)[0] == 401
    assert place.runs() == []


def test_a_token_has_so_many_uploads_an_hour(place: Place, tmp_path: Path) -> None:
    token = place.tokens.add("slow", ["testboard"], 2)
    body = recording(tmp_path)
    assert [place.post("run-1", body, token)[0] for _ in range(3)] == [201, 200, 429]
    place.clock[0] = 3601.0
    assert place.post("run-1", body, token)[0] == 200


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not a recording"),
        (b"\x00" * 1000, "not a recording"),
        (b"{}\n", "not a line of a recording"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 100, "compression is damaged"),
        (zstandard.compress((b"\x00" * 1023 + b"\n") * (100 << 10)), "expands to more"),
        (zstandard.compress(b"\x00" * (32 << 20)), "a line is longer"),
        (zstandard.compress(b"[" * (17 << 20)), "a line is longer"),
    ],
)
def test_what_is_no_recording_is_refused_and_leaves_nothing(place: Place, body: bytes, said: str) -> None:
    status, answer = place.post("run-1", body)
    assert status == 422
    assert said in answer
    assert len(answer.splitlines()) == 1
    assert place.runs() == place.left() == []


def test_a_recording_is_unpacked_no_further_than_is_allowed(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = recording(tmp_path)
    monkeypatch.setattr(uploads, "MOST_CONTENT_BYTES", len(body) - 1)
    assert place.post("run-1", zstandard.compress(body))[0] == 422
    monkeypatch.setattr(uploads, "MOST_CONTENT_BYTES", len(body))
    assert place.post("run-1", zstandard.compress(body))[0] == 201


def test_no_change_of_a_recording_breaks_the_server(place: Place, tmp_path: Path) -> None:
    body, chance = recording(tmp_path), random.Random(7)
    place.tokens.revoke("rack-1")
    place.token = place.tokens.add("many", ["testboard"], 1000)
    seen = set()
    for _ in range(40):
        changed = bytearray(body)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        status, said = place.post("run-1", bytes(changed))
        assert status in (201, 403, 409, 422)
        assert len(said.splitlines()) == 1
        seen.add(status)
    assert 422 in seen


def test_a_recording_of_another_name_or_a_name_that_is_none_is_refused(place: Place, tmp_path: Path) -> None:
    body = recording(tmp_path)
    assert place.post("run-2", body)[0] == 422
    for name in ("..", "%2e%2e%2fx", ".hidden", "a" * 129, "a%20b", "a%0ab"):
        assert place.post(name, body)[0] in (404, 422)
    assert place.runs() == []
    assert sorted(path.name for path in place.store.parent.iterdir()) == ["run-1.jsonl", "store", "tokens.json"]


@pytest.mark.parametrize("begin_ns", [-(2**63), -1, 2**63 - 10**12])
def test_what_is_taken_can_be_read_whatever_its_clock_says(place: Place, tmp_path: Path, begin_ns: int) -> None:
    lines = [json.loads(line) for line in recording(tmp_path).splitlines()]
    for instants in ([line[name] for name in ("begin", "end", "at") if name in line] for line in lines):
        for instant in instants:
            instant["wall_ns"] = begin_ns + instant["mono_ns"]
    assert place.post("run-1", b"".join(map(line_bytes, lines)))[0] == 201
    with closing(Store(place.store)) as store:
        assert [run.begin_wall_ns for run in store.runs()] == [begin_ns]
        assert store.load("run-1").damage is None and not store.verify()


def test_lengths_are_announced_kept_and_bounded(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = recording(tmp_path)
    assert place.post("run-1", iter([body]))[0] == 411
    monkeypatch.setattr(uploads, "MOST_BYTES", len(body) - 1)
    assert place.post("run-1", body)[0] == 413
    assert place.runs() == []


def test_what_is_cut_off_on_its_way_leaves_nothing(place: Place, tmp_path: Path) -> None:
    body = recording(tmp_path)
    head = f"POST /upload/run-1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {place.token}\r\n"
    with socket.create_connection((place.goal.host, place.goal.port or 0)) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:-200])
    assert place.post("run-2", recording(tmp_path, "run-2"))[0] == 201
    assert place.runs() == ["run-2"]
    assert place.left() == []


def test_what_comes_too_slowly_is_given_up(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_S", 0.2)
    head = f"POST /upload/run-1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {place.token}\r\n"
    with socket.create_connection((place.goal.host, place.goal.port or 0)) as connection:
        connection.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode() + b"{")
        connection.settimeout(30)
        assert connection.recv(100).startswith(b"HTTP/1.1 408")
    assert place.runs() == []


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org",
        "ftp://127.0.0.1",
        "example.org",
        "https://u:p@example.org",
        "https://h/?token=x",
        "http://127.0.0.1.example.org",
        "https://h:99999",
        "",
    ],
)
def test_no_token_goes_where_it_could_be_read(url: str) -> None:
    with pytest.raises(BadInput, match="--to"):
        parse_goal(url)


def test_a_farm_may_lie_below_a_path(tmp_path: Path) -> None:
    assert parse_goal("https://example.org:8443/farm/") == Goal(True, "example.org", 8443, "/farm")
    assert parse_goal("http://[::1]:8000") == Goal(False, "::1", 8000, "")


def test_a_token_of_one_board_cannot_take_the_id_of_a_recording_that_grows_on_another(
    place: Place, tmp_path: Path
) -> None:
    """The upload is refused, the pull goes on, and nothing of what was pulled is lost."""
    ring, whole = tmp_path / "ring", put(tmp_path / "ring", 1, intervals=6)
    run, lines = whole.stem[11:], whole.read_bytes().splitlines(keepends=True)
    whole.write_bytes(b"".join(lines[:4]))
    assert len(pulled(ring, place.store).under_way) == 1
    hostile = recording(tmp_path, run)
    assert place.post(run, hostile)[0] == 409
    whole.write_bytes(b"".join(lines))
    told = pulled(ring, place.store)
    assert [one.run_id for one in told.stored] == [run] and told.bytes == sum(map(len, lines[4:]))
    check_all_there(ring, place.store)
    assert place.post(run, hostile)[0] == 409
    assert place.left() == ["last.json"]


def test_a_slow_check_for_one_token_delays_no_other(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, slow, checked = place.tokens.add("rack-2", ["another"]), threading.Event(), uploads.store_upload

    def held_up(part: BinaryIO, run: str, boards: tuple[str, ...], store: Path) -> bool:
        assert run != "run-1" or slow.wait(60)
        return checked(part, run, boards, store)

    monkeypatch.setattr(uploads, "store_upload", held_up)
    first = threading.Thread(target=place.post, args=("run-1", recording(tmp_path)))
    first.start()
    try:
        assert place.post("run-2", recording(tmp_path, "run-2", board="another"), other)[0] == 201
    finally:
        slow.set()
        first.join()
    assert place.runs() == ["run-1", "run-2"]


def test_half_a_request_is_given_up_and_a_whole_one_is_answered(tmp_path: Path) -> None:
    async def slow(_: Request) -> PlainTextResponse:
        await asyncio.sleep(0.6)
        return PlainTextResponse("whole")

    with served(Starlette(routes=[Route("/", slow)]), Bounds(header_s=0.3)) as goal:
        assert asked(goal, "GET", "/")[1] == b"whole"
        for sent in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /"):
            with socket.create_connection((goal.host, goal.port or 0), timeout=30) as half:
                half.sendall(sent)
                received = b"".join(iter(lambda: _received(half), b""))
            assert received.endswith(b"whole") == sent.endswith(b"GET /")


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(4096)
    except ConnectionResetError:
        return b""
