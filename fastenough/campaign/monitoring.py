# SPDX-License-Identifier: GPL-2.0-or-later
"""The monitor on a board, alone or beside a run: where in the kernel the time goes.  It gives no verdict.

On a kernel without BTF type information the kernel's own histograms replace the monitor.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from fastenough.board import Booted
from fastenough.campaign.expand import RunSpec
from fastenough.campaign.tracing import kernel_settings, with_trace
from fastenough.campaign.transcript import RunStore, StorageFailure, Transcript, checked_line
from fastenough.implementations import DEFAULT, Act, Value
from fastenough.implementations.linux_user import options, probe_arguments
from fastenough.implementations.task import Refused, Task, fault_at_start
from fastenough.link import MONITOR as PROGRAM
from fastenough.link import Link, find_program
from fastenough.link.base import Completed
from fastenough.model import FastenoughError, NotApplicable, Outcome
from fastenough.recording.building import line_bytes
from fastenough.recording.lines import JsonLine
from fastenough.recording.wakeups import MONITOR
from fastenough.settings import Settings
from fastenough.settings.tracing import InstancePlace

TYPES = "/sys/kernel/btf/vmlinux"
"""The kernel's BTF type information, which the monitor requires."""
PROBES_NAME = "fastenough-prob"
"""Name of the probe's threads, as truncated by the kernel."""
_OWN_NAME = "fastenough-{}"
"""Name of the threads of one run: unique, and as long as the usual name."""
_ONLY = "0000"
"""Part of that name on a board that runs nothing else, where each run of a plan is the same."""
_ENOUGH = ((21,), (38, 39))
"""Sufficient capabilities of <linux/capability.h>: CAP_SYS_ADMIN, or CAP_PERFMON and CAP_BPF."""
_GRACE_S = 120.0
"""Time beyond the duration of the run after which the guard ends the monitor."""
LOADING_S = 120.0
"""Limit for the loading of the programs: an emulated guest on a busy machine needs a minute."""
_REAL_TIME = ("fifo", "rr", "deadline")
_SHARED = ("report", "policy", "priority")
"""Parameters of a run that its monitor has too."""


def find_monitor(link: Link) -> str:
    """Return the path of the monitor on a board; raise NotApplicable if it is not supported or not installed."""
    if not link.exists(TYPES):
        raise NotApplicable(
            f"this kernel has no BTF type information ({TYPES} is missing): boot one with "
            "CONFIG_DEBUG_INFO_BTF=y, such as Debian's"
        )
    return find_program(PROGRAM, link)


def own_thread_name(booted: Booted) -> str:
    """Return a name for the threads of one run, unique on the board, which identifies them to the monitor."""
    return _OWN_NAME.format(secrets.token_hex(2) if booted.watch is None else _ONLY)


class _Recorder(Protocol):
    """A monitor beside a run."""

    def interrupt(self) -> None: ...

    def ended_early(self) -> FastenoughError: ...


@dataclass(frozen=True)
class _WithinRun:
    """A monitor that the board itself starts and ends with the run; its recording is taken afterwards.

    ``finished``: return what it did, raises FastenoughError without results.
    """

    finished: Callable[[], Completed]
    take: Callable[[bytes], str | None]

    def interrupt(self) -> None:
        done = self.finished()
        lines = done.stdout.splitlines(keepends=True)
        if not lines:
            raise fault_at_start(PROGRAM, done.status, done.stderr)
        for line in lines:
            self.take(line)

    def ended_early(self) -> FastenoughError:
        done = self.finished()
        return FastenoughError(f"{PROGRAM} ended with status {done.status}, without the end of its recording")


@contextmanager
def monitoring(
    booted: Booted, act: Act, transcript: Transcript, thread_name: str = "", *, settings: Settings | None = None
) -> Iterator[Task]:
    """Context in which the monitor records into the transcript; ending it by a signal completes its run.

    ``thread_name``: name of one run's threads.  The recording has their usual name instead, so that recordings of
    several runs agree.  ``settings``: those of the run, if any, which hold the board.  Raises NotApplicable if the
    monitor cannot run, Refused for arguments that it does not accept.
    """
    take = _taking(transcript, thread_name)
    if not booted.link.exists(TYPES):
        with (
            nullcontext(settings) if settings is not None else Settings(booted.link) as opened,
            _histogram_task(booted, _histogram_act(booted, act, opened)) as task,
        ):
            task.follow(lambda raw: take(as_monitor_line(raw)))
            yield task
        return
    with _start(booted.link, find_monitor(booted.link), act) as task:
        task.follow(take)
        yield task


def _taking(transcript: Transcript, thread_name: str) -> Callable[[bytes], str | None]:
    """Return the function that takes a line of the monitor, with the usual name of the run's threads."""
    transcript.revise = _complete_end

    def take(raw: bytes) -> str | None:
        return transcript.take(raw.replace(thread_name.encode(), PROBES_NAME.encode()) if thread_name else raw)

    return take


@contextmanager
def _within_run(booted: Booted, act: Act, transcript: Transcript, thread_name: str) -> Iterator[_Recorder]:
    """Context in which the board records the next measurement's wake-ups; raise NotApplicable if it cannot."""
    assert booted.watch is not None
    with booted.watch([find_monitor(booted.link), *options(act)]) as finished:
        yield _WithinRun(finished, _taking(transcript, thread_name))


def _start(link: Link, program: str, act: Act) -> Task:
    """Start the monitor; raise NotApplicable for missing privileges, Refused for other faults."""
    try:
        return Task(link, [program, *options(act)], act.limit_s, _silence_s(act))
    except Refused as error:
        if _may_watch(link):
            raise
        raise NotApplicable(str(error)) from error


