# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs and series of one kind are told apart by that in which they differ, on terminals of every width."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Unpack

import pytest

from fastenough.cli.listing import differing, in_words, shared
from fastenough.store import Store
from tests.support.cli_calls import fastenough
from tests.support.recordings import Plan, PlanFields, latencies, write
from tests.support.terminal import Terminal, screen

pytestmark = pytest.mark.untimed

PLANNED = tuple(f"timer interval={interval} priority=98, load none" for interval in ("200us", "1ms"))


def keep(store: Store, scratch: Path, *, origin: dict[str, object] | None = None, **more: Unpack[PlanFields]) -> str:
    """One run in a store, made by the real writer."""
    writer = store.begin(origin or {})
    plan = replace(Plan(latencies(1), run_id=writer.id), **more)
    for line in write(scratch, plan).read_bytes().splitlines(keepends=True):
        writer.line(line)
    writer.end()
    return writer.id


def test_only_what_differs_tells_things_apart() -> None:
    items = [{"cpu": 0, "size": 10, "way": "a"}, {"cpu": 1, "size": 10, "way": "a", "late": True}]
    assert shared(items) == {"size": 10, "way": "a"}
    assert list(map(in_words, differing(items))) == ["CPU 0", "CPU 1 late"]
    assert differing([]) == []


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one plan, and one that belongs to none."""
    home = tmp_path_factory.mktemp("variants")
    store = Store(home / "fastenough-data")
    for position in range(2):
        keep(
            store,
            home / "scratch",
            origin={"campaign": "c", "plan_sha256": "p", "position": position, "positions": 2, "planned": PLANNED},
        )
    keep(store, home / "scratch", head={"probe": "other"})
    return home


@pytest.mark.parametrize("columns", [80, 200])
def test_a_list_names_the_parameter_that_differs(home: Path, columns: int) -> None:
    with Terminal("list", cwd=home, columns=columns) as terminal:
        status, said = terminal.end()
    assert status == 0
    heading, *rows = [line for line in screen(said) if line]
    assert len(rows) == 3 and max(map(len, rows)) <= columns
    assert "interval=200us" in rows[0] and "interval=1ms" in rows[1] and "=" not in rows[2]
    assert "priority" not in said
    assert ("board" in heading) == (columns == 200)


@pytest.mark.slow
def test_many_campaigns_are_asked_for_at_once(home: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "fastenough-data")
    for number in range(22):
        keep(
            store,
            tmp_path / "scratch",
            values=latencies(1, intervals=1),
            origin={
                "campaign": f"c{number}",
                "plan_sha256": "p",
                "position": 0,
                "positions": 1,
                "planned": (PLANNED[number % 2],),
            },
        )
    listed = fastenough("list", cwd=tmp_path).stdout.decode()
    assert listed.count("interval=200us") == listed.count("interval=1ms") == 11


def test_cpus_stand_side_by_side_where_rows_are_too_wide(tmp_path: Path) -> None:
    """Eight of them at 80 columns, in blocks of as many as there is room for; no line is folded."""
    values = latencies(1, cpus=8, intervals=3)
    keep(Store(tmp_path / "fastenough-data"), tmp_path / "scratch", values=values)
    with Terminal("show", "last", cwd=tmp_path) as terminal:
        status, said = terminal.end()
    shown = screen(said)
    assert status == 0
    tables = [line.split("  ") for line in shown if line.lstrip().startswith("CPU ")]
    assert [cpu for line in tables for cpu in map(str.strip, line) if cpu] == [f"CPU {cpu}" for cpu in range(8)] * 2
    assert sum(line.startswith("99.9 %") for line in shown) == len(tables)
    assert max(len(line) for line in shown if ": from " not in line) <= 80
    worst_ns = [max(int(interval.max()) for interval in cpu) for cpu in values]
    printed_ns = [round(1000 * float(word)) for line in shown if line.startswith("max ") for word in line.split()[1:]]
    assert len(printed_ns) == 16 and all(map(int.__ge__, printed_ns, worst_ns * 2)), "none is rounded down"


@pytest.mark.slow
def test_what_series_share_is_said_once(tmp_path: Path) -> None:
    keep(Store(tmp_path / "fastenough-data"), tmp_path / "scratch", series={"labels": {"size": 4096}})
    for columns in ("80", "300"):
        shown = fastenough("show", "last", cwd=tmp_path, more={"COLUMNS": columns}).stdout.decode()
        assert shown.count("size=4096") == 2, "once for each name of a series"
        assert "CPU 0" in shown and "CPU 1" in shown


def test_a_refused_series_is_told_with_its_reason(tmp_path: Path) -> None:
    keep(Store(tmp_path / "fastenough-data"), tmp_path / "scratch", values=[[]], series={"refused": "too large"})
    shown = fastenough("show", "last", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert b"refused: too large" in shown.stdout
