# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/overview.md follows function by function exists where it says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.c_scanner import functions
from tests.support.tools import ROOT

PAGE = (ROOT / "docs" / "overview.md").read_text()
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.\w+)`")
NAME = re.compile(r"`([A-Za-z_][\w.]*)\(\)`|`([A-Z][a-z]\w+)`")
STEPS = [line for line in PAGE.splitlines() if line.startswith("|") and NAME.search(line) and FILE.search(line)]


def defined(path: Path) -> Iterator[str]:
    """Functions and classes of a file; a method as ``Class.method``."""
    if path.suffix != ".py":
        yield from (function.name for function in functions(path.read_text()))
        return
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef))


def test_there_is_a_way_of_a_sample_and_of_a_plan() -> None:
    assert len(STEPS) >= 20


@pytest.mark.parametrize("step", STEPS, ids=lambda step: " ".join(NAME.findall(step)[0]).strip())
def test_what_a_step_names_is_where_it_says(step: str) -> None:
    files = [ROOT / name for name in FILE.findall(step)]
    absent = [path.name for path in files if not path.is_file()]
    assert not absent
    there = [set(defined(path)) for path in files]
    names = {function or name for function, name in NAME.findall(step)}
    assert names <= set().union(*there), names - set().union(*there)
    idle = [path.name for path, here in zip(files, there, strict=True) if not names & here]
    assert not idle, "a file of which no function is named"


def test_all_files_named_are_there() -> None:
    absent = [name for name in FILE.findall(PAGE) if not (ROOT / name).exists() and not name.startswith("report/")]
    assert not absent
