# SPDX-License-Identifier: GPL-2.0-or-later
"""The instrument of a plan: opened for a board, it measures while the board's task runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fastenough.board import Booted
from fastenough.campaign.plan import Instrument
from fastenough.campaign.transcript import Transcript
from fastenough.gauge.calibration import Calibration, SelfTest, read_calibration, read_self_test, select_calibration
from fastenough.gauge.ports import find_port, serial_of
from fastenough.gauge.run import GaugeRun, Periodic, Response, RunHead
from fastenough.gauge.session import Gauge
from fastenough.implementations import Counted
from fastenough.model import FastenoughError, Outcome
from fastenough.recording.building import end_line, line_bytes
from fastenough.virtual.gauge import SimulatedGauge, simulated_self_test

INTERVAL_NS = 1_000_000_000
_CALIBRATION_S = 1.0
_SIMULATOR_COUNTS = ("edges_out", "edges_in", "put_back", "put_off", "bytes_dropped")


@dataclass(frozen=True)
class OpenInstrument:
    """An open gauge with its calibration and self-test; ``name``: its port, or ``simulated``."""

    gauge: Gauge
    calibration: Calibration
    self_test: SelfTest
    name: str
    simulated: SimulatedGauge | None = None


@contextmanager
def open_instrument(instrument: Instrument, booted: Booted) -> Iterator[OpenInstrument]:
    """Open the plan's instrument; raise BadInput if no gauge of this version answers on the port."""
    if instrument.simulated:
        simulated = booted.wire_gauge()
        with Gauge(simulated.terminal) as gauge:
            yield OpenInstrument(
                gauge, gauge.calibrate(_CALIBRATION_S), simulated_self_test(), instrument.port, simulated
            )
        return
    port = find_port(instrument.port)
    self_test = read_self_test(Path(instrument.self_test), serial_of(port))
    stored = read_calibration(Path(instrument.calibration), serial_of(port)) if instrument.calibration else None
    with Gauge(port) as gauge:
        yield OpenInstrument(
            gauge, select_calibration(stored, gauge.calibrate(_CALIBRATION_S)), self_test, instrument.port
        )


class _Lines:
    """File-like object that passes a recording's lines on, except the end line, which is completed later."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript

    def write(self, raw: bytes) -> int:
        if json.loads(raw)["type"] != "end":
            self._transcript.take(raw)
        return len(raw)

    def flush(self) -> None:
        """Do nothing: lines are passed on at once."""


class InstrumentRun:
    """One run of the instrument, parallel to one task of the board.

    Call ``begin()``, ``poll()`` until the duration has passed, ``end()``, and ``close()`` with the board's counts.
    """

    def __init__(
        self, instrument: OpenInstrument, request: Response | Periodic, implementation: str, transcript: Transcript
    ) -> None:
        if instrument.simulated is None and instrument.gauge.reconnect() and instrument.gauge.serial is None:
            select_calibration(instrument.calibration, instrument.gauge.calibrate(_CALIBRATION_S))
        self._instrument = instrument
        self._request = request
        self._transcript = transcript
        self._before = self._simulator_counts()
        self._begin_mono_ns = 0
        self._task_started_ns: int | None = None
        head = RunHead(
            "", implementation, calibration=instrument.calibration, self_test=instrument.self_test, port=instrument.name
        )
        self._run = GaugeRun(instrument.gauge, request, head, _Lines(transcript), INTERVAL_NS)

    @property
    def first(self) -> bool:
        """Whether the instrument starts before the task: it must not miss the first edge of a period."""
        return isinstance(self._request, Periodic)

    def begin(self) -> None:
        self._run.begin()
        self._begin_mono_ns = time.monotonic_ns()

    def task_started(self) -> None:
        """Record the time until the board's task started: until then no edge is due."""
        self._task_started_ns = time.monotonic_ns() - self._begin_mono_ns

    def complete_cycle(self) -> None:
        """Wait until the period in progress ends, by its edge or its time-out; raise GaugeLost."""
        self._run.complete_cycle()

    def poll(self, seconds: float, stopping: Callable[[], bool]) -> None:
        """Wait, then read the available data; raise GaugeLost."""
        self._run.wait(min(seconds, INTERVAL_NS / 1e9), stopping)
        self._run.poll()

    def end(self, outcome: Outcome, reasons: list[str]) -> None:
        """Stop the instrument and read the remaining data; of a period, after all edges of the board have arrived."""
        if self.first and self._instrument.simulated and outcome is not Outcome.FAILED:
            self._instrument.simulated.settle()
        self._run.end(outcome, reasons)

    @property
    def ended(self) -> bool:
        return self._run.end_record is not None

    def explain(self, error: FastenoughError) -> FastenoughError:
        """Return the error with the last message of a simulated gauge that has ended."""
        fault = self._instrument.simulated.fault() if self._instrument.simulated else ""
        return type(error)(f"{error}; {fault}") if fault else error

    def close(self, board: Counted | None, fault: list[str]) -> None:
        """Complete the recording with the counts of both sides; a fault of the board fails this run too."""
        if self._run.end_record is None:
            return
        end = replace(self._run.end_record, counters={**self._run.end_record.counters, **self._counts(board)})
        if fault and end.outcome is Outcome.COMPLETED:
            end = replace(end, outcome=Outcome.FAILED, reasons=tuple(fault))
        self._transcript.take(line_bytes(end_line(end)))

    def _simulator_counts(self) -> Mapping[str, int]:
        """Return the counters of the simulated gauge; empty for a real one."""
        counted = self._instrument.simulated.counters() if self._instrument.simulated else {}
        return {name: count for name, count in counted.items() if name in _SIMULATOR_COUNTS}

    def _counts(self, board: Counted | None) -> dict[str, int | None]:
        counters = self._run.counters
        if counters is None:
            return {}
        simulated = {
            f"simulator_{name}": count - self._before.get(name, 0) for name, count in self._simulator_counts().items()
        }
        started = {} if self._task_started_ns is None else {"task_started_ns": self._task_started_ns}
        return simulated | started | agreement_counts(counters.common, counters.by_series, board, self._request.probe)


def agreement_counts(
    gauge: Mapping[str, int], by_series: Mapping[int, Mapping[str, int]], board: Counted | None, probe: str
) -> dict[str, int | None]:
    """Return the counts that must agree, from the counters of instrument and board."""
    edges_seen = answered = None
    overtaken = 0
    if board is not None:
        edges_seen, answered, overtaken = board.seen, board.answered, board.overtaken
    timeouts = sum(counted.get("timeouts", 0) for counted in by_series.values())
    common = {"edges_answered": answered, "edges_timed_out": timeouts, "edges_overtaken": overtaken}
    if probe == "periodic":
        return common | {"edges_returned": gauge.get("edges"), "edges_dropped": gauge.get("dropped", 0)}
    resynced = gauge.get("resync_edges", 0)
    sent = None if "sent" not in gauge else gauge["sent"] + resynced
    returned = sum(counted.get("stored", 0) for counted in by_series.values())
    return common | {"edges_sent": sent, "edges_seen": edges_seen, "edges_returned": returned + resynced}
