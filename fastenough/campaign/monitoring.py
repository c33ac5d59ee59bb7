# SPDX-License-Identifier: GPL-2.0-or-later
"""The monitor on a board, by itself or beside a run: where in the kernel the time goes, judged by nobody."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from fastenough.board import Booted
from fastenough.campaign.expand import RunSpec
from fastenough.campaign.tracing import kernel_settings, with_trace
from fastenough.campaign.transcript import RunStore, StorageFailure, Transcript
from fastenough.implementations import DEFAULT, Act, Value
from fastenough.implementations.linux_user import options, words
from fastenough.implementations.task import Refused, Task
from fastenough.link import MONITOR as PROGRAM
from fastenough.link import Link, find_program
from fastenough.model import FastenoughError, NotApplicable, Outcome
from fastenough.recording.building import line_bytes
from fastenough.recording.wakeups import MONITOR
from fastenough.settings import Settings

TYPES = "/sys/kernel/btf/vmlinux"
"""What the kernel says of its own types; without it a program built elsewhere cannot look into it, and the kernel's own
histograms stand in where they can."""
PROBES_NAME = "fastenough-prob"
"""Of the probe's threads, as the kernel cuts it."""
_OWN_NAME = "fastenough-{}"
"""Of the threads of one run: as long as the usual name, and no other run's."""
_ENOUGH = ((21,), (38, 39))
"""Capabilities of <linux/capability.h>: CAP_SYS_ADMIN, or CAP_PERFMON and CAP_BPF."""
_GRACE_S = 120.0
"""How much longer than the run beside it a monitor may take before its guard ends it."""
LOADING_S = 120.0
"""How long nothing may be said while programs are loaded: an emulated guest on a busy machine takes a minute for it."""
_REAL_TIME = ("fifo", "rr", "deadline")


def find_monitor(link: Link) -> str:
    """The monitor's program on a board; raises NotApplicable, with the reason, where it cannot be or is not there."""
    if not link.exists(TYPES):
        raise NotApplicable(
            f"this kernel has no BTF type information ({TYPES} is missing): boot one with "
            "CONFIG_DEBUG_INFO_BTF=y, such as Debian's"
        )
    return find_program(PROGRAM, link)


def own_thread_name() -> str:
    """A name for the threads of one run, by which a monitor knows them from those of every other probe."""
    return _OWN_NAME.format(secrets.token_hex(2))


@contextmanager
def monitoring(booted: Booted, act: Act, transcript: Transcript, thread_name: str = "") -> Iterator[Task]:
    """While inside, the monitor records into the transcript; ended by a signal, it has done what it was to do.

    ``thread_name``: the name of one run's threads, for which the recording has their usual one, so that recordings of
    several runs agree.  Raises NotApplicable, with the reason, where it cannot run, Refused for what it does not take.
    """
    transcript.revise = _as_completed

    def take(raw: bytes) -> str | None:
        return transcript.take(raw.replace(thread_name.encode(), PROBES_NAME.encode()) if thread_name else raw)

    if not booted.link.exists(TYPES):
        with (
            kernel_histograms(booted, act) as own,
            Task(booted.link, [booted.probe, *words(own)], act.limit_s, _silence_s(act)) as task,
        ):
            task.follow(lambda raw: take(as_monitor_line(raw)))
            yield task
        return
    with _started(booted.link, find_monitor(booted.link), act) as task:
        task.follow(take)
        yield task


def _started(link: Link, program: str, act: Act) -> Task:
    """Raises NotApplicable where it is the rights that are lacking, and Refused for what is wrong otherwise."""
    try:
        return Task(link, [program, *options(act)], act.limit_s, _silence_s(act))
    except Refused as error:
        if _may_watch(link):
            raise
        raise NotApplicable(str(error)) from error


def _silence_s(act: Act) -> float:
    """Who sees nothing says nothing until its interval ends."""
    return LOADING_S + (act.in_ns("report") or 0) / 1e9


def _may_watch(link: Link) -> bool:
    """Whether what the bench starts on the board may look into its kernel."""
    said = link.raised.run(["grep", "^CapEff:", "/proc/self/status"]).text.split()
    held = int(said[-1], 16) if said else 0
    return any(all(held >> capability & 1 for capability in enough) for enough in _ENOUGH)


