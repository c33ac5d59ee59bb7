# SPDX-License-Identifier: GPL-2.0-or-later
"""The website: every page of its table, what it says, who may see it, and the same as files."""

from __future__ import annotations

import csv
import html
import http.client
import io
import json
import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import numpy as np
import pyarrow.parquet as pq
import pytest
from sqlalchemy import event

from fastenough.analysis import measure, merge_samples
from fastenough.exchange import read_import, read_source, recording_lines
from fastenough.history import (
    NOTHING,
    OWNER,
    PUBLIC,
    History,
    MaximaSeries,
    board_of,
    catch_up,
    declare,
    maxima,
)
from fastenough.history.board_status import boards_of_runs
from fastenough.history.results import BoardCondition
from fastenough.model import BadInput
from fastenough.recording.building import line_bytes
from fastenough.report import plot
from fastenough.store import Store
from fastenough.store.conclusions import conclusions
from fastenough.web.addresses import is_loopback, name_of_part, path_part
from fastenough.web.asset_files import assets
from fastenough.web.pages import PAGES
from fastenough.web.pages import board as board_page
from fastenough.web.pages import run as run_page
from fastenough.web.published import addresses, publish
from fastenough.web.rendering import since
from fastenough.web.site import HTML, JSON, NotFound, Page, Site, summary_of
from fastenough.web.spans import SPANS, coarser, drawable_step
from tests.support.farm_data import LIMIT_NS, FarmData
from tests.support.monitor_recordings import Watched, lines
from tests.support.websites import Answer, Served, serving, site_of
from tests.unit.history.test_history_tail import give_cycles

pytestmark = pytest.mark.untimed

CASES = Path(__file__).parents[2] / "cases/exchange"
ONLY_SERVED = re.compile(r' ?<a class="served".*?</a>')


@pytest.fixture(scope="module")
def served(website: Served) -> Served:
    return website


@pytest.fixture(scope="module")
def data(website: Served) -> FarmData:
    return website.farm


@pytest.fixture(scope="module")
def walked(served: Served) -> dict[str, Answer]:
    """What is answered at every address that is published."""
    return {address: served.get(address) for address, _ in addresses(served.site)}


@pytest.mark.slow
def test_every_page_is_served_and_safe(served: Served, walked: dict[str, Answer]) -> None:
    kinds = {page.kind for page in PAGES}
    assert len(walked) > 60
    for address, answer in walked.items():
        assert (address, answer.status) == (address, 200)
        assert answer.headers["content-type"] in kinds
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        if answer.headers["content-type"] == JSON:
            json.loads(answer.body)
        if answer.headers["content-type"] == HTML:
            assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son[a-z]+=", answer.text), address
    for asset in assets():
        assert served.get(f"/assets/{asset}").status == 200


