# SPDX-License-Identifier: GPL-2.0-or-later
"""One cell of an experiment: the instrument measures, the board's own recording is put beside it, and both count."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import IO, Any, cast

from fastenough.campaign.stopping import Stopping
from fastenough.campaign.transcript import Transcript
from fastenough.experiment.bench import Bench
from fastenough.experiment.plan import Cell, Experiment, Wires
from fastenough.experiment.probing import Probing
from fastenough.gauge.run import GaugeRun, Periodic, Response, RunHead
from fastenough.model import FastenoughError, Outcome
from fastenough.recording import Recording
from fastenough.recording.building import end_line, ended, line_bytes
from fastenough.settings import Settings

INTERVAL_NS = 1_000_000_000
MODULE = "fastenough"
_CONSUMER = "fasten"
"""How the line's interrupt thread is called: the kernel cuts names."""
_PRIORITY = 98
_GRACE_S = 20.0
_SIMULATOR_COUNTS = ("edges_out", "edges_in", "put_back", "put_off", "bytes_dropped")


@dataclass(frozen=True)
class Counted:
    """What the board counted itself of a run: edges seen and answered; None where it has no such count."""

    seen: int | None
    answered: int | None
    overtaken: int = 0


class Lines:
    """Takes a recording's lines as a file does and passes them on, but for the end, which is to be completed."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript

    def write(self, raw: bytes) -> int:
        if json.loads(raw)["type"] != "end":
            self._transcript.take(raw)
        return len(raw)

    def flush(self) -> None:
        """Nothing else is held back."""


def probe_counted(recording: Recording) -> Counted:
    """From the recording of the probe, cut off or not; of two toggles one is a falling edge."""
    series = recording.series[0].id
    stored, lost, missed = recording.totals[series].total, recording.lost(series), recording.missed(series)
    if recording.head.probe == "periodic":
        return Counted(None, stored // 2)
    return Counted(stored + lost + missed, stored, lost + missed)


def module_counted(recording: Recording) -> Counted:
    """From the recording of the module's task: all since it was inserted, not only what was recorded."""
    counters = {} if recording.end is None else recording.end.counters
    toggled = counters.get("toggled_since_load")
    if toggled is not None:
        return Counted(None, toggled // 2)
    return Counted(counters.get("seen_since_load"), counters.get("answered_since_load"),
                   counters.get("unchanged_since_load") or 0)


def instrument_counters(gauge: Mapping[str, int], by_series: Mapping[int, Mapping[str, int]], board: Counted | None,
                        probe: str) -> dict[str, Any]:
    """The counts that must agree, from the instrument's counters and the board's."""
    seen = answered = None
    overtaken = 0
    if board is not None:
        seen, answered, overtaken = board.seen, board.answered, board.overtaken
    timeouts = sum(counted.get("timeouts", 0) for counted in by_series.values())
    common = {"edges_answered": answered, "edges_timed_out": timeouts, "edges_overtaken": overtaken}
    if probe == "periodic":
        return common | {"edges_returned": gauge.get("edges"), "edges_shed": gauge.get("shed", 0)}
    resynced = gauge.get("resync_edges", 0)
    sent = None if "sent" not in gauge else gauge["sent"] + resynced
    returned = sum(counted.get("stored", 0) for counted in by_series.values())
    return common | {"edges_sent": sent, "edges_seen": seen, "edges_returned": returned + resynced}


@contextmanager
def board_task(bench: Bench, cell: Cell, wires: Wires, half_period_ns: int, settings: Settings) -> Iterator[Probing]:
    """The task on the board, recording; ended, and its module out, when the context is left."""
    if cell.implementation == "linux-user":
        with Probing(bench.link, _probe_words(bench, cell, wires, half_period_ns), 0.0) as task:
            yield task
        return
    (entry,) = settings.apply("kernel-module", " ".join(_module_words(bench, cell, wires, half_period_ns)))
    if entry.differs:
        raise FastenoughError(f"the module was refused: {entry.reason or 'it does not say why'}")
    with Probing(bench.link, [bench.probe, "kernel", "--until-interrupt", "--record=-"], 0.0) as task:
        yield task
    removed = bench.link.run(["rmmod", MODULE], timeout_s=_GRACE_S)
    if removed.status:
        raise FastenoughError(f"the module could not be taken out: {removed.stderr.decode(errors='replace').strip()}")


def _probe_words(bench: Bench, cell: Cell, wires: Wires, half_period_ns: int) -> list[str]:
    words = [bench.probe, cell.probe, f"--chip={wires.chip}", f"--out={wires.output}", f"--priority={_PRIORITY}",
             f"--affinity={bench.cpu}", "--until-interrupt", "--record=-"]
    return [*words, f"--in={wires.input}"] if cell.probe == "response" else [*words, f"--interval={half_period_ns}ns"]


def _module_words(bench: Bench, cell: Cell, wires: Wires, half_period_ns: int) -> list[str]:
    words = [bench.module, f"task={cell.probe}", f"chip={wires.chip}", f"out_line={wires.output}"]
    return [*words, f"in_line={wires.input}"] if cell.probe == "response" else [
        *words, f"period_ns={half_period_ns}", f"cpu={bench.cpu}"]


def own_lines(own: Probing, reasons: Sequence[str]) -> Iterator[bytes]:
    """The board's own recording, as the bench keeps it; with reasons it has failed, and ends with them."""
    if not reasons:
        yield from own.lines
        return
    recording = own.recording()
    yield from (raw for raw in own.lines if raw.endswith(b"\n") and json.loads(raw)["type"] != "end")
    yield line_bytes(end_line(ended(recording, Outcome.FAILED, reasons)))


@dataclass
class CellRun:
    """Measures one cell; ``own`` is what the board recorded of it, None where it came to nothing."""

    bench: Bench
    plan: Experiment
    cell: Cell
    settings: Settings
    stopping: Stopping
    own: Probing | None = None
    reasons: list[str] = field(default_factory=list)
    """Why the run failed, where board or instrument were lost."""
    simulated_before: Mapping[str, int] = field(default_factory=dict)

    @property
    def _times(self) -> Mapping[str, int]:
        return self.plan.times_ns[self.cell.probe]

    def measure(self, transcript: Transcript, tick: Callable[[], None]) -> None:
        """Run instrument and board; the instrument's recording goes into the transcript, with the counts of both.

        Raises BadInput for what the board's task refuses, and FastenoughError, with the recording ended, when board or
        instrument are lost.
        """
        if self.bench.simulated is None:
            self.bench.gauge.ready()
        lines = Lines(transcript)
        self.simulated_before = self._simulated()
        run = self._gauge_run(lines)
        fault: FastenoughError | None = None
        try:
            self._measured(run, tick)
        except FastenoughError as error:
            fault = self._explained(error)
            self.reasons = [str(fault), *self.bench.last_words()]
            if transcript.writer is not None and run.ended is None:
                run.end(Outcome.FAILED, self.reasons)
        if run.ended is not None:
            end = replace(run.ended, counters={**run.ended.counters, **self._counts(run)})
            if fault is not None and end.outcome is Outcome.COMPLETED:
                end = replace(end, outcome=Outcome.FAILED, reasons=tuple(self.reasons))
            transcript.take(line_bytes(end_line(end)))
        if fault is not None:
            raise fault

    def _simulated(self) -> Mapping[str, int]:
        """What the simulation behind the gauge has counted up to now; empty where it is no simulation."""
        counted = self.bench.simulated.counters() if self.bench.simulated else {}
        return {name: count for name, count in counted.items() if name in _SIMULATOR_COUNTS}

    def _explained(self, error: FastenoughError) -> FastenoughError:
        """With the last words of a simulated gauge that has ended."""
        said = self.bench.simulated.fault() if self.bench.simulated else ""
        return type(error)(f"{error}; {said}") if said else error

    def _measured(self, run: GaugeRun, tick: Callable[[], None]) -> None:
        """A response is awaited before the first stimulus; of a period the instrument must not miss the first edge."""
        if self.cell.probe == "periodic":
            run.begin()
            with self._task() as task:
                ended = self._poll(run, task, tick)
                task.interrupt()
            if self.bench.simulated:
                self.bench.simulated.settle()
            run.end(*ended)
            return
        with self._task() as task:
            self._raise_pin_thread()
            run.begin()
            run.end(*self._poll(run, task, tick))
            task.interrupt()

    @contextmanager
    def _task(self) -> Iterator[Probing]:
        with board_task(self.bench, self.cell, self.plan.wires, self._times.get("period", 0) // 2,
                        self.settings) as self.own:
            yield self.own

    def _raise_pin_thread(self) -> None:
        """The thread that serves the pin's interrupt exists only since the task has asked for the line."""
        if "irq-threads" in self.plan.settings and self.cell.implementation == "linux-user":
            self.settings.apply_all({"irq-threads": f"{self.plan.settings['irq-threads']}:{_CONSUMER}"})

    def _gauge_run(self, lines: Lines) -> GaugeRun:
        times = self._times
        request = (Response(times["min"], times["max"], times["timeout"]) if self.cell.probe == "response"
                   else Periodic(times["period"], times["timeout"]))
        head = RunHead("", self.cell.implementation, calibration=self.bench.calibration,
                       self_test=self.bench.self_test, port=self.bench.instrument)
        return GaugeRun(self.bench.gauge, request, head, cast(IO[bytes], lines), INTERVAL_NS)

    def _poll(self, run: GaugeRun, task: Probing, tick: Callable[[], None]) -> tuple[Outcome, list[str]]:
        """Until the time is over or somebody stops; raises GaugeLost, and FastenoughError when the task is gone."""
        end_s = time.monotonic() + self.plan.duration_ns / 1e9
        while (left_s := end_s - time.monotonic()) > 0 and not self.stopping.asked:
            run.wait(min(left_s, INTERVAL_NS / 1e9), lambda: self.stopping.asked)
            run.poll()
            tick()
            if not task.running and not self.stopping.asked:
                raise task.ended_early()
        return (Outcome.ABORTED, ["stopped"]) if self.stopping.asked else (Outcome.COMPLETED, [])

    def _counts(self, run: GaugeRun) -> dict[str, Any]:
        """Of both sides; the board's are None where its recording is missing, or the board is gone."""
        if run.counters is None:
            return {}
        board = None
        with suppress(FastenoughError):
            if self.own is not None:
                counted = probe_counted if self.cell.implementation == "linux-user" else module_counted
                board = counted(self.own.recording())
        simulated = {f"simulator_{name}": count - self.simulated_before.get(name, 0)
                     for name, count in self._simulated().items()}
        return simulated | instrument_counters(run.counters.common, run.counters.by_series, board, self.cell.probe)
