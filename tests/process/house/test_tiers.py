# SPDX-License-Identifier: GPL-2.0-or-later
"""The tests of a tier run in three lots: each test runs once, and a failure counts unless the test passes alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.support.tier_files import FOLDER_TIERS, TierFiles, largest_first
from tests.tiers import LOTS, ROOT, TIERS, main

NO_TESTS = 5
PART = "tests/process"
IN_REAL_TIME = ("simulated_gauge", "RealtimeGauge", "realtime_gauge")
MARKS = {"overview": ("check", "machines"), "files": ("quick", "untimed"), "other": ("check",)}
HEAD = "import pytest\npytestmark = [{}]\n"
PASSES_LATER = """
from pathlib import Path

def test_of_{name}():
    runs = Path(__file__).with_name("{name}.runs")
    runs.write_text((runs.read_text() if runs.exists() else "") + ".")
    assert len(runs.read_text()) not in {fails}
"""


@pytest.fixture(autouse=True)
def only_needed_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests of these suites need none, and each process takes a second of a CPU to import those installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def suite(root: Path, **texts: str) -> Path:
    """One test in each lot that passes, but for those whose text is given."""
    (root / PART).mkdir(parents=True)
    for name, marks in MARKS.items():
        head = HEAD.format(", ".join(f"pytest.mark.{mark}" for mark in marks))
        (root / PART / f"test_{name}.py").write_text(head + texts.get(name, f"def test_of_{name}(): pass\n"))
    return root


STORES_COMPILED = """
import sys

def test_of_{name}():
    assert not sys.dont_write_bytecode
"""


@pytest.mark.untimed
def test_each_test_runs_once_and_python_stores_compiled_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert main("check", suite(tmp_path, **{name: STORES_COMPILED.format(name=name) for name in MARKS})) == 0
    said = capfd.readouterr().out
    assert said.count("1 passed") == 3
    assert "failed" not in said


@pytest.mark.untimed
@pytest.mark.slow
@pytest.mark.parametrize(
    ("failing", "fails", "status"),
    [("overview", {1, 2, 3}, 1), ("other", {1, 2}, 1), ("overview", {1, 3}, 1), ("files", {1}, 0), ("other", {1}, 0)],
)
def test_what_failed_has_to_pass_alone_twice_and_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], failing: str, fails: set[int], status: int
) -> None:
    text = PASSES_LATER.format(name=failing, fails=fails)
    assert main("check", suite(tmp_path, **{failing: text})) == status
    last = capfd.readouterr().out.splitlines()[-2:]
    assert last == [
        "failed:" if status else "failed once, passed alone 2 times:",
        f"  {PART}/test_{failing}.py::test_of_{failing}",
    ]


@pytest.mark.untimed
@pytest.mark.slow
@pytest.mark.parametrize(("files", "status", "runs"), [(1, 0, "..."), (4, 0, "..."), (5, 1, ".")])
def test_what_failed_in_many_files_gets_no_second_chance(tmp_path: Path, files: int, status: int, runs: str) -> None:
    root = suite(tmp_path)
    failing = [PASSES_LATER.format(name=f"{number}", fails={1}) for number in range(6)]
    for first in range(files):
        text = "".join([HEAD.format("pytest.mark.check"), *failing[first::files]])
        (root / PART / f"test_more_{first}.py").write_text(text)
    assert main("check", root) == status
    assert [path.read_text() for path in (tmp_path / PART).glob("*.runs")] == [runs] * 6


@pytest.mark.untimed
@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    assert main("check", suite(tmp_path, files="import nothing_of_this_name\n")) == 2


PLUGIN = """
import pytest
from tests.support.privileges import SkippedForRoot

def pytest_configure(config):
    config.pluginmanager.register(SkippedForRoot())
"""
FOR_ROOT = """
import os
from pathlib import Path
import pytest

def test_that_needs_root():
    if os.environ.get("BY_SUDO") != "yes":
        pytest.skip("needs root: something")
    Path(__file__).with_suffix(".ran").touch()
    assert "HOME" not in os.environ and {passes}

