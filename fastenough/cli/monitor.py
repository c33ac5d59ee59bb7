# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough monitor``: watches real-time tasks and measures where in the kernel each wake-up spends its time."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol, TextIO

import click

from fastenough import words
from fastenough.board import AS_BOOTED, Board, is_deterministic, open_board
from fastenough.board.local import LocalBoard
from fastenough.campaign.stop import StopRequest, stop_on_signals
from fastenough.cli.commands import Command, Group
from fastenough.cli.follow import screen_on
from fastenough.cli.options import DURATION, DurationText, json_option, store_option
from fastenough.cli.output import JSON_VERSION, never_waiting, print_json
from fastenough.cli.plan_runs import OUTCOME_STATUS
from fastenough.cli.privileges import LOCAL
from fastenough.cli.progress_wording import newest_wakeups
from fastenough.folder import Folder
from fastenough.implementations import Act, Value
from fastenough.jobs.live import LiveFile, LiveRecording
from fastenough.jobs.monitor import MonitorRun, monitor_run, ordinary_policies
from fastenough.jobs.pull import PullResult, RecordingGap, StoredRecording, board_names, pull
from fastenough.link import Link
from fastenough.link.local import SudoLink, may_sudo
from fastenough.model import BadInput, ExitStatus
from fastenough.recording.wakeups import MONITOR, Wakeup
from fastenough.store import Store
from fastenough.store.directory import LIVE_FILE

POLICIES = ("fifo", "rr", "deadline", "real-time", "other", "any")


class _Shown(Protocol):
    """A live view."""

    def show(self, watch: LiveFile) -> None: ...

    def end(self, watch: LiveFile) -> ExitStatus: ...


@contextmanager
def _view(as_json: bool) -> Iterator[_Shown]:
    """A view on standard output that never waits for the reader."""
    if as_json:
        with never_waiting(sys.stdout, missing) as stream:
            yield JsonLines(stream)
    else:
        with never_waiting(sys.stdout, _missing) as stream, screen_on(stream) as screen:
            yield screen


def _missing(lines: int) -> str:
    """Text in place of dropped lines; empty on a terminal, which is redrawn."""
    return "" if sys.stdout.isatty() else f"({lines} lines dropped: not read in time)\n"


def _board(name: str) -> Board:
    """The board, with root's rights if this user may have them; else the monitor reports what is missing."""
    if name == LOCAL and os.geteuid() and may_sudo():
        print("fastenough: not root: the monitor runs through sudo; this user owns all files", file=sys.stderr)
        return LocalBoard(SudoLink())
    return open_board(name)


def _follow(watched: MonitorRun, store: Store, view: _Shown) -> None:
    """Show the recording while it grows in the store."""
    with closing(LiveFile(Folder.at(store.path / "runs" / watched.run_id), LIVE_FILE)) as watch:
        while watched.running and not watch.over:
            view.show(watch)
        watched.finish()
        while watch.look():
            pass
        view.end(watch)


def _ordinary(link: Link, pid: int | None, policy: str | None) -> dict[str, Value]:
    """The policy parameter for a process without real-time threads if no policy is given; prints a line on it."""
    policies = [] if pid is None else ordinary_policies(link, pid)
    if policy is not None or not policies:
        return {}
    print(
        f"fastenough: process {pid} has no real-time policy ({', '.join(policies)}); its wake-ups are watched anyway",
        file=sys.stderr,
    )
    return {"policy": "any"}


def _require_guest(board: str, pid: int | None, duration_ns: int | None) -> None:
    """Raise BadInput for a request that the guest of a deterministic board cannot serve."""
    if not is_deterministic(board):
        return
    if pid is not None:
        raise BadInput(f"--pid is not supported: board {board} boots for this recording only; use --comm NAME")
    if duration_ns is None:
        raise BadInput(f"board {board} sends its recording at the end only; set the time to watch, as in --duration 1s")


def _parameters(**options: Value | None) -> dict[str, Value]:
    return {name: value for name, value in options.items() if value is not None}


RING = "/var/lib/fastenough/ring"
"""Directory of the ring of the service."""


def _stored_line(recording: StoredRecording) -> str:
    how = recording.outcome or "interrupted"
    intervals = words.counted(recording.intervals, "interval")
    unknown = "" if recording.profile else "; profile of the machine unknown (the board was rebooted since)"
    return f"stored {recording.run_id}: {intervals} in {words.duration(recording.duration_ns)}, {how}{unknown}"


