# SPDX-License-Identifier: GPL-2.0-or-later
"""No coordinated omission: what a stall really did to every period is in the recording.

The stall is real: the probe `hog`, at a higher real-time priority on the same CPU, computes for a known
time and says itself how long it really took.  A shared host adds stalls of its own, so each assertion
counts what the injected ones must have caused at least, or only what lies above anything else in the run.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from fastenough.model import ExitStatus
from fastenough.recording import Recording, read_recording
from tests.support.presence import present
from tests.support.privileges import needs_root

PERIOD_NS = 200_000
LEAD_NS = 300_000
CPU = str(max(os.sched_getaffinity(0)))

pytestmark = needs_root("two real-time priorities")


def _stalled(probe: str, directory: Path, sizes: str, *, each: int, interval: str) -> tuple[Recording, Recording]:
    """The recordings of a timer and of the hog that stalls it; another try where the host delayed the hog each time."""
    assert any(_hog_acted(probe, directory, sizes, each, interval) for _ in range(5))
    return read_recording(directory / "timer"), read_recording(directory / "hog")


def _hog_acted(probe: str, directory: Path, sizes: str, each: int, interval: str) -> bool:
    options = ("-a", CPU, "-q", "--record")
    timer = subprocess.Popen(
        [probe, "timer", *options, str(directory / "timer"), "-p", "80", "-i", "200us", "-D", "2s"],
        stdout=subprocess.DEVNULL,
    )
    size_options = ("--sizes", sizes, "--each", str(each), "-i", interval, "--lead", f"{LEAD_NS}ns")
    try:
        hog = subprocess.run(
            [probe, "hog", *options, str(directory / "hog"), "-p", "90", *size_options],
            check=False,
            stdout=subprocess.DEVNULL,
            timeout=60,
        )
        assert timer.wait(60) == 0
    finally:
        timer.kill()
    assert hog.returncode in {ExitStatus.DONE, ExitStatus.BROKEN}
    return hog.returncode == ExitStatus.DONE


def test_a_stall_of_100_ms_is_500_late_or_missed_periods(probe_binary: str, tmp_path: Path) -> None:
    timer, hog = _stalled(probe_binary, tmp_path, "99700us", each=1, interval="1s")
    (wakeup,), (corrected,) = timer.named("wakeup"), timer.named("wakeup_corrected")
    (injected,) = [event for event in hog.events if event.kind == "max"]
    latest = [event for event in timer.events if event.kind == "max" and event.series == wakeup.id][-1]

    # The act that the hog held up began when the hog had ended.
    stall_ns, latest_ns = present(injected.value, "injected stall") + LEAD_NS, present(latest.value, "maximum")
    after_ns = latest.at.mono_ns - injected.at.mono_ns
    assert after_ns > -PERIOD_NS
    assert stall_ns - PERIOD_NS <= latest_ns - after_ns <= stall_ns + PERIOD_NS

    # Its corrected delays form a ramp, one value a period.  Above the next longest stall of this run, which
    # a shared host may add, nothing else is in the histogram.
    periods = latest_ns // PERIOD_NS + 1
    assert abs(periods - (stall_ns + after_ns) / PERIOD_NS) <= 1
    acts = timer.totals[wakeup.id]
    floor_ns = int(acts.highest()[-2]) + PERIOD_NS
    assert floor_ns < latest_ns / 2, "the host stalled this machine for longer than the test did; run it again"
    above = timer.totals[corrected.id].count_above(floor_ns)
    assert abs(above - (periods - floor_ns / PERIOD_NS)) <= 2
    # All but its own act and the one that began at once, in the period that the stall ended in.
    assert timer.missed(wakeup.id) >= periods - 2
    assert timer.totals[corrected.id].total == acts.total + timer.missed(corrected.id)


def test_stalls_of_1_5_and_20_ms_are_each_found(probe_binary: str, tmp_path: Path) -> None:
    timer, hog = _stalled(probe_binary, tmp_path, "1ms,5ms,20ms", each=5, interval="100ms")
    (wakeup,), (corrected,) = timer.named("wakeup"), timer.named("wakeup_corrected")
    expected_acts = expected_periods = 0
    sizes_ns = (1_000_000, 5_000_000, 20_000_000)
    for size_ns, injected in reversed(list(zip(sizes_ns, hog.named("injected"), strict=True))):
        expected_acts += hog.totals[injected.id].total
        assert expected_acts > 0
        held_ns = size_ns - PERIOD_NS  # a hog that began just in time for its due time spares the act before it
        assert timer.totals[wakeup.id].count_above(held_ns - 1) >= expected_acts
        expected_periods += hog.totals[injected.id].total * (held_ns // PERIOD_NS - 1)
    assert timer.missed(corrected.id) >= expected_periods


def test_a_late_thread_acts_in_the_period_that_has_begun(probe_binary: str, tmp_path: Path) -> None:
    """A stall of five and a half periods costs four: the first act is late, the sixth period's follows at once."""
    timer, hog = _stalled(probe_binary, tmp_path, "1100us", each=12, interval="100ms")
    (wakeup,), (injected,) = timer.named("wakeup"), hog.named("injected")
    acts, stalls = timer.totals[wakeup.id], hog.totals[injected.id].total
    due = timer.totals[timer.named("wakeup_corrected")[0].id].total
    assert stalls > 0
    assert acts.total + timer.missed(wakeup.id) == due
    assert acts.count_above(PERIOD_NS - 1) >= stalls
    assert timer.missed(wakeup.id) >= 3 * stalls