def test_that_needs_none(): pass
"""
SUDO = """#!/bin/sh
[ "$1 $2" = "-n --" ] || exit 3
shift 2
exec env -u HOME BY_SUDO=yes "$@"
"""


def with_sudo(root: Path, program: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``program`` is what sudo is there."""
    (root / "tests" / "conftest.py").write_text(PLUGIN)
    (root / "sudo").write_text(program)
    (root / "sudo").chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", f"{root}:{os.environ['PATH']}")
    return root


@pytest.mark.untimed
@pytest.mark.slow
def test_what_needs_root_runs_through_sudo(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a lot beside the others it passes, in the one that runs alone it fails."""
    texts = {"overview": FOR_ROOT.format(passes=True), "other": FOR_ROOT.format(passes=False)}
    assert main("check", with_sudo(suite(tmp_path, **texts), SUDO, monkeypatch)) == 1
    said = capfd.readouterr().out
    assert [path.name for path in sorted((tmp_path / PART).glob("*.ran"))] == ["test_other.ran", "test_overview.ran"]
    assert said.count("1 passed, 1 skipped") == 2 and "2 tests need root: they run through sudo now" in said
    assert said.splitlines()[-2:] == ["failed:", f"  {PART}/test_other.py::test_that_needs_root"]


@pytest.mark.untimed
@pytest.mark.slow
def test_what_needs_root_is_skipped_in_one_line_where_sudo_asks(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = with_sudo(suite(tmp_path, other=FOR_ROOT.format(passes=True)), "#!/bin/sh\nexit 1\n", monkeypatch)
    assert main("check", root) == 0
    last = capfd.readouterr().out.splitlines()[-1]
    assert last.startswith("skipped: 1 tests need root")
    assert not (root / PART / "test_other.ran").exists()


def test_the_need_of_root_is_stated_in_one_place() -> None:
    """Elsewhere a test of an ordinary user would be skipped for good, as nothing lists it."""
    for path in (ROOT / "tests").rglob("*.py"):
        assert path.name == "privileges.py" or "skipif(os.gete" + "uid" not in path.read_text(), path


def marked(root: Path, *markers: str) -> list[Path]:
    """Modules of tests that are marked as a whole with one of these."""
    line = re.compile(rf"^pytestmark = .*pytest\.mark\.({'|'.join(markers)})\b", re.MULTILINE)
    return [path for path in root.rglob("test_*.py") if line.search(path.read_text())]


def test_what_runs_beside_others_has_no_instrument_at_its_pace() -> None:
    beside = [*marked(ROOT / "tests", "machines", "untimed"), *(ROOT / "tests" / "unit").rglob("test_*.py")]
    assert len(beside) > 100
    for path in beside:
        text = path.read_text()
        assert not any(word in text for word in IN_REAL_TIME), path


@pytest.mark.untimed
@pytest.mark.slow
def test_only_the_tests_of_the_tier_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main("slow", suite(tmp_path)) == NO_TESTS
    root = suite(tmp_path / "more")
    (root / PART / "test_slow.py").write_text(
        HEAD.format("pytest.mark.untimed, pytest.mark.slow") + "def test(): pass\n"
    )
    assert main("slow", root) == 0
    assert capfd.readouterr().out.count("1 passed") == 1


MEETS = """
import time
from pathlib import Path

def test_of_{name}():
    Path(__file__).with_suffix(".begun").touch()
    other = Path(__file__).with_name("test_{other}.begun")
    for _ in range(1800):
        if other.exists():
            return
        time.sleep(0.1)
    raise AssertionError("the other did not begin")

def test_of_{name}_again(): pass
"""
"""A process that begins the last test of a file has taken the next one already."""


def passed(output: str, line: str) -> int:
    """How many passed by the lines of totals that begin so."""
    return sum(map(int, re.findall(rf"^{line}(\d+) passed", output, re.MULTILINE)))


@pytest.mark.untimed
@pytest.mark.parametrize(("tier", "count"), [("quick", 6), ("check", 7)])
def test_the_unit_tests_run_once_in_two_processes_that_share_the_files(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], tier: str, count: int
) -> None:
    """Two of them are made to wait for each other."""
    room = tmp_path / "tests" / "unit" / "room"
    room.mkdir(parents=True)
    for number, mark in enumerate(("quick", "quick", "check")):
        head = HEAD.format(f"pytest.mark.{mark}")
        (room / f"test_{number}.py").write_text(f"{head}def test_of_{number}(): pass\n")
    for name, other in (("one", "two"), ("two", "one")):
        (room / f"test_{name}.py").write_text(HEAD.format("pytest.mark.quick") + MEETS.format(name=name, other=other))
    assert main(tier, tmp_path) == 0
    assert passed(capfd.readouterr().out, "") == count


def test_large_files_are_taken_before_small_ones(tmp_path: Path) -> None:
    for name, size in (("a/test_small", 1), ("b/test_large", 3), ("c/test_medium", 2), ("c/helper", 9)):
        path = tmp_path / "tests" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#" * size)
    names = [f"tests/{name}.py" for name in ("a/test_small", "b/test_large", "c/test_medium")]
    assert TierFiles(()).below(tmp_path, "tests") == []
    assert largest_first(tmp_path, names) == [names[1], names[2], names[0]]


@pytest.mark.slow
@pytest.mark.untimed
def test_untimed_tests_are_shared_while_both_other_lots_last(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The other ones last until two untimed files have begun, which are made to wait for each other."""
    root = suite(tmp_path, **{name: MEETS.format(name=name, other="second") for name in ("other", "overview")})
    head = HEAD.format("pytest.mark.untimed, pytest.mark.check")
    for name, other in (("files", "second"), ("second", "files")):
        (root / PART / f"test_{name}.py").write_text(head + MEETS.format(name=name, other=other))
    assert main("check", root) == 0
    assert passed(capfd.readouterr().out, "=+ ") == 8


MARKERS = """
import json, sys
import pytest

class Markers:
    def pytest_collection_finish(self, session):
        of = [(str(item.path), [mark.name for mark in item.iter_markers()]) for item in session.items]
        print(json.dumps(of), file=sys.stderr)

sys.exit(pytest.main(["--collect-only", "-p", "no:cacheprovider", "-m", "not matrix"], plugins=[Markers()]))
"""


def folder_and_lot(path: str, marks: Collection[str]) -> tuple[str, str | None]:
    folder = Path(path).relative_to(ROOT / "tests").parts[0]
    lots = [name for name, (having, without) in LOTS.items() if {*having} <= {*marks} and not {*without} & {*marks}]
    assert len(lots) == 1
    return folder, None if folder == "unit" else lots[0]


@pytest.fixture(scope="module")
def of_project() -> list[tuple[str, list[str]]]:
    """The file and the markers of each test of the project that is not of the matrix."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_DISABLE_PLUGIN_AUTOLOAD"}
    done = subprocess.run(
        [sys.executable, "-c", MARKERS], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    found = [(path, marks) for path, marks in json.loads(done.stderr.splitlines()[-1])]
    assert len(found) > 5000
    return found


@pytest.mark.untimed
@pytest.mark.slow
def test_the_files_that_a_tier_reads_hold_all_of_its_tests(of_project: list[tuple[str, list[str]]]) -> None:
    needed: dict[tuple[str, str, str | None], set[str]] = {}
    for path, marks in of_project:
        folder, lot = folder_and_lot(path, marks)
        for tier in (name for name, markers in TIERS.items() if {*markers} & {*marks}):
            needed.setdefault((tier, folder, lot), set()).add(str(Path(path).relative_to(ROOT)))
    read = {
        key: {*TierFiles(TIERS[key[0]], *LOTS.get(key[2] or "", ())).below(ROOT, f"tests/{key[1]}")} for key in needed
    }
    assert len(needed) > 10
    assert {key: files - read[key] for key, files in needed.items() if not files <= read[key]} == {}
    assert sum(map(len, read.values())) < 1.5 * sum(map(len, needed.values()))


@pytest.mark.untimed
@pytest.mark.slow
def test_a_test_has_one_tier_most_often_that_of_its_folder(of_project: list[tuple[str, list[str]]]) -> None:
    tiers: dict[str, Counter[str]] = {}
    for path, marks in of_project:
        (tier,) = {*FOLDER_TIERS.values()} & {*marks}
        tiers.setdefault(folder_and_lot(path, marks)[0], Counter())[tier] += 1
    assert {folder: counts.most_common(1)[0][0] for folder, counts in tiers.items()} == FOLDER_TIERS
