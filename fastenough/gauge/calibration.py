# SPDX-License-Identifier: GPL-2.0-or-later
"""Calibration of one instrument: its clock against a better one, and its own offset; stored as JSON files."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fastenough.files import Untrusted, read_regular
from fastenough.gauge.protocol import Damaged, Identity, numbers
from fastenough.model import BadInput, FastenoughError
from fastenough.recording import Histogram

_MOST_BYTES = 1 << 20
WINDOWS = 20
"""Of the readings in each of so many parts of the time the quickest counts."""
FREE_PPM = 100.0
"""How far the clock of a computer may be off that nothing corrects: its crystal."""
CORRECTED_PPM = 5.0
"""And of one that is being corrected: between corrections, beside the corrections that were seen."""
_RESONATOR_PPM = 11_000.0
"""How far a ceramic resonator may be off: 0.5 % when made, 0.3 % by temperature, 0.3 % by ageing."""
_CRYSTAL_PPM = 200.0
"""How far a crystal may be off: 30 ppm when made, the rest by temperature, ageing and the capacitors beside it."""
_TOLERANCE_PPM = {"rp2040": _CRYSTAL_PPM}
"""By microcontroller; boards of all others may have a resonator."""
_DRIFT_PPM = {"rp2040": 170.0}
_RESONATOR_DRIFT_PPM = 3_000.0
"""The share of temperature in these tolerances; of a crystal, all but what it is off when made."""


@dataclass(frozen=True)
class Reading:
    """The instrument's ticks, and the host's clock (CLOCK_MONOTONIC) before it was asked and after it answered."""

    ticks: int
    before_ns: int
    after_ns: int

    @property
    def middle_ns(self) -> float:
        return (self.before_ns + self.after_ns) / 2

    @property
    def half_ns(self) -> float:
        """The reading was taken no farther than this from the middle."""
        return (self.after_ns - self.before_ns) / 2


@dataclass(frozen=True)
class Calibration:
    """The measured length of a tick.

    ``uncertainty_ppm`` bounds the comparison; ``reference_ppm`` is what the reference itself may be off (None where a
    recording of an older version does not say).
    """

    tick_ps: float
    uncertainty_ppm: float
    seconds: float
    reference: str = "CLOCK_MONOTONIC of the bench"
    reference_ppm: float | None = None
    readings: int | None = None

    @property
    def total_ppm(self) -> float:
        return self.uncertainty_ppm + (self.reference_ppm or 0.0)

    def off_ppm(self, nominal_ps: int) -> float:
        return (self.tick_ps / nominal_ps - 1) * 1e6

    def agrees_with(self, other: Calibration) -> bool:
        """Whether both may be true of one steady clock, compared with one reference."""
        apart_ppm = abs(self.tick_ps / other.tick_ps - 1) * 1e6
        return apart_ppm <= self.total_ppm + other.total_ppm


def tolerance_ppm(mcu: str) -> float:
    """How far the clock of a gauge on this microcontroller may be off its nominal frequency."""
    return _TOLERANCE_PPM.get(mcu, _RESONATOR_PPM)


def drift_ppm(mcu: str) -> float:
    """How far the clock of a gauge may move after a calibration, by temperature."""
    return _DRIFT_PPM.get(mcu, _RESONATOR_DRIFT_PPM)


def require_possible(calibration: Calibration, identity: Identity) -> None:
    """Raises FastenoughError for a tick that no clock of such a board can have; a simulation has its host's time."""
    off_ppm, most_ppm = calibration.off_ppm(identity.tick_ps), tolerance_ppm(identity.mcu)
    if not identity.simulated and abs(off_ppm) - calibration.total_ppm > most_ppm:
        raise FastenoughError(
            f"the gauge's tick was measured as {calibration.tick_ps:.1f} ps, {off_ppm:+.0f} ppm off; the clock of its "
            f"{identity.mcu} is off by at most {most_ppm:.0f} ppm: calibrate again on a quieter host, or replace the "
            "board"
        )


