# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a report goes: a place that cannot take it is found first, and what is there is whole or as it was."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastenough.analysis import judge
from fastenough.model import BadInput, Requirement
from fastenough.recording import Recording
from fastenough.report import require_writable, write_report
from fastenough.report.formats import csv_cell
from tests.support import recordings as made
from tests.support.privileges import own_mounts, require_root
from tests.support.processes import ROOT

pytestmark = pytest.mark.untimed

NOBODY = 65534


def _unprivileged() -> list[str]:
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []


def fastenough(folder: Path, *words: str, user: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*(user or []), sys.executable, "-m", "fastenough", *words],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", ["assess", "report"])
@pytest.mark.parametrize("out", ["file", "file/below", "/proc/nowhere", "folder-for-page", "link-to-nothing/x"])
def test_a_place_that_cannot_be_written_is_found_first(tmp_path: Path, command: str, out: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder-for-page" / "index.html").mkdir(parents=True)
    (tmp_path / "link-to-nothing").symlink_to("/proc/nowhere")
    ended = fastenough(tmp_path, command, "--out", out)
    assert ended.returncode == 2, ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert "--out" in ended.stderr
    assert not (tmp_path / "fastenough-data").exists()


@pytest.mark.slow
def test_a_folder_of_another_user_is_found_first(tmp_path: Path) -> None:
    require_root("it becomes another user")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    (tmp_path / "own").mkdir()
    reachable = subprocess.run(
        [*_unprivileged(), sys.executable, "-c", "import fastenough"], cwd=ROOT, check=False, capture_output=True
    )
    if reachable.returncode:
        pytest.skip("the program itself cannot be read by another user here")
    for out in ("own", "own/below", "new"):
        ended = fastenough(tmp_path, "assess", "--out", out, user=_unprivileged())
        assert (ended.returncode, "Permission denied" in ended.stderr) == (2, True), ended.stderr
    assert list((tmp_path / "own").iterdir()) == []


def test_looking_leaves_nothing(tmp_path: Path) -> None:
    require_writable(tmp_path / "a" / "b")
    require_writable(tmp_path)
    assert list(tmp_path.iterdir()) == []


_FULL_DISK = """
import sys
sys.path.insert(0, ".")
from pathlib import Path
from tests.process.report.test_report_out import *
place = Path(sys.argv[1])
out = place / "report"
one = recording(place, "one")
write_report([one], judge([one]), out)
before = {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
fill(place / "ballast", 4096)
try:
    write_report([one, one], judge([one, one]), out)
    print("written")
except BadInput as error:
    assert "No space left" in str(error), error
after = {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
assert set(after) == set(before), set(after) ^ set(before)
assert all(content.endswith(before[path][-20:]) for path, content in after.items())
print("whole")
"""

_FULL_STORE = """
import sys
sys.path.insert(0, ".")
from pathlib import Path
from tests.process.report.test_report_out import fill
from tests.process.store.test_store_integrity import *
place = Path(sys.argv[1])
store = Store(place)
run = keep(store, 0)
(place / "made.jsonl").unlink()
store.close()
if sys.argv[2] == "gone":
    (place / "index.sqlite").unlink()
fill(place / "ballast", 512)
for words in (["list"], ["show", run], ["store", "verify"]):
    ended = fastenough(store, *words)
    assert ended.returncode == 0, ended
    assert run in ended.stdout or words == ["store", "verify"], ended
print("read")
"""


def fill(path: Path, step: int) -> None:
    """Until the disk takes no more."""
    with path.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(bytes(step))


def on_small_disk(tmp_path: Path, script: str, size: str, *words: str) -> str:
    mount = f'mount -t tmpfs -o size={size},mode=755 none {tmp_path} && exec "$0" -c "$1" {tmp_path} {" ".join(words)}'
    completed = subprocess.run(
        [*own_mounts(as_user=True), "sh", "-c", mount, sys.executable, script],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


@pytest.mark.slow
def test_a_full_disk_leaves_the_former_report_whole(tmp_path: Path) -> None:
    assert on_small_disk(tmp_path, _FULL_DISK, "8m") == "whole\n"


@pytest.mark.slow
@pytest.mark.parametrize("index", ["there", "gone"])
def test_a_store_on_a_full_disk_can_be_read(tmp_path: Path, index: str) -> None:
    assert on_small_disk(tmp_path, _FULL_STORE, "300k", index) == "read\n"


def recording(folder: Path, run_id: str, **head: Any) -> Recording:
    return made.recording(folder, made.Plan(made.quiet(run_id), run_id=run_id, head=head))


def test_cells_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    for text in ("=1+1", "+1", "-1", "@SUM(A1)", "\tx", "=cmd|' /C calc'!A0"):
        assert csv_cell(text) == f"'{text}"
    for value in (-1, -0.5, 0, None, "plain", "a=b", "–"):
        assert csv_cell(value) == value
    one = recording(tmp_path, "one", configuration="=HYPERLINK(1)", board="-2+3", tool={"name": "@x", "version": "1"})
    write_report([one], judge([one], Requirement(10**6)), tmp_path / "report")
    content = "".join(path.read_text() for path in (tmp_path / "report" / "tables").glob("*.csv"))
    assert "'@x" in content
    assert not [
        cell for line in content.splitlines() for cell in line.split(",") if cell.lstrip('"')[:1] in ("=", "@", "+")
    ]


@pytest.mark.slow
def test_a_report_of_odd_recordings(tmp_path: Path) -> None:
    """What ends up in names of files and in drawings cannot lead out of the folder or into the page."""
    labels = {"placement": '../../x"><script>alert(1)</script>'}
    parameters = {"task": "../../../x", "break_ns": "$\\frac{"}
    for number, probe in enumerate(("condvar", "jitter", "primitives", "shm", "response", "timer", "[/x]")):
        out = tmp_path / f"report-{number}"
        one = made.recording(
            tmp_path,
            made.Plan(
                made.quiet("one"),
                run_id="one",
                head={
                    "probe": probe,
                    "configuration": " ",
                    "board": "[/x]$\\frac{\x1b[2J<b>",
                    "parameters": parameters,
                },
                series={"labels": labels},
            ),
        )
        write_report([one], judge([one]), out)
        page = (out / "index.html").read_text()
        assert "<script" not in page
        assert "\x1b" not in page
        assert "$\\frac{\ufffd[2J&lt;b&gt;" in page
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["one.jsonl", *(f"report-{number}" for number in range(7))]
    )


def test_a_refused_place_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="--out"):
        require_writable(tmp_path / "file")