def _silence_s(act: Act) -> float:
    """Return the longest time [s] without output: the monitor may report only at the end of an interval."""
    return LOADING_S + (act.in_ns("report") or 0) / 1e9


def _may_watch(link: Link) -> bool:
    """Return whether programs that the bench starts on the board have the capabilities of a monitor."""
    line = link.raised.run(["grep", "^CapEff:", "/proc/self/status"]).text.split()
    held = int(line[-1], 16) if line else 0
    return any(all(held >> capability & 1 for capability in enough) for enough in _ENOUGH)


def _complete_end(end: JsonLine) -> JsonLine:
    return end | {"outcome": Outcome.COMPLETED.value, "reasons": []} if end["outcome"] == Outcome.ABORTED else end


@contextmanager
def monitor_beside(
    booted: Booted,
    spec: RunSpec,
    transcript: Transcript,
    store: RunStore,
    tell: Callable[[str], None],
    *,
    thread_name: str,
    settings: Settings | None,
) -> Iterator[None]:
    """Context in which the monitor watches the threads of a run, which have the name ``thread_name``.

    ``settings``: those of the run, which hold the board; the kernel's histograms are one of them.
    A fault of the monitor is printed and stored in its own recording; it does not affect the run.  Raises
    StorageFailure when the store cannot be written.
    """
    parameters = _monitor_parameters(spec, thread_name)
    own = replace(spec, probe=MONITOR, implementation=DEFAULT, parameters=parameters, requirement=None)
    act = Act(MONITOR, own.parameters, None, spec.whole_s + _GRACE_S)
    try:
        with ExitStack() as stack:
            task: _Recorder | None = None
            record: Callable[..., AbstractContextManager[_Recorder]] = (
                partial(monitoring, settings=settings) if booted.watch is None else _within_run
            )
            try:
                task = stack.enter_context(record(booted, act, transcript, thread_name))
            except StorageFailure:
                raise
            except FastenoughError as error:
                tell(f"run without monitor: {error}")
                _end(transcript, own, store, error)
            yield
            _interrupt(task, transcript, own, store, tell)
    finally:
        transcript.seal()


def _monitor_parameters(spec: RunSpec, thread_name: str) -> Mapping[str, Value]:
    """Return the monitor's parameters: the run's threads by name; tasks in the kernel have no known name."""
    parameters = {name: spec.parameters[name] for name in _SHARED if name in spec.parameters}
    if spec.implementation != DEFAULT:
        return parameters
    parameters.pop("priority", None)
    if parameters.get("policy") in _REAL_TIME:
        del parameters["policy"]
    return parameters | {"comm": thread_name}


def _interrupt(
    task: _Recorder | None, transcript: Transcript, own: RunSpec, store: RunStore, tell: Callable[[str], None]
) -> None:
    if task is None:
        return
    try:
        task.interrupt()
        if transcript.outcome is None:
            raise task.ended_early()
    except StorageFailure:
        raise
    except FastenoughError as error:
        tell(f"the monitor beside the run failed: {error}")
        _end(transcript, own, store, error)
    if transcript.outcome is Outcome.NOT_APPLICABLE:
        tell(f"run without monitor: {'; '.join(transcript.reasons)}")


def _end(transcript: Transcript, own: RunSpec, store: RunStore, error: FastenoughError) -> None:
    """Store why the monitor's recording is missing or incomplete."""
    if transcript.writer is None:
        unfit = isinstance(error, NotApplicable)
        transcript.make(own, Outcome.NOT_APPLICABLE if unfit else Outcome.FAILED, str(error))
    else:
        transcript.fail([str(error)], store)


_KNOWN = ("report", "affinity", "comm")
"""Supported parameters: histograms report no causes, and select tasks by name only."""
_ALWAYS = ("policy", "real-time")
_BY = {"by": "kernel histograms"}


def _histogram_task(booted: Booted, act: Act) -> Task:
    return Task(booted.link, [booted.probe, *probe_arguments(act)], act.limit_s, _silence_s(act))


def _histogram_act(booted: Booted, act: Act, settings: Settings) -> Act:
    """Make the setting by which the kernel counts wake-ups into histograms; return the act that reads them.

    ``settings``: those of the run.  Raises NotApplicable for parameters that histograms do not support, for a kernel
    without histograms, and for a run that uses the tracing instance itself.
    """
    lacking = "this kernel has no BTF type information (boot one with CONFIG_DEBUG_INFO_BTF=y, such as Debian's)"
    parameters = {name: value for name, value in act.parameters.items() if (name, value) != _ALWAYS}
    unknown = next((name for name in parameters if name not in _KNOWN), None)
    if unknown is not None:
        raise NotApplicable(f"{lacking}, and the fallback, kernel histograms, does not support --{unknown}")
    own = replace(act, probe="wakeups", parameters=parameters)
    unavailable = f"{lacking}, and the fallback, kernel histograms, is not available"
    if InstancePlace().entry() in settings.places:
        raise NotApplicable(f"{unavailable}: the run uses the tracing instance of the kernel itself")
    try:
        return with_trace(own, settings.apply_all(kernel_settings(own, booted.link)), print)
    except NotApplicable as why:
        raise NotApplicable(f"{unavailable}: {why}") from why


def as_monitor_line(raw: bytes) -> bytes:
    """Return a line of the histograms' recording as one of the monitor's; the head names the source."""
    if b'"type":"head"' not in raw[:64]:
        return raw
    with checked_line(raw):
        head = json.loads(raw)
        return line_bytes(head | {"probe": MONITOR, "parameters": head["parameters"] | _BY})
