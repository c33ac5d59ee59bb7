# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests run in three lots at a time: each runs once, and a failure of any is told and counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from both_cores import BESIDE, ROOT, files_of, main

IN_REAL_TIME = ("simulated_gauge", "Paced", "paced")


@pytest.mark.parametrize("failing", ["words", "files", "other", None])
def test_each_test_runs_once_and_a_failure_of_any_lot_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str],
                                                                 failing: str | None) -> None:
    (tmp_path / "tests").mkdir()
    for name in ("words", "files", "other"):
        (tmp_path / "tests" / f"test_{name}.py").write_text(f"def test_of_{name}(): assert {name != failing}\n")
    assert main(tmp_path) == (0 if failing is None else 1)
    said = capfd.readouterr().out
    assert said.count("1 passed") + said.count("1 failed") == 3
    assert said.count("FAILED") == (0 if failing is None else 1)
    assert failing is None or f"test_of_{failing}" in said


def test_what_runs_beside_is_there_and_has_no_instrument_at_its_pace() -> None:
    assert all(list(ROOT.glob(f"tests/test_{name}.py")) for names in BESIDE for name in names)
    found = [path for names in BESIDE for path in files_of(names, ROOT)]
    assert len(found) == len(set(found))
    for path in found:
        text = (ROOT / path).read_text()
        assert not any(word in text for word in IN_REAL_TIME), path
