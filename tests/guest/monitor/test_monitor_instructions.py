# SPDX-License-Identifier: GPL-2.0-or-later
"""What the monitor adds to a wake-up, in instructions: a guest whose clock counts them tells the same again and again.

A regression test: the figures are what was counted when it was written, and some room.  Instructions are no time.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import compiler
from fastenough.virtual.monitor import install_monitor
from fastenough.virtual.packages import GUEST_ARCH
from fastenough.virtual.qemu import COUNTED
from tests.support.tools import ROOT, require

pytestmark = [pytest.mark.untimed, pytest.mark.matrix, pytest.mark.timeout(900)]
BLOCKS, ROUNDS = "20", "50"
WAKEUPS = 2
"""Of a round."""
MOST = {"fifo": 1850.0, "other": 750.0}
"""Instructions added to a wake-up: of a task that is watched, and of one that is not."""
STEADY = 0.01
TRIES = 3
_LONGEST_S = 300.0


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualBoard]:
    require("clang")
    pingpong = tmp_path_factory.mktemp("guest") / "bench-pingpong"
    probe = ROOT / "target" / "probe"
    subprocess.run(
        [
            compiler(GUEST_ARCH),
            "-O2",
            "-static",
            "-pthread",
            "-I",
            probe / "frame",
            "-I",
            probe / "platform" / "linux",
            "-o",
            pingpong,
            probe / "bench_pingpong.c",
        ],
        check=True,
    )
    with VirtualBoard("stock", snapshot=False, cpus=1, boot_timeout_s=_LONGEST_S, pace=COUNTED) as board:
        install_monitor(board.link)
        board.link.write("/bin/bench-pingpong", pingpong.read_bytes())
        board.link.run(["chmod", "755", "/bin/bench-pingpong"])
        yield board


def _a_round(board: VirtualBoard, policy: str) -> float:
    """The least of some: what the guest does besides comes when the host lets it, and makes a round longer only."""
    rounds = []
    for _ in range(TRIES):
        done = board.link.run(["/bin/bench-pingpong", "0", BLOCKS, ROUNDS, policy], timeout_s=_LONGEST_S)
        assert done.status == 0, done.stderr
        rounds.append(float(done.text))
    return min(rounds)


@pytest.mark.parametrize("policy", MOST)
def test_a_wakeup_is_not_dearer_than_it_was(board: VirtualBoard, policy: str) -> None:
    off = _a_round(board, policy)
    assert abs(_a_round(board, policy) - off) < STEADY * off
    monitor = board.link.start(["/bin/fastenough-monitor", "--quiet", "--until-interrupt", "--record=-"])
    stream = monitor.lines(_LONGEST_S)
    assert next(stream)
    on = _a_round(board, policy)
    assert abs(_a_round(board, policy) - on) < STEADY * on
    monitor.signal(2)
    assert list(stream)
    added = (on - off) / WAKEUPS
    print(f"{policy}: {off:.0f} instructions a round without, {on:.0f} with the monitor: {added:+.0f} a wake-up")
    assert 0 < added <= MOST[policy]
