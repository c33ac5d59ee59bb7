# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge, by its serial port: identify, calibrate, start, read, stop."""

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
    host_ppm,
    parse_self_test,
    require_possible,
)
from fastenough.gauge.calibration import described as known
from fastenough.gauge.line import BAUD, GaugeLost, Line
from fastenough.gauge.ports import find_port, serial_of
from fastenough.gauge.protocol import (
    PROTOCOL,
    Counters,
    Damaged,
    Identity,
    Refused,
    Running,
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
"""Opening the port resets most boards, whose boot loader then waits for a while."""
_REST_S = 80.0
"""A gauge that is told to stop completes its cycle: the longest wait, and the longest time-out."""
_PLUG_IN_S = 60.0
_LOOK_S = 0.5
_READINGS = 400
"""Of the clock, in one calibration; round trips vary, and the quickest tell most."""


class Gauge:
    """An instrument on a serial port (or pseudo-terminal), at rest; use it in a ``with`` statement.

    ``was_measuring``: it was still measuring when it was opened, and was stopped.  ``serial``: the adapter's number,
    None without one.
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
            self._running = Running(self.identity.k)
            self.was_measuring = not self.counters().idle
            self.stream(False)
            self.rest()
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

    def ready(self, patience_s: float = _PLUG_IN_S) -> None:
        """Answers, or is opened anew once it has been plugged in again, whatever its port is called then.

        Raises GaugeLost when it does not come back in time, or when another one does.
        """
        known = self.identity
        try:
            self._line.exchange("id")
            return
        except (GaugeLost, Damaged):
            self.close()
        limit = time.monotonic() + patience_s
        while True:
            try:
                self._open(find_port(self.serial or self.port))
                break
            except (BadInput, GaugeLost, Damaged) as error:
                if time.monotonic() > limit:
                    raise GaugeLost(
                        f"{self.port}: the gauge disappeared and did not return within {patience_s:g} s; "
                        f"plug it in again ({error})"
                    ) from error
                time.sleep(_LOOK_S)
        if (self.identity, serial_of(self.port)) != (known, self.serial):
            raise GaugeLost(f"{self.port}: a different gauge was plugged in; begin a new measurement with it")

    @property
    def asked_again(self) -> int:
        """How often a reply was damaged on its way."""
        return self._line.asked_again

    def _identify(self) -> Identity:
        heard = False
        limit = time.monotonic() + _BOOT_S
        while time.monotonic() < limit:
            try:
                identity = parse_identity(self._line.exchange("id", 0.5, 0.5))
            except Damaged:
                heard = True
                self._line.hush(0.5)
            except Refused as error:
                heard = True
                if not error.torn:
                    raise BadInput(f"{self.port}: the device is not a fastenough gauge: {error}") from error
            except GaugeLost:
                heard = heard or self._line.spoken
            else:
                if identity.protocol != PROTOCOL:
                    raise BadInput(
                        f"{self.port}: the gauge's firmware {identity.firmware} speaks protocol "
                        f"{identity.protocol}, this program {PROTOCOL}; run: fastenough gauge flash"
                    )
                return identity
        if heard:
            raise BadInput(
                f"{self.port}: the replies are unreadable at {BAUD} baud; if this is the gauge, "
                "run: fastenough gauge flash"
            )
        raise BadInput(f"{self.port}: no reply; if this is the gauge's port, run: fastenough gauge flash")

    def _tell(self, command: str) -> None:
        self._line.ask(command, _nothing_more)

    def _start(self, command: str) -> None:
        """After a damaged reply it may be measuring already, so it is stopped before the command is repeated."""
        self._line.ask(command, _nothing_more, fix=self.rest)
        self._takes, self._running = 0, Running(self.identity.k)

    def start_response(self, min_ticks: int, max_ticks: int, timeout_ticks: int, seed: int | None = None) -> None:
        """Stimuli after random waits; raises Refused."""
        seeded = "" if seed is None else f" seed={seed}"
        self._start(f"response min={min_ticks} max={max_ticks} timeout={timeout_ticks}{seeded}")

    def start_periodic(self, period_ticks: int, timeout_ticks: int) -> None:
        """Deviations of falling edges from their period; raises Refused."""
        self._start(f"periodic period={period_ticks} timeout={timeout_ticks}")

    def stop(self) -> None:
        """Ends the measurement; a cycle begun is completed, so wait until ``counters().idle``, or use ``rest()``."""
        self._tell("stop")

    def rest(self) -> None:
        """Ends the measurement and waits until nothing is in flight; raises GaugeLost when that takes too long."""
        self.stop()
        limit = time.monotonic() + _REST_S
        while not self.counters().idle:
            if time.monotonic() > limit:
                raise GaugeLost(f"{self.port}: the gauge does not stop; unplug it and plug it in again")
            time.sleep(0.02)

    def counters(self) -> Counters:
        return self._line.ask("stats", parse_counters)

    def take(self) -> dict[int, Histogram]:
        """The histograms since the last take; when this raises, nothing is lost, and the next take has it."""
        self._takes, found = self._line.ask(f"take n={(self._takes + 1) % 256}", self._taken)
        return found

    def _taken(self, lines: list[str]) -> tuple[int, dict[int, Histogram]]:
        take = parse_take(lines, self.identity)
        if take.number != (self._takes + 1) % 256:
            raise Damaged(f"take {take.number} came instead of {(self._takes + 1) % 256}")
        return take.number, self._running.since(take)

    def stream(self, on: bool) -> None:
        """Raw samples too, from now on, or no more."""
        self._tell(f"stream {'on' if on else 'off'}")

    def frames(self, seconds: float) -> Iterator[Frame]:
        """Frames of raw samples as they come, for so long."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            yield from self._line.frames()

    def read_clock(self) -> Reading:
        """Its ticks, and the host's clock before and after."""
        before_ns = time.monotonic_ns()
        ticks = self._line.ask("time", parse_ticks)
        return Reading(ticks, before_ns, time.monotonic_ns())

    def calibrate(self, seconds: float) -> Calibration:
        """Compares the clocks over so many seconds; nothing else is asked meanwhile.

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
        """Compares the clock with pulses on the input, one a second, over so many seconds."""
        second = round(1e12 / self.identity.tick_ps)
        self.start_periodic(second, self.identity.longest_ticks)
        time.sleep(seconds)
        self.rest()
        measured = from_pps(self.take()[0], second)
        require_possible(measured, self.identity)
        return measured

    def self_test(self) -> SelfTest:
        """Needs a wire from output to input, and no board."""
        return self._line.ask("selftest", parse_self_test)


def _nothing_more(lines: list[str]) -> None:
    """Of a reply that is its end mark."""


def describe(gauge: Gauge, calibration: Calibration | None, self_test: SelfTest | None) -> dict[str, object]:
    """The instrument as a recording's head names it; null for what was not done."""
    identity = gauge.identity
    described: dict[str, object] = {
        "name": f"fastenough gauge {identity.firmware} on {identity.mcu}",
        "port": gauge.port,
    }
    described |= asdict(identity)
    return described | {"serial": gauge.serial, "calibration": known(calibration), "self_test": known(self_test)}
