# SPDX-License-Identifier: GPL-2.0-or-later
"""Measurement of one run: the board's task under a load, with the plan's instrument, if any."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from fastenough.board import Booted, marks_in
from fastenough.campaign.acts import board_act, housekeeping_setting, instrument_request, pins_requested
from fastenough.campaign.board_name import RecordedBoard
from fastenough.campaign.expand import MONITORED, OWN, WHOLE, RunSpec
from fastenough.campaign.instrument import INTERVAL_NS, InstrumentRun, OpenInstrument
from fastenough.campaign.monitoring import monitor_beside, own_thread_name
from fastenough.campaign.plan import GPIO_PROBES, Plan
from fastenough.campaign.run_keys import KEYS
from fastenough.campaign.stop import StopRequest
from fastenough.campaign.tracing import kernel_settings, store_trace, with_trace
from fastenough.campaign.transcript import RunStore, StorageFailure, Transcript, Writer, no_load, no_proof
from fastenough.facts import collect, profile_sha256
from fastenough.gauge.session import GaugeLost
from fastenough.implementations import DEFAULT, Act, Counted, find_implementation
from fastenough.implementations.task import EndedBySignal, Task
from fastenough.link import BoardGone
from fastenough.loads import Load, RunningLoad, StartedLoad
from fastenough.model import BadInput, FastenoughError, NotApplicable, Outcome
from fastenough.recording import LoadProof, LoadStated, LoadUse
from fastenough.recording.building import HeadAdditions
from fastenough.recording.content import COSTS_FILE
from fastenough.recording.head import NOT_APPLICABLE, RecordedSetting
from fastenough.recording.lines import JsonLine
from fastenough.settings import Settings
from fastenough.settings.place import PlaceEntry
from fastenough.settings.setting import Requested

LATE_SETTINGS = ("irq-threads",)
"""Settings made after a task has requested its pins: the thread that serves them does not exist before."""
_STOPPED = "stopped before the probe started"
_LOOK_S = 1.0
_START_TIMEOUT_S = 20.0
"""Longest wait for the first interval of a task, from its head on: by then its run has begun."""
_END_TIMEOUT_S = 20.0


def _no_settings(set_later: Sequence[PlaceEntry]) -> Sequence[RecordedSetting]:
    """Return the settings of a plan that makes none."""
    return ()


@dataclass(frozen=True)
class BoardSetup:
    """What the runs of one board in one configuration have in common.

    ``settings``: the settings of all runs, as read back; ``settings_now``: read them again, except at the given places,
    which the run itself has set; ``late``: settings to be made within each run.  ``journal``: file with the settings to
    restore after each run.
    """

    plan: Plan
    board: RecordedBoard
    booted: Booted
    journal: Path
    settings: Sequence[RecordedSetting] = ()
    settings_now: Callable[[Sequence[PlaceEntry]], Sequence[RecordedSetting]] = _no_settings
    late: Mapping[str, Any] = field(default_factory=dict)
    instrument: OpenInstrument | None = None


@dataclass(frozen=True)
class RunContext:
    """Surroundings of one run: the store, the request to stop, and the callbacks for progress.

    ``begin(which)``: begin one of the run's recordings.  ``tell``: print a line for the user.
    """

    store: RunStore
    begin: Callable[[str], Writer]
    stopping: StopRequest
    report: Callable[[str, Transcript | None], None]
    tell: Callable[[str], None]


def measure(site: BoardSetup, spec: RunSpec, context: RunContext) -> Transcript:
    """Measure and store one run, whatever its outcome; return the instrument's transcript, or else the board's.

    Raises BadInput for what the board or its task refuses, GaugeLost when the instrument is gone, StorageFailure
    when the store cannot be written; the lines recorded so far stay.
    """
    context.report("profile", None)
    added = HeadAdditions(
        site.board.name, site.booted.configuration, LoadStated(spec.load), requirement=spec.requirement
    )
    made: Transcript | None = None
    try:
        added = replace(
            head_additions(site.board, site.booted, site.settings),
            load=added.load,
            requirement=added.requirement,
            planned_ns=round(spec.duration_s * 1e9),
            phase_ns=spec.phase_ns,
        )
        _set_phase(site.booted, spec.phase_ns)
        with Settings(site.booted.link, site.journal) as settings, ExitStack() as stack:
            act = board_act(site.plan, spec, site.booted)
            find_implementation(spec.implementation).needs(site.booted)
            for name, value in spec.keys.items():
                stack.enter_context(KEYS[name].during(value, site.booted))
            entries = settings.apply_all(_act_settings(act, site)) + _not_applicable_settings(site, spec, act)
            act = with_trace(act, entries, context.tell)
            load = stack.enter_context(run_load(site.booted, site.plan.load(spec.load), spec, added.profile or {}))
            added = replace(added, load=load.stated, settings=(*added.settings, *entries))
            if site.plan.monitor:
                act = replace(act, thread_name=own_thread_name(site.booted) if spec.implementation == DEFAULT else "")
                beside = watch_run(site, spec, context, added, load, thread_name=act.thread_name, settings=settings)
                stack.enter_context(beside)
            made = _Run(site, spec, context, act, settings, added, load).whole()
    except (BadInput, GaugeLost, StorageFailure):
        raise
    except (FastenoughError, OSError) as error:
        if made is None:
            return store_unmeasured(spec, context, added, _fault_of(error))
        if not isinstance(error, BoardGone):
            raise
    return made


def _fault_of(error: FastenoughError | OSError) -> FastenoughError:
    """Return the error of a run; an error of the system, such as too many processes, may pass by the next run."""
    if isinstance(error, FastenoughError):
        return error
    return FastenoughError(f"this run could not be measured: {error.strerror or error}")


def _set_phase(booted: Booted, phase_ns: int | None) -> None:
    """Set the phase of the next measurement, or none; raise BadInput for a board without phases."""
    if booted.set_phase is not None:
        booted.set_phase(phase_ns or 0)
    elif phase_ns is not None:
        raise BadInput("phases require a deterministic board (--board deterministic)")


def _act_settings(act: Act, site: BoardSetup) -> dict[str, Requested]:
    """Return by name the settings to make before the task starts: those of the act, and late ones without a thread."""
    pins, link = pins_requested(act), site.booted.link
    required = kernel_settings(act, link) | ({"pin": pins} if pins else {}) | housekeeping_setting(act, link)
    return {**required, **(site.late if act.probe not in GPIO_PROBES else {})}


def _line_thread(spec: RunSpec, act: Act) -> str:
    """Return the name of the thread that serves the input pin of an act; empty without one."""
    return find_implementation(spec.implementation).line_thread if "in" in act.parameters else ""


def _not_applicable_settings(site: BoardSetup, spec: RunSpec, act: Act) -> list[RecordedSetting]:
    """Return the entries of late settings that do not apply to an act with pins, because no thread serves an input."""
    if act.probe not in GPIO_PROBES or _line_thread(spec, act):
        return []
    reason = f"{NOT_APPLICABLE}no interrupt thread serves this task"
    return [RecordedSetting(name, requested, None, reason=reason) for name, requested in site.late.items()]


def store_unmeasured(spec: RunSpec, context: RunContext, added: HeadAdditions, error: FastenoughError) -> Transcript:
    """Store a run in which nothing was measured, with the reason."""
    transcript = Transcript(lambda: context.begin(WHOLE), added, no_proof)
    if isinstance(error, NotApplicable):
        transcript.make(spec, Outcome.NOT_APPLICABLE, str(error))
    elif isinstance(error, EndedBySignal) or context.stopping.requested:
        transcript.make(spec, Outcome.ABORTED, _STOPPED)
    else:
        transcript.make(spec, Outcome.FAILED, str(error))
    transcript.seal()
    return transcript


def head_additions(board: RecordedBoard, booted: Booted, settings: Sequence[RecordedSetting]) -> HeadAdditions:
    """Return what the bench adds to every head: board, profile, configuration, marks and settings."""
    profile = collect(booted.link)
    return HeadAdditions(
        board.name,
        booted.configuration,
        None,
        profile,
        profile_sha256(profile),
        tuple(settings),
        tuple(dict.fromkeys((*booted.marks, *marks_in(profile)))),
        address=board.address,
    )


def watch_run(
    site: BoardSetup,
    spec: RunSpec,
    context: RunContext,
    added: HeadAdditions,
    load: ActiveLoad,
    *,
    thread_name: str,
    settings: Settings,
) -> AbstractContextManager[None]:
    """Context in which the monitor watches the run; it is loaded before the warm-up, since loading disturbs.

    The samples of a load within the run are not those of the monitor's intervals.  ``settings``: those of the run.
    """
    used = load.follow() if site.booted.watch is None else no_load
    transcript = Transcript(partial(context.begin, MONITORED), replace(added, requirement=None), load.proof, used)
    return monitor_beside(
        site.booted, spec, transcript, context.store, context.tell, thread_name=thread_name, settings=settings
    )


@dataclass
class _Run:
    """One run in progress.  ``own``: the board's recording; ``main``: the instrument's if there is one, else ``own``.

    ``reasons``: why the run failed, if the board or the instrument was lost.
    """

    site: BoardSetup
    spec: RunSpec
    context: RunContext
    act: Act
    settings: Settings
    added: HeadAdditions
    load: ActiveLoad
    reasons: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        begin, load, by = self.context.begin, self.load, self.spec.implementation
        self._implementation = find_implementation(by)
        self.main = self.own = Transcript(partial(begin, WHOLE), self.added, load.proof, load.follow(), by)
        self._ended: tuple[Outcome, list[str]] | None = None
        self._beside: InstrumentRun | None = None
        if self.site.instrument is not None:
            self.own = Transcript(partial(begin, OWN), self.added, load.proof, load.follow(), by)
            self._beside = InstrumentRun(
                self.site.instrument,
                instrument_request(self.spec.probe, self.spec.parameters),
                self.spec.implementation,
                self.main,
            )
        for transcript in (self.main, self.own):
            transcript.holds_end = True

    def _report(self, phase: str) -> None:
        self.context.report(phase, self.main)

    def whole(self) -> Transcript:
        """Run from the warm-up to the seal; raise FastenoughError if nothing was recorded."""
        try:
            self._warm_up()
            self._make()
        except (BadInput, GaugeLost):
            self._seal()
            raise
        except StorageFailure:
            self._give_up()
            raise
        except FastenoughError:
            self._seal()
            if self.main.writer is None:
                raise
        except BaseException:
            self._give_up()
            raise
        else:
            self._seal()
        return self.main

    def _warm_up(self) -> None:
        """Run the load for a while; its activity before the probe starts does not count."""
        self._report("load")
        self.load.warm_up(self.spec.warm_up_s, self.context.stopping)
        self.load.begin()

    def _make(self) -> None:
        """Measure; end the recordings and raise the fault of the board or instrument, if any."""
        if self.context.stopping.requested:
            raise EndedBySignal(_STOPPED)
        fault: FastenoughError | None = None
        try:
            self._measure_task()
        except StorageFailure:
            raise
        except (FastenoughError, OSError) as error:
            fault = self._end_failed(_fault_of(error))
        try:
            if self._beside is not None:
                self._beside.close(self._board_counts(), self.reasons)
        finally:
            self._write_ends()
        if fault is not None:
            raise fault

    def _write_ends(self) -> None:
        """Write the end lines, with the plan's settings as they are now; without them if the board does not answer.

        Reading them takes time, in which an instrument would wait for edges and the task would seem not to end.
        """
        after: Sequence[RecordedSetting] = ()
        with suppress(FastenoughError, OSError):
            after = self.site.settings_now(self.settings.places)
        for transcript in dict.fromkeys((self.main, self.own)):
            transcript.write_end(after)

    def _measure_task(self) -> None:
        """Measure; an instrument that must not miss the first edge must not miss the last one either.

        The task is not ended within a period: a stall that lasts to the end of the run must become a value.
        """
        beside = self._beside
        if beside is not None and beside.first:
            beside.begin()
            with self._task() as task:
                beside.task_started()
                ended = self._poll(task, beside)
                if ended[0] is Outcome.COMPLETED:
                    beside.complete_cycle()
                task.interrupt()
            beside.end(*ended)
            return
        with self._task() as task:
            if beside is None:
                self._follow(task)
            else:
                self._await_start(task)
                beside.begin()
                beside.end(*self._poll(task, beside))
                task.interrupt()

    @contextmanager
    def _task(self) -> Iterator[Task]:
        """Context in which the board's task records; reasons of a failure are collected before the task is ended."""
        booted = self.site.booted
        with (
            self.context.stopping.notifying(booted.interrupt),
            self._implementation.start(booted, self.act, self.settings) as task,
        ):
            if self._beside:
                self.own.revise = self._revise_end
            self._late_settings()
            task.follow(self.own.take)
            try:
                with self.context.stopping.notifying(task.wake):
                    yield task
            except FastenoughError as error:
                self.reasons = self._last_words(error)
                raise

    def _await_start(self, task: Task) -> None:
        """Wait for the task's first interval, for the end of the task, or for a request to stop.

        The interval shows that the run has begun.  The head is written before that, and the task responds to edges from
        then on, but counts only those of its run: a stimulus before it would seem to be a defect of the wires.
        """
        end_s = time.monotonic() + _START_TIMEOUT_S
        while (
            not self.own.has_interval
            and task.running
            and not self.context.stopping.requested
            and (left_s := end_s - time.monotonic()) > 0
        ):
            task.look(left_s)

    def _follow(self, task: Task) -> None:
        """Wait until the task has ended, by itself or on request; raise FastenoughError without its end line."""
        stop_sent = False
        while task.running:
            task.look(_LOOK_S)
            self._report("measuring")
            if self.context.stopping.requested and not stop_sent:
                stop_sent = True
                task.ask()
        task.wait(_END_TIMEOUT_S)
        if self.own.outcome is None:
            raise task.ended_early()

    def _poll(self, task: Task, beside: InstrumentRun) -> tuple[Outcome, list[str]]:
        """Poll for the duration or until a request to stop; raise GaugeLost, and FastenoughError if the task ends."""
        end_s = time.monotonic() + self.spec.duration_s
        while (left_s := end_s - time.monotonic()) > 0 and not self.context.stopping.requested:
            beside.poll(min(left_s, INTERVAL_NS / 1e9), lambda: self.context.stopping.requested)
            self._report("measuring")
            if not task.running and not self.context.stopping.requested:
                raise task.ended_early()
        self._ended = (Outcome.ABORTED, ["stopped"]) if self.context.stopping.requested else (Outcome.COMPLETED, [])
        return self._ended

    def _late_settings(self) -> None:
        """Apply the late settings to the thread that serves the input, or to the threads that they name.

        They are recorded in the heads of the run, which are not written yet.  The head of the monitor already is.
        """
        thread = _line_thread(self.spec, self.act)
        if not thread or not self.site.late:
            return
        late = {
            name: requested if ":" in str(requested) else f"{requested}:{thread}"
            for name, requested in self.site.late.items()
        }
        entries = self.settings.apply_all(late)
        for transcript in dict.fromkeys((self.main, self.own)):
            transcript.add_settings(entries)

    def _revise_end(self, end: JsonLine) -> JsonLine:
        """Return the end line: a task that the bench ended is completed after the duration, and aborted before."""
        if self.reasons:
            return end | {"outcome": Outcome.FAILED.value, "reasons": self.reasons}
        if self._ended is not None and end["outcome"] in (Outcome.ABORTED, Outcome.COMPLETED):
            outcome, reasons = self._ended
            return end | {"outcome": outcome.value, "reasons": reasons}
        return end

    def _last_words(self, error: FastenoughError) -> list[str]:
        explained = self._beside.explain(error) if self._beside else error
        return [str(explained), *self.site.booted.last_words()]

    def _end_failed(self, error: FastenoughError) -> FastenoughError:
        """End the open recordings with the reason of the error; return the error with its explanation."""
        explained = self._beside.explain(error) if self._beside else error
        self.reasons = self.reasons or self._last_words(error)
        if self._beside is not None and self.main.writer is not None and not self._beside.ended:
            self._beside.end(Outcome.FAILED, self.reasons)
        self.own.fail(self.reasons, self.context.store)
        return explained

    def _board_counts(self) -> Counted | None:
        """Return the board's counts; None without its recording, or if the board is gone."""
        with suppress(FastenoughError):
            if self.own.writer is not None:
                return self._implementation.counted(self.site.booted, self.act, self.own.tally)
        return None

    def _seal(self) -> None:
        store_trace(self.act, self.site.booted.link, self.own.writer, self.context.tell)
        self._store_costs()
        for transcript in dict.fromkeys((self.main, self.own)):
            transcript.seal()

    def _store_costs(self) -> None:
        """Store what a cost model counted; tell the reason if that fails."""
        costs = self.site.booted.costs()
        try:
            if costs is not None and self.own.writer is not None:
                self.own.writer.attach(COSTS_FILE, costs)
        except FastenoughError as error:
            self.context.tell(f"the costs could not be stored: {error}")

    def _give_up(self) -> None:
        """Close the recordings as interrupted."""
        for transcript in (self.main, self.own):
            if transcript.writer is not None:
                transcript.writer.close()