def usable_tick_ps(calibration: Calibration | None, identity: Identity) -> float:
    """The measured length of a tick if it differs significantly from the nominal one, else the nominal one.

    A simulated gauge counts nominal ticks.  Raises FastenoughError for a tick beyond the clock's tolerance.
    """
    if calibration is None or identity.simulated:
        return identity.tick_ps
    require_possible(calibration, identity)
    off_ppm = abs(calibration.off_ppm(identity.tick_ps))
    if off_ppm <= calibration.total_ppm:
        return identity.tick_ps
    if off_ppm > tolerance_ppm(identity.mcu):
        raise FastenoughError(
            f"the gauge's tick was measured {off_ppm:.0f} ppm off, uncertain by "
            f"{calibration.total_ppm:.0f} ppm, more than its clock can be off; calibrate for longer: "
            "fastenough gauge calibrate -D 5m"
        )
    return calibration.tick_ps


@dataclass(frozen=True)
class HostClock:
    """What the kernel says of the discipline of this machine's clock (adjtimex)."""

    synchronised: bool
    correction_ppm: float

    @staticmethod
    def now() -> HostClock:
        state = _Timex()
        result = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state))
        return HostClock(result not in (-1, _TIME_ERROR) and not state.status & _STA_UNSYNC, state.freq / 65536)


_TIME_ERROR = 5
_STA_UNSYNC = 0x40


class _Timex(ctypes.Structure):
    """struct timex up to the frequency; the rest is only read over."""

    _fields_ = [
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    ]


def host_ppm(begin: HostClock, end: HostClock) -> float:
    """How far the host's clock may have been off in the time between."""
    if not (begin.synchronised and end.synchronised):
        return FREE_PPM
    return CORRECTED_PPM + abs(end.correction_ppm - begin.correction_ppm)


def quickest(readings: Sequence[Reading]) -> list[Reading]:
    """Of each part of the time the reading with the shortest round trip."""
    begin_ns, end_ns = readings[0].before_ns, readings[-1].after_ns
    part_ns = max(1.0, (end_ns - begin_ns) / WINDOWS)
    parts: dict[int, Reading] = {}
    for reading in readings:
        part = int((reading.middle_ns - begin_ns) / part_ns)
        if part not in parts or reading.half_ns < parts[part].half_ns:
            parts[part] = reading
    return [parts[part] for part in sorted(parts)]


def fit(readings: Sequence[Reading], reference_ppm: float | None) -> Calibration:
    """A straight line through the quickest readings.

    The uncertainty: at both ends the line may be off by the farthest that any reading used may lie from it, its own
    round trip and a wandering of the instrument's clock included.  Raises FastenoughError for fewer than two.
    """
    used = quickest(readings) if readings else []
    if len(used) < 2 or used[-1].ticks <= used[0].ticks:
        raise FastenoughError("the gauge's clock could not be read often enough to compare it; calibrate for longer")
    ticks = np.array([reading.ticks - used[0].ticks for reading in used], dtype=float)
    middles = np.array([reading.middle_ns - used[0].middle_ns for reading in used])
    slope, begin = np.polyfit(ticks, middles, 1)
    off_ns = np.abs(middles - (slope * ticks + begin)) + np.array([reading.half_ns for reading in used])
    elapsed_ns = float(middles[-1])
    return Calibration(
        float(slope) * 1000,
        2 * float(off_ns.max()) / elapsed_ns * 1e6,
        elapsed_ns / 1e9,
        reference_ppm=reference_ppm,
        readings=len(readings),
    )


def from_pps(deviations: Histogram, period_ticks: int) -> Calibration:
    """From the deviations of one pulse a second from ``period_ticks``, one nominal second.

    The pulses' own wandering, as seen, is part of the uncertainty.  Raises FastenoughError for fewer than two periods,
    and for pulses that do not come once a second.
    """
    count = deviations.total
    if count < 2 or deviations.minimum is None or deviations.maximum is None:
        raise FastenoughError("fewer than three pulses arrived; wire the pulse per second to the gauge's input")
    elapsed_ticks = count * period_ticks + deviations.sum
    if max(-deviations.minimum, deviations.maximum) > period_ticks // 50:
        raise FastenoughError("the pulses do not arrive once a second; check what is wired to the gauge's input")
    doubt_ticks = deviations.maximum - deviations.minimum + 2
    return Calibration(
        count * 1e12 / elapsed_ticks,
        doubt_ticks / elapsed_ticks * 1e6,
        float(count),
        "pulse per second on the gauge's input",
        0.0,
        count,
    )


