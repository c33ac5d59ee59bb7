# SPDX-License-Identifier: GPL-2.0-or-later
"""Calibration of one instrument: its clock compared with a better one, and its own offset; stored as JSON files."""

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

_MAX_BYTES = 1 << 20
_UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    Untrusted,
)
"""Errors of an invalid file."""
WINDOWS = 20
"""Number of parts of the calibration time; the reading with the shortest round trip in each part is used."""
FREE_PPM = 100.0
"""Maximum error of a computer's clock without correction: that of its crystal."""
CORRECTED_PPM = 5.0
"""Maximum error of a clock under correction (NTP), in addition to the observed change of the correction."""
_RESONATOR_PPM = 11_000.0
"""Maximum error of a ceramic resonator: 0.5 % manufacturing tolerance, 0.3 % temperature, 0.3 % ageing."""
_CRYSTAL_PPM = 200.0
"""Maximum error of a crystal: 30 ppm manufacturing tolerance, the rest by temperature, ageing and load capacitors."""
_TOLERANCE_PPM = {"rp2040": _CRYSTAL_PPM}
"""By microcontroller; boards with any other may have a resonator."""
_DRIFT_PPM = {"rp2040": 170.0}
_RESONATOR_DRIFT_PPM = 3_000.0
"""The part of these tolerances due to temperature; for a crystal, all but the manufacturing tolerance."""


@dataclass(frozen=True)
class Reading:
    """The instrument's ticks, and the host's clock (CLOCK_MONOTONIC) before the request and after the reply."""

    ticks: int
    before_ns: int
    after_ns: int

    @property
    def middle_ns(self) -> float:
        return (self.before_ns + self.after_ns) / 2

    @property
    def half_ns(self) -> float:
        """Maximum time between the middle and the moment of the reading."""
        return (self.after_ns - self.before_ns) / 2


@dataclass(frozen=True)
class Calibration:
    """The measured length of a tick.

    ``uncertainty_ppm`` is the maximum error of the comparison; ``reference_ppm`` is that of the reference itself (None
    in recordings of older versions).
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
        """True if both are possible for one steady clock, compared with one reference."""
        apart_ppm = abs(self.tick_ps / other.tick_ps - 1) * 1e6
        return apart_ppm <= self.total_ppm + other.total_ppm


def tolerance_ppm(mcu: str) -> float:
    """Maximum error of the clock of a gauge with this microcontroller, relative to the nominal frequency."""
    return _TOLERANCE_PPM.get(mcu, _RESONATOR_PPM)


def drift_ppm(mcu: str) -> float:
    """Maximum change of the clock of a gauge after a calibration, by temperature."""
    return _DRIFT_PPM.get(mcu, _RESONATOR_DRIFT_PPM)


def require_possible(calibration: Calibration, identity: Identity) -> None:
    """Raises FastenoughError for a tick beyond the tolerance of the board's clock; a simulation has its host's time."""
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
    """The kernel's correction of this machine's clock (adjtimex)."""

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
    """struct timex up to the status; the rest is padding."""

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
    """Maximum error of the host's clock between two readings of its correction."""
    if not (begin.synchronised and end.synchronised):
        return FREE_PPM
    return CORRECTED_PPM + abs(end.correction_ppm - begin.correction_ppm)


def quickest(readings: Sequence[Reading]) -> list[Reading]:
    """The reading with the shortest round trip of each part of the time."""
    begin_ns, end_ns = readings[0].before_ns, readings[-1].after_ns
    part_ns = max(1.0, (end_ns - begin_ns) / WINDOWS)
    parts: dict[int, Reading] = {}
    for reading in readings:
        part = int((reading.middle_ns - begin_ns) / part_ns)
        if part not in parts or reading.half_ns < parts[part].half_ns:
            parts[part] = reading
    return [parts[part] for part in sorted(parts)]


