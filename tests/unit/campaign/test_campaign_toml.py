# SPDX-License-Identifier: GPL-2.0-or-later
"""Where in a TOML file a key stands, and complaints that say so."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from fastenough.campaign.toml import TomlText, read_toml
from fastenough.model import BadInput
from fastenough.units import parse_duration_ns

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
    ("name",): 2,
    ("a", "b"): 3,
    ("day",): 4,
    ("long",): 5,
    ("literal",): 9,
    ("list",): 11,
    ("list", 1): 12,
    ("list", 1, "r s"): 12,
    ("list", 2): 14,
    ("settings",): 15,
    ("settings", "quoted key"): 16,
    ("run", 0): 17,
    ("run", 0, "probe"): 18,
    ("run", 0, "parameters", "p"): 19,
    ("run", 0, "other", "z"): 21,
    ("run", 1): 22,
    ("run", 1, "probe"): 23,
    ("run", 1, "sub", 0, "x"): 25,
    ("run", 1, "sub", 1): 26,
    ("run", 1, "sub", 1, "x"): 27,
}


def _at(content: Any, key: tuple[str | int, ...]) -> Any:
    for part in key:
        content = content[part]
    return content


@pytest.mark.parametrize(("key", "line"), EXPECTED.items(), ids=str)
def test_every_key_has_its_line(key: tuple[str | int, ...], line: int) -> None:
    assert _at(tomllib.loads(TEXT), key) is not None
    assert TomlText("file", TEXT).at(key) == f"file:{line}"


def test_a_key_that_is_not_there_has_the_line_of_its_table() -> None:
    assert TomlText("file", TEXT).at(("run", 1, "sub", 0, "missing")) == "file:24"
    assert TomlText("file", TEXT).at(("missing",)) == "file"


def test_depth_that_no_plan_has_still_gives_one_line(tmp_path: Path) -> None:
    (tmp_path / "deep").write_text("name = 1\nx = " + "[" * 400 + "]" * 400)
    table = read_toml(tmp_path / "deep", "example")
    with pytest.raises(BadInput, match=r"deep(:1)?: name = 1 is invalid"):
        table.text("name", '"x"')


@pytest.mark.parametrize("number", ["9" * 10_000, "-" + "9" * 5_000, "0x" + "f" * 9_000, "9_" * 50 + "9", "9" * 19])
def test_an_integer_of_more_than_64_bits_is_refused(tmp_path: Path, number: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f'name = "{"9" * 30}"  # {"9" * 30}\nshare = 0.{"1" * 30}\nrepeat = {number}\n')
    with pytest.raises(BadInput) as told:
        read_toml(path, "the documents")
    assert str(told.value).startswith(f"{path}:3: ") and len(str(told.value)) < len(str(path)) + 120


@pytest.mark.parametrize("number", ["9" * 5_000, "0." + "9" * 5_000, "9" * 5_000 + ".5"])
def test_a_duration_of_thousands_of_digits_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match="is no duration") as told:
        parse_duration_ns(f"{number}s")
    assert len(str(told.value)) < 200
