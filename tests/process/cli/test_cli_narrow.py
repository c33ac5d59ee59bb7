# SPDX-License-Identifier: GPL-2.0-or-later
"""On a terminal of 40 columns figures can be read, and on a telephone nothing sticks out of the report."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from fastenough.analysis import judge
from fastenough.report import write_report
from fastenough.store import Store
from tests.support.cli_calls import fastenough
from tests.support.recordings import PROFILE, Plan, latencies, recording, write
from tests.support.tools import require

pytestmark = pytest.mark.untimed

LONG = "<script>document.title='owned'</script>" * 4
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ")
_FRAME = """<iframe id=f width=390 height=4000 src="report/index.html"></iframe><script>
f.onload = () => {
  const page = f.contentDocument.documentElement;
  document.title = page.scrollWidth - page.clientWidth + " " + f.contentDocument.title;
}
</script>"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("narrow")
    writer = Store(home / "fastenough-data").begin({})
    for line in write(home / "scratch", Plan(latencies(1), run_id=writer.id)).read_bytes().splitlines(keepends=True):
        writer.line(line)
    writer.end()
    return home


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("list",), ("show", "last"), ("compare", "last", "last")], ids=" ".join)
def test_no_figure_stands_on_two_lines(home: Path, arguments: tuple[str, ...]) -> None:
    """But for the wall-clock time that a run begins with, which its id says too."""
    wide, *narrow = (
        _CLOCK.sub("", fastenough(*arguments, cwd=home, more={"COLUMNS": columns}).stdout.decode())
        for columns in ("300", "80", "40")
    )
    figure = re.compile(r"\b\d[\d,]*(?:\.\d+)?(?![\w.:-])")
    assert len(figure.findall(wide)) >= 2
    for printed in narrow:
        assert set(figure.findall(wide)) <= set(figure.findall(printed))


def test_a_table_stays_one_where_its_figures_have_room(home: Path) -> None:
    runs = json.loads(fastenough("list", "--json", cwd=home).stdout)
    listed = fastenough("list", cwd=home, more={"COLUMNS": "120"}).stdout.decode().splitlines()
    assert len(listed) == 1 + len(runs)


def test_nothing_sticks_out_of_the_report_on_a_telephone(tmp_path: Path) -> None:
    require("chromium")
    odd = recording(
        tmp_path,
        Plan(latencies(1), head={"board": LONG, "configuration": LONG, "profile": PROFILE | {"hostname": LONG}}),
    )
    write_report([odd], judge([odd]), tmp_path / "report")
    (tmp_path / "frame.html").write_text(_FRAME)
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--allow-file-access-from-files",
        "--virtual-time-budget=5000",
        "--dump-dom",
        f"file://{tmp_path}/frame.html",
    ]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=90).stdout
    title = re.search("<title>(.*?)</title>", shown)
    assert title is not None, shown
    beyond, _, named = title[1].partition(" ")
    assert (int(beyond), "owned" in named) == (0, False)
