# SPDX-License-Identifier: GPL-2.0-or-later
"""What is known of an instrument: the length of its tick with its uncertainty, and its own offset."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from pathlib import Path

import pytest

from fastenough.campaign import read_plan
from fastenough.gauge.calibration import (
    CORRECTED_PPM,
    FREE_PPM,
    Calibration,
    HostClock,
    Reading,
    fit,
    from_pps,
    host_ppm,
    parse_self_test,
    read_calibration,
    read_self_test,
    select_calibration,
    usable_tick_ps,
)
from fastenough.gauge.protocol import Damaged, Identity
from fastenough.gauge.session import Gauge
from fastenough.model import BadInput, FastenoughError
from fastenough.recording import Histogram, read_recording
from tests.support.gauge_simulation import Follower, RealtimeGauge, gauge_command
from tests.support.json_documents import require_valid
from tests.support.presence import present

HERTZ = 16_000_000
AHEAD_NS = 900_000_000
PASSED = {"passed": True, "minimum": {"0": 3, "1": 3}, "maximum": {"0": 3, "1": 4}}
CLOCK = {
    "tick_ps": 62_480.5,
    "uncertainty_ppm": 2.5,
    "seconds": 300.0,
    "reference": "CLOCK_MONOTONIC of the bench",
    "reference_ppm": 5.0,
    "readings": 400,
    "serial": "A1",
}


def readings(off_ppm: float, seconds: float = 300.0, count: int = 400, wander_ppm: float = 0.0) -> list[Reading]:
    """A gauge that is so much too slow, asked over a line with round trips of 1 to 30 ms, asymmetric at random."""
    drawn = random.Random(7)
    taken = []
    for number in range(count):
        at_ns = number * seconds * 1e9 / (count - 1)
        slow = off_ppm + wander_ppm * number / (count - 1)
        before_ms, after_ms = (0.5 + drawn.expovariate(0.3) for _ in range(2))
        taken.append(
            Reading(
                round(at_ns / 1e9 * HERTZ / (1 + slow / 1e6)) + 777,
                round(at_ns - before_ms * 1e6),
                round(at_ns + after_ms * 1e6),
            )
        )
    return taken


@pytest.mark.parametrize("off_ppm", [-5000.0, -40.0, 0.0, 40.0, 5000.0])
def test_the_length_of_a_tick_lies_within_its_uncertainty(off_ppm: float) -> None:
    calibration = fit(readings(off_ppm), FREE_PPM)
    assert abs(calibration.off_ppm(62_500) - off_ppm) <= calibration.uncertainty_ppm < 30
    assert calibration.total_ppm == calibration.uncertainty_ppm + FREE_PPM


def test_longer_is_surer() -> None:
    assert fit(readings(40.0, 300.0), 0.0).uncertainty_ppm < fit(readings(40.0, 10.0), 0.0).uncertainty_ppm / 10


def test_one_slow_answer_does_not_count() -> None:
    steady = readings(40.0)
    slow = steady[200]
    steady[200] = Reading(slow.ticks, slow.before_ns, slow.after_ns + 700_000_000)
    assert fit(steady, 0.0) == fit(readings(40.0), 0.0)


def test_a_clock_that_wanders_is_less_sure() -> None:
    wandering = fit(readings(0.0, wander_ppm=400.0), 0.0)
    assert wandering.uncertainty_ppm > fit(readings(0.0), 0.0).uncertainty_ppm + 20


def test_too_few_readings_are_no_calibration() -> None:
    with pytest.raises(FastenoughError, match="longer"):
        fit([], 0.0)
    with pytest.raises(FastenoughError, match="longer"):
        fit([Reading(5, 0, 10)], 0.0)
    with pytest.raises(FastenoughError, match="longer"):
        fit([Reading(5, 0, 10), Reading(5, 10**9, 10**9 + 10)], 0.0)


def test_the_host_s_own_clock_is_part_of_it() -> None:
    corrected = HostClock(True, -12.0)
    assert host_ppm(corrected, HostClock(False, -12.0)) == FREE_PPM
    assert host_ppm(corrected, corrected) == CORRECTED_PPM
    assert host_ppm(corrected, HostClock(True, -14.5)) == CORRECTED_PPM + 2.5
    assert abs(HostClock.now().correction_ppm) <= 500


def test_a_pulse_per_second_gives_the_tick() -> None:
    """100 ppm too slow: a second holds 1600 ticks fewer; the pulses wander by three ticks."""
    calibration = from_pps(Histogram.from_values([-1600, -1599, -1602, -1599], 4), HERTZ)
    assert calibration.off_ppm(62_500) == pytest.approx(100.0, abs=0.1)
    assert calibration.uncertainty_ppm == pytest.approx(5 / (4 * HERTZ) * 1e6, rel=1e-3)
    assert calibration.reference_ppm == 0.0


def test_lost_pulses_are_part_of_its_uncertainty() -> None:
    """Each stretch between lost pulses has ends of its own, whose variations do not cancel out."""
    drawn, outside = random.Random(3), 0
    for _ in range(200):
        edges = [round((second * 1e12 + drawn.uniform(-2e7, 2e7)) / 62_500) for second in range(60)]
        arrived = [second for second in range(60) if drawn.random() < 0.5]
        pairs = [(early, late) for early, late in itertools.pairwise(arrived) if late == early + 1]
        deviations = [edges[late] - edges[early] - HERTZ for early, late in pairs]
        lost = len(arrived) - 1 - len(pairs)
        measured = from_pps(Histogram.from_values(deviations, 4), HERTZ, lost)
        outside += abs(measured.off_ppm(62_500)) > measured.uncertainty_ppm
    assert outside == 0


@pytest.mark.parametrize(
    ("deviations", "said"),
    [
        ([], "fewer than three"),
        ([5], "fewer than three"),
        ([0, 8_000_000], "once a second"),
        ([-HERTZ // 10] * 9, "once a second"),
    ],
)
def test_other_pulses_are_refused(deviations: list[int], said: str) -> None:
    with pytest.raises(FastenoughError, match=said):
        from_pps(Histogram.from_values(deviations, 4), HERTZ)


@pytest.mark.slow
def test_the_simulated_gauge_keeps_the_time_it_is_paced_by(instrument: RealtimeGauge, tmp_path: Path) -> None:
    done = gauge_command("calibrate", instrument.port, "-D", "3s", "--json")
    assert done.returncode == 0, done.stderr
    measured = require_valid("gauge calibrate", done.stdout)
    assert abs(measured["tick_ps"] / 62_500 - 1) * 1e6 <= measured["uncertainty_ppm"] + measured["reference_ppm"]
    assert measured["readings"] > 50
    clock = kept(tmp_path, measured)
    Follower(instrument.pins)
    record = tmp_path / "run.jsonl"
    ran = gauge_command(
        "run", "response", instrument.port, "--record", str(record), "-D", "500ms", "--calibration", str(clock)
    )
    assert ran.returncode == 0, ran.stderr
    head = present(read_recording(record).head.instrument, "instrument")["calibration"]
    assert head == {name: value for name, value in measured.items() if name not in ("serial", "version")}
    wrong = gauge_command(
        "run",
        "response",
        instrument.port,
        "--record",
        str(tmp_path / "no"),
        "--calibration",
        str(kept(tmp_path, measured | {"tick_ps": 31_250, "uncertainty_ppm": 1.0})),
    )
    assert wrong.returncode == 2
    assert "calibrate again" in wrong.stderr
    assert not (tmp_path / "no").exists()


@pytest.mark.slow
def test_the_simulated_gauge_against_pulses(instrument: RealtimeGauge) -> None:
    """A pulse per 1.001 of the simulation's seconds: the gauge seems to be 1000 ppm too quick.

    Each pulse is announced before its time, so that it keeps that time where this machine is busy.
    """
    board = Follower(instrument.pins)
    ending = threading.Event()

    def pulses() -> None:
        due_ns = time.monotonic_ns() + AHEAD_NS
        while not ending.wait(max(0.0, (due_ns - AHEAD_NS - time.monotonic_ns()) / 1e9)):
            board.say(f"in 0 {due_ns}\nin 1 {due_ns + 10_000_000}\n")
            due_ns += 1_001_000_000

    thread = threading.Thread(target=pulses)
    thread.start()
    try:
        done = gauge_command("calibrate", instrument.port, "--pps", "-D", "5s", "--json")
    finally:
        ending.set()
        thread.join()
    assert done.returncode == 0, done.stderr
    measured = require_valid("gauge calibrate", done.stdout)
    assert measured["reference"].startswith("pulse per second")
    assert abs((measured["tick_ps"] / 62_500 - 1) * 1e6 + 1000) <= measured["uncertainty_ppm"] + 1


def test_without_pulses_there_is_no_calibration(instrument: RealtimeGauge) -> None:
    done = gauge_command("calibrate", instrument.port, "--pps", "-D", "100ms")
    assert (done.returncode, done.stdout) == (4, "")
    assert "wire the pulse per second" in done.stderr


def kept(folder: Path, content: object) -> Path:
    path = folder / "kept.json"
    path.write_text(json.dumps(content))
    return path


def test_a_kept_calibration_is_used_while_a_fresh_one_does_not_contradict_it(tmp_path: Path) -> None:
    calibration = read_calibration(kept(tmp_path, CLOCK), "A1")
    assert select_calibration(None, calibration) is calibration
    near = Calibration(62_480.5 * (1 + 300e-6), 250.0, 2.0, reference_ppm=100.0)
    assert select_calibration(calibration, near) is calibration
    far = Calibration(62_480.5 * (1 + 400e-6), 250.0, 2.0, reference_ppm=100.0)
    with pytest.raises(BadInput, match=r"400 ppm off .* calibrate again"):
        select_calibration(calibration, far)


@pytest.mark.parametrize(
    "content",
    [
        {},
        [],
        None,
        "x",
        {**CLOCK, "tick_ps": 0},
        {**CLOCK, "tick_ps": None},
        {**CLOCK, "uncertainty_ppm": float("nan")},
        {**CLOCK, "reference_ppm": -1e9},
        {**CLOCK, "uncertainty_ppm": -3},
        {**CLOCK, "seconds": float("nan")},
        {**CLOCK, "seconds": float("inf")},
        {**CLOCK, "readings": float("inf")},
    ],
)
def test_what_is_no_calibration_is_refused(tmp_path: Path, content: object) -> None:
    with pytest.raises(BadInput, match="not a calibration; run"):
        read_calibration(kept(tmp_path, content))


@pytest.mark.parametrize("ticks", [float("inf"), float("nan"), -1, 1 << 32, 10**400])
def test_what_is_no_self_test_is_refused(tmp_path: Path, ticks: float) -> None:
    content = {"passed": True, "minimum": {"0": 5}, "maximum": {"0": ticks}}
    with pytest.raises(BadInput, match="not a self-test; run"):
        read_self_test(kept(tmp_path, content))


@pytest.mark.parametrize(
    "change",
    [
        {"passed": "false"},
        {"minimum": {}, "maximum": {}},
        {"minimum": {"0": 5, "1": 3}},
        {"maximum": {"0": 3}},
    ],
)
def test_a_self_test_without_an_offset_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="not a self-test; run"):
        read_self_test(kept(tmp_path, PASSED | change))


@pytest.mark.parametrize("lines", [[], ["series=0 count=0 min=0 max=0"], ["series=0 count=256 min=3 max=2"]])
def test_a_reply_that_passes_without_an_offset_is_damaged(lines: list[str]) -> None:
    with pytest.raises(Damaged):
        parse_self_test([*lines, "selftest=pass cycles=256"])


def test_files_of_another_gauge_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="belongs to the gauge A1, not to B2"):
        read_calibration(kept(tmp_path, CLOCK), "B2")
    with pytest.raises(BadInput, match="belongs to the gauge A1, not to B2"):
        read_self_test(kept(tmp_path, {**PASSED, "serial": "A1"}), "B2")


def test_a_self_test_that_failed_gives_no_offset(tmp_path: Path) -> None:
    assert read_self_test(kept(tmp_path, PASSED)).maximum == {0: 3, 1: 4}
    with pytest.raises(BadInput, match="this self-test failed"):
        read_self_test(kept(tmp_path, {**PASSED, "passed": False}))


REAL = """
name = "mine"
board = "local"
instrument = "/dev/ttyACM0"
configurations = ["stock"]
implementations = ["linux-user"]
[pins]
chip = "gpio"
in = 1
out = 2
[[run]]
probe = "response"
"""


def test_a_plan_for_a_real_gauge_names_its_self_test(tmp_path: Path) -> None:
    """Without it no head could say the gauge's own offset."""
    path = tmp_path / "plan.toml"
    path.write_text(REAL)
    with pytest.raises(BadInput, match="gauge's own offset must be known"):
        read_plan(path)
    path.write_text('self-test = "gauge.json"\ncalibration = "/lab/clock.json"\n' + REAL)
    instrument = read_plan(path).instrument
    assert instrument is not None
    assert (instrument.self_test, instrument.calibration) == (str(tmp_path / "gauge.json"), "/lab/clock.json")


