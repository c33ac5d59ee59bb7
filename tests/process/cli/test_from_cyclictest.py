# SPDX-License-Identifier: GPL-2.0-or-later
"""The page for who comes from cyclictest: every option that it has, and only options that the probe really has."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.tools import require

pytestmark = pytest.mark.untimed

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "from-cyclictest.md").read_text()
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if re.match(r"\| `-", line)]
NEWER = {"--deepest-idle-state"}
"""Of cyclictest's sources since the version that Debian 12 has."""
OF_THE_BENCH = {"--break"}


GIVEN = {
    "--affinity": "!0",
    "--breaktrace": "60",
    "--clock": "1",
    "--deepest-idle-state": "1",
    "--distance": "500",
    "--duration": "1m",
    "--histfile": "new",
    "--histofall": "60",
    "--histogram": "400",
    "--housekeeping": "0",
    "--interval": "200",
    "--latency": "off",
    "--loops": "1000",
    "--mainaffinity": "0",
    "--method": "setitimer",
    "--offset": "10us",
    "--policy": "rr",
    "--priority": "95",
    "--record": "-",
    "--samples": "new",
    "--threads": "2",
    "--threshold": "40us",
    "--trace-switch": "new",
}
"""A value for each that takes one, as cyclictest's users write it where it has the option too."""


def options(text: str) -> set[str]:
    """Long and short options in a text, as ``--name`` and ``-x``."""
    return set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text))


def of_the_probe(probe: str, name: str) -> set[str]:
    said = subprocess.run([probe, name, "--help"], text=True, capture_output=True, check=True).stdout
    return {option for line in said.splitlines() if line.startswith("  ") for option in options(line[:28])} | {"--help"}


def test_every_option_of_cyclictest_is_told() -> None:
    require("cyclictest")
    said = subprocess.run(["cyclictest", "--help"], text=True, capture_output=True, check=False).stdout
    lines = [line.strip() for line in said.splitlines()]
    theirs = {option for line in lines if line.startswith("-") for option in options(line[:27])}
    told = {option for row in ROWS for option in options(row[0])}
    assert len(theirs) > 50
    assert (theirs | NEWER) - told == set()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"\W+", "-", row[0])[:40])
def test_what_stands_for_it_here_exists(row: list[str], probe_binary: str) -> None:
    named = options(" ".join(re.findall(r"`[^`]*`", row[1])))
    assert (named or row[1] == "no option needed") and named - of_the_probe(probe_binary, "timer") <= OF_THE_BENCH


def values(probe: str) -> dict[str, str]:
    """One for each option of ``timer`` that takes one, by its short name too; those that may stand alone have none."""
    said = subprocess.run([probe, "timer", "--help"], text=True, capture_output=True, check=True).stdout
    rows = re.findall(r"^ +(?:(-\w), )?(--[\w-]+) (\.\.|\[\.\.\])", said, re.MULTILINE)
    return {
        name: GIVEN.get(long, "")
        for short, long, takes in rows
        for name in (short, long)
        if takes == ".." or long in GIVEN
    }


def test_what_stands_for_it_here_is_taken_with_a_value(probe_binary: str, tmp_path: Path) -> None:
    """One more option that nobody knows ends the reading, once all before it was understood."""
    known = values(probe_binary)
    named = {option for row in ROWS for told in re.findall(r"`[^`]*`", row[1]) for option in options(told)}
    assert len(named) > 50
    for name in named - OF_THE_BENCH - {"--help"}:
        value = known.get(name)
        assert value != "", f"{name} has no value in this test"
        joined = [name] if value is None else [f"{name}={value}"] if name.startswith("--") else [name + value]
        said = subprocess.run(
            [probe_binary, "timer", *joined, "--nobody-knows"],
            text=True,
            capture_output=True,
            check=False,
            cwd=tmp_path,
        )
        assert (said.returncode, "unknown option --nobody-knows" in said.stderr) == (2, True), (joined, said.stderr)
    assert not list(tmp_path.iterdir())


def test_options_in_the_text_exist(probe_binary: str) -> None:
    """Those said to be ours: with a value, or as the second of a pair of rtla's and ours."""
    text = "\n".join(line for line in PAGE.splitlines() if not line.startswith(("|", "$")))
    named = set(re.findall(r"`(--[a-z-]+)=", text)) | set(re.findall(r" is `(--[a-z-]+)`", text))
    assert len(named) >= 4
    assert named - of_the_probe(probe_binary, "timer") == set()