def _gap(gap: RecordingGap) -> str:
    length = "of unknown length" if gap.ns is None else f"of {words.duration(gap.ns)}"
    dropped = f" ({words.number(gap.dropped)} dropped)" if gap.dropped else ""
    return f"gap {length} between {gap.after} and {gap.before}: {gap.reason}{dropped}"


def _print_pull(pulled: PullResult) -> None:
    for recording in pulled.stored:
        print(_stored_line(recording))
    for growing in pulled.under_way:
        print(f"in progress: {growing.run_id}, {words.number(growing.bytes)} bytes; stored after it ends")
    for gap in pulled.gaps:
        print(_gap(gap))
    for refused in pulled.refused:
        print(f"refused {refused.name}: {refused.reason}", file=sys.stderr)
    if not pulled.stored and not pulled.refused:
        print("no new complete recording")


def _tell(line: str) -> None:
    print(f"fastenough: {line}", file=sys.stderr, flush=True)


def _tell_wait() -> None:
    _tell("waiting for another pull of this ring to end")


_LOOK_S = 0.25


class JsonLines:
    """Prints what is new in a growing recording; times are ns of CLOCK_MONOTONIC, latencies are ns."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = False
        self._seq = -1
        self._printed_causes = 0

    def show(self, watch: LiveFile) -> None:
        """Print what is new since the last call."""
        watch.each_interval = self._new
        watch.look()
        self._head(watch.following)
        if not watch.over:
            time.sleep(_LOOK_S)

    def end(self, watch: LiveFile) -> ExitStatus:
        """Print the outcome."""
        self._new(watch.following)
        end = watch.following.end
        self._write(
            {
                "type": "end",
                "outcome": None if end is None else end.outcome,
                "reasons": [] if end is None else list(end.reasons),
                "counters": {} if end is None else dict(end.counters),
            }
        )
        return ExitStatus.BROKEN if end is None else ExitStatus.DONE

    def _head(self, following: LiveRecording) -> None:
        if following.head is not None and not self._begun:
            self._begun = True
            self._write(
                {
                    "type": "begin",
                    "version": JSON_VERSION,
                    "run": following.head.run_id,
                    "parameters": dict(following.head.parameters),
                }
            )

    def _new(self, following: LiveRecording) -> None:
        self._head(following)
        events = following.culprits_after(self._printed_causes)
        skipped = following.culprits_seen - self._printed_causes - len(events)
        self._printed_causes = following.culprits_seen
        if skipped:
            self._write({"type": "skipped", "events": skipped})
        for wakeup in reversed(newest_wakeups(following.head, events)):
            self._write(_wakeup(wakeup))
        if following.last is not None and following.last.seq > self._seq:
            self._seq = following.last.seq
            self._write(_interval(following))

    def _write(self, document: Mapping[str, object]) -> None:
        self._stream.write(json.dumps(document) + "\n")
        self._stream.flush()


def missing(lines: int) -> str:
    """The line in place of dropped lines."""
    return json.dumps({"type": "missing", "lines": lines}) + "\n"


def _whole(ns: float | None) -> int | None:
    return None if ns is None else round(ns)


def _wakeup(wakeup: Wakeup) -> dict[str, object]:
    return {
        "type": "wake-up",
        "mono_ns": wakeup.at.mono_ns,
        "wall_ns": wakeup.at.wall_ns,
        "cpu": wakeup.cpu,
        "delay_ns": _whole(wakeup.delay_ns),
        "stations": dict(wakeup.parts),
        "longest": wakeup.longest or None,
        "blamed": wakeup.cause,
        "culprit": dict(wakeup.culprit),
    }


def _interval(following: LiveRecording) -> dict[str, object]:
    """The newest interval: current value, maximum and its age of each series with samples."""
    last = following.last
    stations = [
        {
            "station": status.series.name,
            "cpu": status.series.cpu,
            "n": status.n,
            "lost": status.lost,
            "current_ns": _whole(status.latest_ns),
            "worst_ns": _whole(status.maximum_ns),
            "age_ns": status.since_maximum_ns,
        }
        for status in following.statuses()
        if status.n
    ]
    return {
        "type": "interval",
        "seq": None if last is None else last.seq,
        "end_mono_ns": None if last is None else last.end_mono_ns,
        "stations": stations,
    }


@click.group(cls=Group, invoke_without_command=True, example="fastenough monitor --comm robot --threshold 200us")
@click.option("--pid", type=click.IntRange(1), help="Watch this process and its threads, or a single thread.")
@click.option("--comm", metavar="NAME", help="Watch tasks whose name begins with this, as ps -L -o comm shows it.")
@click.option(
    "--cgroup",
    metavar="PATH",
    help="Watch the tasks in or below this control group, such as /system.slice/robot.service.",
)
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    help="Watch tasks of this scheduling policy  [default: every real-time policy]",
)
@click.option("--priority", type=click.IntRange(1, 99), help="Watch tasks of this real-time priority and above.")
@click.option(
    "--threshold",
    type=DurationText(),
    help="Report the cause of every wake-up that takes longer, not only of each new maximum.",
)
@click.option(
    "--noise",
    is_flag=True,
    help="Also measure the time that interrupts, soft-IRQs and other threads take from each CPU.",
)
@click.option(
    "--interval",
    type=DurationText(),
    default="1s",
    show_default=True,
    help="Length of a recorded interval; 5min for days and months.",
)
@click.option("--duration", "duration_ns", type=DURATION, help="Time to watch  [default: until Ctrl-C]")
@click.option("--board", default=LOCAL, show_default=True, metavar="BOARD", help="Board to watch (docs/boards.md).")
@store_option
@json_option
def command(
    *,
    pid: int | None,
    comm: str | None,
    cgroup: str | None,
    policy: str | None,
    priority: int | None,
    threshold: str | None,
    noise: bool,
    interval: str,
    duration_ns: int | None,
    board: str,
    store_path: Path,
    as_json: bool,
) -> int:
    """Watch real-time tasks and name what delays them.

    Watches all real-time tasks, or those that the options select.  Measures the time of each wake-up at every station
    in the kernel, and reports each new maximum with its cause.  The recording is a run of the store, for fastenough
    report.  Requires root, or CAP_BPF and CAP_PERFMON.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return ExitStatus.DONE
    _require_guest(board, pid, duration_ns)
    parameters = _parameters(
        pid=pid,
        comm=comm,
        cgroup=cgroup,
        policy=policy,
        priority=priority,
        threshold=threshold,
        noise=noise or None,
        report=interval,
    )
    duration_s = None if duration_ns is None else duration_ns / 1e9
    opened, stopping = _board(board), StopRequest()
    with opened.boot(AS_BOOTED) as booted, stop_on_signals(stopping), _view(as_json) as view:
        store, act = Store(store_path), Act(MONITOR, {**parameters, **_ordinary(booted.link, pid, policy)}, duration_s)
        with monitor_run(board, booted, act, store) as watched, stopping.notifying(watched.ask):
            if stopping.requested:
                watched.ask()
            _follow(watched, store, view)
    if stopping.signal and duration_ns is not None:
        return 128 + stopping.signal
    return OUTCOME_STATUS[watched.outcome]


