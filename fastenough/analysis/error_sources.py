# SPDX-License-Identifier: GPL-2.0-or-later
"""The sources of error of a printed latency: one function for each (docs/method.md, "Measurement uncertainty").

An error is the printed latency minus the true one.  Each source bounds it, from what the recording says; what the
recording does not say is unknown, and only its direction is stated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from fastenough.analysis.machine import counts_instructions, is_emulated
from fastenough.gauge.calibration import drift_ppm, tolerance_ppm
from fastenough.model import IMPORTED, Series
from fastenough.recording import Recording
from fastenough.recording.histogram import bucket_highest, bucket_lowest, bucket_of

CLOCK_TICKS_NS = {"acpi_pm": 1e9 / 3_579_545, "hpet": 100.0}
"""The tick of a clock source by its specification: of the ACPI timer exactly, of the HPET at most."""
CLOCK_RATE_PPM = 500.0
"""The most by which Linux corrects the rate of its clock (MAXFREQ); a crystal alone is off by less."""
EDGE_NS = 10.0
"""Delay of an edge on the wires that docs/gauge.md shows."""
_PIN_PROBES = ("response", "periodic")
_MOST = 1e12
"""Greater numbers in a head are no errors of a clock; they are taken for unknown."""


class Basis(StrEnum):
    """What the bound of an error rests on."""

    MEASURED = "measured for this run"
    SPECIFIED = "data sheet or specification"
    FORMAT = "property of the format"
    METHOD = "property of the method"
    ASSUMED = "assumed, not recorded"
    UNKNOWN = "not recorded"


class Direction(StrEnum):
    """What an error can make of the printed latency."""

    GREATER = "too great"
    SMALLER = "too small"
    EITHER = "too great or too small"
    NONE = "none"


@dataclass(frozen=True)
class Printed:
    """A printed latency, and the least value of the bucket that it is the upper edge of (itself: stored exactly)."""

    name: str
    value_ns: float
    least_ns: float


@dataclass(frozen=True)
class ErrorBound:
    """Printed minus true latency lies between ``low`` and ``high``, in ``unit`` of ``sensitivity_ns`` each.

    None: unknown, and only ``unknown`` gives its direction.  ``varies``: the error is another one in each value, so
    that a maximum selects the values in which such errors add up.  ``evaluation``: "A" from a series of observations,
    "B" otherwise.
    """

    source: str
    basis: Basis
    low: float | None
    high: float | None
    unit: str = "ns"
    sensitivity_ns: float = 1.0
    varies: bool = False
    evaluation: str = "B"
    unknown: Direction = Direction.EITHER

    @property
    def direction(self) -> Direction:
        """What this error can make of the printed latency."""
        if self.low is None or self.high is None:
            return self.unknown
        if self.low == self.high == 0 or not self.sensitivity_ns:
            return Direction.NONE
        return Direction.GREATER if self.low >= 0 else Direction.SMALLER if self.high <= 0 else Direction.EITHER

    def symmetric(self) -> ErrorBound:
        """The bound of a magnitude: the error of a negative value has the other sign."""
        if self.low is None or self.high is None:
            return replace(self, unknown=Direction.EITHER)
        magnitude = max(abs(self.low), abs(self.high))
        return replace(self, low=-magnitude, high=magnitude)

    def joined(self, other: ErrorBound) -> ErrorBound:
        """The bound that holds for values of both kinds; unknown if one is."""
        if None in (self.low, self.high, other.low, other.high):
            unknown, other_bound = (self, other) if self.low is None else (other, self)
            is_same_direction = other_bound.direction in (unknown.direction, Direction.NONE)
            return unknown if is_same_direction else replace(unknown, unknown=Direction.EITHER)
        assert self.low is not None and self.high is not None and other.low is not None and other.high is not None
        return replace(self, low=min(self.low, other.low), high=max(self.high, other.high))

    def with_zero(self) -> ErrorBound:
        """The bound that also holds for values without this error."""
        if self.low is None or self.high is None:
            return self
        return replace(self, low=min(self.low, 0.0), high=max(self.high, 0.0))


def _unknown(source: str, direction: Direction) -> ErrorBound:
    return ErrorBound(source, Basis.UNKNOWN, None, None, unknown=direction)


def _no_error(source: str, basis: Basis = Basis.METHOD) -> ErrorBound:
    return ErrorBound(source, basis, 0.0, 0.0)


@dataclass(frozen=True)
class RecordedInstrument:
    """What a head says of its instrument; None: not stated.  ``offset_ticks``: least and greatest of its self-test."""

    simulated: bool
    mcu: str
    k: int | None
    tick_ps: float | None
    uncertainty_ppm: float | None
    reference_ppm: float | None
    offset_ticks: tuple[float, float] | None
    coarse: bool


@dataclass(frozen=True)
class Resolution:
    """The greatest step of a clock."""

    step_ns: float
    basis: Basis


@dataclass(frozen=True)
class MeasuredBy:
    """How values of a series were measured.  ``across``: the two events are on different CPUs.

    ``charged``: missed periods are values; ``uncharged``: missed periods that no value stands for; ``lost``: values
    that were not stored.
    """

    unit_ns: float
    period_ns: int | None
    two_sided: bool
    resolution: Resolution | None
    read_ns: float | None
    across: bool
    pins: bool
    emulated: bool
    instructions: bool
    imported: bool
    corrected: bool
    charged: bool
    uncharged: bool
    lost: bool
    probe: str
    instrument: RecordedInstrument | None

    @property
    def by_board(self) -> bool:
        """Whether the board read its own clock, and a program of this project recorded it."""
        return self.instrument is None and not self.imported


def _number(content: Any, name: str) -> float | None:
    """A number that may be an error; None for anything else that a head may hold."""
    value = content.get(name) if isinstance(content, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _MOST else None


def _offset(content: Any, series: Series) -> tuple[float, float] | None:
    contents = [content.get(name) if isinstance(content, Mapping) else None for name in ("minimum", "maximum")]
    low, high = (_number(content_of_end, str(series.id)) for content_of_end in contents)
    return None if low is None or high is None else (low, high)


def _instrument(recording: Recording, series: Series) -> RecordedInstrument | None:
    content = recording.head.instrument
    if content is None:
        return None
    k, calibration = content.get("k"), content.get("calibration")
    coarse = recording.end.counters.get("samples_coarse") if recording.end else None
    return RecordedInstrument(
        simulated=is_emulated(recording),
        mcu=str(content.get("mcu")),
        k=k if type(k) is int and 0 <= k <= series.k else None,
        tick_ps=_number(calibration, "tick_ps"),
        uncertainty_ppm=_number(calibration, "uncertainty_ppm"),
        reference_ppm=_number(calibration, "reference_ppm"),
        offset_ticks=_offset(content.get("self_test"), series),
        coarse=bool(coarse),
    )


def _resolution(recording: Recording) -> Resolution | None:
    """Readings are whole ns, so a measured step is up to 1 ns too small."""
    measured = _number(recording.head.cost_ns, "clock_step_ns")
    if measured is not None:
        return Resolution(measured + 1.0, Basis.MEASURED)
    tick_ns = CLOCK_TICKS_NS.get(str((recording.head.profile or {}).get("clocksource")))
    return None if tick_ns is None else Resolution(tick_ns, Basis.SPECIFIED)


def measured_by(recording: Recording, series: Series, unit_ns: float) -> MeasuredBy:
    """``unit_ns``: with which the values are printed; merged values are printed with the greatest of all runs."""
    head = recording.head
    missed = recording.missed(series.id) > 0
    return MeasuredBy(
        unit_ns=unit_ns,
        period_ns=series.period_ns,
        two_sided=series.two_sided,
        resolution=_resolution(recording),
        read_ns=None if head.implementation.endswith("-kernel") else _number(head.cost_ns, "clock_read_ns"),
        across=series.labels.get("placement", "same") != "same",
        pins=head.probe in _PIN_PROBES,
        emulated=is_emulated(recording),
        instructions=counts_instructions(recording),
        imported=IMPORTED in head.marks,
        corrected=series.corrected,
        charged=series.corrected and missed,
        uncharged=missed and not series.corrected,
        lost=recording.lost(series.id) > 0,
        probe=head.probe,
        instrument=_instrument(recording, series),
    )


# The board's own clock ---------------------------------------------------------------------------


def _clock_resolution(by: MeasuredBy, printed: Printed) -> Iterator[ErrorBound]:
    """A reading shows an instant up to one step ago; a due time is exact, so that only the second event is read."""
    source, direction = "resolution of the clock", Direction.SMALLER if by.period_ns else Direction.EITHER
    if by.instrument is not None:
        return
    if by.resolution is None:
        yield _unknown(source, direction)
    else:
        step_ns = by.resolution.step_ns
        yield ErrorBound(source, by.resolution.basis, -step_ns, 0.0 if by.period_ns else step_ns, varies=True)


def _clock_reading(by: MeasuredBy, printed: Printed) -> Iterator[ErrorBound]:
    """The clock is read after the event, or before and after: up to one reading is part of the value."""
    if by.instrument is not None:
        return
    source = "reading of the clock"
    if by.read_ns is None:
        yield _unknown(source, Direction.GREATER)
        return
    yield ErrorBound(source, Basis.MEASURED, 0.0, by.read_ns, varies=True)
    yield _unknown("first reading after a sleep, beyond that", Direction.GREATER)


def _time_stamps(by: MeasuredBy, printed: Printed) -> Iterator[ErrorBound]:
    """Where the two events are not those of interest: pins change before and after the program's time stamps."""
    if not by.by_board:
        return
    if by.period_ns:
        yield _no_error("position of the first time stamp: the due time")
    elif by.pins:
        yield _unknown("position of the first time stamp: after the edge at the pin", Direction.SMALLER)
    if by.pins:
        yield _unknown("position of the second time stamp: at the write, not at the pin", Direction.EITHER)
    if by.across:
        yield _unknown("difference between the clocks of two CPUs", Direction.EITHER)


