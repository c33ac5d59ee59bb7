# SPDX-License-Identifier: GPL-2.0-or-later
"""A plan, or what is kept of a gauge, that is no such file: one line, at once, in bounded memory."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from fastenough.campaign import parse_plan
from fastenough.gauge.calibration import read_calibration, read_self_test
from fastenough.model import BadInput
from tests.support.cli_calls import fastenough

pytestmark = pytest.mark.check

_MEMORY = ["prlimit", f"--as={3 << 30}"]


def _refused(plan: Path | str, cwd: Path) -> str:
    ended = fastenough("run", "--plan", str(plan), cwd=cwd, before=_MEMORY, timeout_s=60)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.count(b"\n") == 1
    assert not (cwd / "fastenough-data").exists()
    return ended.stderr.decode()


def test_a_device_or_a_pipe_is_no_plan(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for plan in ("/dev/zero", tmp_path / "fifo"):
        assert "no regular file" in _refused(plan, tmp_path)


def test_a_plan_of_more_bytes_than_a_plan_has_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "long").open("wb") as stream:
        stream.truncate(8 << 30)
    assert "longer than" in _refused(tmp_path / "long", tmp_path)


@pytest.mark.parametrize(
    "more",
    [
        "repeat = 1000000000000",
        "repeat = 9999\nphases = 30",
        "repeat = 99999\nparameters = {priority = [1, 2]}",
        "parameters = {" + ", ".join(f"p{n} = [{', '.join(map(str, range(10)))}]" for n in range(12)) + "}",
    ],
    ids=["repeat", "phases", "repeated values", "combinations"],
)
def test_a_plan_of_more_runs_than_anybody_means_is_refused(tmp_path: Path, more: str) -> None:
    (tmp_path / "plan.toml").write_text(f'name = "x"\n[[run]]\nprobe = "timer"\n{more}\n')
    assert "lower repeat, or list fewer values" in _refused(tmp_path / "plan.toml", tmp_path)


@pytest.mark.parametrize("name", ["a" * 4096, "../../x", r"\u001b[31mred", r"a\u0000b", "<b>", r"a\u202eb", "café"])
def test_a_name_is_short_and_plain(name: str) -> None:
    """It stands in heads, titles and tables."""
    with pytest.raises(BadInput, match="is invalid; use at most 64 lower-case letters"):
        parse_plan(f'name = "{name}"\n[[run]]\nprobe = "timer"\n'.encode(), "this test")


@pytest.mark.parametrize("name", ["a" * 65, r"\u001b[31mred", r"a\nb", r"a\u202eb", " a"])
def test_a_configuration_is_short_and_one_line(name: str) -> None:
    plan = 'name = "x"\nconfigurations = ["{}"]\n[[run]]\nprobe = "timer"\n'
    with pytest.raises(BadInput, match=r"^this test:2: configuration '.*' is invalid; use at most 64 letters"):
        parse_plan(plan.format(name).encode(), "this test")
    assert parse_plan(plan.format("rt 6.1 (mine)").encode(), "this test").configurations == ("rt 6.1 (mine)",)


@pytest.mark.parametrize("read", [read_calibration, read_self_test])
def test_what_is_kept_of_a_gauge_is_a_small_file(tmp_path: Path, read: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "fifo")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for path in (Path("/dev/zero"), tmp_path / "fifo"):
        with pytest.raises(BadInput, match=r"run: fastenough gauge (calibrate|selftest) --json"):
            read(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("[settings]\ncontrol-priority = 1979-05-27", "write a text in quotes, a number"),
        ("[settings]\nirq-affinity = [1979-05-27]", "write a text in quotes, a number"),
        ('[[load]]\nname = "l"\ncommands = [["true"]]\ncpu-share = nan', "from 0 to 1"),
        ('[[load]]\nname = "l"\ncommands = [["true"]]\ncpu-share = -1', "from 0 to 1"),
    ],
    ids=["a date", "a date in a list", "no number", "negative"],
)
def test_values_that_cannot_be_are_bad_input(tmp_path: Path, more: str, told: str) -> None:
    """A share that is no number would have every load pass as run."""
    (tmp_path / "plan.toml").write_text(f'name = "x"\n{more}\n[[run]]\nprobe = "timer"\n')
    assert told in _refused(tmp_path / "plan.toml", tmp_path)
