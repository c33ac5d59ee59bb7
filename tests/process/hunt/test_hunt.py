# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough hunt`` on this machine: what it tries runs as it says, goes on where it was cut, and leaves nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from fastenough.board import open_board
from fastenough.campaign import Entry, Plan
from fastenough.campaign.load_file import read_load
from fastenough.cli.hunt import as_argument, progress_note
from fastenough.hunt.extent import AFTER_S, SearchTime
from fastenough.hunt.recipes import IN_PHASES, IN_TURNS, as_file, description_of, load_of, turn_of
from fastenough.hunt.space import Part, Recipe, Space
from fastenough.hunt.stressors import PHASES, STRESSORS, space_of
from fastenough.hunt.trials import Phase, TrialRequest, tail_of
from fastenough.jobs import hunt as hunting
from fastenough.jobs.hunt import HUNT_FILE, BoardCapacity, Hunt, TrialNote, make_hunt, maxima_in_turns
from fastenough.jobs.job_store import OneCampaign
from fastenough.loads import Load
from fastenough.model import NotApplicable, Outcome
from fastenough.store import Store
from tests.support.cli_calls import command_line, environment
from tests.support.privileges import needs_root
from tests.support.processes import eventually, living_with

FEW = 'stressors = ["cpu", "switch", "fork"]\nfixed = ["none", "cpu"]\n'
HUNT = ("hunt", "timer", "interval=1ms", "--budget", "6m", "--load-space", "few.toml")
MARKS = (f"3{os.getpid()}.1", f"3{os.getpid()}.2")
SPACE = space_of(tuple(STRESSORS), 2, 8 << 30)


def part(name: str, **levels: int) -> Part:
    return Part(name, tuple(levels.get(each.name.replace("-", "_"), 0) for each in STRESSORS[name].parameters))


RECIPE: Recipe = (part("cpu", phase=1, workers=1), part("vm", vm_bytes=2, place=2))


@pytest.mark.parametrize("task", ["worker", "\U0001f422 \u00b5", 'a "b" \\', "\x7f\x1b\n\x85\u2028"])
def test_a_load_file_can_name_every_task(task: str) -> None:
    load = load_of(SPACE, (RECIPE,), 2)
    assert tomllib.loads(as_file(replace(load, source=task)))["source"] == task


def test_a_load_file_names_no_half_of_a_character() -> None:
    assert tomllib.loads(as_file(Load("x", "a \ud83d")))["source"] == "a ?"


def test_a_recipe_is_a_load_file_that_plans_take(tmp_path: Path) -> None:
    load = load_of(SPACE, (RECIPE,), 2)
    (tmp_path / "worst.toml").write_text(as_file(load))
    read = read_load(tmp_path / "worst.toml")
    assert (read.name, read.source, read.commands, read.tools) == (load.name, load.source, load.commands, load.tools)
    assert read.expects == load.expects and read.memory_bytes >= load.memory_bytes > 0
    assert "--vm-bytes" in load.commands[1] and load.commands[1][load.commands[1].index("--taskset") + 1] == "1"
    assert (
        description_of(SPACE, RECIPE) == "cpu (workers 2, phase on and off for 500 ms) + vm (place the last CPU, "
        "vm-bytes 16M)"
    )


def test_each_turn_of_a_group_runs_its_own_stressors() -> None:
    load = load_of(SPACE, (RECIPE, (part("fork"),)), 2)
    turns = [command[command.index(IN_TURNS) + 2 :] for command in load.commands]
    assert [number for number, *_ in turns] == ["2", "2"]
    names = [[command.split()[1] if command else "" for command in commands] for _, *commands in turns]
    assert names == [["--cpu", "--fork"], ["--vm", ""]]
    assert "cpu" in load.source and "fork" in load.source


def test_no_recipe_takes_more_memory_than_it_may() -> None:
    small = space_of(tuple(STRESSORS), 2, 1 << 30)
    largest = [
        part(name, **{each.name.replace("-", "_"): len(each.values) - 1 for each in stressor.parameters})
        for name, stressor in STRESSORS.items()
    ]
    for space in (small, SPACE):
        assert sum(map(space.memory_of, space.fitting(largest))) <= space.memory_bytes
    assert small.memory_bytes == 256 << 20 and len(SPACE.stressors) > 40 and set(PHASES)