def _clock_rate(by: MeasuredBy, printed: Printed) -> Iterator[ErrorBound]:
    source = "rate of the board's clock"
    if by.instrument is not None:
        return
    if by.instructions:
        yield _no_error("rate of the board's clock: it counts instructions")
    elif by.emulated:
        yield _unknown(source, Direction.EITHER)
    else:
        yield _rate_error(source, Basis.SPECIFIED, -CLOCK_RATE_PPM, CLOCK_RATE_PPM, abs(printed.value_ns))


def _rate_error(source: str, basis: Basis, low_ppm: float, high_ppm: float, length_ns: float) -> ErrorBound:
    return ErrorBound(source, basis, low_ppm, high_ppm, "ppm", length_ns / 1e6)


# The instrument ----------------------------------------------------------------------------------


def _ticks(by: MeasuredBy, printed: Printed) -> Iterator[ErrorBound]:
    """A response is stamped in whole ticks after a stimulus on a tick; a period is between two stamped edges."""
    if by.instrument is None:
        return
    high = 1.0 if by.two_sided else 0.0
    yield ErrorBound("quantisation of the instrument", Basis.METHOD, -1.0, high, "ticks", by.unit_ns, varies=True)
    if by.two_sided:
        yield ErrorBound("expected period in whole ticks", Basis.METHOD, -0.5, 0.5, "ticks", by.unit_ns)


