# SPDX-License-Identifier: GPL-2.0-or-later
"""The monitor calibrated in a guest: each delay is found at its station, and the task's samples are the monitor's."""

from __future__ import annotations

import json

import pytest

from fastenough.analysis.station_delays import STATIONS
from tests.support.cli_calls import command_line
from tests.support.tools import require

EACH = 5
JOINED = 0.995
_LONGEST_S = 900.0
pytestmark = [pytest.mark.matrix, pytest.mark.timeout(_LONGEST_S + 60.0)]


@pytest.mark.parametrize("kernel", ["stock", "rt"])
def test_each_station_is_found_in_a_guest(kernel: str) -> None:
    """Emulation is late by more than the sizes may be off: the counts are judged, and the order of the sizes."""
    require("clang")
    done = command_line(
        "calibrate", "--monitor", f"--board=virtual:{kernel}", f"--each={EACH}", "--json", timeout_s=_LONGEST_S
    )
    assert done.returncode in (0, 3), done.stderr
    found = json.loads(done.stdout)
    assert [trial["station"] for trial in found["stations"]] == list(STATIONS)
    assert [trial["injector"].split(",")[0] for trial in found["stations"]] == ["module", "BPF", "BPF", "BPF"]
    for trial in found["stations"]:
        tries = 1 if trial["injector"].startswith("module") else 2
        assert trial["passed"] or trial["shortfall"]
        for row in trial["rows"]:
            assert row["injected"] == EACH or row["injected"] + row["too_late"] == tries * EACH
            assert (row["detected"], row["at_other_station"]) == (row["injected"] - row["unrecorded"], 0)
    held = [who for row in found["stations"][STATIONS.index("running-to-return")]["rows"] for who, _ in row["culprits"]]
    assert not any(who.startswith(("task ", "the idle CPU")) for who in held), "nobody took the CPU from it"
    (agreed,) = found["agreement"]
    assert agreed["matched"] >= JOINED * (agreed["activations"] - agreed["awake"]) - 1, (
        "one in so few is more than the rest"
    )
    assert agreed["remainder_ns"][0] >= 0
