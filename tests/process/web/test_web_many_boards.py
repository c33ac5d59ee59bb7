# SPDX-License-Identifier: GPL-2.0-or-later
"""Thousands of boards: the server searches, sorts and pages them; groups, metrics and the read API."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema
import pytest
from sqlalchemy import event

from fastenough.history import PUBLIC, BoardCondition, History, board_statuses, declare, refresh_summaries
from fastenough.web.pages import PAGES
from fastenough.web.site import HTML, Site
from tests.support.many_boards import END_S, make_boards, name_of, set_condition
from tests.support.websites import Answer, Served, serving

pytestmark = pytest.mark.untimed

COUNT, PRIVATE_EVERY = 2000, 500
PRIVATE = name_of(500)
MOST_BYTES = 150_000
MOST_STATEMENTS = 25
DOCS = Path(__file__).parents[3] / "docs" / "website.md"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    history = History.at(f"sqlite:///{tmp_path_factory.mktemp('many')}/history.sqlite")
    make_boards(history, COUNT, private_every=PRIVATE_EVERY)
    with serving(Site(history, PUBLIC, now=lambda: END_S)) as found:
        yield found
    history.close()


@contextmanager
def statements(served: Served) -> Iterator[list[str]]:
    said: list[str] = []

    def note(*about: Any) -> None:
        said.append(about[2])

    event.listen(served.site.history.engine, "before_cursor_execute", note)
    yield said
    event.remove(served.site.history.engine, "before_cursor_execute", note)


def boards_on(page: Answer) -> list[str]:
    return re.findall(r'<tr data-board="([^"]*)"', page.text)


@pytest.mark.parametrize("address", ["/", "/live", "/groups?by=rack", "/metrics", "/api/v1/boards", "/heat-30d.json"])
def test_an_answer_is_small_and_takes_few_questions(served: Served, address: str) -> None:
    with statements(served) as said:
        answer = served.get(address)
    assert answer.status == 200
    assert len(answer.body) < MOST_BYTES
    assert 0 < len(said) < MOST_STATEMENTS


@pytest.mark.slow
def test_pages_show_each_board_once_and_the_urgent_first(served: Served) -> None:
    expected = [one.board.name for one in board_statuses(served.site.history, PUBLIC, END_S)]
    shown, address = [], "/"
    while address:
        page = served.get(address)
        shown += boards_on(page)
        following = re.search(r'rel="next" href="(\?page=\d+)"', page.text)
        address = f"/{following[1]}" if following else ""
    assert shown == expected
    assert len(shown) == COUNT - COUNT // PRIVATE_EVERY


def test_search_group_and_sort_stand_in_the_address(served: Served) -> None:
    page = served.get("/?q=gateway-0012&sort=-max_30d")
    assert boards_on(page) == [name_of(n) for n in range(129, 119, -1)]
    assert 'aria-sort="descending"' in page.text and 'name="q" value="gateway-0012"' in page.text
    of_group = boards_on(served.get("/?group=rack:3&sort=board"))
    assert of_group == [name_of(n) for n in range(120, 160)]
    heat = served.get("/heat-30d.json?q=gateway-0012").json
    assert sorted(heat["boards"]) == [name_of(n) for n in range(120, 130)]
    assert sorted(served.get("/live.json?q=gateway-0012").json["latest"]) == sorted(heat["boards"])


WRONG = (
    "page=0",
    "page=x",
    "page=99999",
    "page=²",
    "page=" + "9" * 5000,
    "sort=name;DROP TABLE board",
    "sort=--board",
    "group=kernel",
    "group=nothing:x",
    "state=happy",
    "verdict=<b>",
    "within=nan",
    "within=-1",
    "within=1e99",
    "q=" + "x" * 201,
    "q=\x00",
    "q=a&q=b",
    "what=1",
)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_value_is_one_clear_line(served: Served, wrong: str) -> None:
    query = quote(wrong, safe="=&")
    for address in ("/", "/index.json", "/live", "/heat-30d.json", *["/events"] * (wrong != "page=99999")):
        answer = served.get(f"{address}?{query}")
        assert answer.status == 400, address
        assert "Traceback" not in answer.text and "<b>" not in answer.text.replace("<b>fastenough</b>", "")
        assert len(answer.body) < 1500


def test_the_former_name_of_the_state_reserved_is_understood(tmp_path: Path) -> None:
    history = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    make_boards(history, 60)
    set_condition(history, 7, BoardCondition.RESERVED)
    with serving(Site(history, PUBLIC, now=lambda: END_S)) as found:
        for state in ("reserved", "lent"):
            (board,) = found.get(f"/api/v1/boards?state={state}").json["boards"]
            assert (board["name"], board["state"], board["reason"]) == (name_of(7), "reserved", "why")
            assert boards_on(found.get(f"/?state={state}")) == [name_of(7)]
        assert f'fastenough_board_state{{board="{name_of(7)}",state="reserved"}} 1' in found.get("/metrics").text
        assert '<option value="reserved" selected>reserved</option>' in found.get("/?state=lent").text
    history.close()


def test_hostile_searches_and_names_are_text(served: Served, tmp_path: Path) -> None:
    hostile = "\"><script>alert(1)</script>'; DROP TABLE board; --%"
    history = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    make_boards(history, 60)
    declare(history, hostile, public=True, site=hostile)
    refresh_summaries(history, END_S)
    with serving(Site(history, PUBLIC, now=lambda: END_S)) as found:
        for values in ({"q": hostile}, {"group": f"site:{hostile}"}):
            page = found.get(f"/?{urlencode(values)}")
            assert page.text.count("<tr data-board=") == 1 and "<script>" not in page.text
        for address in ("/groups?by=site", "/live", "/?sort=-board"):
            assert found.get(address).status == 200 and "<script>" not in found.get(address).text
        assert r'group="\"><script>' in found.get("/metrics").text
        (one,) = found.get(f"/api/v1/boards?{urlencode({'q': hostile})}").json["boards"]
        assert one["name"] == hostile
        assert found.get(f"/api/v1/board/{one['id']}").json == one
    history.close()


def test_a_hidden_board_is_in_no_page_group_stream_or_answer(served: Served) -> None:
    number = PRIVATE.encode()
    addresses = ["/groups?by=rack", "/metrics?group=rack:12", "/boards.csv", "/api/v1/boards?limit=1000&q=gateway-005"]
    addresses += [f"{at}?q={PRIVATE}" for at in ("/index.json", "/live", "/heat-24h.json", "/api/v1/boards")]
    for address in addresses:
        answer = served.get(address)
        assert answer.status == 200, address
        asked = re.sub(rb'(value="|"text":")' + number, b"", answer.body)
        assert number not in asked, address
    for part in ("", "/events", "/changes", "/runs"):
        hidden, absent = (served.get(f"/api/v1/board/{name}{part}?x=1") for name in (PRIVATE, "nobody"))
        assert (hidden.status, hidden.body) == (404, absent.body)
    racks = {one["name"]: one["boards"] for one in served.get("/api/v1/groups?by=rack").json["groups"]}
    assert (racks["12"], racks["13"]) == (39, 40)


def test_metrics_are_of_groups_and_of_the_boards_of_one(served: Served) -> None:
    whole, rack = served.get("/metrics").text, served.get("/metrics?group=rack:3").text
    assert "{board=" not in whole
    assert 'fastenough_group_boards{kind="site",group="linz",state="ok"}' in whole
    assert rack.count("fastenough_board_seen_timestamp_seconds{board=") == 40
    assert served.get("/metrics?group=type:type-1").status == 200
    assert served.get("/metrics?group=site:linz").status == 200
    assert served.get("/metrics?group=kernel:6.1.0-rt5").status == 400, "more than 500 boards"


def operations(served: Served) -> dict[str, Any]:
    document: dict[str, Any] = served.get("/api/openapi.json").json
    assert document["openapi"].startswith("3.1")
    return document


def test_answers_of_the_api_are_those_that_openapi_describes(website: Served, served: Served) -> None:
    """Of a farm that has measured, so that events, changes and runs are not empty."""
    document = operations(website)
    for site, name in ((website, website.farm.changed), (served, name_of(7))):
        for path, entry in document["paths"].items():
            described = entry["get"]["responses"]
            answer = site.get(path.format(name=name) + ("?limit=1" if "limit" in json.dumps(entry) else ""))
            require(document, described["200"], answer.json)
            if site is website and "{name}" in path:
                assert answer.json, path
            wrong = site.get(path.format(name=name) + "?limit=0")
            assert wrong.status == 400
            require(document, described["400"], wrong.json)
    assert website.get(f"/api/v1/board/{website.farm.changed}/changes").json["changes"]
    assert {page.pattern for page in PAGES if page.pattern.startswith("/api/v1")} == set(document["paths"])


def require(document: dict[str, Any], described: dict[str, Any], found: Any) -> None:
    schema = described["content"]["application/json"]["schema"] | {"components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(found)
    if isinstance(found, dict):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(schema).validate({**found, "surplus": 1})


def test_a_cursor_of_the_api_leads_to_every_entry_once(website: Served) -> None:
    at = f"/api/v1/board/{website.farm.boards[0]}/runs"
    whole = website.get(f"{at}?limit=1000").json["runs"]
    found, cursor = [], ""
    while True:
        answer = website.get(f"{at}?limit=2{cursor}").json
        found += answer["runs"]
        if answer["next"] is None:
            break
        cursor = f"&cursor={answer['next']}"
    assert found == whole != []


def test_the_client_of_the_documentation_finds_every_board(served: Served) -> None:
    (client,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(client.splitlines()) < 20
    program = client.replace("http://127.0.0.1:8731", served.url)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found = [line.split()[0] for line in done.stdout.splitlines()]
    expected = [one for one in board_statuses(served.site.history, PUBLIC, END_S) if one.state == "silent"]
    assert found == sorted(one.board.name for one in expected)


def test_each_page_works_without_scripts(served: Served) -> None:
    page = served.get("/").text
    form = page[page.index("<form") : page.index("</form>")]
    assert 'method="get"' in form and "hidden>" not in form[: form.index(">") + 1]
    for page_of in PAGES:
        if page_of.kind == HTML and page_of.menu:
            assert f'href="./{page_of.pattern[1:]}"' in page
