# SPDX-License-Identifier: GPL-2.0-or-later
"""A measurement by the gauge, written as a recording: begin, poll once an interval, end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

import numpy as np

from fastenough import __version__
from fastenough.gauge.calibration import Calibration, SelfTest, usable_tick_ps
from fastenough.gauge.line import GaugeLost
from fastenough.gauge.protocol import Counters, Damaged, Identity, Refused, Restarted
from fastenough.gauge.raw_samples import FINE_K, RawSamples
from fastenough.gauge.session import Gauge, describe
from fastenough.model import EMULATED, BadInput, FastenoughError, Outcome, Role, Series
from fastenough.recording import End, Head, Histogram, Instant, RecordingWriter
from fastenough.recording.building import LineStream, end_line, head_line, interval_line, interval_series, series_end
from fastenough.recording.head import Tool

STREAMED_PERIOD_NS = 125_000
"""8 kHz: above 10 kHz an Uno that sends raw samples drops edges that it otherwise counts."""
STREAMED_WAIT_NS = 175_000
"""Mean wait of RESPONSE for the 5,700 samples a second that an Uno sends.  At 3 µs it drops a fifth of the answers."""
_STALE_FRAMES_S = 0.02
_POLL_S = 0.1
_QUIET_S = 0.05
_CATCH_UP_S = 2.0
_LATE_TIMEOUT_S = 0.5
"""Maximum time from the end of a time-out to the moment that its count is read."""
_LARGE_SHARE = 0.25
"""Least deviation, as a share of the period, that is no jitter of an edge on time."""


@dataclass(frozen=True)
class Response:
    """Stimuli after uniformly distributed waits; answers after the time-out are lost."""

    min_ns: int
    max_ns: int
    timeout_ns: int
    seed: int | None = None

    @property
    def probe(self) -> str:
        return "response"

    def streams(self, identity: Identity) -> bool:
        """True if raw samples are sent: an AVR may drop answers while it sends them; an RP2040 keeps up at any rate."""
        keeps_up = identity.mcu == "rp2040" or self.min_ns + self.max_ns >= 2 * STREAMED_WAIT_NS
        return identity.k < FINE_K and keeps_up

    def start(self, gauge: Gauge, tick_ps: float) -> None:
        gauge.start_response(
            _ticks(gauge, "min", self.min_ns, tick_ps),
            _ticks(gauge, "max", self.max_ns, tick_ps),
            _ticks(gauge, "timeout", self.timeout_ns, tick_ps),
            self.seed,
        )

    def missed(self, part: Histogram, tick_ps: float) -> int:
        """None: each stimulus has an answer, or a time-out that counts as lost."""
        return 0

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
        """True if raw samples are sent: for shorter periods the gauge would drop edges.

        A simulated gauge sends none: after a stall of its host, edges arrive in a burst.
        """
        return identity.k < FINE_K and self.period_ns >= STREAMED_PERIOD_NS and not identity.simulated

    def start(self, gauge: Gauge, tick_ps: float) -> None:
        """Start with the period in measured ticks: an error of the period is an error of each sample."""
        gauge.start_periodic(
            _ticks(gauge, "period", self.period_ns, tick_ps), _ticks(gauge, "timeout", self.timeout_ns, tick_ps)
        )

    def missed(self, part: Histogram, tick_ps: float) -> int:
        """Number of due edges of an interval that did not come."""
        return missed_periods(part, self.period_ns * 1000 / tick_ps)

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


def missed_periods(part: Histogram, period_ticks: float) -> int:
    """Number of due edges that did not come, by the deviations of one interval.

    A deviation of n periods, or little less, leaves out n edges.  The edges of a board that makes up for a stall come
    early by as much; such edges are not missed, so the number is at most the sum of the large deviations in periods.
    Values count as the highest of their buckets.
    """
    if part.maximum is None:
        return 0
    deviations = np.minimum(part.highest(), part.maximum)
    skipped = int((part.count * np.maximum(deviations / period_ticks + _LARGE_SHARE, 0).astype(np.int64)).sum())
    is_large = np.abs(deviations) >= period_ticks * _LARGE_SHARE
    net = round(float((part.count * deviations)[is_large].sum()) / period_ticks)
    return min(skipped, max(0, net))


def _measuring(counters: Counters) -> Counters:
    """The counters; raises GaugeLost if the gauge no longer measures."""
    if counters.idle:
        raise GaugeLost("the gauge stopped measuring by itself; samples since then are missing")
    return counters


def _ticks(gauge: Gauge, name: str, duration_ns: int, tick_ps: float) -> int:
    """A duration in whole ticks; raises BadInput if the instrument does not support it."""
    ticks = round(duration_ns * 1000 / tick_ps)
    limit = gauge.identity.longest_ticks if name in ("timeout", "period") else 1 << 30
    if ticks > limit:
        most_ns = limit * tick_ps / 1000
        raise BadInput(f"{name} {duration_ns / 1e9:g} s is too long for this gauge; at most {most_ns / 1e9:.3f} s")
    return ticks


@dataclass(frozen=True)
class RunHead:
    """The parts of the head that the instrument does not provide.  ``port`` overrides the name of the port."""

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

    Each poll writes its data to the recording at once, so an interrupted run keeps its data.  If the instrument is
    lost, restarts, stops by itself or sends damaged replies, ``poll()`` raises a FastenoughError; ``end()`` then writes
    an end with the reason.
    """

    def __init__(
        self, gauge: Gauge, request: Response | Periodic, head: RunHead, stream: LineStream, interval_ns: int
    ) -> None:
        self._gauge = gauge
        self._request = request
        self._head = head
        self._writer = RecordingWriter(stream)
        self._interval_ns = interval_ns
        self._raw = RawSamples(request.probe, gauge.identity.k) if request.streams(gauge.identity) else None
        self._k = FINE_K if self._raw else gauge.identity.k
        self._tick_ps = usable_tick_ps(head.calibration, gauge.identity)
        self._series = request.series(self._k, round(self._tick_ps))
        self._seq = 0
        self._totals = {series.id: Histogram(self._k) for series in self._series}
        self._lost = dict.fromkeys(self._totals, 0)
        self._missed = dict.fromkeys(self._totals, 0)
        self._counted: dict[str, int] = {}
        self._since = Instant.now()
        self.counters: Counters | None = None
        """The latest counters of the instrument."""
        self.end_record: End | None = None
        """The end of the recording; None until it is written."""

    def begin(self) -> None:
        """Starts the instrument and writes the head; raises BadInput or Refused, with nothing written."""
        self._gauge.stream(self._raw is not None)
        for _ in self._gauge.frames(_STALE_FRAMES_S):
            pass
        self._request.start(self._gauge, self._tick_ps)
        self._read_counters()
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

    def _read_counters(self) -> Counters:
        """The instrument's counters; raises Restarted if it restarted during the run."""
        now = self._gauge.counters()
        if now.mode != self._request.probe:
            raise Restarted(
                f"the gauge restarted during the run: it no longer runs {self._request.probe}; "
                "look at its supply and its reset button"
            )
        self.counters = now if self.counters is None else now.after(self.counters)
        return self.counters

    def wait(self, seconds: float, stop_requested: Callable[[], bool] = _never) -> None:
        """Wait, at most until ``stop_requested()``; stores the raw samples that arrive meanwhile."""
        end = time.monotonic() + seconds
        while (left_s := end - time.monotonic()) > 0 and not stop_requested():
            if self._raw is None:
                time.sleep(min(left_s, _POLL_S))
            else:
                self._raw.add(self._gauge.frames(min(left_s, _POLL_S)))

    def _catch_up(self, raw: RawSamples, stored: int) -> None:
        """Store raw samples until all that the histogram has counted have arrived, or no more arrive."""
        limit = time.monotonic() + _CATCH_UP_S
        while raw.sent < stored and time.monotonic() < limit:
            with suppress(GaugeLost):  # the next command raises it again
                if raw.add(self._gauge.frames(_QUIET_S)):
                    continue
            return

    def complete_cycle(self) -> None:
        """Wait until the period in progress ends, by its edge or its time-out; raises GaugeLost.

        Else a stall that lasts to the end of the run would be neither a sample nor lost.  RESPONSE completes its cycle
        when it is stopped.  For a board that still runs: after its last edge, a period is lost.
        """
        if not isinstance(self._request, Periodic):
            return
        before = self._ended_periods()
        limit = time.monotonic() + self._request.timeout_ns / 1e9 + _LATE_TIMEOUT_S
        while self._ended_periods() == before and time.monotonic() < limit:
            self.wait(_QUIET_S)

    def _ended_periods(self) -> int:
        counters = _measuring(self._read_counters())
        return counters.stored(0) + counters.lost(0)

    def poll(self) -> None:
        """Write the samples since the last poll as one interval; raises GaugeLost if the gauge stopped measuring."""
        _measuring(self._read())

    def _read(self) -> Counters:
        """Write the samples since the last call as one interval.

        The take is the last request: no later error may keep its data from the recording.
        """
        counters = self._read_counters()
        try:
            histograms = self._gauge.take()
        except Refused:
            self._read_counters()
            raise
        common = counters.common | {"replies_damaged": self._gauge.repeated_requests}
        if self._raw is not None:
            self._catch_up(self._raw, sum(part.total for part in [*self._totals.values(), *histograms.values()]))
            histograms = {series: self._raw.histogram(series, coarse) for series, coarse in histograms.items()}
            common |= {"samples_coarse": self._raw.coarse}
        counted = {name: value - self._counted.get(name, 0) for name, value in common.items()}
        self._counted = common
        end = Instant.now()
        entries = []
        for series in self._totals:
            part = histograms.get(series, Histogram(self._k))
            lost = counters.lost(series) - self._lost[series]
            missed = self._request.missed(part, self._tick_ps)
            self._totals[series] = Histogram.merged([self._totals[series], part], self._k)
            self._lost[series] += lost
            self._missed[series] += missed
            entries.append(interval_series(series, part, lost, missed))
        self._writer.line(interval_line(self._seq, self._since, end, entries, counted))
        self._seq += 1
        self._since = end
        return counters

    def _drain(self) -> None:
        """Stop the instrument and read the rest; raises Damaged unless all stored samples arrived."""
        self._gauge.stop_and_wait()
        self._read()
        assert self.counters is not None
        for series, total in self._totals.items():
            stored, received = self.counters.stored(series), total.total
            if stored != received:
                raise Damaged(f"the gauge has stored {stored} samples of series {series}, but {received} arrived")
        unkept = sum(counted.get("unkept", 0) for counted in self.counters.by_series.values())
        if self._raw is not None and self._raw.uncounted > self._raw.coarse + unkept:
            raise Damaged(f"{self._raw.uncounted} raw samples arrived that the gauge's histogram does not contain")

    def end(self, outcome: Outcome = Outcome.COMPLETED, reasons: Sequence[str] = ()) -> Outcome:
        """Stop the instrument, read the rest and write the end; returns the outcome written."""
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
        series = {
            number: series_end(total, self._lost[number], self._missed[number])
            for number, total in self._totals.items()
        }
        self.end_record = End(outcome, tuple(all_reasons), Instant.now(), series, self._counted)
        self._writer.line(end_line(self.end_record))
        return outcome
