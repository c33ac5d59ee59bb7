# SPDX-License-Identifier: GPL-2.0-or-later
"""Where in a TOML file a key stands, and complaints that say so."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from fastenough.campaign.toml import Source, read_toml
from fastenough.model import BadInput

TEXT = '''# name = "not this one"
name = "x" # y
a.b = 1.5
day = 1979-05-27T07:32:00Z
long = """
[not]
a = 1 \\"""
"""
literal = \'\'\'
name = 'z\'\'\'\'
list = [ # c
 "a, ]", {q = 1, "r s" = [1, 2]},

 'last']
[settings]
"quoted \\u006bey" = 1
[[run]]
probe = 'timer'
parameters = {interval = [1, 2], p = true}
[run.other]
z = 1
[[run]]
probe = "b"
[[run.sub]]
x = 1
[[run.sub]]
x = 2
'''
EXPECTED = {
    ("name",): 2, ("a", "b"): 3, ("day",): 4, ("long",): 5, ("literal",): 9, ("list",): 11, ("list", 1): 12,
    ("list", 1, "r s"): 12, ("list", 2): 14, ("settings",): 15, ("settings", "quoted key"): 16, ("run", 0): 17,
    ("run", 0, "probe"): 18, ("run", 0, "parameters", "p"): 19, ("run", 0, "other", "z"): 21, ("run", 1): 22,
    ("run", 1, "probe"): 23, ("run", 1, "sub", 0, "x"): 25, ("run", 1, "sub", 1): 26, ("run", 1, "sub", 1, "x"): 27,
}


def _at(content: Any, key: tuple[str | int, ...]) -> Any:
    for part in key:
        content = content[part]
    return content


@pytest.mark.parametrize(("key", "line"), EXPECTED.items(), ids=str)
def test_every_key_has_its_line(key: tuple[str | int, ...], line: int) -> None:
    assert _at(tomllib.loads(TEXT), key) is not None
    assert Source("file", TEXT).at(key) == f"file:{line}"


def test_a_key_that_is_not_there_has_the_line_of_its_table() -> None:
    assert Source("file", TEXT).at(("run", 1, "sub", 0, "missing")) == "file:24"
    assert Source("file", TEXT).at(("missing",)) == "file"


def test_depth_that_no_plan_has_still_gives_one_line(tmp_path: Path) -> None:
    (tmp_path / "deep").write_text("name = 1\nx = " + "[" * 400 + "]" * 400)
    table = read_toml(tmp_path / "deep", "example")
    with pytest.raises(BadInput, match=r"deep(:1)?: name = 1 cannot be used"):
        table.text("name", '"x"')
