# SPDX-License-Identifier: GPL-2.0-or-later
"""Scheduling policies of the tasks that ``monitor --pid`` selects."""

from __future__ import annotations

import pytest

from fastenough.jobs.monitor import ordinary_policies
from fastenough.link.fake import FakeLink
from fastenough.model import BadInput


def _stat(policy: int) -> str:
    return f"7 (a (b) c) S {' '.join(['0'] * 37)} {policy} 0 0\n"


@pytest.mark.parametrize(
    ("pid", "policies"), [(7, []), (8, ["SCHED_OTHER"]), (9, []), (20, ["SCHED_BATCH", "SCHED_OTHER"])]
)
def test_only_the_selected_threads_count(pid: int, policies: list[str]) -> None:
    """Process 7 has an ordinary thread, 8, and real-time threads, 7 and 9; the task folder of each thread has all."""
    tasks = {7: {7: 1, 8: 0, 9: 2}, 20: {20: 0, 21: 3}}
    files = {
        path: text
        for group, threads in tasks.items()
        for thread, policy in threads.items()
        for path, text in (
            (f"/proc/{thread}/stat", _stat(policy)),
            (f"/proc/{thread}/status", f"Name:\ta\nTgid:\t{group}\nPid:\t{thread}\n"),
            *((f"/proc/{thread}/task/{other}/stat", _stat(its)) for other, its in threads.items()),
        )
    }
    assert ordinary_policies(FakeLink(files), pid) == policies


def test_a_process_that_does_not_exist_is_refused() -> None:
    with pytest.raises(BadInput, match="--pid 7: no such process"):
        ordinary_policies(FakeLink({}), 7)
