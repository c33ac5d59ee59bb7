# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough monitor``: watches real-time tasks and measures where in the kernel each wake-up spends its time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

import click

from fastenough.board import AS_BOOTED, Board, open_board
from fastenough.board.local import LocalBoard
from fastenough.campaign.stopping import Stopping, listening
from fastenough.cli.commands import Group
from fastenough.cli.follow import screen_on
from fastenough.cli.making import OUTCOME_STATUS
from fastenough.cli.monitor_pull import pull_command
from fastenough.cli.outlet import never_waiting
from fastenough.cli.parameters import DURATION, DurationText, json_option
from fastenough.cli.privileges import LOCAL
from fastenough.cli.station_stream import JsonLines, missing
from fastenough.cli.stores import store_option
from fastenough.folder import Folder
from fastenough.implementations import Act, Value
from fastenough.jobs.monitor import Watching, ordinary_policies, watching
from fastenough.jobs.watching import Watch
from fastenough.link import Link
from fastenough.link.sudo import SudoLink, may_sudo
from fastenough.model import ExitStatus
from fastenough.recording.wakeups import MONITOR
from fastenough.store import Store
from fastenough.store.directory import LIVE_FILE

POLICIES = ("fifo", "rr", "deadline", "real-time", "other", "any")


class _Shown(Protocol):
    """A live view."""

    def show(self, watch: Watch) -> None: ...

    def end(self, watch: Watch) -> ExitStatus: ...


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


def _follow(watched: Watching, store: Store, view: _Shown) -> None:
    """Show the recording while it grows in the store."""
    with closing(Watch(Folder.at(store.path / "runs" / watched.run_id), LIVE_FILE)) as watch:
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


def _parameters(**given: Value | None) -> dict[str, Value]:
    return {name: value for name, value in given.items() if value is not None}


@click.group(cls=Group, invoke_without_command=True, example="fastenough monitor --comm robot --threshold 200us")
@click.option("--pid", type=click.IntRange(1), help="Watch this process and its threads.")
@click.option("--comm", metavar="NAME", help="Watch the tasks of this name, as ps -o comm shows it.")
@click.option(
    "--cgroup", metavar="PATH", help="Watch the tasks of this control group, such as /system.slice/robot.service."
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
@click.option("--board", default=LOCAL, show_default=True, help="Board to watch.")
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
    said = _parameters(
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
    opened, stopping = _board(board), Stopping()
    with opened.boot(AS_BOOTED) as booted, listening(stopping), _view(as_json) as view:
        store, act = Store(store_path), Act(MONITOR, {**said, **_ordinary(booted.link, pid, policy)}, duration_s)
        with watching(board, booted, act, store) as watched, stopping.telling(watched.ask):
            if stopping.asked:
                watched.ask()
            _follow(watched, store, view)
    if stopping.signal and duration_ns is not None:
        return 128 + stopping.signal
    return OUTCOME_STATUS[watched.outcome]


command.add_command(pull_command)
