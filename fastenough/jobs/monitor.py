# SPDX-License-Identifier: GPL-2.0-or-later
"""The monitor on its own: it watches tasks of other programs and records an ordinary run of the store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from fastenough.board import Booted
from fastenough.campaign.board_name import recorded_board
from fastenough.campaign.measure import head_additions
from fastenough.campaign.monitoring import monitoring
from fastenough.campaign.transcript import RunStore, StorageFailure, Transcript
from fastenough.implementations import Act
from fastenough.implementations.task import Task
from fastenough.link import Link
from fastenough.model import BadInput, FastenoughError, Outcome
from fastenough.recording import LoadProof, LoadStated

NO_LOAD_STARTED = LoadStated("as found", source="whatever ran on the machine: the monitor starts no load")
_END_TIMEOUT_S = 20.0


_POLICIES = {0: "SCHED_OTHER", 1: "SCHED_FIFO", 2: "SCHED_RR", 3: "SCHED_BATCH", 5: "SCHED_IDLE", 6: "SCHED_DEADLINE"}
"""Names of sched(7)."""
_REAL_TIME = frozenset({"SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE"})
_STAT_POLICY = 38
"""Index of the policy in /proc/PID/stat behind the name: its field 41 of proc(5)."""


def ordinary_policies(link: Link, pid: int) -> list[str]:
    """Scheduling policies of the threads of a process, or of the single thread ``pid``; empty if one is real-time.

    Raises BadInput if there is no such process.
    """
    policies: set[str] = set()
    threads = [] if _is_thread(link, pid) else link.glob(f"/proc/{pid}/task/*/stat")
    for path in [*threads, f"/proc/{pid}/stat"]:
        with suppress(OSError):
            fields = link.read(path).rpartition(b")")[2].split()
            number = int(fields[_STAT_POLICY])
            policies.add(_POLICIES.get(number, f"policy {number}"))
    if not policies:
        raise BadInput(f"--pid {pid}: no such process on {link.name}; list processes with ps -e")
    return [] if policies & _REAL_TIME else sorted(policies)


def _is_thread(link: Link, pid: int) -> bool:
    """Whether this is the id of a thread other than the main one, where /proc/PID/task has its siblings, too."""
    with suppress(OSError):
        group = re.search(rb"^Tgid:\s*(\d+)", link.read(f"/proc/{pid}/status"), re.MULTILINE)
        return group is not None and int(group[1]) != pid
    return False


class MonitorRun:
    """A running monitor and its run."""

    def __init__(self, task: Task, transcript: Transcript, store: RunStore) -> None:
        self._task = task
        self._store = store
        assert transcript.writer is not None, "its first line began the run"
        self.run_id = transcript.writer.id
        self._transcript = transcript

    @property
    def running(self) -> bool:
        """Whether the monitor still runs."""
        return self._task.running

    def ask(self) -> None:
        """Request the end of the recording."""
        self._task.ask()

    @property
    def outcome(self) -> Outcome:
        """Outcome of the finished run."""
        return self._transcript.outcome or Outcome.FAILED

    def finish(self) -> None:
        """Wait for the end of its recording; where it writes none, its fault is the end.  Raises StorageFailure."""
        try:
            self._task.wait(_END_TIMEOUT_S)
            if self._transcript.outcome is None:
                raise self._task.ended_early()
        except StorageFailure:
            raise
        except FastenoughError as error:
            self._transcript.fail([str(error)], self._store)


@contextmanager
def monitor_run(board: str, booted: Booted, act: Act, store: RunStore) -> Iterator[MonitorRun]:
    """Run the monitor until the block is left; its run is sealed in any case.

    ``finish()`` comes first where all goes well.  Raises NotApplicable where it cannot run, StorageFailure when
    the store cannot be written.
    """
    added = replace(head_additions(recorded_board(board, booted.link, store), booted, ()), load=NO_LOAD_STARTED)
    transcript = Transcript(partial(store.begin, {}), added, lambda: LoadProof(NO_LOAD_STARTED.name, True, stated=True))
    try:
        with monitoring(booted, act, transcript) as task:
            yield MonitorRun(task, transcript, store)
    finally:
        transcript.seal()
