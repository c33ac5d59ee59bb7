# SPDX-License-Identifier: GPL-2.0-or-later
"""The wall clock is set while timers run: their grids stay right, and it is never hidden that it was set.

In an emulated guest, whose clock is nobody else's.  Nothing here is a matter of speed: due times are counted.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fastenough.analysis.machine import counter_total
from fastenough.model import Outcome
from fastenough.recording import Recording, read_recording
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import compiler
from fastenough.virtual.packages import GUEST_ARCH
from fastenough.virtual.probe import PROBE, install
from tests.support.virtual_boards import booted

pytestmark = pytest.mark.untimed

STEP = "/bin/clock-step"
PERIOD_NS = 20_000_000
SINCE_1970_MS = 1_790_000_000_000
METHODS = ("clock_nanosleep-abs", "posix-timer", "timerfd", "futex")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualBoard]:
    for board in booted("stock"):
        install(board.link)
        program = tmp_path_factory.mktemp("step") / "clock-step"
        subprocess.run(
            [
                compiler(GUEST_ARCH),
                "-O1",
                "-static",
                "-s",
                "-o",
                str(program),
                str(Path(__file__).parents[2] / "sources/clock_step.c"),
            ],
            check=True,
        )
        board.link.write(STEP, program.read_bytes())
        board.link.run(["chmod", "755", STEP])
        yield board


def _recorded(
    board: VirtualBoard, place: Path, meanwhile: str, *arguments: str, methods: Sequence[str] = METHODS
) -> dict[str, Recording]:
    """A timer for each method on the wall clock, all at once; the script ``meanwhile`` knows them as $timers."""
    starts = "".join(
        f"{PROBE} timer --method {method} -c realtime -i {PERIOD_NS}ns -a 0 -q --allow-difference "
        f'--record /tmp/{method} {" ".join(arguments)} >/dev/null & timers="$timers $!"\n'
        for method in methods
    )
    script = f"rm -f /tmp/*-* /tmp/timerfd /tmp/futex\n{starts}sleep 1\n{meanwhile}\nwait"
    done = board.link.run(["sh", "-c", script])
    assert done.status == 0, done
    recordings = {}
    for method in methods:
        path = place / method
        path.write_bytes(board.link.read(f"/tmp/{method}"))
        recordings[method] = read_recording(path)
    return recordings


def _due_and_held(recording: Recording) -> tuple[float, int]:
    """Due times that passed on the wall clock, and those accounted for."""
    (wakeup,), (corrected,) = recording.named("wakeup"), recording.named("wakeup_corrected")
    held = recording.totals[wakeup.id].total + recording.missed(wakeup.id)
    assert recording.totals[corrected.id].total + recording.lost(corrected.id) == held
    assert recording.lost(wakeup.id) == recording.lost(corrected.id) == 0
    first, last = recording.intervals[0], recording.intervals[-1]
    return (last.end_wall_ns - first.begin_wall_ns) / PERIOD_NS, held


def _allowed(recording: Recording) -> float:
    """Slow as emulation is, no more is open at the end than the longest delay held."""
    (wakeup,) = recording.named("wakeup")
    last = recording.intervals[-1].histograms[wakeup.id]
    return 10 + (last.maximum or 0) / PERIOD_NS


@pytest.mark.parametrize("step_ms", [-2000, 3000])
def test_the_grid_is_right_after_the_clock_was_set(board: VirtualBoard, tmp_path: Path, step_ms: int) -> None:
    # Timers expire while their programs are stopped; when these go on, the clock is before that expiry, or well after.
    meanwhile = f"kill -STOP $timers; sleep 1; {STEP} {step_ms}; kill -CONT $timers"
    for method, recording in _recorded(board, tmp_path, meanwhile, "-D", "7s").items():
        assert recording.outcome is Outcome.COMPLETED, method
        due, held = _due_and_held(recording)
        assert abs(due - held) <= _allowed(recording), method
        assert recording.missed(recording.named("wakeup")[0].id) < due, method


def test_a_step_and_its_reversal_are_seen(board: VirtualBoard, tmp_path: Path) -> None:
    for method, recording in _recorded(board, tmp_path, f"{STEP} -5000 5000", "-D", "3s").items():
        assert counter_total(recording, "clock_step_ns") == 0, method
        assert counter_total(recording, "clock_sets") == 1, method
        assert [event.kind for event in recording.events].count("clock-step") == 1, method


def test_every_interval_in_which_the_clock_was_set_is_counted(board: VirtualBoard, tmp_path: Path) -> None:
    meanwhile = f"{STEP} 100 -100; sleep 1; {STEP} 100 -100; {STEP} 100 -100"
    for method, recording in _recorded(board, tmp_path, meanwhile, "-D", "5s", "--report", "500ms").items():
        assert counter_total(recording, "clock_sets") in (2, 3), method


def test_a_clock_that_is_set_from_1970_makes_no_wrong_sum(board: VirtualBoard, tmp_path: Path) -> None:
    board.link.run(["date", "-s", "@1000"])
    recordings = _recorded(board, tmp_path, f"{STEP} {SINCE_1970_MS}", "-D", "3s")
    kernel_counts = recordings.pop("posix-timer")
    assert kernel_counts.outcome is Outcome.FAILED
    assert kernel_counts.end is not None
    assert any("posix-timer failed" in reason for reason in kernel_counts.end.reasons)
    for method, recording in recordings.items():
        assert recording.outcome is Outcome.COMPLETED, method
        (wakeup,), (corrected,) = recording.named("wakeup"), recording.named("wakeup_corrected")
        stored = recording.totals[corrected.id]
        assert recording.missed(corrected.id) > SINCE_1970_MS * 1_000_000 // PERIOD_NS - 1000, method
        assert recording.lost(corrected.id) > 2**20, method  # what no sum can hold is counted, and BROKEN
        assert stored.maximum is not None and stored.maximum > SINCE_1970_MS * 900_000, method
        assert stored.maximum <= stored.sum < 3 * stored.maximum, method
        assert recording.totals[wakeup.id].total > 10, method
