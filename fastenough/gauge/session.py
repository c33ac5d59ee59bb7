# SPDX-License-Identifier: GPL-2.0-or-later
"""A session with a gauge on a serial port: identify, calibrate, start, read, stop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from types import TracebackType

from fastenough.gauge.calibration import (
    Calibration,
    HostClock,
    Reading,
    SelfTest,
    fit,
    from_pps,
    head_entry,
    host_ppm,
    parse_self_test,
    require_possible,
)
from fastenough.gauge.line import BAUD, GaugeLost, Line
from fastenough.gauge.ports import find_port, serial_of
from fastenough.gauge.protocol import (
    PROTOCOL,
    Counters,
    Damaged,
    Identity,
    Refused,
    RunningCounts,
    parse_counters,
    parse_identity,
    parse_take,
    parse_ticks,
)
from fastenough.gauge.stream import Frame
from fastenough.model import BadInput
from fastenough.recording import Histogram

__all__ = ["Gauge", "GaugeLost", "describe"]

_BOOT_S = 4.0
"""Opening the port resets most boards, and their boot loader waits for a while."""
_STOP_S = 80.0
"""A stopped gauge completes its cycle: the longest wait plus the longest time-out."""
_PLUG_IN_S = 60.0
_RETRY_S = 0.5
_READINGS = 400
"""Readings of the clock in one calibration; round trips vary, and the shortest are the most exact."""


class Gauge:
    """An instrument on a serial port (or pseudo-terminal); opening it stops it.  Use it in a ``with`` statement.

    ``was_measuring``: it was measuring when it was opened.  ``serial``: serial number of the adapter, None without one.
    """

    def __init__(self, port: str) -> None:
        self.serial = serial_of(port)
        self._open(port)

    def _open(self, port: str) -> None:
        self.port = port
        self._line = Line(port)
        self._takes = 0
        try:
            self.identity = self._identify()
            self._running = RunningCounts(self.identity.k)
            self.was_measuring = not self.counters().idle
            self.stream(False)
            self.stop_and_wait()
            self._line.frames()
        except BaseException:
            self._line.close()
            raise

    def __enter__(self) -> Gauge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._line.close()

    def reconnect(self, patience_s: float = _PLUG_IN_S) -> bool:
        """Check that the gauge replies; else wait until it is plugged in again and open its port, whatever its name.

        True if its port was opened again: a gauge without a serial number may be another one of the same kind.  Raises
        GaugeLost if it does not return in time, or if it is another gauge.
        """
        known = self.identity
        try:
            self._line.request("id", parse_identity)
            return False
        except (GaugeLost, Damaged, Refused):
            self.close()
        limit = time.monotonic() + patience_s
        while True:
            try:
                self._open(find_port(self.serial or self.port))
                break
            except (BadInput, GaugeLost, Damaged, Refused) as error:
                if time.monotonic() > limit:
                    raise GaugeLost(
                        f"{self.port}: the gauge disappeared and did not return within {patience_s:g} s; "
                        f"plug it in again ({error})"
                    ) from error
                time.sleep(_RETRY_S)
        if (self.identity, serial_of(self.port)) != (known, self.serial):
            raise GaugeLost(f"{self.port}: a different gauge was plugged in; begin a new measurement with it")
        return True

    @property
    def repeated_requests(self) -> int:
        """Number of damaged replies."""
        return self._line.repeated_requests

    def _identify(self) -> Identity:
        replied = False
        limit = time.monotonic() + _BOOT_S
        while time.monotonic() < limit:
            try:
                identity = parse_identity(self._line.exchange("id", 0.5, 0.5))
            except Damaged:
                replied = True
                self._line.discard_input(0.5)
            except Refused as error:
                replied = True
                if not error.command_damaged:
                    raise BadInput(f"{self.port}: the device is not a fastenough gauge: {error}") from error
            except GaugeLost:
                replied = replied or self._line.has_partial_input
            else:
                if identity.protocol != PROTOCOL:
                    raise BadInput(
                        f"{self.port}: the gauge's firmware {identity.firmware} speaks protocol "
                        f"{identity.protocol}, this program {PROTOCOL}; run: fastenough gauge flash"
                    )
                return identity
        if replied:
            raise BadInput(
                f"{self.port}: the replies are unreadable at {BAUD} baud; if this is the gauge, "
                "run: fastenough gauge flash"
            )
        raise BadInput(f"{self.port}: no reply; if this is the gauge's port, run: fastenough gauge flash")

    def _command(self, command: str) -> None:
        self._line.request(command, _discard_lines)

    def _start(self, command: str) -> None:
        """Start a measurement; after a damaged reply the gauge may be measuring, so it is stopped before a retry."""
        self._line.request(command, _discard_lines, before_retry=self.stop_and_wait)
        self._takes, self._running = 0, RunningCounts(self.identity.k)

    def start_response(self, min_ticks: int, max_ticks: int, timeout_ticks: int, seed: int | None = None) -> None:
        """Stimuli after random waits; raises Refused."""
        seeded = "" if seed is None else f" seed={seed}"
        self._start(f"response min={min_ticks} max={max_ticks} timeout={timeout_ticks}{seeded}")

    def start_periodic(self, period_ticks: int, timeout_ticks: int) -> None:
        """Deviations of falling edges from their period; raises Refused."""
        self._start(f"periodic period={period_ticks} timeout={timeout_ticks}")

    def stop(self) -> None:
        """End the measurement after the current cycle; to wait for that, use ``stop_and_wait()``."""
        self._command("stop")

    def stop_and_wait(self) -> None:
        """End the measurement and wait until the gauge is idle; raises GaugeLost if that takes too long."""
        self.stop()
        limit = time.monotonic() + _STOP_S
        while not self.counters().idle:
            if time.monotonic() > limit:
                raise GaugeLost(f"{self.port}: the gauge does not stop; unplug it and plug it in again")
            time.sleep(0.02)

    def counters(self) -> Counters:
        return self._line.request("stats", parse_counters)

    def take(self) -> dict[int, Histogram]:
        """Histograms of the samples since the last take; if this raises, the next take includes them."""
        self._takes, histograms = self._line.request(f"take n={(self._takes + 1) % 256}", self._parse_take)
        return histograms

    def _parse_take(self, lines: list[str]) -> tuple[int, dict[int, Histogram]]:
        take = parse_take(lines, self.identity)
        if take.number != (self._takes + 1) % 256:
            raise Damaged(f"take {take.number} came instead of {(self._takes + 1) % 256}")
        return take.number, self._running.new_samples(take)

    def stream(self, on: bool) -> None:
        """Switch the stream of raw samples on or off."""
        self._command(f"stream {'on' if on else 'off'}")

    def frames(self, seconds: float) -> Iterator[Frame]:
        """Frames of raw samples that arrive within this time."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            yield from self._line.frames()

    def read_clock(self) -> Reading:
        """Read the gauge's ticks, with the host's clock before and after."""
        before_ns = time.monotonic_ns()
        ticks = self._line.request("time", parse_ticks)
        return Reading(ticks, before_ns, time.monotonic_ns())

    def calibrate(self, seconds: float) -> Calibration:
        """Compare the gauge's clock with the host's for this time, without other commands.

        Raises FastenoughError for a tick that the gauge's clock cannot have.
        """
        host_at_begin = HostClock.now()
        readings = [self.read_clock()]
        end_ns = readings[0].before_ns + round(seconds * 1e9)
        while (left_ns := end_ns - time.monotonic_ns()) > 0:
            time.sleep(min(left_ns / 1e9, seconds / _READINGS))
            readings.append(self.read_clock())
        measured = fit(readings, host_ppm(host_at_begin, HostClock.now()))
        require_possible(measured, self.identity)
        return measured

    def calibrate_by_pps(self, seconds: float) -> Calibration:
        """Compare the gauge's clock with a pulse per second on its input for this time."""
        second = round(1e12 / self.identity.tick_ps)
        self.start_periodic(second, self.identity.longest_ticks)
        time.sleep(seconds)
        self.stop_and_wait()
        measured = from_pps(self.take()[0], second, self.counters().lost(0))
        require_possible(measured, self.identity)
        return measured

    def self_test(self) -> SelfTest:
        """Run the self-test, which needs a wire from output to input instead of a board."""
        return self._line.request("selftest", parse_self_test)


def _discard_lines(lines: list[str]) -> None:
    """Parser of a reply without lines."""


def describe(gauge: Gauge, calibration: Calibration | None, self_test: SelfTest | None) -> dict[str, object]:
    """The instrument's entry in the head of a recording; None for results that were not measured."""
    identity = gauge.identity
    described: dict[str, object] = {
        "name": f"fastenough gauge {identity.firmware} on {identity.mcu}",
        "port": gauge.port,
    }
    described |= asdict(identity)
    return described | {
        "serial": gauge.serial,
        "calibration": head_entry(calibration),
        "self_test": head_entry(self_test),
    }
