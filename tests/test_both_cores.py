# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests run in three lots at a time: each runs once; a failure is told and counts, unless it passes alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from both_cores import BESIDE, ROOT, files_of, main

IN_REAL_TIME = ("simulated_gauge", "Paced", "paced")
NAMES = ("words", "files", "other")
PASSES_LATER = """
from pathlib import Path

def test_of_{name}():
    runs = Path(__file__).with_name("{name}.runs")
    runs.write_text((runs.read_text() if runs.exists() else "") + ".")
    assert len(runs.read_text()) not in {fails}
"""


def suite(root: Path, **texts: str) -> Path:
    """One test in each lot that passes, but for those whose text is given."""
    (root / "tests").mkdir()
    for name in NAMES:
        (root / "tests" / f"test_{name}.py").write_text(texts.get(name, f"def test_of_{name}(): pass\n"))
    return root


def test_each_test_runs_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(suite(tmp_path)) == 0
    said = capfd.readouterr().out
    assert said.count("1 passed") == 3
    assert "failed" not in said


@pytest.mark.parametrize(("failing", "fails", "status"), [
    ("words", {1, 2, 3}, 1), ("other", {1, 2}, 1), ("words", {1, 3}, 1), ("files", {1}, 0), ("other", {1}, 0)])
def test_what_failed_has_to_pass_alone_twice_and_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str],
                                                         failing: str, fails: set[int], status: int) -> None:
    text = PASSES_LATER.format(name=failing, fails=fails)
    assert main(suite(tmp_path, **{failing: text})) == status
    last = capfd.readouterr().out.splitlines()[-2:]
    assert last == ["failed:" if status else "failed once, passed alone 2 times:",
                    f"  tests/test_{failing}.py::test_of_{failing}"]


def test_many_that_failed_get_no_second_chance(tmp_path: Path) -> None:
    many = "".join(PASSES_LATER.format(name=f"{number}", fails={1}) for number in range(5))
    assert main(suite(tmp_path, other=many)) == 1
    assert {path.read_text() for path in (tmp_path / "tests").glob("*.runs")} == {"."}


def test_a_file_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    assert main(suite(tmp_path, files="import nothing_of_this_name\n")) == 2


def test_what_runs_beside_is_there_and_has_no_instrument_at_its_pace() -> None:
    assert all(list(ROOT.glob(f"tests/test_{name}.py")) for names in BESIDE for name in names)
    found = [path for names in BESIDE for path in files_of(names, ROOT)]
    assert len(found) == len(set(found))
    for path in found:
        text = (ROOT / path).read_text()
        assert not any(word in text for word in IN_REAL_TIME), path
