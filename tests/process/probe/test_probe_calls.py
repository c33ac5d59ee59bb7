# SPDX-License-Identifier: GPL-2.0-or-later
"""How many system calls the reporting thread makes for an interval: what they cost, the measured CPU may lack."""

from __future__ import annotations

import functools
import itertools
import operator
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tools import require

pytestmark = pytest.mark.untimed

ONCE = {"rt_sigtimedwait": 1, "write": 1, "timer_settime": 3, "getrusage": 2}
"""One wake-up and one line; the watchdog is fed, and the output's timer is started and stopped."""
FREQUENCY_FILES = {"openat", "read", "close"}
"""What a CPU with a frequency and a throttle counter has is opened each time."""
OTHERS = {"pread64", "clock_gettime"}
"""Files that stay open; clocks of threads, and those that this kernel has no vDSO for."""


def _reporter_lines(trace: Path) -> list[str]:
    lines = trace.read_text().splitlines()
    reporter = lines[0].split()[0]
    return [line.split(maxsplit=1)[1] for line in lines if line.split()[0] == reporter and "resumed>" not in line]


def _intervals(lines: list[str]) -> Iterator[list[str]]:
    """The calls after one interval's line, up to the next one."""
    ends = [number for number, line in enumerate(lines) if re.match(r'write\(\d+, "{\\"type\\":\\"interval', line)]
    for begin, end in itertools.pairwise(ends[:-1]):  # the last one is that of the end
        yield lines[begin + 1 : end + 1]


def test_an_interval_takes_few_system_calls(probe_binary: str, tmp_path: Path) -> None:
    """Counted are those that all intervals make: an event, more memory and another wake-up come in some."""
    require("strace")
    trace, recording = tmp_path / "trace", tmp_path / "recording"
    run = [probe_binary, "timer", "-a0", "-i1ms", "-D1600ms", "--report=100ms", "--policy=other", "--allow-difference"]
    subprocess.run(
        ["strace", "-f", "-o", str(trace), *run, "--quiet", f"--record={recording}"],
        stdout=subprocess.DEVNULL,
        timeout=60,
        check=True,
    )
    intervals = list(_intervals(_reporter_lines(trace)))
    assert len(intervals) >= 2
    calls = functools.reduce(operator.and_, (Counter(line.split("(")[0] for line in lines) for lines in intervals))
    assert {name: calls[name] for name in ONCE} == ONCE
    assert set(calls) <= {*ONCE, *FREQUENCY_FILES, *OTHERS}
    assert calls["openat"] == calls["close"] == calls["read"] - 1  # and whether the wall clock was set
    files = [line.split(",")[0] for line in intervals[-1] if line.startswith("pread64")]
    assert len(set(files)) == len(files)
