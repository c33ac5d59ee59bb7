# SPDX-License-Identifier: GPL-2.0-or-later
"""The RP2040 gauge over its USB plug: a serial port as Linux knows it, which outlives its host."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fastenough.gauge.stream import Splitter, latencies
from tests.support.gauge_simulation import Build, counters, rows, statistics, wrong_bins
from tests.support.rp2040_simulation import IMAGES, K, play
from tests.support.tools import ROOT

pytestmark = pytest.mark.untimed

DEVICE, CONFIGURATION, INTERFACE, ENDPOINT, OF_CLASS = 1, 2, 4, 5, 0x24
ACM = [2, 2]
DATA_CLASS = 10
UNION = 6


def _descriptors(told: list[int]) -> list[list[int]]:
    found = []
    while told:
        found.append(told[: told[0]])
        told = told[told[0] :]
    return found


def test_it_is_a_serial_port_as_linux_knows_them(gauge_build: Build) -> None:
    """What the kernel's cdc_acm asks for; and its number is the flash's, by which it is found again."""
    told = json.loads(play(gauge_build, ["usb"])[0][0])
    vendor, product = (f"{told['device'][at + 1]:02x}{told['device'][at]:02x}" for at in (8, 10))
    parts = _descriptors(told["configuration"])
    assert all(len(part) == part[0] for part in parts)
    assert parts[0][1] == CONFIGURATION and parts[0][4] == 2
    interfaces = [part for part in parts if part[1] == INTERFACE]
    assert [part[2] for part in interfaces] == [0, 1]
    assert interfaces[0][5:7] == ACM and interfaces[1][5] == DATA_CLASS
    assert [part[3:] for part in parts if part[1:3] == [OF_CLASS, UNION]] == [[0, 1]]
    assert sorted(part[2] for part in parts if part[1] == ENDPOINT) == [0x01, 0x81, 0x82]
    assert told["strings"] == ["fastenough", "fastenough gauge", "E6605838832A4521"]
    assert told["refused"], "a string that it has not"
    assert told["coding"] == [0x20, 0xA1, 0x07, 0, 0, 0, 8], "500,000 baud, as the host has set it"
    rules = (ROOT / "gauge" / "70-fastenough-gauge.rules").read_text()
    assert re.search(rf'ID_VENDOR_ID}}=="[^"]*\b{vendor}\b', rules)
    assert product == "000a"


RUNS = {
    "response": ["count 1", "say response min=16000 max=24000 count=100 seed=7", "run 5500000"],
    "periodic": ["expect 12500", "say periodic period=12500", "square 12500 700 3000 200", "run 3000000", "say stop"],
}


@pytest.mark.parametrize("mode", RUNS)
def test_a_run_over_usb_is_that_over_the_pins(gauge_build: Build, tmp_path: Path, mode: str) -> None:
    """Replies and raw samples, byte by byte, but for when that was, and whether the first stimulus came late for it."""
    carried = []
    for image in IMAGES:
        raw = tmp_path / image
        play(gauge_build, ["say stream on", f"raw {raw}", *RUNS[mode], "say stats", "say take", "say hist"], image)
        frames = Splitter()
        text = re.sub(rb"(ticks|late)=\d+", b"", frames.text(raw.read_bytes()))
        carried.append((text, [sample for frame in frames.frames for sample in frame.samples]))
    assert carried[0] == carried[1]
    assert len(carried[0][1]) == (200 if mode == "response" else 199)


def test_every_sample_is_streamed_at_the_rate_of_the_measurement(gauge_build: Build, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    stats = play(
        gauge_build,
        [
            f"raw {raw}",
            "say stream on",
            "count 1",
            "say response min=2000 max=2500 count=500",
            "run 4000000",
            "say stats",
        ],
    )[2]
    frames = Splitter()
    frames.text(raw.read_bytes())
    assert counters(stats)["stream_dropped"] == 0
    assert [sample for frame in frames.frames for sample in latencies(frame)] == [
        (number % 2, number + 1) for number in range(1000)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "interruption",
    [
        ["reset"],
        ["close", "run 500000", "open"],
        ["type hist", "run 4000", "reset"],
        ["hold 1", "type hist", "run 900000", "close", "run 300000", "hold 0", "open"],
    ],
)
def test_a_host_that_goes_and_comes_leaves_the_measurement_alone(gauge_build: Build, interruption: list[str]) -> None:
    """Also with a reply under way, which is not there any more when the port is opened again."""
    again, stopped, stats, taken, truth = play(
        gauge_build,
        [
            "follow 300 2000",
            "say response min=375 max=3000 timeout=100000",
            "run 500000",
            *interruption,
            "run 2500000",
            "say id",
            "say stop",
            "run 200000",
            "say stats",
            "say take",
            f"truth {K}",
        ],
    ).blocks[1:6]
    count = counters(stats)
    assert len(again) == 2 and again[0].startswith("gauge=fastenough "), "no rest of an older reply"
    assert stopped == ["ok lines=0"]
    assert stats[0].startswith("state=idle")
    assert wrong_bins(taken, truth) == 0
    assert sum(rows(taken).values()) == count["sent"] > 500
    assert [count[what] for what in ("spurious", "resyncs", "bytes_dropped")] == [0, 0, 0]


def test_a_host_that_does_not_read_costs_raw_samples_only(gauge_build: Build) -> None:
    stats, taken, truth = play(
        gauge_build,
        [
            "say stream on",
            "follow 300 2000",
            "say response min=375 max=3000 timeout=100000",
            "hold 1",
            "run 2000000",
            "hold 0",
            "say stop",
            "run 200000",
            "say stats",
            "say take",
            f"truth {K}",
        ],
    ).blocks[3:6]
    count = counters(stats)
    assert count["stream_dropped"] > 100
    assert wrong_bins(taken, truth) == 0
    assert statistics(taken) == statistics(truth)
    assert sum(rows(taken).values()) == count["sent"] > 500


def test_no_command_is_lost_however_many_come(gauge_build: Build, tmp_path: Path) -> None:
    """More than its memory holds, while it measures: the host is told to wait."""
    raw = tmp_path / "raw"
    play(
        gauge_build,
        ["follow 300 2000", "say response min=375 max=3000", f"raw {raw}", *(["type time"] * 80), "run 3000000"],
    )
    assert raw.read_bytes().count(b"ok lines=1\r\n") == 80
