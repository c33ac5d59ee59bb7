# SPDX-License-Identifier: GPL-2.0-or-later
"""A measurement by the gauge, written as a recording: begin, poll once an interval, end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import IO

from fastenough import __version__
from fastenough.gauge.calibration import Calibration, SelfTest, usable_tick_ps
from fastenough.gauge.fine import FINE_K, Fine
from fastenough.gauge.line import GaugeLost
from fastenough.gauge.protocol import Counters, Damaged, Identity, Refused, Restarted
from fastenough.gauge.session import Gauge, describe
from fastenough.model import EMULATED, BadInput, FastenoughError, Outcome, Role, Series
from fastenough.recording import End, Head, Histogram, Instant, RecordingWriter
from fastenough.recording.building import end_line, head_line, interval_line, interval_series, series_end
from fastenough.recording.head import Tool

STREAMED_PERIOD_NS = 125_000
"""8 kHz: above 10 kHz an Uno that sends raw samples drops edges which it would count without."""
STREAMED_WAIT_NS = 175_000
"""Mean wait of RESPONSE: the 5,700 samples a second that an Uno sends.  At 3 µs it drops a fifth of the answers."""
_LEFT_OVER_S = 0.02
_LOOK_S = 0.1
_QUIET_S = 0.05
_CATCH_UP_S = 2.0


@dataclass(frozen=True)
class Response:
    """Stimuli after waits drawn evenly between a minimum and a maximum; answers later than the time-out are lost."""

    min_ns: int
    max_ns: int
    timeout_ns: int
    seed: int | None = None

    @property
    def probe(self) -> str:
        return "response"

    def streams(self, identity: Identity) -> bool:
        """Answers that come while an AVR sends raw samples of others may be dropped; an RP2040 keeps up at any rate."""
        keeps_up = identity.mcu == "rp2040" or self.min_ns + self.max_ns >= 2 * STREAMED_WAIT_NS
        return identity.k < FINE_K and keeps_up

    def start(self, gauge: Gauge, tick_ps: float) -> None:
        gauge.start_response(
            _ticks(gauge, "min", self.min_ns, tick_ps),
            _ticks(gauge, "max", self.max_ns, tick_ps),
            _ticks(gauge, "timeout", self.timeout_ns, tick_ps),
            self.seed,
        )

    def series(self, k: int, tick_ps: int) -> tuple[Series, ...]:
        return tuple(
            Series(
                number,
                f"latency-{edge}",
                "ticks",
                "gauge",
                f"{edge} edge of the gauge's output",
                f"{edge} edge of the board's output",
                k,
                Role.VERDICT,
                tick_ps=tick_ps,
            )
            for number, edge in enumerate(("falling", "rising"))
        )


@dataclass(frozen=True)
class Periodic:
    """Deviations of the time between falling edges from the expected period."""

    period_ns: int
    timeout_ns: int

    @property
    def probe(self) -> str:
        return "periodic"

    def streams(self, identity: Identity) -> bool:
        """Edges that come quicker than raw samples can be sent would be dropped for it.

        A simulated gauge gets them so whatever the period: after a stall of its host they come in a burst.
        """
        return identity.k < FINE_K and self.period_ns >= STREAMED_PERIOD_NS and not identity.simulated

    def start(self, gauge: Gauge, tick_ps: float) -> None:
        """The period is sent in measured ticks: an error of the period is an error of each sample."""
        gauge.start_periodic(
            _ticks(gauge, "period", self.period_ns, tick_ps), _ticks(gauge, "timeout", self.timeout_ns, tick_ps)
        )

    def series(self, k: int, tick_ps: int) -> tuple[Series, ...]:
        return (
            Series(
                0,
                "period-jitter",
                "ticks",
                "gauge",
                "falling edge of the board's output, and one period",
                "its next falling edge",
                k,
                Role.VERDICT,
                two_sided=True,
                tick_ps=tick_ps,
                period_ns=self.period_ns,
            ),
        )


def _ticks(gauge: Gauge, name: str, duration_ns: int, tick_ps: float) -> int:
    """Whole ticks of a duration; raises BadInput for what the instrument's counters cannot hold."""
    ticks = round(duration_ns * 1000 / tick_ps)
    limit = gauge.identity.longest_ticks if name in ("timeout", "period") else 1 << 30
    if ticks > limit:
        most_ns = limit * tick_ps / 1000
        raise BadInput(f"{name} {duration_ns / 1e9:g} s is too long for this gauge; at most {most_ns / 1e9:.3f} s")
    return ticks


