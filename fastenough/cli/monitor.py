# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough monitor``: watches real-time tasks, also those of others, and says where in the kernel the time goes."""

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
from fastenough.cli.follow import shown
from fastenough.cli.making import OUTCOME_STATUS
from fastenough.cli.monitor_pull import pull_command
from fastenough.cli.outlet import unhurried
from fastenough.cli.parameters import DURATION, DurationText, json_option
from fastenough.cli.privileges import LOCAL
from fastenough.cli.station_stream import Stream, missing
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
    """On standard output; who does not read it holds up nothing."""
    if as_json:
        with unhurried(sys.stdout, missing) as stream:
            yield Stream(stream)
    else:
        with unhurried(sys.stdout, _missing) as stream, shown(stream) as screen:
            yield screen


def _missing(lines: int) -> str:
    """Of a picture that is drawn again and again nothing is missing."""
    return "" if sys.stdout.isatty() else f"({lines} lines are missing here: they were not read in time)\n"


def _board(name: str) -> Board:
    """With root's rights where this user may have them; where not, the monitor says itself what it lacks."""
    if name == LOCAL and os.geteuid() and may_sudo():
        print("fastenough: not root: the monitor runs through sudo; all files are yours", file=sys.stderr)
        return LocalBoard(SudoLink())
    return open_board(name)


def _follow(watched: Watching, store: Store, view: _Shown) -> None:
    """The recording is looked at as it grows in the store, as anybody else may do."""
    with closing(Watch(Folder.at(store.path / "runs" / watched.run_id), LIVE_FILE)) as watch:
        while watched.running and not watch.over:
            view.show(watch)
        watched.finish()
        while watch.look():
            pass
        view.end(watch)


def _ordinary(link: Link, pid: int | None, policy: str | None) -> dict[str, Value]:
    """The policy to watch where a process without a real-time thread is named and no policy is, and a line on it."""
    policies = [] if pid is None else ordinary_policies(link, pid)
    if policy is not None or not policies:
        return {}
    print(
        f"fastenough: process {pid} is {', '.join(policies)}, not real-time: its wake-ups are watched all the same",
        file=sys.stderr,
    )
    return {"policy": "any"}


def _parameters(**given: Value | None) -> dict[str, Value]:
    return {name: value for name, value in given.items() if value is not None}


@click.group(invoke_without_command=True)
@click.option("--pid", type=click.IntRange(1), help="Watch this process and its threads.")
@click.option("--comm", metavar="NAME", help="Watch the tasks of this name, as ps -o comm shows it.")
@click.option(
    "--cgroup", metavar="PATH", help="Watch the tasks of this control group, such as /system.slice/robot.service."
)
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    help="Watch tasks of this scheduling policy; left out: those of every real-time policy.",
)
@click.option("--priority", type=click.IntRange(1, 99), help="Watch tasks of this real-time priority and above.")
@click.option(
    "--threshold",
    type=DurationText(),
    help="Tell the culprit of each wake-up that takes longer, not only of each new maximum.",
)
@click.option(
    "--noise", is_flag=True, help="Also count what interrupts, soft-IRQs and other threads take from each CPU."
)
@click.option(
    "--interval",
    type=DurationText(),
    default="1s",
    show_default=True,
    help="How often what was seen is written down; 5min for days and months.",
)
@click.option("--duration", "duration_ns", type=DURATION, help="How long to watch; left out: until Ctrl-C.")
@click.option("--board", default=LOCAL, show_default=True, help="Which board to watch.")
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
    """Watch the real-time tasks of this machine, and say who delays them.

    All of them, or those of one application.  For each wake-up the time is taken at every station in the kernel; each
    new maximum is told with its culprit.  What is recorded is a run of the store: fastenough report shows it.  Needs
    root, or CAP_BPF and CAP_PERFMON.
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
