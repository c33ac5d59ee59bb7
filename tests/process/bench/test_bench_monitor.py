# SPDX-License-Identifier: GPL-2.0-or-later
"""What ``make bench`` says of the monitor's cost: fair turns, a bound that holds, and nothing left behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.bench.monitor import Contender, bpf_statistics, cost_ns, monitoring, programs, repeat, upper_ratio
from tests.support.privileges import needs_root

RNG = np.random.default_rng(7)
SHARE = 0.3
TRIALS = 100


def timings(cost: float) -> np.ndarray:
    return cost * RNG.lognormal(0, 0.2, 30)


def test_the_bound_lies_above_the_true_ratio_in_nineteen_of_twenty() -> None:
    """The machine's own wandering is shared by all of one repetition."""
    held = 0
    for _ in range(TRIALS):
        nothing = RNG.normal(2500, 300, 30)
        ours, theirs = nothing + timings(2000 * SHARE), nothing + timings(2000)
        held += upper_ratio(list(ours), list(theirs), list(nothing)) >= SHARE
    assert held >= 88


def test_a_cost_is_paired_within_a_repetition() -> None:
    nothing = np.array([1000.0, 2000.0, 9000.0])
    assert cost_ns(nothing + 100.0, nothing) == 100.0


def test_each_tracer_is_first_once(tmp_path: Path) -> None:
    order = tmp_path / "order"
    running = [Contender(name, ("sh", "-c", f'echo {name} >>{order}; "$@"', name)) for name in ("a", "b", "c")]
    repeat(running, ["echo", "12.5"], 3, tmp_path)
    assert order.read_text().split() == ["a", "b", "c", "b", "c", "a", "c", "a", "b"]
    assert [contender.ns for contender in running] == [[12.5] * 3] * 3


def test_what_does_not_run_here_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not Contender("lacking", ("no-such-tracer",)).applies(tmp_path)
    assert not Contender("refusing", ("sh", "-c", "echo may not >&2; exit 1")).applies(tmp_path)
    assert [line.split(": ", 1)[1] for line in capsys.readouterr().out.splitlines()] == [
        "not-applicable: no-such-tracer is not installed",
        "not-applicable: may not",
    ]


@needs_root("BPF")
def test_statistics_of_the_kernel_are_on_only_while_they_are_held(monitor_binary: Path, tmp_path: Path) -> None:
    switch = Path("/proc/sys/kernel/bpf_stats_enabled")
    before = switch.read_text()
    known = set(programs())
    with monitoring(str(monitor_binary), tmp_path):
        own = set(programs()) - known
        with bpf_statistics():
            while not any(programs()[number][2] for number in own):
                pass
        counted = {number: programs()[number][2] for number in own}
        assert switch.read_text() == before
    assert any(counted.values())