@click.command("pull", cls=Command, example="fastenough monitor pull --board ssh://root@host")
@click.option(
    "--board", default="local", show_default=True, metavar="BOARD", help="Board to fetch from, such as ssh://root@host."
)
@click.option("--ring", default=RING, show_default=True, metavar="DIR", help="Directory of the ring on the board.")
@store_option
@json_option
def pull_command(board: str, ring: str, store_path: Path, as_json: bool) -> ExitStatus:
    """Fetch recordings of the service on a board.

    Stores each recording once, also after an interrupted pull.  Reports gaps: time without a recording, and
    recordings that the ring deleted before they were pulled.
    """
    opened = LocalBoard(probe="") if board == LocalBoard.name else open_board(board)  # to read files needs none
    if opened.configurations() != (AS_BOOTED,):
        raise BadInput(f"board {board} is booted for each measurement; pull from a running board: local or ssh://…")
    with opened.boot(AS_BOOTED) as booted:
        store = Store(store_path)
        names = board_names(board, booted, ring, store, _tell)
        pulled = pull(booted.link.raised, ring, store, names, _tell_wait)
    if as_json:
        print_json(pulled)
    else:
        _print_pull(pulled)
    return ExitStatus.BROKEN if pulled.refused else ExitStatus.DONE


command.add_command(pull_command)
