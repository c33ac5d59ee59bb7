# SPDX-License-Identifier: GPL-2.0-or-later
"""The website under load: first bytes, the weight of pages, a thousand listeners, and ten thousand boards.

``python -m tests.bench.web [LISTENERS [SECONDS]]``.  Fails where a bar is missed: a first byte
after 100 ms, also of a page that is made anew, a board's page of more than 150 kB, a listener that missed an event; of
10,000 boards, a page of more than 150 kB, or one that is not complete after 300 ms.  ``python -m tests.bench.web many
[BOARDS]`` measures many boards only.
Loopback only.  A server that has just been started loads and compiles what the pages of runs need, in its first seconds
and beside the first requests, which then take half a second: these are not judged.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import multiprocessing
import re
import resource
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

from fastenough.history import PUBLIC, History, declare
from fastenough.web.app import make_app
from fastenough.web.page_cache import FRESH_S
from fastenough.web.server import make_server
from fastenough.web.site import Site
from tests.support.farm_data import CYCLE_S, FarmData, make_store
from tests.support.many_boards import END_S, make_boards
from tests.support.postgresql import running_server
from tests.support.websites import Served, site_of

FIRST_BYTE_MS = 100
BOARD_PAGE_BYTES = 150_000
REPEATED = 30
COMPLETE_MS = 300
MANY = 10_000
MANY_ADDRESSES = (
    "/",
    "/?q=gateway-0123",
    "/?group=kernel:6.12.0-rt2&sort=-max_30d&page=20",
    "/groups?by=rack",
    "/live?group=site:linz",
    "/metrics",
    "/api/v1/boards",
    "/boards.csv",
)
DOWNLOADS = ("/boards.csv",)
"""Of all boards: only their first byte is judged."""
_STARTING_S = 8.0


def serve(farm: FarmData, folder: Path, bound: socket.socket) -> None:
    """In a process of its own: what the listeners cost is not the server's."""
    server = make_server(make_app(site_of(farm, folder)), log_level="critical")
    server.run(sockets=[bound])


def first_byte_ms(served: Served, address: str) -> list[float]:
    """Of a page that is asked for again and again: the first of these is made, and that is the worst."""
    found = []
    for _ in range(REPEATED):
        began = time.perf_counter()
        assert served.get(address, "HEAD").status == 200
        found.append((time.perf_counter() - began) * 1e3)
    return found


def wire_bytes(served: Served, board: str) -> int:
    at = f"/board/{board}/"
    page = served.get(at, Accept_Encoding="gzip")
    parts = re.findall(r'(?:href|src)="\.\./\.\./(assets/[^"]+)"', served.get(at).text)
    drawn = [f"{at}{name}" for name in ("maxima-24h.json", "heat-24h.json", "distribution-24h.json", "ridge.json")]
    return len(page.body) + sum(
        len(served.get(one, Accept_Encoding="gzip").body) for one in [*(f"/{part}" for part in parts), *drawn]
    )


