# SPDX-License-Identifier: GPL-2.0-or-later
"""A list of runs asks the index, not the runs: what it costs does not multiply with what a run is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fastenough.store import RunSummary, Store, index
from fastenough.store.campaign import newest_campaign
from fastenough.store.directory import RUN_FILE
from tests.process.store.test_store_runs import keep_run
from tests.support.cli_calls import environment, fastenough
from tests.support.index_statements import each_statement

pytestmark = pytest.mark.untimed


def copies(store: Store, run: str, count: int) -> list[str]:
    """As many runs as that one, under other ids."""
    source = store.path / "runs" / run
    summary = json.loads((source / RUN_FILE).read_text())
    made = []
    for number in range(count):
        name = f"20250101T000000000Z-{number:06x}"
        (store.path / "runs" / name).mkdir()
        for file in source.iterdir():
            content = json.dumps(summary | {"id": name}).encode() if file.name == RUN_FILE else file.read_bytes()
            (store.path / "runs" / name / file.name).write_bytes(content)
        made.append(name)
    return made


def _cost(store: Store, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int]:
    """SQL statements, files opened, and runs listed, of a store whose index knows all of them."""
    Store(store.path).close()
    opened: list[str] = []
    said: list[str] = []
    really = os.open

    def opens(path: str, *arguments: int, **more: int) -> int:
        opened.append(path)
        return really(path, *arguments, **more)

    with monkeypatch.context() as patch, each_statement(said.append):
        patch.setattr(os, "open", opens)
        listed = Store(store.path).runs(brief=True)
    return len(said), len(opened), len(listed)


def test_a_list_costs_no_more_statements_and_files_for_more_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store")
    run = keep_run(store)
    few = _cost(store, monkeypatch)
    copies(store, run, 300)
    many = _cost(store, monkeypatch)
    assert (few[2], many[2]) == (1, 301)
    assert many[:2] == few[:2]


def test_a_list_in_a_pipe_is_plain_lines_of_whole_words(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    run = keep_run(store, load="a-load-with-a-name-" + "x" * 300)
    names = copies(store, run, 250)
    printed = fastenough("list", "--store", str(store.path), cwd=tmp_path).stdout.decode()
    head, *rows = printed.splitlines()
    assert [row.split()[0] for row in rows] == [*names, run]
    assert head.split() == ["run", "begin", "board", "probe", "load", "outcome", "samples", "maximum"]
    assert len({row.index("completed") for row in rows}) == 1, "columns are aligned"
    assert all(character.isascii() or character in "µ–" for character in printed)


def test_only_the_newest_runs_are_listed(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    runs = [keep_run(store) for _ in range(3)]
    assert [run.id for run in store.runs(last=2)] == runs[1:]
    assert store.runs(last=1)[0] == store.runs()[-1]
    listed = fastenough("list", "--last", "2", "--json", "--store", str(store.path), cwd=tmp_path).stdout
    assert [run["id"] for run in json.loads(listed)] == runs[1:]
    assert fastenough("list", "--last", "0", "--store", str(store.path), cwd=tmp_path).returncode == 2


def test_what_a_campaign_planned_is_left_out_of_a_brief_list_only(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    writer = store.begin({"campaign": "c", "planned": ("one", "two")})
    writer.end()
    assert [run.planned for run in store.runs()] == [("one", "two")]
    assert [run.planned for run in store.runs(brief=True)] == [None]


HEAVY = {
    "numpy",
    "scipy",
    "matplotlib",
    "mpl_toolkits",
    "pyarrow",
    "pandas",
    "jinja2",
    "labgrid",
    "sqlalchemy",
    "grpc",
    "rich",
    "fastjsonschema",
    "serial",
    "fastenough.analysis",
    "fastenough.report",
    "fastenough.recording.reader",
}
"""What a list has no use for, and what takes longer to load than thousands of runs to list."""


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_list_loads_nothing_that_it_has_no_use_for(tmp_path: Path, more: tuple[str, ...]) -> None:
    store = Store(tmp_path / "store")
    run = keep_run(store)
    script = (
        "import atexit, sys\natexit.register(lambda: print('loaded', *sys.modules, file=sys.stderr))\n"
        "from fastenough.cli import main\nmain(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "list", *more, "--store", str(store.path)],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    said, *loaded = done.stderr.split()
    assert (said, run in done.stdout, "fastenough.store.index" in loaded) == ("loaded", True, True)
    assert sorted(HEAVY & set(loaded)) == []


def test_every_name_of_a_recording_can_be_had_although_none_is_loaded_before() -> None:
    script = (
        "import sys, fastenough.recording as recording\nassert 'numpy' not in sys.modules\n"
        "assert all(getattr(recording, name).__name__ == name for name in recording.__all__)\n"
        "assert 'numpy' in sys.modules and not hasattr(recording, 'nothing')"
    )
    subprocess.run([sys.executable, "-c", script], env=environment(), check=True)


def test_the_newest_campaign_is_asked_for_and_not_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other campaigns and runs that belong to none are counted in rows read, of which there are none."""
    store = Store(tmp_path / "store")
    assert newest_campaign(store) is None
    copies(store, keep_run(store), 100)
    for campaign, position in (("older", 0), ("newest", 0), ("newest", 2), (None, None), ("", 0)):
        store.begin({"campaign": campaign, "position": position, "positions": 3}).end()
    store = Store(store.path)
    expected = [run for run in store.runs() if run.campaign == "newest"]
    read = []
    really = index._summary

    def counts(row: Sequence[object]) -> RunSummary:
        read.append(row)
        return really(row)

    monkeypatch.setattr(index, "_summary", counts)
    kept = newest_campaign(store)
    assert kept is not None
    assert (kept.id, list(kept.runs), kept.missing) == ("newest", [run.id for run in expected], ("run 2 of 3",))
    assert len(read) == len(expected) == 2
