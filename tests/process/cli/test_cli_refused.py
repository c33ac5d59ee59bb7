# SPDX-License-Identifier: GPL-2.0-or-later
"""Root whom a container refuses real-time priority is told what is lacking, in the words of the command typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli_calls import fastenough
from tests.support.privileges import needs_root

WITHOUT = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]
pytestmark = [pytest.mark.untimed, needs_root("it gives a capability away")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("assess", "--loads", "none", "--duration", "1s"),
        ("run", "timer", "--duration", "1s"),
        ("calibrate",),
    ],
    ids=lambda words: words[0],
)
def test_root_without_the_capability_is_told_so(tmp_path: Path, probe_binary: str, arguments: tuple[str, ...]) -> None:
    ended = fastenough(*arguments, cwd=tmp_path, before=WITHOUT)
    said = ended.stderr.decode()
    assert ended.returncode == 2, said
    assert said.count("\n") == 1
    assert "root lacks CAP_SYS_NICE here" in said
    assert "--allow-difference" not in said and "fastenough-probe" not in said
    assert ("--as-granted" in said) == (arguments[0] != "calibrate")


def test_doctor_does_not_send_root_to_root(tmp_path: Path, probe_binary: str) -> None:
    ended = fastenough("doctor", cwd=tmp_path, before=WITHOUT)
    said = " ".join(ended.stdout.decode().split())
    assert ended.returncode == 5
    assert "root lacks CAP_SYS_NICE here" in said
    assert "run as root" not in said and "sudo tee" not in said


@pytest.mark.slow
def test_root_may_measure_with_what_is_granted(tmp_path: Path, probe_binary: str) -> None:
    ended = fastenough("run", "timer", "--duration", "1s", "--as-granted", cwd=tmp_path, before=WITHOUT)
    assert ended.returncode == 0, ended.stderr