def _instrument_offset(by: MeasuredBy, printed: Printed) -> Iterator[ErrorBound]:
    """What the self-test measures from output to input, in whole ticks, so that it may be up to one more."""
    source, gauge = "offset of the instrument: capture and synchroniser", by.instrument
    if gauge is None:
        return
    if by.two_sided:
        yield _no_error(f"{source}, the same at both edges")
    elif gauge.offset_ticks is None:
        yield _unknown(source, Direction.GREATER)
    else:
        low, high = gauge.offset_ticks
        yield ErrorBound(source, Basis.MEASURED, low, high + 1.0, "ticks", by.unit_ns)


def _instrument_clock(by: MeasuredBy, printed: Printed) -> Iterator[ErrorBound]:
    """Its rate, by the calibration: the difference between the tick used and the measured one is known."""
    gauge = by.instrument
    if gauge is None:
        return
    if gauge.simulated:
        yield _no_error("rate of the instrument's clock: simulated")
        return
    length_ns = abs(printed.value_ns) + (by.period_ns or 0 if by.two_sided else 0)
    if gauge.tick_ps is None or gauge.tick_ps < 1 or gauge.uncertainty_ppm is None:
        limit_ppm = tolerance_ppm(gauge.mcu)
        yield _rate_error(
            "rate of the instrument's clock, not calibrated", Basis.SPECIFIED, -limit_ppm, limit_ppm, length_ns
        )
        return
    off_ppm = (by.unit_ns * 1000.0 / gauge.tick_ps - 1.0) * 1e6
    low, high = off_ppm - gauge.uncertainty_ppm, off_ppm + gauge.uncertainty_ppm
    observed = _rate_error("calibration of the instrument's clock", Basis.MEASURED, low, high, length_ns)
    yield replace(observed, evaluation="A")
    if gauge.reference_ppm is None:
        yield _unknown("reference of the calibration", Direction.EITHER)
    else:
        limit_ppm = gauge.reference_ppm
        yield _rate_error("reference of the calibration", Basis.MEASURED, -limit_ppm, limit_ppm, length_ns)
    limit_ppm = drift_ppm(gauge.mcu)
    yield _rate_error("drift of the instrument's clock since then", Basis.SPECIFIED, -limit_ppm, limit_ppm, length_ns)