def injected_numbers(served: Served, data: FarmData) -> Iterator[tuple[str, Any]]:
    """The greatest latency of the board with the injected one, wherever a page, a file or an event says it."""
    board, at = data.injected.board, f"/board/{data.injected.board}"
    rows = {one["board"]["name"]: one for one in served.get("/index.json").json["boards"]}
    yield "overview", rows[board]["max_24h_ns"]
    yield "overview, ever", rows[board]["max_ever_ns"]
    told = csv.DictReader(io.StringIO(served.get("/boards.csv").text))
    yield "overview's CSV", next(int(row["max_24h_ns"]) for row in told if row["board"] == board)
    yield "all boards' heat map", max(filter(None, served.get("/heat-24h.json").json["boards"][board]))
    yield "board", served.get(f"{at}/index.json").json["status"]["max_30d_ns"]
    for span in SPANS:
        maxima = served.get(f"{at}/maxima-{span}.json").json
        yield f"maxima {span}", max(value for line in maxima["cpus"].values() for value in line if value is not None)
    table = list(csv.DictReader(io.StringIO(served.get(f"{at}/maxima-24h.csv").text)))
    column = f"cpu{data.injected.cpu}_max_ns"
    yield "CSV", max(int(row[column]) for row in table if row[column])
    parquet = pq.read_table(io.BytesIO(served.get(f"{at}/maxima-24h.parquet").body)).to_pydict()
    yield "Parquet", max(value for value in parquet[column] if value is not None)
    plots = served.get(f"{at}/distribution-24h.json").json
    yield "latency plot", max(one["max_ns"] for one in plots["cpus"].values())
    yield "ridge", max(row["max_ns"] for row in served.get(f"{at}/ridge.json").json["rows"])
    yield (
        "ridge's CSV",
        max(
            int(row["upper_ns"]) >= data.injected.value_ns >= int(row["lower_ns"])
            for row in table_of(served, f"{at}/ridge.csv")
        )
        * data.injected.value_ns,
    )
    yield (
        "heat map's CSV",
        max(
            int(row["upper_ns"]) >= data.injected.value_ns >= int(row["lower_ns"])
            for row in table_of(served, f"{at}/heat-24h.csv")
        )
        * data.injected.value_ns,
    )
    metric = re.search(rf'fastenough_board_maximum_24h_seconds{{board="{board}"}} (\S+)', served.get("/metrics").text)
    assert metric is not None
    yield "metrics", round(float(metric[1]) * 1e9)
    yield "events", max(one["value_ns"] for one in served.get(f"{at}/events.json").json["events"])
    begin = data.injected.begin_s
    chosen = served.get(f"{at}/selection.json?begin={begin}&end={begin + 300}").json
    yield "selection", max(one["value_ns"] for one in chosen["events"])
    yield "selection's plot", max(one["max_ns"] for one in chosen["distribution"]["cpus"].values())
    of_run = served.get(f"/run/{data.injected.run}/plot.json").json
    yield "run's plot", max(one["max_ns"] for one in of_run["cpus"].values())
    yield "live", next(one for one in told_live(served)["boards"].items() if one[0] == board)[1]["max_24h_ns"]


def test_the_first_page_of_a_run_is_made_ready(served: Served, data: FarmData) -> None:
    """Also where the newest run is of a board that is not public."""
    (newest,) = data.store.runs(last=1)
    assert newest.board == data.private
    run_page._sealed.cache_clear()
    run_page.prepare(served.site)
    assert run_page._sealed.cache_info().currsize == 1


def test_a_board_page_says_what_is_not_excluded(served: Served, data: FarmData) -> None:
    """Of the present configuration alone, and by the CPU that was measured least."""
    told = served.get(f"/board/{data.changed}/index.json").json["rate_bound"]
    newest = [
        data.store.load(run.id)
        for run in data.store.runs(board=data.changed)
        if (run.begin_wall_ns or 0) >= data.changed_s * 10**9
    ]
    found = [[measure(merge_samples([(run, run.series[cpu])])) for run in newest] for cpu in range(data.cpus)]
    least = min(sum(one.n for one in of_cpu) for of_cpu in found)
    assert (told["begin_s"], told["changed"], told["n"]) == (data.changed_s, True, least)
    assert told["max_ns"] == max(one.maximum_ns or 0 for of_cpu in found for one in of_cpu)
    assert (1 - 1 / told["every"]) ** told["n"] == pytest.approx(0.05, rel=1e-3)
    text = served.get(f"/board/{data.injected.board}/").text
    assert "disturbances above 5,000 µs (95 % confidence): 1 in " in text and "in 30 days, all loads" in text


def table_of(served: Served, address: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(served.get(address).text)))


