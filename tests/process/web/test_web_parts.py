# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages that are sent while they are made: the first part comes before the rest exists, for any number of readers."""

from __future__ import annotations

import csv
import http.client
import io
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastenough.history import PUBLIC, History, board_statuses
from fastenough.model import BadInput, FastenoughError, Unavailable
from fastenough.web.pages.metrics import metrics
from fastenough.web.site import Site, page_in_parts
from tests.support.many_boards import END_S, make_boards
from tests.support.processes import eventually
from tests.support.websites import Served, serving

pytestmark = pytest.mark.untimed

BOARDS = 1200
PARTS = (b"first\n", b"second\n", b"third\n")


class SlowPage:
    """A page of `PARTS` that continues after the first part when it is released, with ``error`` or the rest."""

    def __init__(self, error: Exception | None = None, before: Exception | None = None) -> None:
        self._error, self._before = error, before
        self.released = threading.Event()
        self.made = 0

    def parts(self, site: Site) -> Iterator[bytes]:
        self.made += 1
        if self._before is not None:
            raise self._before
        yield PARTS[0]
        assert self.released.wait(60)
        if self._error is not None:
            raise self._error
        yield from PARTS[1:]


@contextmanager
def serving_page(page: SlowPage) -> Iterator[Served]:
    history = History.temporary()
    pages = [page_in_parts("/slow", "text/plain", page.parts)]
    with serving(Site(history, PUBLIC, now=lambda: END_S), pages=pages) as served:
        yield served
    history.close()


@contextmanager
def asked(served: Served, **headers: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.request("GET", "/slow", headers={name.replace("_", "-"): value for name, value in headers.items()})
    yield connection.getresponse()
    connection.close()


def test_the_first_part_comes_before_the_rest_is_made() -> None:
    page = SlowPage()
    with serving_page(page) as served, asked(served) as first, asked(served) as second:
        for answer in (first, second):
            assert answer.status == 200 and answer.read1() == PARTS[0]
        assert not page.released.is_set() and page.made == 1, "both readers share it"
        page.released.set()
        assert [answer.read() for answer in (first, second)] == [b"".join(PARTS[1:])] * 2
        assert eventually(lambda: "content-length" in served.get("/slow").headers), "once it is complete"
        whole = served.get("/slow")
        assert whole.body == b"".join(PARTS) and page.made == 1, "from the cache"
        assert whole.headers["content-length"] == str(len(whole.body))
        assert served.get("/slow", If_None_Match=whole.headers["etag"]).status == 304


def test_a_page_that_is_soon_complete_has_length_and_etag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastenough.web.page_cache._SOON_S", 60.0)
    page = SlowPage()
    page.released.set()
    with serving_page(page) as served:
        answer = served.get("/slow")
        assert answer.body == b"".join(PARTS) and {"content-length", "etag"} <= set(answer.headers)


def test_each_packed_part_can_be_read_when_it_comes() -> None:
    page, unpacker = SlowPage(), zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    with serving_page(page) as served, asked(served, Accept_Encoding="gzip") as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert unpacker.decompress(answer.read1()) == PARTS[0]
        page.released.set()
        assert unpacker.decompress(answer.read()) == b"".join(PARTS[1:]) and unpacker.eof


@pytest.mark.parametrize(("error", "status"), [(BadInput("no such group"), 400), (Unavailable("the database"), 503)])
def test_an_error_before_the_first_part_has_its_status(error: FastenoughError, status: int) -> None:
    with serving_page(SlowPage(before=error)) as served:
        assert [served.get("/slow").status for _ in range(2)] == [status, status]


def test_an_error_after_the_first_part_is_no_complete_answer() -> None:
    page = SlowPage(error=Unavailable("the database went away"))
    with serving_page(page) as served:
        with asked(served) as answer:
            assert answer.read1() == PARTS[0]
            page.released.set()
            with pytest.raises(http.client.IncompleteRead):
                answer.read()
        assert served.get("/slow").status == 503, "and it is not cached"


def _many(folder: Path, *, with_summaries: bool = True) -> History:
    history = History.at(f"sqlite:///{folder}/history.sqlite")
    make_boards(history, BOARDS, private_every=100, refresh=with_summaries)
    return history


@pytest.mark.parametrize("with_summaries", [True, False])
def test_the_table_has_each_visible_board_once(tmp_path: Path, with_summaries: bool) -> None:
    history = _many(tmp_path, with_summaries=with_summaries)
    expected = board_statuses(history, PUBLIC, END_S)
    with serving(Site(history, PUBLIC, now=lambda: END_S)) as served:
        header, *rows = csv.reader(io.StringIO(served.get("/boards.csv").text))
    assert len(header) == len(rows[0]) == 12
    assert sorted(row[1] for row in rows) == sorted(status.board.name for status in expected)
    if with_summaries:
        assert [(row[0], row[1]) for row in rows] == [(one.state.value, one.board.name) for one in expected]
    history.close()


def test_metrics_in_parts_are_the_whole_metrics(tmp_path: Path) -> None:
    history = _many(tmp_path)
    site = Site(history, PUBLIC, now=lambda: END_S)
    with serving(site) as served:
        assert served.get("/metrics").body == metrics(site)
        assert served.get("/metrics?group=rack:nothing").status == 200
        assert served.get("/metrics?group=type:type-0").status == 200
        assert served.get("/metrics?group=site:").status == 200
        assert served.get("/metrics?nonsense=1").status == 400
    history.close()