def _wires(by: MeasuredBy, printed: Printed) -> Iterator[ErrorBound]:
    if by.instrument is not None and not by.instrument.simulated and not by.two_sided:
        yield ErrorBound("edges on the wires, wired as documented", Basis.ASSUMED, 0.0, 2 * EDGE_NS)


# What is stored ----------------------------------------------------------------------------------


def _imported_unit(by: MeasuredBy, printed: Printed) -> Iterator[ErrorBound]:
    """Whether the other tool rounds or truncates is not known."""
    if by.imported:
        yield ErrorBound("unit of the imported file", Basis.FORMAT, -1.0, 1.0, "units", by.unit_ns, varies=True)


def _bucket(by: MeasuredBy, printed: Printed) -> Iterator[ErrorBound]:
    """A quantile is the upper edge of a bucket; extremes are stored exactly."""
    width_ns = printed.value_ns - printed.least_ns
    yield ErrorBound("width of the bucket", Basis.FORMAT, 0.0, 1.0, "buckets", width_ns)


def _coarse_samples(by: MeasuredBy, printed: Printed) -> Iterator[ErrorBound]:
    """A raw sample that was lost on the line is anywhere in its bucket of the instrument."""
    gauge, source = by.instrument, "raw samples lost on the line"
    if gauge is None or not gauge.coarse or printed.value_ns == printed.least_ns:
        return
    if gauge.k is None or not by.unit_ns:
        yield _unknown(source, Direction.EITHER)
        return
    value = round(printed.value_ns / by.unit_ns)
    index = [bucket_of(value, gauge.k)]
    low, high = int(bucket_lowest(index, gauge.k)[0]), int(bucket_highest(index, gauge.k)[0])
    yield ErrorBound(source, Basis.FORMAT, float(value - high), float(value - low), "ticks", by.unit_ns)


def _charges(by: MeasuredBy, printed: Printed) -> Iterator[ErrorBound]:
    """A charge is the time from its due time to the act that ended the stall: it has the error of that act."""
    if by.charged:
        yield _no_error("charges for missed periods: as exact as the act that ended them")
    elif by.corrected:
        yield _no_error("charges for missed periods: no period was missed", Basis.MEASURED)
    if by.uncharged:
        yield _unknown("missed periods that no value stands for", Direction.SMALLER)
    if by.lost:
        yield _unknown("values that were not stored", Direction.EITHER)


SOURCES: tuple[Callable[[MeasuredBy, Printed], Iterator[ErrorBound]], ...] = (
    _clock_resolution,
    _clock_reading,
    _time_stamps,
    _clock_rate,
    _ticks,
    _instrument_offset,
    _instrument_clock,
    _wires,
    _imported_unit,
    _bucket,
    _coarse_samples,
    _charges,
)
"""In the order of printing."""