@dataclass(frozen=True)
class RunHead:
    """What the head says beyond what the instrument knows.  ``port``: what to call it, where its name is no other's."""

    run_id: str
    implementation: str
    marks: Sequence[str] = ()
    calibration: Calibration | None = None
    self_test: SelfTest | None = None
    port: str | None = None


def _never() -> bool:
    return False


class GaugeRun:
    """One run of the instrument.  ``begin()``, then ``wait()`` and ``poll()`` once an interval, then ``end()``.

    What has been polled is in the recording at once, so that a run cut off at any point keeps its data.
    When the instrument is lost, starts anew, stops by itself or does not come through, ``poll()`` raises a
    FastenoughError; ``end()`` then writes an end that says so.
    """

    def __init__(
        self, gauge: Gauge, request: Response | Periodic, head: RunHead, stream: IO[bytes], interval_ns: int
    ) -> None:
        self._gauge = gauge
        self._request = request
        self._head = head
        self._writer = RecordingWriter(stream)
        self._interval_ns = interval_ns
        self._fine = Fine(request.probe, gauge.identity.k) if request.streams(gauge.identity) else None
        self._k = FINE_K if self._fine else gauge.identity.k
        self._tick_ps = usable_tick_ps(head.calibration, gauge.identity)
        self._series = request.series(self._k, round(self._tick_ps))
        self._seq = 0
        self._totals = {series.id: Histogram(self._k) for series in self._series}
        self._lost = dict.fromkeys(self._totals, 0)
        self._counted: dict[str, int] = {}
        self._since = Instant.now()
        self.counters: Counters | None = None
        """What the instrument said last."""
        self.ended: End | None = None
        """The end, once it is written."""

    def begin(self) -> None:
        """Starts the instrument and writes the head; raises BadInput or Refused, with nothing written."""
        self._gauge.stream(self._fine is not None)
        for _ in self._gauge.frames(_LEFT_OVER_S):
            pass
        self._request.start(self._gauge, self._tick_ps)
        self._look()
        self._since = Instant.now()
        offset_ticks = max(self._head.self_test.maximum.values(), default=0) if self._head.self_test else None
        cost = {} if offset_ticks is None else {"gauge_offset_ns": offset_ticks * self._gauge.identity.tick_ps / 1000}
        instrument = describe(self._gauge, self._head.calibration, self._head.self_test)
        self._writer.line(
            head_line(
                Head(
                    tool=Tool("fastenough-gauge", __version__),
                    run_id=self._head.run_id,
                    probe=self._request.probe,
                    implementation=self._head.implementation,
                    parameters=asdict(self._request),
                    series=self._series,
                    settings=(),
                    cost_ns=cost,
                    interval_ns=self._interval_ns,
                    begin=self._since,
                    marks=self._marks(),
                    instrument=instrument | ({} if self._head.port is None else {"port": self._head.port}),
                )
            )
        )

    def _marks(self) -> frozenset[str]:
        return frozenset(self._head.marks) | ({EMULATED} if self._gauge.identity.simulated else set())

    def _look(self) -> Counters:
        """What the instrument has counted; raises Restarted when it has forgotten what it counted before."""
        now = self._gauge.counters()
        if now.mode != self._request.probe:
            raise Restarted(
                f"the gauge restarted during the run: it no longer runs {self._request.probe}; "
                "look at its supply and its reset button"
            )
        self.counters = now if self.counters is None else now.after(self.counters)
        return self.counters

    def wait(self, seconds: float, asked: Callable[[], bool] = _never) -> None:
        """Lets time pass, until ``asked`` at the latest; raw samples that come meanwhile are taken in."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not asked():
            if self._fine is None:
                time.sleep(min(left, _LOOK_S))
            else:
                self._fine.add(self._gauge.frames(min(left, _LOOK_S)))

    def _catch_up(self, fine: Fine, stored: int) -> None:
        """Takes in raw samples until those have come that the histogram has counted, or nothing comes any more."""
        limit = time.monotonic() + _CATCH_UP_S
        while fine.seen < stored and time.monotonic() < limit:
            with suppress(GaugeLost):  # the next command finds it gone
                if fine.add(self._gauge.frames(_QUIET_S)):
                    continue
            return

    def poll(self) -> None:
        """Reads what has come since the last poll and writes it as one interval; it must be measuring still."""
        if self._read().idle:
            raise GaugeLost("the gauge stopped measuring by itself; samples since then are missing")

    def _read(self) -> Counters:
        """What has come since the last time, as one interval.

        The take comes last: once it has arrived, no fault may keep it from the recording.
        """
        counters = self._look()
        try:
            histograms = self._gauge.take()
        except Refused:
            self._look()
            raise
        common = counters.common | {"replies_damaged": self._gauge.asked_again}
        if self._fine is not None:
            self._catch_up(self._fine, sum(part.total for part in [*self._totals.values(), *histograms.values()]))
            histograms = {series: self._fine.histogram(series, coarse) for series, coarse in histograms.items()}
            common |= {"samples_coarse": self._fine.coarse}
        counted = {name: value - self._counted.get(name, 0) for name, value in common.items()}
        self._counted = common
        end = Instant.now()
        entries = []
        for series in self._totals:
            part = histograms.get(series, Histogram(self._k))
            lost = counters.lost(series) - self._lost[series]
            self._totals[series] = Histogram.merged([self._totals[series], part], self._k)
            self._lost[series] += lost
            entries.append(interval_series(series, part, lost))
        self._writer.line(interval_line(self._seq, self._since, end, entries, counted))
        self._seq += 1
        self._since = end
        return counters

    def _drain(self) -> None:
        """Reads the rest, once nothing is in flight; all that the instrument has stored must have come."""
        self._gauge.rest()
        self._read()
        assert self.counters is not None
        for series, total in self._totals.items():
            stored, came = self.counters.stored(series), total.total
            if stored != came:
                raise Damaged(f"the gauge has stored {stored} samples of series {series}, but {came} arrived")
        unkept = sum(counted.get("unkept", 0) for counted in self.counters.by_series.values())
        if self._fine is not None and self._fine.left > self._fine.coarse + unkept:
            raise Damaged(f"{self._fine.left} raw samples arrived that the gauge's histogram does not contain")

    def end(self, outcome: Outcome = Outcome.COMPLETED, reasons: Sequence[str] = ()) -> Outcome:
        """Stops the instrument, reads the rest, writes the end; the outcome as written."""
        all_reasons = list(reasons)
        try:
            self._drain()
        except FastenoughError as error:
            all_reasons = all_reasons or [str(error)]
            outcome = Outcome.ABORTED if outcome is Outcome.ABORTED else Outcome.FAILED
        except KeyboardInterrupt:
            all_reasons = all_reasons or ["interrupted while the last samples were read"]
            outcome = Outcome.FAILED if outcome is Outcome.FAILED else Outcome.ABORTED
        if outcome is Outcome.COMPLETED and not any(total.total for total in self._totals.values()):
            outcome = Outcome.FAILED
            all_reasons.append("no samples arrived; check the wiring and the board's program")
        series = {number: series_end(total, self._lost[number]) for number, total in self._totals.items()}
        self.ended = End(outcome, tuple(all_reasons), Instant.now(), series, self._counted)
        self._writer.line(end_line(self.ended))
        return outcome