def fit(readings: Sequence[Reading], reference_ppm: float | None) -> Calibration:
    """Fit a straight line through the readings with the shortest round trips.

    The uncertainty assumes that each end of the line is off by the greatest distance of any of these readings, which
    includes the round trip and the drift of the instrument's clock.  Raises FastenoughError for fewer than two
    readings.
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


def from_pps(deviations: Histogram, period_ticks: int, lost: int = 0) -> Calibration:
    """Calibration by a pulse per second: its deviations from ``period_ticks``, one nominal second.

    The uncertainty includes the observed variation of the pulses, once for each stretch between ``lost`` periods: the
    variations within a stretch cancel out, except those of its ends.  Raises FastenoughError for fewer than two
    periods, and for pulses that do not arrive once a second.
    """
    count = deviations.total
    if count < 2 or deviations.minimum is None or deviations.maximum is None:
        raise FastenoughError("fewer than three pulses arrived; wire the pulse per second to the gauge's input")
    elapsed_ticks = count * period_ticks + deviations.sum
    if max(-deviations.minimum, deviations.maximum) > period_ticks // 50:
        raise FastenoughError("the pulses do not arrive once a second; check what is wired to the gauge's input")
    spread_ticks = deviations.maximum - deviations.minimum + 2
    return Calibration(
        count * 1e12 / elapsed_ticks,
        (1 + lost) * spread_ticks / elapsed_ticks * 1e6,
        float(count),
        "pulse per second on the gauge's input",
        0.0,
        count,
    )


@dataclass(frozen=True)
class SelfTest:
    """Latency of the instrument itself, measured with a wire from output to input, in ticks by series."""

    passed: bool
    minimum: dict[int, int]
    maximum: dict[int, int]

    @property
    def is_possible(self) -> bool:
        """Whether each series has both extremes, in their order; there is at least one series."""
        return (
            bool(self.minimum)
            and self.minimum.keys() == self.maximum.keys()
            and all(0 <= least <= self.maximum[series] < 1 << 32 for series, least in self.minimum.items())
        )


def parse_self_test(lines: Sequence[str]) -> SelfTest:
    """Parse the reply to ``selftest``; raises Damaged."""
    exact = [numbers(line) for line in lines if line.startswith("series=")]
    if any(not {"count", "min", "max"} <= statistics.keys() for statistics in exact):
        raise Damaged(f"{lines[:1]!r} is not a self-test")
    test = SelfTest(
        any(line.startswith("selftest=pass") for line in lines),
        {statistics["series"]: statistics["min"] for statistics in exact if statistics["count"]},
        {statistics["series"]: statistics["max"] for statistics in exact if statistics["count"]},
    )
    if test.passed and not test.is_possible:
        raise Damaged(f"{lines[:1]!r} is a self-test that passed without an offset")
    return test


def _json_object(path: Path, serial: str | None) -> dict[str, Any]:
    """The JSON object of a file; raises BadInput if it names another instrument."""
    content = json.loads(read_regular(path.resolve(), _MAX_BYTES))
    if not isinstance(content, dict):
        raise TypeError
    file_serial = content.get("serial")
    if serial and file_serial and file_serial != serial:
        raise BadInput(
            f"{path}: this file belongs to the gauge {file_serial}, not to {serial}; name the file of this gauge"
        )
    return content


def read_self_test(path: Path, serial: str | None = None) -> SelfTest:
    """Read a self-test from the JSON of ``fastenough gauge selftest --json``; raises BadInput, also if it failed."""
    try:
        content = _json_object(path, serial)
        by_series = [
            {int(series): int(ticks) for series, ticks in content[name].items()} for name in ("minimum", "maximum")
        ]
        test = SelfTest(content["passed"], *by_series)
        if type(test.passed) is not bool or (test.passed and not test.is_possible):
            raise ValueError
    except _UNREADABLE as error:
        raise BadInput(f"{path}: not a self-test; run: fastenough gauge selftest --json >{path}") from error
    if not test.passed:
        raise BadInput(
            f"{path}: this self-test failed; wire the gauge's output to its input and run: "
            f"fastenough gauge selftest --json >{path}"
        )
    return test


def read_calibration(path: Path, serial: str | None = None) -> Calibration:
    """Read a calibration from the JSON of ``fastenough gauge calibrate --json``; raises BadInput."""
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
        if not 0 < calibration.tick_ps < 1e9 or not calibration.total_ppm < 1e6:
            raise ValueError
        if min(calibration.uncertainty_ppm, calibration.reference_ppm or 0.0) < 0:
            raise ValueError
        if not 0 <= calibration.seconds < 1e9:  # NaN in its head would make a recording unreadable
            raise ValueError
    except _UNREADABLE as error:
        raise BadInput(f"{path}: not a calibration; run: fastenough gauge calibrate --json >{path}") from error
    return calibration


def select_calibration(stored: Calibration | None, fresh: Calibration) -> Calibration:
    """The stored calibration, or the fresh one without it; raises BadInput if they disagree."""
    if stored is None:
        return fresh
    if not stored.agrees_with(fresh):
        off_ppm = abs(stored.tick_ps / fresh.tick_ps - 1) * 1e6
        raise BadInput(
            f"the gauge's clock is {off_ppm:.0f} ppm off the given calibration ({stored.tick_ps:.1f} ps, "
            f"now {fresh.tick_ps:.1f}); check that it is this gauge's, or calibrate again: fastenough gauge calibrate"
        )
    return stored


def head_entry(result: Calibration | SelfTest | None) -> dict[str, object] | None:
    """The entry in the head of a recording; None if it was not measured."""
    return asdict(result) if result else None