@pytest.mark.untimed
@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ('stressors = ["reboot"]', "few.toml:1"),
        ("fixed = []", "fixed"),
        ("colour = 1", "colour"),
    ],
)
def test_a_load_space_that_cannot_be_is_one_line(tmp_path: Path, wrong: str, said: str) -> None:
    (tmp_path / "few.toml").write_text(wrong)
    done = command_line(*HUNT, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and said in done.stderr


@pytest.mark.untimed
@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param(("--budget", "1m"), "--budget", marks=needs_root("it would measure")),
        (("--out", "worst.txt"), ".toml"),
        (("report=1s",), "report"),
        (("--out", "nowhere/worst.toml"), "--out nowhere/worst.toml: cannot be written"),
        pytest.param(("--resume",), "--resume", marks=needs_root("it would measure")),
        (("--trials", "40"), "--budget"),
        (("--board", "deterministic"), "--trials"),
    ],
)
def test_what_cannot_be_hunted_is_one_line(tmp_path: Path, more: tuple[str, ...], said: str) -> None:
    (tmp_path / "few.toml").write_text(FEW)
    done = command_line(*HUNT, *more, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and said in done.stderr, done.stderr


@pytest.mark.skipif(shutil.which("stress-ng") is None, reason="needs stress-ng")
def test_a_stressor_that_ends_at_once_is_left_out(tmp_path: Path) -> None:
    """Whatever status a time-out of the board has: that of busybox has the status of stress-ng."""
    of_busybox = tmp_path / "timeout"
    of_busybox.write_text('#!/bin/sh\n/usr/bin/timeout "$@"\nexit 0\n')
    of_busybox.chmod(0o755)
    words = ["sh", "-c", hunting._TRY_ALL, "sh", str(tmp_path), str(tmp_path / "scratch"), "cpu", "nosuch"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "cpu\n" and not (tmp_path / "scratch").exists()


_LIST_OBJECTS = "find /dev/shm /dev/mqueue; cat /proc/sysvipc/*"


@pytest.mark.slow
@needs_root("it makes namespaces")
@pytest.mark.skipif(shutil.which("stress-ng") is None, reason="needs stress-ng")
@pytest.mark.parametrize(("names", "leaves"), [(("msg",), True), (tuple(STRESSORS), False)])
def test_no_killed_stressor_leaves_objects_in_the_kernel(names: tuple[str, ...], leaves: bool, tmp_path: Path) -> None:
    script = (
        "mkdir -p /dev/mqueue; mount -t tmpfs none /dev/shm; mount -t mqueue none /dev/mqueue; scratch=$1; shift; "
        f"({_LIST_OBJECTS}) >$scratch/before; sh -c \"$0\" sh '' $scratch/tried $*; ({_LIST_OBJECTS}) >$scratch/after"
    )
    apart = ["unshare", "--mount", "--ipc", "sh", "-c", script, hunting._TRY_ALL, str(tmp_path), *names]
    tried = subprocess.run(apart, capture_output=True, text=True, timeout=120, check=True).stdout.split()
    assert tried
    before, after = ((tmp_path / name).read_text() for name in ("before", "after"))
    assert "key" in before and (before != after) == leaves, after[:1000]


def _priorities_asked_for(stressor: str, scratch: Path) -> list[str]:
    """The calls by which it asks for another policy than the ordinary ones."""
    asked = subprocess.run(
        [
            "strace",
            "-f",
            "-qq",
            "-e",
            "trace=sched_setscheduler,sched_setattr,sched_setparam",
            "stress-ng",
            f"--{stressor}",
            "1",
            "--timeout",
            "1s",
            "--temp-path",
            str(scratch),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    ).stderr.splitlines()
    return [line for line in asked if "sched_set" in line and "SCHED_OTHER, [0]" not in line]


@pytest.mark.matrix
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_no_stressor_makes_itself_a_real_time_task(tmp_path: Path) -> None:
    assert _priorities_asked_for("schedpolicy", tmp_path), "what asks for such a policy is seen"
    assert {name: asked for name in STRESSORS if (asked := _priorities_asked_for(name, tmp_path))} == {}


def _sleeping(mark: str) -> dict[int, str]:
    """The states of the processes that sleep for the time that is the mark, by their numbers."""
    said = subprocess.run(["ps", "-eo", "pid=,state=,args="], capture_output=True, text=True, check=True).stdout
    found = [line.split(maxsplit=2) for line in said.splitlines()]
    return {int(pid): state for pid, state, words in found if words == f"sleep {mark}"}


@contextmanager
def _running(*words: str) -> Iterator[None]:
    """A command of a load as the shell of this machine runs it."""
    process = subprocess.Popen(words)
    try:
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
        for pid in [pid for mark in MARKS for pid in _sleeping(mark)]:
            os.kill(pid, signal.SIGKILL)


def test_a_part_in_phases_is_stopped_and_goes_on() -> None:
    with _running("sh", "-c", IN_PHASES, "sh", "0.3", "0.3", "sleep", MARKS[0]):
        assert eventually(lambda: list(_sleeping(MARKS[0]).values()) == ["T"])
        assert eventually(lambda: list(_sleeping(MARKS[0]).values()) == ["S"])


def _alone(mark: str, other: str) -> bool:
    return (len(_sleeping(mark)), len(_sleeping(other))) == (1, 0)


def test_a_part_in_turns_gives_way_to_the_next() -> None:
    with _running("sh", "-c", IN_TURNS, "sh", "2", *(f"sleep {mark}" for mark in MARKS)):
        for mark, other in (MARKS, MARKS[::-1], MARKS):
            assert eventually(partial(_alone, mark, other))


def test_a_turn_is_a_second_of_the_clock() -> None:
    assert [turn_of(second * 10**9 + 5, 4) for second in range(6)] == [0, 1, 2, 3, 0, 1]


BLOCK_NS = 250_000_000


def test_blocks_belong_to_their_turns() -> None:
    spans = [(block * BLOCK_NS, (block + 1) * BLOCK_NS, 100 + block) for block in range(8)]
    assert maxima_in_turns(spans, 1) == maxima_in_turns(spans, 2) == [100 + block for block in range(8)]
    assert maxima_in_turns(spans[:7], 2) == [100, 101, 102, 104, 105, 106]
    assert maxima_in_turns(spans[:3], 2) == []


@pytest.mark.parametrize("stall_ns", [900_000_000, 1_250_000_000])
@pytest.mark.parametrize("reporter_stalls", [True, False])
def test_a_turn_that_stalls_the_machine_is_the_worst_one(stall_ns: int, reporter_stalls: bool) -> None:
    """Four turns of a second, the third with a stall: of the whole machine, or of the measured thread only."""
    begin_ns, end_ns = 2 * 10**9, 2 * 10**9 + stall_ns
    spans: list[tuple[int, int, int | None]] = []
    for block in range(16):
        first, last = block * BLOCK_NS, (block + 1) * BLOCK_NS
        if first <= begin_ns < last and reporter_stalls:
            spans.append((begin_ns, end_ns + 10**6, stall_ns))
        elif last <= begin_ns or first >= end_ns:
            spans.append((first, last, 10**5))
        elif not reporter_stalls:
            spans.append((first, last, stall_ns if first < end_ns <= last else None))
    maxima = maxima_in_turns(spans, 4)
    assert len(maxima) >= 12
    tails = [tail_of(maxima[turn * len(maxima) // 4 : (turn + 1) * len(maxima) // 4]) for turn in range(4)]
    assert max(tails) == tails[2] > tails[0] + 8


@pytest.mark.slow
@needs_root("it measures")
def test_a_killed_hunt_goes_on_and_leaves_nothing(tmp_path: Path, probe_binary: Path) -> None:
    (tmp_path / "few.toml").write_text(FEW)
    mark = f"TMARK={tmp_path}"
    more = environment(TMARK=str(tmp_path), FASTENOUGH_STATE=str(tmp_path / "state"))
    (tmp_path / "state").mkdir(mode=0o700)
    store = Store(tmp_path / "fastenough-data")

    def ended() -> int:
        return (tmp_path / "said").read_text().count("completed")

    def hunt(*words: str, until: int, by: signal.Signals) -> int:
        with (tmp_path / "said").open("w") as said:
            bench = subprocess.Popen(
                [sys.executable, "-m", "fastenough", *HUNT, *words], cwd=tmp_path, env=more, stdout=said, stderr=said
            )
        assert eventually(lambda: ended() >= until or bench.poll() is not None, 120)
        os.kill(bench.pid, by)
        return bench.wait()

    assert hunt(until=2, by=signal.SIGKILL) == -signal.SIGKILL, (tmp_path / "said").read_text()
    assert eventually(lambda: not living_with(mark))
    assert hunt("--resume", until=1, by=signal.SIGTERM) == 128 + signal.SIGTERM
    said = (tmp_path / "said").read_text()
    assert "--resume" in said
    assert eventually(lambda: not living_with(mark))
    runs = Store(store.path).runs()
    whole = sorted((run for run in runs if run.outcome == "completed"), key=lambda run: run.position or 0)
    assert len({run.campaign for run in runs}) == 1
    assert [run.load for run in whole[:3]] == ["none", "cpu", "none"][: len(whole[:3])]
    kept = [json.loads(store.attached(run.id, HUNT_FILE) or b"") for run in whole]
    spent = [each["spent_s"] for each in kept]
    assert spent == sorted(spent) and kept[0]["ground"] == kept[-1]["ground"]
    assert set(kept[0]["ground"]["present"]) <= {"cpu", "switch", "fork"}


def test_the_note_of_a_trial_is_read_as_it_was_stored() -> None:
    note = TrialNote(17, 41.5, BoardCapacity(2, ("cpu", "fork"), 8 << 30))
    assert TrialNote.of_json(note.as_json()) == note


def test_a_trial_is_told_with_the_stressors_in_it() -> None:
    turns = ((Part("vm", (0,)), Part("fork", (1,))), (Part("vm", (1,)),))
    assert progress_note(TrialRequest(turns[:1], Phase.HALVING)) == f"{Phase.HALVING}: fork, vm"
    assert progress_note(TrialRequest(turns, Phase.GROUPS)) == f"{Phase.GROUPS}: 2 stressors"
    assert progress_note(TrialRequest("full", Phase.FIXED)) == f"{Phase.FIXED}"


def test_the_path_of_a_load_file_can_be_given_as_a_load() -> None:
    assert [as_argument(Path(name)) for name in ("worst.toml", "a/b.toml", "/a/b.toml")] == [
        "./worst.toml",
        "./a/b.toml",
        "/a/b.toml",
    ]


@pytest.mark.parametrize("between_s", [0.0, 2.0])
def test_a_hunt_keeps_to_its_budget_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between_s: float
) -> None:
    """What passes before the first trial and between trials counts, and the time of the monitor is kept back."""
    clock: SimpleNamespace = SimpleNamespace(now_s=1000.0, monotonic=lambda: clock.now_s)

    def pass_time(seconds: float, result: object) -> object:
        clock.now_s += seconds
        return result

    monkeypatch.setattr(hunting, "time", clock)
    monkeypatch.setattr(
        hunting, "examine_board", lambda board, only: pass_time(45.0, BoardCapacity(2, tuple(STRESSORS)[:12], 8 << 30))
    )
    monkeypatch.setattr(
        hunting, "run_campaign", lambda *args, **more: pass_time(11.0, SimpleNamespace(stopped=False, runs=("run",)))
    )
    monkeypatch.setattr(
        hunting,
        "block_maxima",
        lambda recording, turns: pass_time(between_s, [100_000 + turn for turn in range(8 * turns)]),
    )
    head = SimpleNamespace(profile={"emulator": {}})
    monkeypatch.setattr(
        OneCampaign,
        "load",
        lambda self, run: SimpleNamespace(outcome=Outcome.COMPLETED, run_id=run, reasons=(), head=head),
    )
    plan = Plan("hunt", (Entry("timer", ("none",), 4.0, {"interval": ("1ms",)}),), boards=("local",))
    hunt = Hunt(plan, SearchTime(600.0), fixed=("none", "cpu"))
    hunted = make_hunt(hunt, Store(tmp_path / "store"), lambda progress, ask: None, opened=open_board)
    took_s = clock.now_s - 1000.0
    assert 0.7 * 600.0 <= took_s <= 600.0 - AFTER_S
    assert took_s == pytest.approx(45.0 + len(hunted.made) * (11.0 + between_s), abs=0.1)


def test_a_board_without_memory_for_two_stressors_is_not_hunted() -> None:
    """Else each recipe is empty, and nothing is found to be no worse than the fixed loads."""
    with pytest.raises(NotApplicable, match="16 MB"):
        BoardCapacity(2, ("fork", "sock", "zlib"), 16 << 20).space((), ())
    assert set(BoardCapacity(2, ("fork", "sock", "zlib"), 64 << 20).space((), ()).stressors) == {"fork", "sock", "zlib"}


def test_bounds_are_of_the_space() -> None:
    assert isinstance(SPACE, Space) and SPACE.most == 8