@dataclass(frozen=True)
class SelfTest:
    """What the instrument measures of itself with a wire from output to input, in ticks by series."""

    passed: bool
    minimum: dict[int, int]
    maximum: dict[int, int]


def parse_self_test(lines: Sequence[str]) -> SelfTest:
    """From the reply to ``selftest``; raises Damaged."""
    exact = [numbers(line) for line in lines if line.startswith("series=")]
    if any(not {"count", "min", "max"} <= statistics.keys() for statistics in exact):
        raise Damaged(f"{lines[:1]!r} is not a self-test")
    return SelfTest(
        any(line.startswith("selftest=pass") for line in lines),
        {statistics["series"]: statistics["min"] for statistics in exact if statistics["count"]},
        {statistics["series"]: statistics["max"] for statistics in exact if statistics["count"]},
    )


def _json_object(path: Path, serial: str | None) -> dict[str, Any]:
    """The JSON object of a file; raises BadInput if it names another instrument."""
    content = json.loads(read_regular(path.resolve(), _MOST_BYTES))
    if not isinstance(content, dict):
        raise TypeError
    theirs = content.get("serial")
    if serial and theirs and theirs != serial:
        raise BadInput(f"{path}: this file belongs to the gauge {theirs}, not to {serial}; name the file of this gauge")
    return content


def read_self_test(path: Path, serial: str | None = None) -> SelfTest:
    """A self-test stored as JSON (``fastenough gauge selftest --json``); raises BadInput, also for one that failed."""
    try:
        content = _json_object(path, serial)
        by_series = [
            {int(series): int(ticks) for series, ticks in content[name].items()} for name in ("minimum", "maximum")
        ]
        test = SelfTest(bool(content["passed"]), *by_series)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, Untrusted) as error:
        raise BadInput(f"{path}: not a self-test; run: fastenough gauge selftest --json >{path}") from error
    if not test.passed:
        raise BadInput(
            f"{path}: this self-test failed; wire the gauge's output to its input and run: "
            f"fastenough gauge selftest --json >{path}"
        )
    return test


def read_calibration(path: Path, serial: str | None = None) -> Calibration:
    """A calibration stored as JSON (``fastenough gauge calibrate --json``); raises BadInput."""
    try:
        content = _json_object(path, serial)
        calibration = Calibration(
            float(content["tick_ps"]),
            float(content["uncertainty_ppm"]),
            float(content["seconds"]),
            str(content["reference"]),
            float(content["reference_ppm"]),
            int(content["readings"]),
        )
        if not 0 < calibration.tick_ps < 1e9 or not 0 <= calibration.total_ppm < 1e6:
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, Untrusted) as error:
        raise BadInput(f"{path}: not a calibration; run: fastenough gauge calibrate --json >{path}") from error
    return calibration


def chosen(stored: Calibration | None, fresh: Calibration) -> Calibration:
    """The stored calibration; raises BadInput if a short fresh one contradicts it."""
    if stored is None:
        return fresh
    if not stored.agrees_with(fresh):
        off_ppm = abs(stored.tick_ps / fresh.tick_ps - 1) * 1e6
        raise BadInput(
            f"the gauge's clock is {off_ppm:.0f} ppm off the given calibration ({stored.tick_ps:.1f} ps, "
            f"now {fresh.tick_ps:.1f}); check that it is this gauge's, or calibrate again: fastenough gauge calibrate"
        )
    return stored


def described(known: Calibration | SelfTest | None) -> dict[str, object] | None:
    """As a recording's head has it; null for what was not done."""
    return asdict(known) if known else None
