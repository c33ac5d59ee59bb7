# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands of a fleet: what they refuse before anything happens, and what they print."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from fastenough.cli import farm_try
from fastenough.fleet.supervised_process import Usage
from fastenough.fleet.trial import FleetTrialResult
from fastenough.model import BadInput


def _try(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[Result, int]:
    """The result of a trial of 47 hours, and how many were started."""
    parts = {"server": Usage(1692.0, 10.0, 0)}
    line = FleetTrialResult(10, 10, 10, 0, "", 169_200.0, parts)
    started: list[str] = []

    def lines(module: str, *options: object) -> list[bytes]:
        started.append(module)
        document = vars(line) | {"parts": {name: vars(usage) for name, usage in parts.items()}}
        return [json.dumps(document).encode()]

    monkeypatch.setattr(farm_try, "_lines", lines)
    return CliRunner().invoke(farm_try.command, ["--fleet=5", *words]), len(started)


@pytest.mark.parametrize(("length", "started"), [("47h", 1), ("169201s", 0), ("3d", 0)])
def test_a_trial_ends_before_takers_delete_what_it_counts(
    monkeypatch: pytest.MonkeyPatch, length: str, started: int
) -> None:
    """They delete intervals of days that ended two days ago."""
    done, count = _try(monkeypatch, f"--for={length}")
    assert count == started
    assert isinstance(done.exception, BadInput) is not bool(started)


def test_the_share_of_a_cpu_is_that_of_the_whole_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of the time for which it waits for late intervals."""
    done, _ = _try(monkeypatch, "--for=40h")
    assert "1.0%" in done.stdout
