# SPDX-License-Identifier: GPL-2.0-or-later
"""The website in a browser: every page is drawn, without an error, accessible, and the same when it is opened again."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

from fastenough.farm.judging import verdicts_on
from fastenough.history import declare
from fastenough.store.conclusions import conclusions
from fastenough.web.pages import PAGES
from fastenough.web.published import publish
from fastenough.web.site import HTML, JSON
from tests.support.browser import AXE
from tests.support.farm_data import LIMIT_NS, FarmData
from tests.support.tools import require
from tests.support.websites import Served, serving, site_of

pytestmark = pytest.mark.untimed

MOST_ON_THE_WIRE = 150_000


@pytest.fixture(scope="module")
def served(website: Served) -> Served:
    return website


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    require("chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield found
        found.close()


def addresses(data: FarmData) -> list[str]:
    run, before = data.injected.run, data.store.runs(board=data.injected.board)[0].id
    concluded = next(one.id for one in conclusions(data.store) if one.board == data.injected.board)
    return [
        "/",
        f"/board/{data.injected.board}/",
        f"/run/{run}/",
        f"/conclusion/{concluded}/",
        f"/compare?base={before}&other={run}",
        "/live",
        "/compare",
        "/nowhere",
    ]


@contextmanager
def opened(browser: Browser, url: str, *, width: int = 1400, dark: bool = False, **more: Any) -> Iterator[Page]:
    """A page that is drawn; what its console complains of fails the test."""
    said: list[str] = []
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", **more
    )
    page = context.new_page()
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda line: said.append(line.text) if line.type in ("error", "warning") else None)
    answer = page.goto(url)
    if more.get("java_script_enabled", True) and page.query_selector("script[src$='site.js'] ~ script"):
        page.wait_for_selector("body[data-drawn]", state="attached")
        assert page.get_attribute("body", "data-failed") is None
    yield page
    context.close()
    assert answer is not None
    assert [line for line in said if answer.status == 200 or "404" not in line] == []


def until(page: Page, met: Callable[[], bool]) -> None:
    """Wait while the page works."""
    for _ in range(600):
        if met():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it did not happen")


def axe(page: Page) -> list[str]:
    if not AXE.exists():
        pytest.fail("axe-core is not there, though setup/npm has it; run: setup/install test")
    page.add_script_tag(content=AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [f"{fault['id']}: {node['html'][:200]}" for fault in found for node in fault["nodes"]]


@pytest.mark.parametrize(("width", "dark"), [pytest.param(1400, False, marks=pytest.mark.slow), (390, True)])
def test_every_page_is_drawn_and_accessible(browser: Browser, served: Served, width: int, dark: bool) -> None:
    for address in addresses(served.farm):
        with opened(browser, served.url + address, width=width, dark=dark, bypass_csp=True) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
            assert axe(page) == [], address


@pytest.mark.slow
def test_a_name_without_a_blank_is_no_wider_than_a_telephone(browser: Browser, served: Served, tmp_path: Path) -> None:
    site, name = site_of(served.farm, tmp_path), "L" * 199
    declare(site.history, name, public=True, rack="x" * 199, reason="y" * 199)
    with serving(site, served.farm) as found:
        for address in ("/", f"/board/{name}/", "/live"):
            with opened(browser, found.url + address, width=390) as page:
                assert page.evaluate("document.documentElement.scrollWidth") <= 390, address


def test_a_figure_follows_the_width_of_the_page(browser: Browser, served: Served) -> None:
    run = served.farm.injected.run
    with opened(browser, f"{served.url}/run/{run}/", width=1400, bypass_csp=True) as page:
        plot = page.locator("#distribution .uplot")
        wide = plot.bounding_box()
        page.set_viewport_size({"width": 390, "height": 800})
        page.wait_for_function("document.querySelector('#distribution .uplot')?.clientWidth <= 390")
        narrow = plot.bounding_box()
        assert wide is not None and narrow is not None and wide["width"] > 2 * narrow["width"] > 560


def shown(page: Page) -> tuple[str, str, str]:
    return (
        page.inner_text("[data-span][aria-pressed=true]"),
        page.inner_text("#selection"),
        page.inner_text("#plot-range"),
    )


def test_what_is_looked_at_stands_in_the_address(browser: Browser, served: Served) -> None:
    one = served.farm.injected
    with opened(browser, f"{served.url}/board/{one.board}/") as page:
        assert page.is_hidden("#selection")
        page.click("[data-span='7d']")
        page.wait_for_selector("[data-span='7d'][aria-pressed=true]")
        page.wait_for_load_state("networkidle")
        page.wait_for_selector("#maxima .u-over")
        box = page.locator("#maxima .u-over").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] * 0.86, box["y"] + 50)  # the day that was measured is the last of seven
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.999, box["y"] + 60, steps=4)
        page.mouse.up()
        page.wait_for_selector("#selection:not([hidden]) td >> text=irq/27-i915")
        page.wait_for_selector("#selected-events >> text=5,000")
        page.wait_for_selector("#plot-range >> text=UTC")
        page.wait_for_load_state("networkidle")
        before, address = shown(page), page.url
    assert "begin=" in address and "span=7d" in address
    with opened(browser, address) as page:
        assert shown(page) == before
        page.click("#zoom")
        page.wait_for_load_state("networkidle")
        assert "zoom=1" in page.url
        page.click("#unselect")
        page.wait_for_selector("#selection", state="hidden")
        assert "begin" not in page.url


def held(page: Page, pattern: str) -> list[Route]:
    """Requests that get no answer until somebody continues them."""
    routes: list[Route] = []

    def hold(route: Route) -> None:
        routes.append(route)

    page.route(pattern, hold)
    return routes


def test_an_answer_that_comes_too_late_is_not_shown(browser: Browser, served: Served) -> None:
    """A selection, or a span, that the reader has left while the server answered."""
    with opened(browser, f"{served.url}/board/{served.farm.injected.board}/") as page:
        selections, spans = held(page, "**/selection.json*"), held(page, "**/maxima-7d.json")
        page.evaluate("void go(view().span, {begin: maxima.begin_s, end: maxima.end_s})")
        until(page, lambda: len(selections) == 1)
        page.click("[data-span='7d']")
        until(page, lambda: len(spans) == 1)
        page.evaluate("go('24h', null)")
        before = page.inner_html("main")
        with page.expect_response("**/selection.json*"), page.expect_response("**/maxima-7d.json"):
            selections[0].continue_()
            spans[0].continue_()
        page.wait_for_timeout(500)
        assert page.is_hidden("#selection") and page.inner_html("main") == before
        assert page.evaluate("[maxima.end_s - maxima.begin_s, heat.end_s - heat.begin_s]") == [86400, 86400]


def test_the_heat_map_of_all_boards_is_that_of_the_span_asked_for_last(browser: Browser, served: Served) -> None:
    with opened(browser, served.url + "/") as page:
        late = held(page, "**/heat-7d.json*")
        page.click("[data-span='7d']")
        until(page, lambda: len(late) == 1)
        page.evaluate("say('span', '24h'), drawHeat()")
        before = page.inner_html("main")
        with page.expect_response("**/heat-7d.json*"):
            late[0].continue_()
        page.wait_for_timeout(500)
        assert page.inner_html("main") == before


def test_a_page_is_drawn_whatever_its_address_asks_for(browser: Browser, served: Served) -> None:
    board = f"{served.url}/board/{served.farm.injected.board}/"
    for asked in ("begin=NaN&end=5", "begin=99999999999999&end=999999999999999", "span=%00&begin=-5&end=x"):
        with opened(browser, f"{board}#{asked}") as page:
            assert page.is_hidden("#selection")


def test_boards_are_found_and_the_filter_stands_in_the_address(browser: Browser, served: Served) -> None:
    with opened(browser, served.url + "/") as page:
        page.fill("[data-filter='text']", served.farm.injected.board)
        assert page.locator("#boards tbody tr:visible").count() == 1
        address = page.url
    with opened(browser, address) as page:
        assert page.locator("#boards tbody tr:visible").count() == 1
        assert page.inner_text("#matching") == f"1 of {len(served.farm.boards) - 1} boards"


def test_the_former_name_of_a_state_in_the_address_is_replaced(
    browser: Browser, served: Served, tmp_path: Path
) -> None:
    site = site_of(served.farm, tmp_path)
    declare(site.history, served.farm.silent, state="reserved", reason="reserved by desk/somebody")
    with serving(site, served.farm) as found:
        for address in ("#state=lent&sort=1", "#state=reserved&sort=1"):
            with opened(browser, f"{found.url}/{address}") as page:
                rows = page.locator("#boards tbody tr:visible")
                assert rows.evaluate_all("rows => rows.map(row => row.dataset.board)") == [served.farm.silent]
                assert page.input_value("[data-filter='state']") == "reserved"
                assert page.url == f"{found.url}/#state=reserved&sort=1"
                page.evaluate("location.hash = '#state=lent'")
                page.wait_for_function("location.hash === '#state=reserved'")


def test_the_span_of_the_first_page_is_that_of_its_bars_and_its_figure(browser: Browser, served: Served) -> None:
    bars = f"tr[data-board={served.farm.injected.board}] svg.spark path"
    with opened(browser, served.url + "/") as page:
        assert page.inner_text("#over") == "Maxima over 30d"
        month = page.get_attribute(bars, "d") or ""
        assert page.get_attribute("a[data-files]", "href") == "heat-30d.json"
        page.click("[data-span='24h']")
        page.wait_for_selector("#over >> text=24h")
        day, address = page.get_attribute(bars, "d") or "", page.url
        assert page.get_attribute("a[data-files]", "href") == "heat-24h.json"
    assert day.count("M") > month.count("M") and day.count("V0") == month.count("V0") == 1  # the latency of 5 ms
    with opened(browser, address) as page:
        assert page.get_attribute(bars, "d") == day


def test_figures_are_kept_as_svg(browser: Browser, served: Served, tmp_path: Path) -> None:
    with opened(browser, f"{served.url}/board/{served.farm.injected.board}/") as page:
        for name in ("maxima", "heat", "distribution", "ridge"):
            with page.expect_download() as told:
                page.click(f"[data-svg='{name}']")
            told.value.save_as(tmp_path / name)
            svg = (tmp_path / name).read_text()
            assert svg.startswith("<svg ") and svg.endswith("</svg>\n") and "NaN" not in svg and len(svg) > 1000
            assert told.value.suggested_filename == f"{served.farm.injected.board}-{name}.svg"


def test_a_board_page_is_light_and_quickly_drawn(browser: Browser, served: Served) -> None:
    with opened(browser, f"{served.url}/board/{served.farm.injected.board}/") as page:
        sizes = page.evaluate(
            "[...performance.getEntriesByType('resource'), ...performance.getEntriesByType("
            "'navigation')].map(one => one.transferSize)"
        )
    assert len(sizes) > 8
    assert sum(sizes) < MOST_ON_THE_WIRE


def test_figures_are_whole_on_paper(browser: Browser, served: Served) -> None:
    """Paper is narrower than the window they were drawn in: they are made smaller, and not cut off."""
    script = """() => { const main = document.querySelector('main'); main.style.width = '680px';
        const right = main.getBoundingClientRect().right;
        return [...document.querySelectorAll('.drawing canvas')].map(one => one.getBoundingClientRect())
            .map(one => [one.right - right, one.width / one.height]) }"""
    with opened(browser, f"{served.url}/board/{served.farm.injected.board}/") as page:
        shapes = page.evaluate("[...document.querySelectorAll('.drawing canvas')].map(one => one.width / one.height)")
        page.emulate_media(media="print")
        found = page.evaluate(script)
    assert len(found) == len(shapes) == 4
    assert [beyond for beyond, _ in found if beyond > 1] == []
    assert [shape for _, shape in found] == pytest.approx(shapes, rel=0.02)


def test_pages_say_the_same_without_scripts(browser: Browser, served: Served) -> None:
    with opened(browser, f"{served.url}/board/{served.farm.injected.board}/", java_script_enabled=False) as page:
        assert "5,000" in page.inner_text("#events") and page.is_visible("noscript p")
    with opened(browser, served.url + "/", java_script_enabled=False) as page:
        assert page.is_hidden("form.filters")
        assert page.locator("#boards tbody tr:visible").count() == len(served.farm.boards) - 1


@contextmanager
def files_served(folder: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_the_published_site_draws_without_a_server(browser: Browser, served: Served, tmp_path: Path) -> None:
    site = replace(served.site, served=False, note="made up")
    publish(site, tmp_path, [page for page in PAGES if page.kind in (HTML, JSON) and "{run}" not in page.pattern])
    one = served.farm.injected
    with files_served(tmp_path) as url:
        for address in ("/", f"/board/{one.board}/"):
            with opened(browser, url + address) as page:
                assert page.locator("canvas").count() > 0 and "made up" in page.inner_text(".sitenote")
                assert axe(page) == []
        chosen = f"#span=24h&begin={one.begin_s - 3600}&end={one.begin_s + 3600}"
        with opened(browser, f"{url}/board/{one.board}/{chosen}") as page:
            assert "5,000" in page.inner_text("#selected-events")
            assert "Whole cycles" in page.inner_text("#plot-range")


def test_the_overview_answers_which_board_stays_within_a_limit(browser: Browser, served: Served) -> None:
    def boards(page: Page) -> list[tuple[str, float]]:
        found = page.evaluate("""[...document.querySelectorAll("#boards tbody tr")].filter(row => !row.hidden)
            .map(row => [row.dataset.board, +row.cells[5].textContent.replaceAll(",", "")])""")
        return [(name, value) for name, value in found]

    with opened(browser, served.url) as page:
        every = boards(page)
        page.fill("[data-filter=within]", "100")
        page.click("#boards thead th:nth-child(6) button")
        within, address = boards(page), page.url
    assert set(within) == {one for one in every if one[1] <= 100} != set(every)
    assert [value for _, value in within] == sorted(value for _, value in within)
    with opened(browser, address, width=390, bypass_csp=True) as page:
        assert boards(page) == within, "filter and order stand in the address"
        page.click("#boards thead th:nth-child(6) button")
        assert boards(page) == within[::-1]
        row = "#boards tbody tr:not([hidden])"
        assert page.is_visible(f"{row} td[data-value=max_30d_ns]") and page.is_visible(f"{row} td:nth-child(7)")
        assert axe(page) == []


def test_an_open_page_shows_one_verdict(browser: Browser, served: Served, tmp_path: Path) -> None:
    farm, site = served.farm, site_of(served.farm, tmp_path)
    name = next(
        board for board in farm.boards if board not in (farm.injected.board, farm.changed, farm.silent, farm.private)
    )
    judged = verdicts_on(farm.store, name, {"limit_ns": LIMIT_NS})

    def judge(verdict: str, reason: str) -> None:
        declare(site.history, name, **(judged | {"verdict": verdict, "verdict_reason": reason}))

    def verdict_of(page: Page) -> str:
        return page.inner_text(f"tr[data-board={name}] > td:nth-child(9), .verdict > .word")

    with serving(site, farm) as found:
        judge("PASS", "long enough")
        with opened(browser, f"{found.url}/") as overview, opened(browser, f"{found.url}/board/{name}/") as board:
            assert verdict_of(overview) == verdict_of(board) == "PASS"
            assert "long enough" in board.inner_text(".verdict")
            assert "FAIL" not in overview.inner_text(".counts")
            judge("FAIL", "two above")
            until(overview, lambda: verdict_of(overview) == "FAIL")
            until(overview, lambda: "1 FAIL" in overview.inner_text(".counts"))
            assert overview.get_attribute(f"tr[data-board={name}]", "data-state") == "FAIL"
            until(board, lambda: "two above" in board.inner_text(".verdict"))
            assert verdict_of(board) == "FAIL" and "FAIL" in board.inner_text("h1")


RENEWALS = """async text => {
  let renewals = 0;
  fetch = async () => new Response(text);
  await renew(() => renewals++);
  return renewals;
}"""
"""How often the page is renewed if the server answers with a text."""


@pytest.mark.parametrize("whole", [True, False])
def test_an_answer_that_is_another_page_changes_nothing(browser: Browser, served: Served, whole: bool) -> None:
    """A proxy may answer with its sign-in page; without any board, the page has no table."""
    address = "/" if whole else f"/board/{served.farm.injected.board}/"
    others = ("<h1>Sign in</h1>", '<h1 data-board="other">other</h1>', "")
    with opened(browser, served.url + address) as page:
        before = page.inner_html("main")
        for other in others:
            assert page.evaluate(RENEWALS, other) == 0 and page.inner_html("main") == before
        board = f'<h1 data-board="{served.farm.injected.board}"></h1>'
        assert page.evaluate(RENEWALS, '<h1 data-renew="total">0 boards</h1>' if whole else board) == 1
        assert page.inner_text("#boards tbody" if whole else "#verdict") == ""


def test_the_place_of_an_archive_is_stated_without_options(browser: Browser, served: Served) -> None:
    """DuckDB takes no option after the folder of an object store."""
    missing = [{"begin_s": 0, "end_s": 300, "query": "SELECT 1"}]
    with opened(browser, f"{served.url}/board/{served.farm.injected.board}/") as page:
        page.evaluate("missing => showMissing(at('plot-missing'), missing)", missing)
        assert '"?"' in page.inner_text("#plot-missing .note") and page.inner_text("#plot-missing pre") == "SELECT 1"


def test_one_absurd_value_flattens_no_figure(browser: Browser, served: Served) -> None:
    with opened(browser, f"{served.url}/board/{served.farm.injected.board}/") as page:
        high, most = page.evaluate("""(() => { const said = reach([[20000, 10**9], [2**41, 1]], 100000);
                                               return [said.high, said.most]; })()""")
        assert (high, most) == (100 * 100_000, 2**41)
        near = page.evaluate("reach([[20000, 10**9], [5e6, 1]], 100000).high")
        assert near == 5e6, "what is not absurd is inside"
        ticks = page.evaluate("""[...latencyTicks({log: true, low: 3.1, high: 9000}),
                                  ...latencyTicks({log: false, high: 37})]""")
        assert all(float(f"{tick:.0e}") == tick for tick in ticks)
