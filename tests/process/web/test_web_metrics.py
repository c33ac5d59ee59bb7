# SPDX-License-Identifier: GPL-2.0-or-later
"""What other programs read of all boards: metrics with their rules, badges, JUnit XML, Markdown."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fastenough.history import (
    OWNER,
    PUBLIC,
    History,
    UnknownBoard,
    catch_up,
    declare,
    note_refused,
    requirement_text,
)
from fastenough.model import FastenoughError, Requirement
from fastenough.store.conclusions import conclusions
from fastenough.web.pages import PAGES
from fastenough.web.pages import board as board_page
from fastenough.web.pages.badge import badge, junit, markdown
from fastenough.web.pages.metrics import FAMILIES, metrics
from fastenough.web.site import NotFound, Site
from tests.support.farm_data import END_S, INJECTED_NS, LIMIT_NS, FarmData, make_store
from tests.support.tools import require

pytestmark = pytest.mark.untimed

PROMETHEUS = Path(__file__).resolve().parents[3] / "packaging/prometheus"
_SAMPLE = re.compile(r"(?P<name>[a-z0-9_]+)\{(?P<labels>.*)\} (?P<value>\S+)")


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> tuple[FarmData, History]:
    folder = tmp_path_factory.mktemp("farm")
    data = make_store(folder / "store", boards=5, days=1)
    history = History.at(f"sqlite:///{folder}/history.sqlite")
    catch_up(history, data.store)
    data.declare(history)
    judged_by = requirement_text(Requirement(LIMIT_NS))
    declare(history, data.boards[0], verdict="PASS", verdict_reason="nothing above 100 µs", judged_by=judged_by)
    why = "1 of 9 <b>took</b> longer | & more"
    declare(history, data.injected.board, verdict="FAIL", verdict_reason=why, judged_by=judged_by)
    return data, history


def site(farm: tuple[FarmData, History], after_s: int = 60, *, owner: bool = False) -> Site:
    data, history = farm
    return Site(history, OWNER if owner else PUBLIC, data.store, now=lambda: END_S + after_s)


def samples(text: bytes) -> Iterator[tuple[str, dict[str, str], float]]:
    for line in text.decode().splitlines():
        if not line.startswith("#"):
            found = _SAMPLE.fullmatch(line)
            assert found is not None, line
            yield found["name"], dict(re.findall(r'(\w+)="([^"]*)"', found["labels"])), float(found["value"])


def of(text: bytes, name: str) -> dict[str, float]:
    return {labels["board"]: value for found, labels, value in samples(text) if found == name}


@pytest.mark.slow
def test_metrics_say_how_each_board_stands(farm: tuple[FarmData, History]) -> None:
    data, _ = farm
    text = metrics(site(farm))
    public = set(data.boards) - {data.private}
    assert text.endswith(b"# EOF\n")
    assert {name for name, _, _ in samples(text)} <= set(FAMILIES)
    assert of(text, "fastenough_board_maximum_ever_seconds")[data.injected.board] == INJECTED_NS / 1e9
    assert of(text, "fastenough_board_maximum_30d_seconds")[data.injected.board] == INJECTED_NS / 1e9
    assert set(of(text, "fastenough_board_seen_timestamp_seconds")) == public
    assert of(text, "fastenough_board_limit_seconds") == {name: LIMIT_NS / 1e9 for name in public}
    states = {
        labels["board"]: labels["state"]
        for name, labels, value in samples(text)
        if name == "fastenough_board_state" and value == 1
    }
    assert states[data.injected.board] == "FAIL"
    assert states[data.silent] == "silent"
    assert set(states) == public


@pytest.mark.slow
def test_recordings_that_were_not_taken_are_counted_and_on_the_page(tmp_path: Path) -> None:
    data = make_store(tmp_path / "store", boards=4, days=1)
    with closing(History.at(f"sqlite:///{tmp_path}/history.sqlite")) as history:
        catch_up(history, data.store)
        data.declare(history)
        declare(history, "new", public=True)
        history.wall_s = lambda: END_S
        rows = [("ring-1.jsonl", "refused", "a line has <b>no</b> end"), ("run-2", "damaged", "line 7 is no JSON")]
        for name in (data.boards[0], "new"):
            note_refused(history, name, rows)
        found = site((data, history))
        counts = of(metrics(found), "fastenough_board_refused_recordings")
        assert {name: count for name, count in counts.items() if count} == {data.boards[0]: 2, "new": 2}
        for name in (data.boards[0], "new"):
            shown = board_page.view(found, name)
            assert {(one.name, one.kind, one.reason) for one in shown.refused} == set(rows)
        assert "ring-1.jsonl" in shown.status.reason or "run-2" in shown.status.reason


def test_metrics_are_openmetrics_that_prometheus_reads(farm: tuple[FarmData, History]) -> None:
    require("promtool")
    text = metrics(site(farm))
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr.decode()
    named = [line.split()[2] for line in text.decode().splitlines() if line.startswith("# TYPE")]
    assert len(named) == len(set(named)) == len(FAMILIES)


def test_the_rules_do_what_they_say() -> None:
    require("promtool")
    for arguments in (["check", "rules", "rules.yml"], ["test", "rules", "rules.test.yml"]):
        done = subprocess.run(["promtool", *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_rules_and_dashboard_ask_for_metrics_that_there_are() -> None:
    recorded = set(re.findall(r"record: (\S+)", (PROMETHEUS / "rules.yml").read_text()))
    dashboard = json.loads((PROMETHEUS / "dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    asked += re.findall(r"expr: ((?:.|\n {10})*)", (PROMETHEUS / "rules.yml").read_text())
    asked += re.findall(r"label_values\((\w+)", json.dumps(dashboard["templating"]))
    assert len(asked) > 10
    named = {name for text in asked for name in re.findall(r"\bfastenough[a-z0-9_:]*", text)}
    assert named
    assert named <= set(FAMILIES) | recorded
    assert recorded


def test_a_badge_says_verdict_n_and_date(farm: tuple[FarmData, History]) -> None:
    data, _ = farm
    shown = badge(site(farm), data.boards[0]).decode()
    ElementTree.fromstring(shown)
    assert f"{data.boards[0]}: PASS ≤ 100 µs, maximum" in shown
    assert re.search(r"n = [\d.,]+ million, 2026-09-21", shown)
    assert "script" not in shown and "style=" not in shown
    assert "✕ FAIL" in badge(site(farm), data.injected.board).decode()
    assert "no verdict" in badge(site(farm), data.changed).decode()


def test_an_old_verdict_is_called_stale(farm: tuple[FarmData, History]) -> None:
    data, _ = farm
    shown = badge(site(farm, 2 * 86400), data.boards[0]).decode()
    assert "STALE" in shown
    assert "PASS" not in shown
    assert b"<error" in junit(site(farm, 2 * 86400), data.boards[0])


@pytest.mark.parametrize(("which", "element"), [("first", None), ("injected", "failure"), ("changed", "error")])
def test_only_a_pass_is_a_test_that_passed(farm: tuple[FarmData, History], which: str, element: str | None) -> None:
    data, _ = farm
    name = {"first": data.boards[0], "injected": data.injected.board, "changed": data.changed}[which]
    case = ElementTree.fromstring(junit(site(farm), name)).find(".//testcase")
    assert case is not None
    assert [child.tag for child in case if child.tag != "system-out"] == ([element] if element else [])


def test_markdown_has_no_markup_but_its_own(farm: tuple[FarmData, History]) -> None:
    data, _ = farm
    text = markdown(site(farm), data.injected.board).decode()
    assert text.count("\n|") == 2
    assert r"\<b\>took\</b\>" in text
    assert r"\| \& more" in text
    assert "5,000 µs" in text


def test_a_board_that_is_not_public_is_at_no_address(farm: tuple[FarmData, History]) -> None:
    """Every page of the table, for every board and run there is, but for the private one's own: none names it."""
    data, _ = farm
    private_runs = [run.id for run in data.store.runs(board=data.private)]
    names = [data.boards[0], data.private, "never-was"]
    runs = [data.store.runs(board=names[0])[0].id, private_runs[0], "never-was"]
    concluded = [*(one.id for board in names[:2] for one in conclusions(data.store) if one.board == board), "never-was"]
    hidden = re.compile(rf"\b({data.private}|{'|'.join(private_runs)})\b".encode())
    for page in PAGES:
        for name in names if "{name}" in page.pattern else [""]:
            for run in runs if "{run}" in page.pattern else concluded if "{conclusion}" in page.pattern else [""]:
                given: dict[str, object] = {
                    key: value
                    for key, value in (("name", name), ("run", run), ("conclusion", run), ("span", "24h"))
                    if f"{{{key}}}" in page.pattern
                }
                if page.asks:
                    given["query"] = ()
                secret = data.private in given.values() or run in private_runs or run == concluded[1]
                try:
                    shown = page.make(site(farm), **given)
                except (NotFound, UnknownBoard):
                    continue
                except FastenoughError as error:
                    assert not hidden.search(str(error).encode()), page.pattern
                    continue
                assert not secret, f"{page.pattern} shows {given}"
                assert not hidden.search(shown), f"{page.pattern} {given}"
    assert data.private in metrics(site(farm, owner=True)).decode()