def _as_completed(end: dict[str, Any]) -> dict[str, Any]:
    return end | {"outcome": Outcome.COMPLETED.value, "reasons": []} if end["outcome"] == Outcome.ABORTED else end


@contextmanager
def monitor_beside(
    booted: Booted,
    spec: RunSpec,
    transcript: Transcript,
    keeper: RunStore,
    tell: Callable[[str], None],
    *,
    thread_name: str,
) -> Iterator[None]:
    """While inside, the monitor watches the tasks of a run, whose threads have that name.

    Its own fault is told in a line and kept in its own recording: the run beside it goes on, and is what it is.  Raises
    StorageFailure when the store takes no more.
    """
    own = replace(spec, probe=MONITOR, implementation=DEFAULT, parameters=_watched(spec, thread_name), requirement=None)
    act = Act(MONITOR, own.parameters, None, spec.whole_s + _GRACE_S)
    try:
        with ExitStack() as stack:
            task: Task | None = None
            try:
                task = stack.enter_context(monitoring(booted, act, transcript, thread_name))
            except StorageFailure:
                raise
            except FastenoughError as error:
                tell(f"run without monitor: {error}")
                _end(transcript, own, keeper, error)
            yield
            _interrupt(task, transcript, own, keeper, tell)
    finally:
        transcript.seal()


def _watched(spec: RunSpec, thread_name: str) -> Mapping[str, Value]:
    """Whose wake-ups: those of the run's own threads, by their name; of tasks in the kernel it is not known."""
    said = {name: spec.parameters[name] for name in ("report", "policy", "priority") if name in spec.parameters}
    if spec.implementation != DEFAULT:
        return said
    said.pop("priority", None)
    if said.get("policy") in _REAL_TIME:
        del said["policy"]
    return said | {"comm": thread_name}


def _interrupt(
    task: Task | None, transcript: Transcript, own: RunSpec, keeper: RunStore, tell: Callable[[str], None]
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
        _end(transcript, own, keeper, error)
    if transcript.outcome is Outcome.NOT_APPLICABLE:
        tell(f"run without monitor: {'; '.join(transcript.reasons)}")


def _end(transcript: Transcript, own: RunSpec, keeper: RunStore, error: FastenoughError) -> None:
    """Keep why there is no monitor's recording, or only a part of one."""
    if transcript.writer is None:
        unfit = isinstance(error, NotApplicable)
        transcript.make(own, Outcome.NOT_APPLICABLE if unfit else Outcome.FAILED, str(error))
    elif transcript.outcome is None:
        transcript.fail([str(error)], keeper.load(transcript.writer.id))


_KNOWN = ("report", "affinity", "comm")
"""What it can be asked; it knows no culprits, and a task by nothing but its name."""
_ALWAYS = ("policy", "real-time")
_BY = {"by": "kernel histograms"}


@contextmanager
def kernel_histograms(booted: Booted, act: Act) -> Iterator[Act]:
    """While inside, the kernel counts; gives the act that reads it.

    Raises NotApplicable for what histograms cannot tell, and where the kernel keeps none.
    """
    lacking = "this kernel has no BTF type information (boot one with CONFIG_DEBUG_INFO_BTF=y, such as Debian's)"
    said = {name: value for name, value in act.parameters.items() if (name, value) != _ALWAYS}
    unknown = next((name for name in said if name not in _KNOWN), None)
    if unknown is not None:
        raise NotApplicable(f"{lacking}, and the fallback, kernel histograms, does not support --{unknown}")
    own = replace(act, probe="wakeups", parameters=said)
    with Settings(booted.link) as settings:
        try:
            own = with_trace(own, settings.apply_all(kernel_settings(own, booted.link)), print)
        except NotApplicable as why:
            raise NotApplicable(f"{lacking}, and the fallback, kernel histograms, is not available: {why}") from why
        yield own


def as_monitor_line(raw: bytes) -> bytes:
    """A line of that act's recording, as one of the monitor's: its head says by what it was measured."""
    if b'"type":"head"' not in raw[:64]:
        return raw
    head = json.loads(raw)
    return line_bytes(head | {"probe": MONITOR, "parameters": head["parameters"] | _BY})
