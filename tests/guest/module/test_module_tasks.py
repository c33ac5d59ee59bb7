# SPDX-License-Identifier: GPL-2.0-or-later
"""fastenough.ko in real kernels: what is counted inside is what happened outside."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from fastenough.model import FastenoughError
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import build_module
from fastenough.virtual.packages import fetch
from fastenough.virtual.pins import INPUT_LINE, OUTPUT_LINE
from fastenough.virtual.probe import PROBE
from tests.support.module_trials import (
    PATIENCE_S,
    assert_every_period_is_accounted_for,
    every_edge_is_answered,
    it_comes_and_goes,
    settled,
)
from tests.support.presence import present
from tests.support.virtual_boards import (
    DEVICE,
    OWN_KERNELS,
    PERIODIC,
    RESPONSE,
    booted,
    counted,
    every_kernel,
    insert,
    leave_output_low,
    load_module,
    quiet,
    reading,
    recorded,
    since_load,
    unload_module,
)

pytestmark = pytest.mark.untimed

EDGES = 500
TURNS = 50


@pytest.fixture(scope="module", params=every_kernel("rt", among=OWN_KERNELS, checked="rt"))
def board(request: pytest.FixtureRequest) -> Iterator[VirtualBoard]:
    yield from booted(request.param)


def test_every_edge_is_seen_and_answered(board: VirtualBoard, tmp_path: Path) -> None:
    settled(board)
    load_module(board, RESPONSE)
    recording = every_edge_is_answered(board, EDGES, tmp_path, "--run-id=edges")
    unload_module(board)
    assert (recording.run_id, recording.head.implementation) == ("edges", "linux-kernel")
    assert {event.cpu for event in recording.events} <= {0, 1}


def test_edges_too_close_are_counted_not_hidden(board: VirtualBoard) -> None:
    settled(board)
    load_module(board, RESPONSE)
    for number in range(EDGES):
        board.pins.drive(INPUT_LINE, number % 2)
    board.pins.drive(INPUT_LINE, 1)
    quiet(board)
    last = [edge.level for edge in board.pins.take() if edge.line == OUTPUT_LINE][-1]
    counters = counted(board)
    assert last == 1
    assert counters["answered"] + counters["unchanged"] == counters["seen"] <= EDGES + 1
    assert counters["answered"] > 0


def test_every_toggle_comes_out(board: VirtualBoard, tmp_path: Path) -> None:
    settled(board)
    leave_output_low(board)
    before = board.pins.counts[OUTPUT_LINE]
    load_module(board, PERIODIC)
    recording = recorded(board, 1.0, tmp_path, "--report=250ms")
    unload_module(board)
    assert recording.end is not None
    board.pins.settle()
    assert board.pins.counts[OUTPUT_LINE] - before == since_load(recording.end.counters)["toggled"]
    levels = [edge.level for edge in board.pins.take() if edge.line == OUTPUT_LINE]
    assert all(one != following for one, following in pairwise(levels))
    assert recording.end.counters["toggled"] == recording.totals[0].total > 0
    assert_every_period_is_accounted_for(recording, 5_000_000)


@pytest.mark.parametrize("task", ["timer-thread", "timer-handler"])
def test_timers_measure_themselves(board: VirtualBoard, tmp_path: Path, task: str) -> None:
    load_module(board, {"task": task, "period_ns": 1_000_000, "cpu": 1})
    recording = recorded(board, 0.6, tmp_path, "--report=200ms")
    unload_module(board)
    assert recording.end is not None
    assert recording.end.outcome == "completed"
    assert len(recording.intervals) >= 2, "a report of a busy guest may be late and hold two"
    assert recording.totals[0].minimum is not None
    assert recording.totals[0].minimum >= 0
    assert_every_period_is_accounted_for(recording, 1_000_000)
    assert {event.kind for event in recording.events} == {"max"}
    values = [present(event.value, "value of an event") for event in recording.events if event.series == 0]
    assert max(values) == recording.totals[0].maximum
    assert {event.cpu for event in recording.events} == {1}


def test_misses_are_charged_and_short_intervals_lose_nothing(board: VirtualBoard, tmp_path: Path) -> None:
    """A period too short for emulation, cut every 10 ms: banks are swapped in the middle of acts, periods missed."""
    load_module(board, {"task": "timer-handler", "period_ns": 20_000, "cpu": 1})
    recording = recorded(board, 1.5, tmp_path, "--report=10ms")
    unload_module(board)
    assert recording.end is not None
    assert len(recording.intervals) > 2
    assert recording.end.series[0].missed > 0
    assert_every_period_is_accounted_for(recording, 20_000)


def test_the_thread_runs_as_asked(board: VirtualBoard, tmp_path: Path) -> None:
    load_module(board, {"task": "timer-thread", "priority": 77, "cpu": 1})
    head = recorded(board, 0.1, tmp_path).head
    settings = {entry.name: entry.in_effect for entry in head.settings}
    unload_module(board)
    assert {name: settings[name] for name in ("policy", "priority", "cpu")} == {
        "policy": "fifo",
        "priority": 77,
        "cpu": 1,
    }
    assert (head.parameters["policy"], head.parameters["priority"]) == ("fifo", 77)


def test_unloads_at_any_time(board: VirtualBoard) -> None:
    it_comes_and_goes(board, build_module(board.kernel), TURNS)


def test_a_device_has_one_reader_and_holds_the_module(board: VirtualBoard) -> None:
    load_module(board, {"task": "timer-handler"})
    probe = reading(board)
    next(probe.lines(PATIENCE_S))
    assert b"is in use by another run" in board.link.run([PROBE, "kernel"]).stderr
    with pytest.raises(FastenoughError, match=r"could not be taken out: .*(unavailable|in use|busy)"):
        unload_module(board)
    assert probe.stop() == 128 + 15
    unload_module(board)


def test_only_whole_banks_are_given_and_only_stop_is_obeyed(board: VirtualBoard) -> None:
    load_module(board, {"task": "timer-handler"})
    assert b"Message too long" in board.link.run(["cat", DEVICE]).stderr
    with pytest.raises(OSError, match="Invalid argument"):
        board.link.write(DEVICE, b"go\n")
    board.link.write(DEVICE, b"stop\n")
    assert b"was stopped at the end of a run; unload and reload the module" in board.link.run([PROBE, "kernel"]).stderr
    unload_module(board)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, "task= is unknown: choose response, periodic"),
        ({"task": "dance"}, "task=dance is unknown"),
        ({**RESPONSE, "chip": "nonsense"}, "in: no GPIO chip is labelled 'nonsense'"),
        ({**RESPONSE, "in_line": 8}, "in: chip '9030000.pl061' has no line 8"),
        ({**RESPONSE, "in_line": 1}, "in_line and out_line must be two lines, not both 1"),
        ({"task": "response"}, "response needs a GPIO chip: give its label as chip="),
        ({**PERIODIC, "out_line": -1}, "periodic needs out_line="),
        ({**PERIODIC, "period_ns": 1000}, "period_ns=1000 is out of range: choose 20000 to 1000000000"),
        ({"task": "timer-handler", "cpu": 9}, "cpu=9 is not online"),
        ({"task": "timer-thread", "priority": 100}, "priority=100 is out of range: choose 1 to 99"),
    ],
)
def test_refusals_say_why(board: VirtualBoard, parameters: dict[str, str | int], said: str) -> None:
    with pytest.raises(FastenoughError) as refusal:
        load_module(board, parameters)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert not board.link.exists("/sys/module/fastenough")


def test_a_pin_in_use_is_refused_and_left_alone(board: VirtualBoard) -> None:
    chip = next(path for path in board.link.glob("/sys/class/gpio/gpiochip*"))
    line = int(board.link.read(f"{chip}/base")) + OUTPUT_LINE
    board.link.write("/sys/class/gpio/export", str(line).encode())
    with pytest.raises(FastenoughError, match=r"out: line 1 of '9030000.pl061' is in use"):
        load_module(board, RESPONSE)
    board.link.write("/sys/class/gpio/unexport", str(line).encode())
    load_module(board, RESPONSE)
    unload_module(board)


@pytest.mark.parametrize("task", ["response", "periodic"])
def test_a_sleeping_chip_is_refused(board: VirtualBoard, task: str) -> None:
    insert(board, build_module(board.kernel, Path(__file__).parents[2] / "sources/sleepy_chip"))
    with pytest.raises(FastenoughError, match="chip 'sleepy' may sleep, its lines cannot be used in an interrupt"):
        load_module(board, {**RESPONSE, "task": task, "chip": "sleepy"})
    unload_module(board, "sleepy_chip")


def test_a_module_of_another_kernel_is_refused(board: VirtualBoard) -> None:
    other = fetch("rt" if board.kernel.name == "stock" else "stock")
    with pytest.raises(FastenoughError, match=r"was refused: it was built for kernel .* build it against"):
        insert(board, build_module(other), {"task": "timer-handler"})