@pytest.mark.parametrize("line", ['self-test = "gauge.json"', 'calibration = "clock.json"', "self-test = 5"])
def test_a_plan_for_the_simulated_gauge_names_no_file(tmp_path: Path, line: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f'{line}\nname = "mine"\ninstrument = "simulated"\n')
    with pytest.raises(BadInput, match=r"plan.toml:1: (self-test|calibration) = "):
        read_plan(path)


def _identity(mcu: str, tick_ps: int, simulated: bool = False) -> Identity:
    return Identity("1", mcu, 3, tick_ps, 4, 24, simulated)


@pytest.mark.parametrize(
    ("mcu", "tick_ps", "off_ppm", "uncertain_ppm", "used"),
    [
        ("atmega328p", 62_500, 771_200, 100, None),
        ("atmega328p", 62_500, -13_000, 100, None),
        ("atmega328p", 62_500, 10_000, 100, 1.01),
        ("atmega328p", 62_500, -5_000, 100, 0.995),
        ("atmega328p", 62_500, 50, 100, 1.0),
        ("atmega328p", 62_500, 13_000, 12_000, None),
        ("rp2040", 8_000, 5_000, 100, None),
        ("rp2040", 8_000, 150, 10, 1.00015),
    ],
)
def test_a_tick_that_no_such_clock_has_is_refused(
    mcu: str, tick_ps: int, off_ppm: float, uncertain_ppm: float, used: float | None
) -> None:
    """A host that is held up between its readings makes 110.7 ns of 62.5 seem sure."""
    measured = Calibration(tick_ps * (1 + off_ppm / 1e6), uncertain_ppm, 2.0)
    if used is None:
        with pytest.raises(FastenoughError):
            usable_tick_ps(measured, _identity(mcu, tick_ps))
    else:
        assert usable_tick_ps(measured, _identity(mcu, tick_ps)) == pytest.approx(tick_ps * used)
    assert usable_tick_ps(measured, _identity(mcu, tick_ps, simulated=True)) == tick_ps


def test_an_impossible_comparison_ends_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    gauge = object.__new__(Gauge)
    gauge.identity = _identity("atmega328p", 62_500)
    begun_ns = time.monotonic_ns()

    def read_clock() -> Reading:
        now_ns = time.monotonic_ns()
        return Reading(round((now_ns - begun_ns) / 110.7), now_ns, now_ns)

    monkeypatch.setattr(gauge, "read_clock", read_clock)
    with pytest.raises(FastenoughError):
        gauge.calibrate(0.05)
    gauge.identity = _identity("atmega328p", 62_500, simulated=True)
    assert gauge.calibrate(0.05).tick_ps == pytest.approx(110_700, rel=0.01)