async def listen(port: int, until: float, seen: list[int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    try:
        while (left := until - time.monotonic()) > 0:
            line = await asyncio.wait_for(reader.readline(), left)
            if found := re.match(rb"id: (\d+)", line):
                seen.append(int(found[1]))
    except TimeoutError:
        pass
    finally:
        writer.close()


async def listeners(port: int, count: int, seconds: float) -> tuple[int, int, int]:
    """(who heard something, events, who missed one) of so many listeners while boards change each second."""
    seen: list[list[int]] = [[] for _ in range(count)]
    until = time.monotonic() + seconds
    tasks = []
    for one in seen:
        tasks.append(asyncio.create_task(listen(port, until, one)))
        if len(tasks) % 50 == 0:
            await asyncio.sleep(0.02)
    await asyncio.gather(*tasks)
    gaps = sum(1 for one in seen if one and one != list(range(one[0], one[0] + len(one))))
    return sum(map(bool, seen)), max(map(max, filter(None, seen))), gaps


def change(farm: FarmData, folder: Path, seconds: float) -> None:
    """A board's state changes again and again: an event in each second."""
    history = History.at(f"sqlite:///{folder}/history.sqlite")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for state in ("reserved", "dead"):
            declare(history, farm.boards[0], state=state)
            time.sleep(1.1)
    history.close()


def measured(served: Served, farm: FarmData, folder: Path, count: int, seconds: float) -> list[str]:
    """What missed a bar; all is printed."""
    missed = []
    board = farm.injected.board
    assert served.get("/assets/site.css").status == 200
    time.sleep(_STARTING_S)
    for address in ("/", f"/board/{board}/", f"/board/{board}/maxima-1y.json", f"/board/{board}/distribution-1y.json"):
        times = first_byte_ms(served, address)
        print(f"first byte of {address}: median {statistics.median(times):.1f} ms, worst {max(times):.1f} ms")
        missed += [f"{address}: {max(times):.0f} ms"] * (max(times) > FIRST_BYTE_MS)
    size = wire_bytes(served, board)
    print(f"a board's page with its scripts and figures: {size:,} bytes")
    missed += [f"a board's page: {size:,} bytes"] * (size > BOARD_PAGE_BYTES)
    changing = multiprocessing.Process(target=change, args=(farm, folder, seconds))
    changing.start()
    heard, events, gaps = asyncio.run(listeners(served.port, count, seconds))
    changing.join()
    print(f"{count:,} listeners for {seconds:g} s: {heard:,} heard of {events} events, {gaps} missed one")
    return missed + [f"{count - heard} of {count} listeners heard nothing, {gaps} missed an event"] * (
        heard < count or gaps > 0
    )


def serve_many(url: str, bound: socket.socket) -> None:
    """In a process of its own."""
    site = Site(History.at(url), PUBLIC, now=lambda: END_S)
    make_server(make_app(site), log_level="critical").run(sockets=[bound])


def fetched_ms(port: int, address: str) -> tuple[float, float, int]:
    """Milliseconds until the first byte of the content and until all came, and how many bytes that were; not packed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    began = time.perf_counter()
    connection.request("GET", address)
    answer = connection.getresponse()
    size = len(answer.read(1))
    first = time.perf_counter()
    size += len(answer.read())
    complete = time.perf_counter()
    connection.close()
    assert answer.status == 200, address
    return (first - began) * 1e3, (complete - began) * 1e3, size


def many_missed(url: str, boards: int) -> list[str]:
    """What missed a bar with so many boards; each page is made anew each time, since it is kept for five seconds."""
    history = History.at(url)
    make_boards(history, boards)
    history.close()
    missed = []
    with socket.create_server(("127.0.0.1", 0)) as bound:
        server = multiprocessing.Process(target=serve_many, args=(url, bound))
        server.start()
        try:
            time.sleep(_STARTING_S)
            rounds = []
            for _ in range(6):
                rounds.append({one: fetched_ms(bound.getsockname()[1], one) for one in MANY_ADDRESSES})
                time.sleep(FRESH_S + 0.2)
            for address in MANY_ADDRESSES:
                first, complete, size = zip(*(one[address] for one in rounds[1:]), strict=True)
                print(
                    f"{boards:,} boards, {url.partition(':')[0]}, {address}: {max(size):,} bytes, first byte median "
                    f"{statistics.median(first):.0f} ms, worst {max(first):.0f} ms, complete {max(complete):.0f} ms"
                )
                missed += [f"{address}: {statistics.median(first):.0f} ms"] * (statistics.median(first) > FIRST_BYTE_MS)
                if address not in DOWNLOADS:
                    missed += [f"{address}: {max(size):,} bytes"] * (max(size) > BOARD_PAGE_BYTES)
                    missed += [f"{address}: {max(complete):.0f} ms"] * (max(complete) > COMPLETE_MS)
        finally:
            server.terminate()
            server.join()
    return missed


def many(boards: int = MANY) -> int:
    with tempfile.TemporaryDirectory(prefix="fastenough-web-") as name:
        missed = many_missed(f"sqlite:///{name}/history.sqlite", boards)
    with running_server() as postgresql:
        missed += many_missed(postgresql.url, boards)
    print(json.dumps({"missed": missed}) if missed else "every bar was kept")
    return 1 if missed else 0


def main(count: int = 1000, seconds: float = 20.0) -> int:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(65536, most), most))
    with (
        tempfile.TemporaryDirectory(prefix="fastenough-web-") as name,
        socket.create_server(("127.0.0.1", 0), backlog=1024) as bound,
    ):
        folder = Path(name)
        farm = make_store(folder / "store", 8, 4, cpus=8, end_s=int(time.time()) // CYCLE_S * CYCLE_S)
        site = site_of(farm, folder)
        server = multiprocessing.Process(target=serve, args=(farm, folder, bound))
        server.start()
        try:
            missed = measured(Served(site, farm, bound.getsockname()[1]), farm, folder, count, seconds)
        finally:
            server.terminate()
            server.join()
    print(json.dumps({"missed": missed}) if missed else "every bar was kept")
    return 1 if missed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["many"]:
        sys.exit(many(*map(int, sys.argv[2:])))
    sys.exit(many() | main(*(kind(said) for kind, said in zip((int, float), sys.argv[1:], strict=False))))