@dataclass(frozen=True)
class ActiveLoad:
    """The load of one run; ``running`` is None for no load."""

    stated: LoadStated
    running: StartedLoad | None = None

    def warm_up(self, seconds: float, stopping: StopRequest) -> None:
        """Wait for a time, and until all processes of the load exist; return early on a request to stop."""
        if self.running is not None:
            self.running.warm_up(seconds, lambda seconds: not stopping.sleep(seconds))

    def begin(self) -> None:
        """Start counting the load's activity."""
        if self.running is not None:
            self.running.begin()

    def proof(self) -> LoadProof:
        """Return the proof that the load ran; a board that does not answer gives none."""
        try:
            return LoadProof(self.stated.name, True) if self.running is None else self.running.proof()
        except FastenoughError as error:
            return LoadProof(self.stated.name, False, (f"the load could not be verified: {error}",))

    def follow(self) -> Callable[[], LoadUse | None]:
        """Return a function, one per recording, for the load's activity since the previous interval."""
        return no_load if self.running is None else self.running.follow()


@contextmanager
def run_load(booted: Booted, load: Load, spec: RunSpec, profile: Mapping[str, Any]) -> Iterator[ActiveLoad]:
    """Context in which the load runs, for as many CPUs as the board's profile states."""
    if not load.commands:
        yield ActiveLoad(LoadStated(load.name, source=load.source))
        return
    cpus = (profile.get("cpu") or {}).get("count") or 1
    with (booted.start_load or partial(RunningLoad, booted.link))(load, cpus, spec.whole_s) as running:
        yield ActiveLoad(running.head(), running)
