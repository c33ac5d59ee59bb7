# SPDX-License-Identifier: GPL-2.0-or-later
"""Interrupts off in a real kernel: instrument, self-measurement and counts all find what was injected."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastenough.model import FastenoughError
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import CHECKOUT, build_module
from fastenough.virtual.packages import fetch
from tests.support.virtual_boards import (
    ONE_OF_EACH,
    OWN_KERNELS,
    every_kernel,
    insert,
    require_simulated_gauge,
    unload_module,
)

ROOT = Path(__file__).resolve().parents[3]
INJECT = CHECKOUT / "target" / "module" / "inject"
SIZES_MS = (20, 40, 80)
EACH = 3


@pytest.fixture(scope="module", autouse=True)
def gauge_can_be_simulated() -> None:
    require_simulated_gauge()


def _calibrated() -> tuple[int, list[dict[str, Any]]]:
    """Status and calibrations of one run of the command; what was not found is told with its reason."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "fastenough",
            "calibrate",
            "--board=virtual:rt",
            f"--each={EACH}",
            f"--sizes={','.join(f'{size}ms' for size in SIZES_MS)}",
            "--json",
        ],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
    )
    calibrations = json.loads(done.stdout)["calibrations"]
    for row in (row for calibration in calibrations for row in calibration["rows"]):
        assert row["injected"] <= EACH <= row["injected"] + row["too_late"], "what came too late is tried again"
        assert len(row["reasons"]) >= row["injected"] - row["detected"]
    return done.returncode, calibrations


def test_every_witness_finds_what_every_injector_injects() -> None:
    """A host that is busy stops the emulated board for longer than what is injected: then it is tried again."""
    for _ in range(3):
        status, calibrations = _calibrated()
        if all(row["detected"] == row["injected"] for calibration in calibrations for row in calibration["rows"]):
            break
    assert len(calibrations) == 5
    assert sum("gauge" in calibration["witness"] for calibration in calibrations) == 2
    for calibration in calibrations:
        assert calibration["passed"] or calibration["shortfall"], calibration
        assert sum(row["injected"] for row in calibration["rows"]) > 0
        assert [row["requested_ns"] for row in calibration["rows"]] == [size * 10**6 for size in SIZES_MS]
        for row in calibration["rows"]:
            assert row["detected"] == row["injected"], row["reasons"]
    shown = all(calibration["passed"] for calibration in calibrations)
    assert status == (0 if shown else 3), "on a busy machine not everything may be shown; nothing is missed"


@pytest.mark.parametrize("name", every_kernel(*ONE_OF_EACH, among=OWN_KERNELS))
def test_the_module_builds_for_every_kernel(name: str) -> None:
    assert build_module(fetch(name), INJECT).name == "fastenough_inject.ko"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"sizes_ns": "900000000"}, "choose up to"),
        ({"sizes_ns": "60000000"}, "at least twice as long"),
        ({"each": 5}, "at least one size"),
        ({"sizes_ns": "1000000", "each": 100000}, "at most"),
        ({"sizes_ns": "1000000", "cpu": 77}, "not online"),
    ],
)
def test_the_module_refuses_what_would_hurt(
    refusing: VirtualBoard, parameters: dict[str, str | int], said: str
) -> None:
    with pytest.raises(FastenoughError, match=said):
        insert(refusing, build_module(refusing.kernel, INJECT), parameters)


@pytest.fixture(scope="module")
def refusing() -> Iterator[VirtualBoard]:
    with VirtualBoard("stock") as board:
        yield board


def test_taken_out_in_mid_injection_nothing_is_left(refusing: VirtualBoard) -> None:
    insert(
        refusing,
        build_module(refusing.kernel, INJECT),
        {"sizes_ns": "40000000", "each": 1000, "interval_ns": 100000000},
    )
    unload_module(refusing, "fastenough_inject")
    assert not refusing.link.exists("/dev/fastenough_inject")
    assert not [line for line in refusing.link.run(["dmesg"]).text.splitlines() if "BUG" in line or "Oops" in line]