def told_live(served: Served) -> Any:
    """The first event of the stream."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.request("GET", "/events", headers={"Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["content-encoding"] is None
    lines = iter(answer.readline, b"")
    found = next(json.loads(line.removeprefix(b"data: ")) for line in lines if line.startswith(b"data: "))
    connection.close()
    return found


def test_tables_of_figures_hold_every_sample(served: Served, data: FarmData) -> None:
    at = f"/board/{data.injected.board}"
    samples = sum(one["n"] for one in served.get(f"{at}/distribution-7d.json").json["cpus"].values())
    for name in ("heat-7d", "ridge", "distribution-7d"):
        rows = table_of(served, f"{at}/{name}.csv")
        assert sum(int(row["count"]) for row in rows) == samples > 0, name
        packed = pq.read_table(io.BytesIO(served.get(f"{at}/{name}.parquet").body)).to_pylist()
        assert [{key: str(value) for key, value in row.items()} for row in packed] == rows


def test_one_injected_latency_is_the_same_number_everywhere(served: Served, data: FarmData) -> None:
    """An alert has it too: test_farm_alerts.py, whose farm has measured for the day that an alert asks for."""
    said = dict(injected_numbers(served, data))
    assert len(said) > 18
    assert {name: value for name, value in said.items() if value != data.injected.value_ns} == {}
    overview = served.get("/")
    assert '<td data-value="max_24h_ns" class="above" title="above the limit">5,000</td>' in overview.text
    assert overview.text.count('<b class="more">+4,9') == 1, "how far it is above what was seen before"
    page = served.get(f"/board/{data.injected.board}/").text
    assert "▲ new maximum" in page and "irq/27-i915" in page
    assert f"5,000 µs on CPU {data.injected.cpu}, above the limit" in page


def test_a_board_that_is_not_public_is_nowhere(served: Served, data: FarmData, walked: dict[str, Answer]) -> None:
    runs = [run.id for run in data.store.runs(board=data.private)]
    assert runs
    (concluded,) = (one.id for one in conclusions(data.store) if one.board == data.private)
    for page in PAGES:
        if "{name}" in page.pattern or "{run}" in page.pattern or "{conclusion}" in page.pattern:
            asks = "?begin=1&end=2" * page.asks
            address = page.pattern.format(name=data.private, run=runs[0], span="24h", conclusion=concluded) + asks
            unknown = page.pattern.format(name="nobody", run="nothing", span="24h", conclusion="none") + asks
            hidden, absent = served.get(address), served.get(unknown)
            assert (hidden.status, hidden.body) == (404, absent.body), address
    for address in ("/live", "/live.json", "/compare"):
        assert data.private.encode() not in served.get(address).body, address
    assert [address for address, answer in walked.items() if data.private.encode() in answer.body] == []
    assert data.private not in json.dumps(told_live(served))
    one = served.get(f"/compare?base={data.injected.run}&other={runs[0]}")
    other = served.get(f"/compare?base={data.injected.run}&other={runs[0][:-1]}x")
    assert one.status == other.status == 400
    assert one.text.replace(runs[0], "") == other.text.replace(f"{runs[0][:-1]}x", "")
    everything = replace(served.site, viewer=OWNER)
    assert any(f"/board/{data.private}/" == address for address, _ in addresses(everything))


def test_a_hidden_run_is_refused_after_the_same_questions_as_a_missing_one(data: FarmData, tmp_path: Path) -> None:
    """So that the time of a refusal does not tell which runs there are."""
    site = site_of(data, tmp_path)
    asked: list[str] = []
    for run in (data.store.runs(board=data.private)[0].id, "nothing"):
        questions: list[str] = []
        event.listen(site.history.engine, "before_cursor_execute", lambda *about, into=questions: into.append(about[2]))
        with pytest.raises(NotFound):
            summary_of(site, run)
        asked.append("\n".join(questions))
    assert asked[0] == asked[1] != ""


def test_what_is_asked_wrongly_is_said_in_one_line(served: Served, data: FarmData) -> None:
    at = f"/board/{data.injected.board}/selection.json"
    for query in (
        "",
        "?begin=x&end=2",
        "?begin=5&end=5",
        "?begin=1&end=99999999999",
        "?begin=-1&end=4",
        "?begin=999999999990&end=999999999999",
    ):
        answer = served.get(at + query)
        assert answer.status == 400 and "Traceback" not in answer.text
    assert served.get("/compare?base=a&other=a").status == 400
    assert served.get("/compare?base=a&other=b&other=c&other=d&other=e").status == 400
    assert served.get(f"/board/{data.injected.board}/maxima-2w.json").status == 404


HOSTILE = (
    "/../etc/passwd",
    "/assets/../server.py",
    "/assets/%2e%2e/server.py",
    "/assets/..%2f..%2fserver.py",
    "//",
    "///etc",
    "//evil.example/",
    "/%ff%fe",
    "/board/%2e%2e/%2e%2e/",
    "/board/..%2f..%2f/",
    "/board/%00/",
    "/board/" + "x" * 5000 + "/",
    "/history.sqlite",
    "/run/..%2f..%2fhistory.sqlite/recording.jsonl.zst",
    "/run/%2e%2e/recording.jsonl.zst",
    "/assets/site.css%00",
    "/board/a%0d%0aX-Injected:%20yes/",
    "/run/-rf/",
    "/board/$(id)/index.json",
)


def test_addresses_that_lead_elsewhere_are_nowhere(served: Served) -> None:
    nowhere = served.get("/nowhere")
    assert nowhere.status == 404
    for address in HOSTILE:
        answer = served.get(address)
        assert (answer.status, answer.body) == (404, nowhere.body), address
        assert "x-injected" not in answer.headers
    at = served.farm.injected.board
    for query in ("begin=%C2%B2&end=%C2%B3", "begin=1&end=" + "9" * 5000, "a=b&" * 2000, "begin=1%00&end=2"):
        assert served.get(f"/board/{at}/selection.json?{query}").status == 400


def test_only_who_asks_for_a_name_of_the_site_is_answered(served: Served) -> None:
    with serving(served.site, served.farm, names=["farm.example"]) as named:
        for host in (
            "127.0.0.1",
            "localhost",
            f"localhost:{named.port}",
            "[::1]:80",
            "192.0.2.7",
            "farm.example",
            "Farm.Example.:443",
        ):
            assert named.get("/", Host=host).status == 200, host
        for host in (
            "evil.example",
            "127.evil.example",
            "farm.example.evil.example",
            "",
            "[::1",
            "localhost.evil.example",
        ):
            for address in ("/", "/events", "/metrics", "/assets/site.css", "/nowhere"):
                answer = named.get(address, Host=host)
                assert answer.status in (400, 421) and served.farm.boards[0] not in answer.text, (host, address)


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.9.8.7", True),
        ("::1", True),
        ("localhost", True),
        ("127.evil.example", False),
        ("0.0.0.0", False),
        ("192.0.2.1", False),
    ],
)
def test_only_loopback_is_this_machine(host: str, own: bool) -> None:
    assert is_loopback(host) is own


def test_it_is_only_read(served: Served) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert served.get("/", method).status == 405
    whole, head = served.get("/"), served.get("/", "HEAD")
    assert (head.status, head.body) == (200, b"") and head.headers["etag"] == whole.headers["etag"]


def test_what_is_known_is_not_sent_again_and_text_is_packed(served: Served) -> None:
    plain, packed = served.get("/"), served.get("/", Accept_Encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip" and len(packed.body) < len(plain.body) / 2
    assert packed.headers["etag"] != plain.headers["etag"]
    again = served.get("/", Accept_Encoding="gzip", If_None_Match=packed.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert served.get("/", If_None_Match='"other"').status == 200


def test_a_query_behind_a_fragment_changes_no_cached_page(served: Served) -> None:
    """Browsers do not send '#'; others do, and the page for all readers was made from what is behind it."""
    assert "no-such-run" in served.get("/compare?#&base=no-such-run").text
    assert "no-such-run" not in served.get("/compare?").text


def test_what_fails_shows_nothing_of_itself(served: Served) -> None:
    def fails(site: Site) -> bytes:
        raise ZeroDivisionError("secret")

    with serving(served.site, served.farm, [Page("/fails", HTML, fails)]) as other:
        answer = other.get("/fails")
    assert answer.status == 500
    assert "secret" not in answer.text and "Traceback" not in answer.text


def test_a_clock_that_is_ahead_makes_nothing_look_fresh(served: Served, data: FarmData) -> None:
    """Seen from a time before all was measured; and from one at which a single board has not measured yet."""
    pages = {page.pattern: page for page in PAGES}
    before = replace(served.site, now=lambda: data.end_s - 6 * 3600)
    assert "CLOCK AHEAD: data until" in pages["/board/{name}/"].make(before, name=data.injected.board).decode()
    between = replace(served.site, now=lambda: data.end_s - 3600)
    assert json.loads(pages["/index.json"].make(between))["newest_s"] == data.end_s - 4 * 3600
    assert "STALE: data until" in pages["/"].make(between).decode()


def test_old_data_is_called_stale(served: Served, data: FarmData) -> None:
    assert "STALE" not in served.get("/").text
    with serving(replace(served.site, now=lambda: data.end_s + 1000), data) as later:
        assert "STALE: data until" in later.get("/").text
        assert "STALE: data until" in later.get(f"/board/{data.injected.board}/").text


def test_what_is_measured_on_no_schedule_is_never_stale(data: FarmData, tmp_path: Path) -> None:
    """The store of one machine, measured when its owner wants it."""
    history = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    assert not catch_up(history, data.store).faults
    page = next(page for page in PAGES if page.pattern == "/")
    for age_s, fresh in ((1000, True), (40 * 86400, True), (-6 * 3600, False)):
        now_s = data.end_s + age_s
        shown = page.make(Site(history, OWNER, data.store, now=partial(float, now_s))).decode()
        assert "STALE" not in shown and "data-scheduled" not in shown
        assert ("CLOCK AHEAD: data until" not in shown) == fresh


def test_hostile_names_are_text(data: FarmData, tmp_path: Path) -> None:
    site = site_of(data, tmp_path)
    hostile = '<img src=x onerror="alert(1)">&\x1b[31m'
    declare(site.history, hostile, public=True, rack="<i>", reason="</td><script>")
    with serving(site, data) as found:
        page = found.get("/").text
        assert "<img src=x" not in page and "<i>" not in page and "\x1b" not in page
        assert "&lt;img src=x onerror=" in page


def test_a_board_of_any_name_has_a_page(data: FarmData, tmp_path: Path) -> None:
    """As those behind ssh and labgrid have; the address is the same where the pages are files."""
    site, into = site_of(data, tmp_path), tmp_path / "site"
    names = ["ssh://root@10.0.0.2:22", "labgrid:a/b", "..", ".", "a b?c#d%20~41", "لوحة", "<img src=x>", "-x"]
    for name in names:
        declare(site.history, name, public=True)
    with serving(site, data) as found:
        for name in names:
            assert name_of_part(path_part(name)) == name
            (link,) = re.findall(rf'<a href="([^"]+)">{re.escape(html.escape(name))}</a>', found.get("/").text)
            assert html.escape(name) in found.get(f"/{link}").text and urljoin("/", link) == f"/{link}"
    publish(replace(site, served=False), into, [page for page in PAGES if page.pattern == "/board/{name}/"])
    public = set(data.boards) - {data.private}
    assert {name_of_part(path.name) for path in (into / "board").iterdir()} == public | set(names)
    assert all((into / "board" / path_part(name) / "index.html").is_file() for name in names)


@pytest.mark.slow
def test_the_published_site_is_the_served_one(served: Served, walked: dict[str, Answer], tmp_path: Path) -> None:
    into = tmp_path / "site"
    count = publish(replace(served.site, served=False), into)
    written = {path.relative_to(into).as_posix(): path.read_bytes() for path in into.rglob("*") if path.is_file()}
    assert len(written) == count + 1
    pages = {name: content for name, content in written.items() if not name.startswith(("assets/", "site-files"))}
    assert {f"/{name.removesuffix('index.html')}" for name in pages} == walked.keys()
    for name, content in pages.items():
        said = walked["/" + name.removesuffix("index.html")].body
        if name.endswith(".html"):
            said = ONLY_SERVED.sub("", said.decode()).encode()
        assert content == said, name
    for name, content in written.items():
        if name.endswith(".html"):
            for link in re.findall(r'(?:href|src)="([^"#]+)', content.decode()):
                if not link.startswith("data:"):
                    target = (into / name).parent / link
                    assert (target / "index.html" if link.endswith("/") else target).is_file(), (name, link)


def test_what_vanished_is_removed_and_nothing_else(data: FarmData, tmp_path: Path) -> None:
    site, into, gone = site_of(data, tmp_path), tmp_path / "site", data.injected.board
    pages = [page for page in PAGES if page.pattern in ("/", "/board/{name}/", "/run/{run}/recording.jsonl.zst")]
    publish(replace(site, served=False), into, pages)
    assert (into / "board" / gone / "index.html").is_file() and list((into / "run").glob(f"*{gone}*"))
    (into / "robots.txt").write_text("mine")
    declare(site.history, gone, public=False)
    publish(replace(site, served=False), into, pages)
    assert not (into / "board" / gone).exists() and not list((into / "run").glob(f"*{gone}*"))
    assert not any(gone.encode() in path.read_bytes() for path in into.rglob("*") if path.is_file())
    assert (into / "robots.txt").read_text() == "mine"
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious").write_text("")
    with pytest.raises(BadInput, match="other files"):
        publish(site, other)
    (other / "site-files.json").write_text('["../../precious"]')
    with pytest.raises(BadInput, match=r"site-files\.json is invalid"):
        publish(site, other)


def test_fewer_points_keep_the_greatest() -> None:
    values = np.random.default_rng(1).integers(NOTHING, 1000, 100)
    values[3], values[-1] = NOTHING, 5_000_000
    seen = MaximaSeries(np.arange(100) * 300, 300, {0: values})
    for each in (1, 7, 12, 100, 300):
        fewer = coarser(seen, 300 * each)
        assert fewer.step_s == 300 * each and fewer.times_s.size == fewer.values_ns[0].size == -(-100 // each)
        assert fewer.values_ns[0].tolist() == [values[at : at + each].max() for at in range(0, 100, each)]
    assert drawable_step(30 * 86400, 300) % 300 == 0 and 30 * 86400 / drawable_step(30 * 86400, 300) <= 800


def test_cycles_that_are_added_keep_every_sample(served: Served, data: FarmData) -> None:
    rows = served.get(f"/board/{data.injected.board}/ridge.json").json["rows"]
    plots = served.get(f"/board/{data.injected.board}/distribution-7d.json").json["cpus"].values()
    assert sum(sum(row["count"]) for row in rows) == sum(one["n"] for one in plots) > 0


def test_a_ridge_of_many_cycles_has_few_plots_and_every_sample(data: FarmData, tmp_path: Path) -> None:
    """500 plots in one figure cannot be told apart."""
    site, name = site_of(data, tmp_path), data.injected.board
    with serving(site, data) as found:
        few = found.get(f"/board/{name}/ridge.json").json
    give_cycles(site.history, name, [60_000] * 500)
    with serving(site, data) as found:
        many = found.get(f"/board/{name}/ridge.json").json
    assert few["cycles"] == 1 and len(many["rows"]) <= 40
    assert many["cycles"] * len(many["rows"]) >= 500
    assert sum(sum(row["count"]) for row in many["rows"]) == 500 * sum(few["rows"][0]["count"])


def test_the_style_sheet_has_the_colours_of_figures() -> None:
    style = assets()["site.css"][1].decode()
    light = style[: style.index("@media")]
    colours = dict(re.findall(r"--colour-(\d+): (#[0-9a-f]{6})", light))
    assert [colours[str(place)] for place in range(len(plot.COLOURS))] == list(plot.COLOURS)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0 s ago"),
        (59, "59 s ago"),
        (61, "1 min ago"),
        (7199, "119 min ago"),
        (7200, "2 h ago"),
        (172800, "2 days ago"),
    ],
)
def test_ages_are_never_understated_by_more_than_their_unit(seconds: float, said: str) -> None:
    assert since(seconds) == said


def test_an_imported_run_without_a_date_is_on_its_boards_page(tmp_path: Path) -> None:
    """Nobody says which board it is of, nor when it was measured: the board is neither fine nor silent."""
    source, store = read_source(CASES / "xenomai-3.txt"), Store(tmp_path / "store")
    writer = store.begin()
    for line in recording_lines(read_import(source), source, writer.id):
        writer.line(line_bytes(line))
    writer.end()
    history = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    catch_up(history, store)
    site = Site(history, OWNER, store)
    board = board_page.view(site, "unnamed")
    assert [(run.run, run.begin_s) for run in board.runs] == [(writer.id, 0)]
    assert board.status.state is BoardCondition.NO_DATA
    page = next(page for page in PAGES if page.pattern == "/board/{name}/").make(site, name="unnamed").decode()
    assert "1970" not in page and page.count(">unknown</") == 2
    assert run_page.view(site, writer.id).board.name == "unnamed"
    with pytest.raises(NotFound):
        run_page.view(replace(site, viewer=PUBLIC), writer.id)


def test_a_watched_run_is_drawn_by_its_longest_way(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    writer = store.begin()
    for line in lines(Watched(run_id=writer.id)):
        writer.line(line_bytes(line))
    writer.end()
    history = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    catch_up(history, store)
    seen = run_page.view(Site(history, OWNER, store), writer.id)
    drawn = json.loads(run_page._plot(Site(history, OWNER, store), writer.id))["cpus"]
    assert seen.plotted == "expiry-to-return" and seen.n == sum(one["n"] for one in drawn.values()) == 2 * 6 * 400
    board = board_of(history, OWNER, boards_of_runs(history, [writer.id])[writer.id])
    assert board.main == "monitor/expiry-to-return station=expiry-to-return"


def test_the_maximum_of_a_selected_range_is_among_its_values(served: Served, data: FarmData) -> None:
    """Also in the middle of a run, where nothing is above what came before and no event tells of anything."""
    name, hour_s = data.injected.board, 3600
    for begin_s in range(data.begin_s + hour_s, data.end_s, 5 * hour_s):
        chosen = served.get(f"/board/{name}/selection.json?begin={begin_s}&end={begin_s + hour_s}").json
        greatest = max(value for values in chosen["cpus"].values() for value in values if value is not None)
        assert max(one["value_ns"] for one in chosen["events"]) >= greatest


def test_live_strips_begin_with_what_was_measured_before(served: Served, data: FarmData) -> None:
    name = data.boards[0]
    values = served.get("/live.json").json["latest"][name]
    shown = maxima(served.site.history, OWNER, name, "timer/wakeup_corrected", data.end_s - 90 * 300, data.end_s + 360)
    told = [int(value) for value in shown.worst_ns if value != NOTHING]
    assert len(values) == 90
    assert [value for value in values if value is not None] == told[-len([one for one in values if one is not None]) :]
    assert f'data-latest="{values[0]},' in served.get("/live").text


def test_values_above_the_limit_are_marked_and_the_heat_map_knows_limits(served: Served, data: FarmData) -> None:
    page = served.get("/").text
    assert page.count('class="above"') == 2, "24 hours and 30 days of one board"
    heat = served.get("/heat-30d.json").json
    assert heat["limits_ns"] == dict.fromkeys(heat["boards"], LIMIT_NS)


def test_compared_runs_have_a_figure(served: Served, data: FarmData) -> None:
    first, second = [run.id for run in data.store.runs(board=data.boards[0])][:3:2]
    page = served.get(f"/compare?base={first}&other={second}").text
    found = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert found is not None
    assert b"base: max" in b64decode(found[1]) or b"<path" in b64decode(found[1])
