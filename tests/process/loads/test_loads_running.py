# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads run, prove it, and leave nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fastenough.link import FakeLink, LocalLink
from fastenough.link.guard import descendants
from fastenough.loads import LOADS, TOOL_PACKAGES, Expectation, Load, RunningLoad, find_load, proof, require_tools
from fastenough.loads.load import again_and_again
from fastenough.loads.proof import UsageSample, Use, look, parse_numbers, parse_stat, prove
from fastenough.loads.running import time_limit_of
from fastenough.loads.tools import bring
from fastenough.model import BadInput, NotApplicable
from tests.support.presence import present
from tests.support.privileges import require_root
from tests.support.processes import eventually, start_bench, with_words
from tests.support.tools import require

CPUS = len(os.sched_getaffinity(0))


def _wait(seconds: float) -> bool:
    time.sleep(seconds)
    return True


def _begun(running: RunningLoad) -> None:
    """Until its processes exist."""
    assert eventually(lambda: present(running.proof().processes, "processes") > 0)


def _cpu_time_s(running: RunningLoad) -> float:
    return present(running.proof().cpu_time_s, "CPU time")


def _comm(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _parent(pid: int) -> int:
    return present(parse_stat(Path(f"/proc/{pid}/stat").read_text()), "stat")[1]


def _policy(pid: int) -> int | None:
    try:
        return os.sched_getscheduler(pid)
    except ProcessLookupError:
        return None


def _needed(name: str) -> Load:
    load = find_load(name)
    try:
        require_tools(LocalLink(), load)
    except NotApplicable as reason:
        pytest.skip(str(reason))
    if load.trial and LocalLink().run(load.trial).status:
        pytest.skip(f"{name} does not apply here")
    if "ping" in load.tools and LocalLink().run(["ping", "-q", "-c", "1", "127.0.0.1"]).status != 0:
        pytest.skip("may not ping")
    return load


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo first >&2; echo may not mount >&2; exit 1", "load tried cannot run here: may not mount"),
        ("exit 7", "load tried cannot run here: its trial exited with status 7"),
    ],
)
def test_a_load_that_cannot_run_here_is_not_applicable(script: str, reason: str) -> None:
    load = Load("tried", "this test", ("sh",), (("sh", "-c", "sleep 1000.77"),), trial=("sh", "-c", script))
    with pytest.raises(NotApplicable) as refused, RunningLoad(LocalLink(), load, 1, 1):
        pass
    assert str(refused.value) == reason
    assert not with_words("sleep", "1000.77")


def test_the_papers_load_does_not_apply_where_root_gets_no_file_systems_of_its_own(tmp_path: Path) -> None:
    """As in a container without CAP_SYS_ADMIN, or in a chroot whose root is no mount point."""
    require_root("it gives a capability away")
    load = find_load("brown-martin")
    done = subprocess.run(
        ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", *load.trial],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0 and done.stderr.startswith("unshare: ")


@pytest.mark.parametrize("name", [name for name in LOADS if name != "none"])
def test_every_load_runs_and_proves_it(name: str) -> None:
    load = _needed(name)
    with RunningLoad(LocalLink(), load, CPUS, 3) as running:
        scratches = [word for line in running.command_lines for word in line if "/fastenough-" in word]
        running.begin()
        _begun(running)
        time.sleep(1)
        running.begin()
        assert eventually(lambda: running.proof().ran, 120), running.proof().reasons
        tree = descendants(os.getpid())
        assert {policy for pid in tree if (policy := _policy(pid)) is not None} == {os.SCHED_OTHER}
        head = running.head()
    assert head.name == name
    assert present(head.bounds, "bounds")["time_s"] > 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in tree)
    assert not any(Path(scratch).exists() for scratch in scratches)


def test_none_is_nothing() -> None:
    with RunningLoad(LocalLink(), LOADS["none"], CPUS, 3) as running:
        running.begin()
        proof = running.proof()
    assert proof.ran
    assert (proof.processes, proof.cpu_time_s) == (0, 0)


def test_a_load_that_ends_early_did_not_run() -> None:
    load = Load("short", "here", ("true",), (("true",),), Expectation(cpu_share=0.05, processes=1))
    with RunningLoad(LocalLink(), load, 1, 3) as running:
        running.begin()
        assert eventually(lambda: "exited too early" in str(running.proof().reasons))
        running.begin()
        time.sleep(0.3)
        proof = running.proof()
    assert not proof.ran
    assert any("CPU seconds" in reason for reason in proof.reasons)


def test_a_load_that_dies_in_the_middle_did_not_run() -> None:
    load = Load(
        "dying",
        "here",
        ("sh",),
        (("sh", "-c", "timeout 1 sh -c 'while :; do :; done'; exit 0"),),
        Expectation(cpu_share=0.01, processes=1),
    )
    with RunningLoad(LocalLink(), load, 1, 3) as running:
        running.begin()
        _begun(running)
        assert eventually(lambda: running.proof().processes == 0)
        proof = running.proof()
    assert not proof.ran
    assert "processes" in " ".join(proof.reasons)


@pytest.mark.parametrize("name", ["cpu", "io", "vm", "hdd", "full", "hackbench", "rtlinux-memory"])
def test_a_load_with_a_killed_worker_did_not_run(name: str) -> None:
    """The other workers use enough CPU time for the whole load."""
    load = _needed(name)
    with RunningLoad(LocalLink(), load, CPUS, 3) as running:
        running.await_processes(_wait)
        running.begin()
        assert eventually(lambda: running.proof().ran), running.proof().reasons
        workers = [pid for pid in descendants(os.getpid()) if _comm(_parent(pid)) == load.tools[0]]
        os.kill(workers[-1], signal.SIGKILL)
        assert eventually(lambda: not running.proof().ran)
        assert [reason.split(",")[0].split()[-1] for reason in running.proof().reasons] == ["processes"]


def test_every_command_must_go_on() -> None:
    load = Load("half", "here", (), (("sleep", "100"), ("sh", "-c", "echo 'no such host' >&2; exit 1")))
    with RunningLoad(LocalLink(), load, 1, 3) as running:
        running.begin()
        assert eventually(lambda: not running.proof().ran)
        assert running.proof().reasons == ("sh of load half exited too early: no such host",)


def test_a_load_with_a_shorter_time_limit_names_both_durations() -> None:
    load = Load("limited", "here", (), (("sh", "-c", "exec timeout 0.3 sleep 100"),))
    with RunningLoad(LocalLink(), load, 1, 60) as running:
        running.begin()
        assert eventually(lambda: not running.proof().ran)
        (reason,) = running.proof().reasons
    assert "its time limit of 300 ms (timeout 0.3) is shorter than the run, which takes 60 s" in reason


def test_a_load_that_fails_before_its_time_limit_is_not_said_to_reach_it() -> None:
    load = Load("failing", "here", (), (("sh", "-c", "timeout 0.1 sleep 9; echo 'no space' >&2; exit 1"),))
    with RunningLoad(LocalLink(), load, 1, 60) as running:
        running.begin()
        assert eventually(lambda: not running.proof().ran)
        assert running.proof().reasons == ("sh of load failing exited too early: no space",)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("stress-ng --cpu 4 --timeout 60s --quiet", ("--timeout 60s", 60.0)),
        ("/usr/bin/stress-ng --cpu 4 --timeout=2m", ("--timeout=2m", 120.0)),
        ("nice -n 5 stress-ng --cpu 4 -t 60", ("-t 60", 60.0)),
        ("sh -c stress --io 2 -t60; true", ("-t60", 60.0)),
        ("timeout -k 5 --foreground 1.5h sleep 9", ("timeout 1.5h", 5400.0)),
        ("stress-ng --cpu 4 --timeout 0", None),
        ("stress-ng --cpu 4", None),
        ("hackbench -t 60", None),
        ("nc --timeout 60", None),
        ("sh -c stress-ng --cpu 4; iperf3 -t 9", None),
    ],
)
def test_the_time_limit_of_a_command_line(command: str, expected: tuple[str, float] | None) -> None:
    limit = time_limit_of(command.split())
    assert (None if limit is None else (limit.text, limit.seconds)) == expected


def _looks(load: Load, go_on: Callable[[int], bool]) -> int:
    """How often was waited for its processes; ``go_on`` is told how often before."""
    waited: list[float] = []

    def sleep(seconds: float) -> bool:
        waited.append(seconds)
        time.sleep(seconds)
        return go_on(len(waited))

    with RunningLoad(LocalLink(), load, 1, 3) as running:
        running.await_processes(sleep)
    return len(waited)


def test_processes_that_take_their_time_are_waited_for() -> None:
    """A measurement begins once all are there, and not where a command has ended, or nobody waits any longer."""
    late = "sleep 0.5; sleep 100 & sleep 100 & sleep 100 & wait"
    slow = Load("slow", "here", ("sh",), (("sh", "-c", late),), Expectation(processes=4))
    with RunningLoad(LocalLink(), slow, 1, 3) as running:
        running.await_processes(_wait)
        running.begin()
        assert running.proof().ran
    few = replace(slow, expects=Expectation(processes=9))
    assert _looks(few, lambda times: times < 2) == 2
    assert _looks(replace(few, start_s=0.0), lambda times: True) == 0
    assert _looks(replace(few, commands=(("true",),)), lambda times: times < 100) < 100


def test_work_of_ended_children_counts() -> None:
    burn = "while :; do sh -c 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done'; done"
    load = Load("bursts", "here", ("sh",), (("sh", "-c", burn),), Expectation(cpu_share=0.01))
    with RunningLoad(LocalLink(), load, 1, 3) as running:
        running.begin()
        assert eventually(lambda: _cpu_time_s(running) > 0.3)


class _Bare(LocalLink):
    """This machine, without the tools of loads."""

    def which(self, tool: str) -> str | None:
        return None if tool in TOOL_PACKAGES else super().which(tool)


def test_missing_tool_names_its_fix() -> None:
    with pytest.raises(NotApplicable, match=r"load cpu requires stress-ng, .*: apt-get install stress-ng$"):
        RunningLoad(_Bare(), LOADS["cpu"], 2, 3)
    with pytest.raises(NotApplicable, match="apt-get install rt-tests"):
        RunningLoad(_Bare(), LOADS["hackbench"], 2, 3)
    with pytest.raises(NotApplicable, match="requires no-such-tool, which is not installed: install it"):
        RunningLoad(LocalLink(), Load("mine", "here", ("no-such-tool",), (("true",),)), 2, 3)


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        ("sparc64", "Debian has no programs for a board of the kind 'sparc64'"),
        ("aarch64", "the package sources cannot be reached"),
    ],
)
def test_what_cannot_be_brought_is_not_applicable(
    machine: str, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The reason is told after what would fix it; here there is no way to the package sources."""
    require("apt-get", "readelf")
    monkeypatch.setenv("FASTENOUGH_CACHE", str(tmp_path))
    for scheme in ("http", "https"):
        monkeypatch.setenv(f"{scheme}_proxy", "http://127.0.0.1:9")
    with pytest.raises(NotApplicable) as refusal:
        bring(FakeLink({}, {"uname -m": machine}), LOADS["cpu"], 3)
    told = str(refusal.value)
    assert (
        told.startswith(
            "load cpu requires stress-ng, which is not installed: apt-get install stress-ng; it could not be "
            f"copied either: {reason}"
        )
        and "\n" not in told
    )


def test_a_command_that_fails_again_and_again_ends_the_load() -> None:
    load = Load("failing", "here", ("sh",), (again_and_again("sh -c 'echo the disk is full >&2; exit 3'"),))
    with RunningLoad(LocalLink(), load, 1, 3) as running:
        running.begin()
        assert eventually(lambda: not running.proof().ran)
        assert running.proof().reasons == ("sh of load failing exited too early: the disk is full",)


def test_statuses_that_are_fine_do_not_end_it() -> None:
    load = Load("fine", "here", ("sh",), (again_and_again("sh -c 'sleep 0.05; exit 124'", "0|124"),))
    with RunningLoad(LocalLink(), load, 1, 3) as running:
        running.begin()
        time.sleep(0.5)
        assert running.proof().ran


@pytest.mark.slow
@pytest.mark.parametrize(
    ("goes_on", "ran"), [("dd if=/dev/zero of={scratch}/f bs=64k count=9 status=none", True), (":", False)]
)
def test_a_load_that_works_no_more_in_the_middle_did_not_run(
    goes_on: str, ran: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it wrote at first is enough for the whole run; it still computes, as one does that a full disk refuses."""
    monkeypatch.setattr(proof, "STRETCH_S", 0.5)
    script = (
        "dd if=/dev/zero of={scratch}/first bs=1M count=64 status=none; touch {scratch}/written; "
        f"while :; do {goes_on}; done"
    )
    load = Load("stuck", "here", ("dd",), (("sh", "-c", script),), Expectation(bytes_written_per_s=1000.0))
    with RunningLoad(LocalLink(), load, 1, 20) as running:
        running.begin()
        scratch = re.findall(r"/\S*/fastenough-[0-9a-f]{12}", running.command_lines[0][2])[0]
        assert eventually(Path(scratch, "written").exists)
        use = running.follow()
        for _ in range(40):
            time.sleep(0.1)
            seen = use()
            assert seen is None or seen.processes
        shown = running.proof()
    assert (shown.bytes_written or 0) > 64_000_000
    assert shown.ran == ran
    assert ran or re.match(
        r"load stuck too weak: 0 bytes written, expected at least \d+.*, in the \d s before \d+ s$",
        shown.reasons[0],
    )


def test_one_weak_stretch_is_no_fault_and_two_in_succession_are() -> None:
    load = Load("x", "here", expects=Expectation(bytes_written_per_s=100.0))
    for wrote, fails in (((1, 0, 1, 0, 1), False), ((1, 1, 0, 0, 1), True), ((0, 0, 1, 1, 1), True), ((0,), False)):
        total, watch = 0, proof.Stretches(load, 1, UsageSample(0.0, frozenset(), {(5, 1): Use()}))
        for number, worked in enumerate(wrote, 1):
            total += 1000 * worked
            assert not watch.due(5.0 * number - 0.1) and watch.due(5.0 * number)
            watch.take(UsageSample(5.0 * number, frozenset(), {(5, 1): Use(bytes_written=total)}))
        assert bool(watch.reasons()) == fails, wrote


def test_unknown_load() -> None:
    with pytest.raises(BadInput, match="use none, cpu"):
        find_load("everything")


def test_a_command_that_cannot_start_leaves_nothing() -> None:
    load = Load("half", "here", (), (("sleep", "7777.123"), ("no-such-command",)))
    with pytest.raises(NotApplicable, match="no-such-command"), RunningLoad(LocalLink(), load, 1, 3):
        pass
    assert with_words("7777.123") == []


def test_numbers_out_of_proc() -> None:
    stat = "12 (a) b) S 3 12 12 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 555 0 0"
    assert parse_stat(stat) == ("S", 3, 555, 100)
    assert [parse_stat(text) for text in (stat.removesuffix(" 0 0"), stat[:20], "12 (a", "")] == [None] * 4
    assert parse_numbers("rchar: 12\nName:\tx\nvoluntary_ctxt_switches:\t7\n") == {
        "rchar": 12,
        "voluntary_ctxt_switches": 7,
    }


def test_a_process_that_ends_while_it_is_looked_at_is_gone() -> None:
    stat = "5 (a) S 1 5 5 0 -1 0 1 2 3 4 10 20 30 40 20 0 1 0 555 0 0"
    status = "voluntary_ctxt_switches: 7\n"
    board = FakeLink(
        {
            "/proc/5/stat": stat,
            "/proc/5/status": status,
            "/proc/5/io": "rchar: 1\n",
            "/proc/6/stat": "",
            "/proc/6/status": "",
            "/proc/6/io": "",
        }
    )
    assert look(board, [5, 6], 1.0).uses == {(5, 555): Use(100, 7, 0, 1, 0)}


def test_an_ended_process_counts_with_its_use_and_not_as_a_worker() -> None:
    """``stress-ng`` waits for its workers in order, so a killed one stays in the process table."""
    stat = "{0} (a) {1} {2} 5 5 0 -1 0 1 2 3 4 10 20 30 40 20 0 1 0 555 0 0"
    states = {5: ("S", 1), 6: ("S", 5), 7: ("R", 6), 8: ("Z", 6)}
    board = FakeLink(
        {f"/proc/{pid}/stat": stat.format(pid, *state) for pid, state in states.items()}
        | {f"/proc/{pid}/status": "voluntary_ctxt_switches: 7\n" for pid in states}
        | {f"/proc/{pid}/io": "" for pid in states}
    )
    sample = look(board, [5], 1.0)
    assert {pid: use.cpu_ticks for (pid, _), use in sample.uses.items()} == dict.fromkeys(states, 100)
    assert sample.workers() == 2


def test_a_reused_process_number_is_another_process() -> None:
    before = UsageSample(0.0, frozenset(), {(5, 100): Use(voluntary=1000)})
    after = UsageSample(1.0, frozenset(), {(5, 200): Use(voluntary=10)})
    assert prove("x", Expectation(), 1, before, after).voluntary_switches == 10
    same = UsageSample(1.0, frozenset(), {(5, 100): Use(voluntary=1003)})
    assert prove("x", Expectation(), 1, before, same).voluntary_switches == 3


_BENCH = """
import sys, time
from fastenough.link import LocalLink
from fastenough.loads import RunningLoad, find_load
with RunningLoad(LocalLink(), find_load(sys.argv[1]), 2, 600) as running:
    running.begin()
    while running.proof().processes < 2:
        time.sleep(0.05)
    print(*{word for line in running.command_lines for word in line if "/fastenough-" in word}, flush=True)
    time.sleep(1000)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["full", "hackbench", "at91", "brown-martin", "osadl"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_load_outlives_the_bench(name: str, number: signal.Signals) -> None:
    _needed(name)
    bench = start_bench(_BENCH, name)
    assert bench.stdout is not None
    scratches = bench.stdout.readline().split()
    tree = descendants(bench.pid)
    assert len(tree) > CPUS
    bench.send_signal(number)
    bench.communicate()
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in tree))
    assert eventually(lambda: not any(Path(scratch).exists() for scratch in scratches))


def test_what_a_load_did_is_told_interval_by_interval() -> None:
    """The parts add up to no more than the whole, and a load without processes has none."""
    busy = Load("busy", "", commands=(("sh", "-c", "while :; do :; done"),), expects=Expectation(cpu_share=0.01))
    with RunningLoad(LocalLink(), busy, 1, 10.0) as running:
        running.begin()
        used, other = running.follow(), running.follow()
        assert eventually(lambda: _cpu_time_s(running) > 0.1)
        first = used()
        assert eventually(lambda: _cpu_time_s(running) > 0.2)
        second, whole, proof = used(), other(), running.proof()
    uses = [present(use, "use of the load") for use in (first, second, whole)]
    cpu_ns = [present(use.cpu_ns, "CPU time") for use in uses]
    window_ns = [present(use.window_ns, "window") for use in uses]
    assert cpu_ns[0] > 0 < cpu_ns[1] and uses[1].processes == 1
    assert cpu_ns[0] + cpu_ns[1] <= round(present(proof.cpu_time_s, "CPU time") * 1e9)
    assert cpu_ns[2] >= cpu_ns[1], "another reader is told the use since the load began"
    assert window_ns[2] >= window_ns[0] > 0
    switches = [present(use.context_switches, "context switches") for use in uses]
    proven = (proof.voluntary_switches, proof.involuntary_switches)
    assert switches[0] + switches[1] <= sum(present(number, "context switches") for number in proven)
    with RunningLoad(LocalLink(), LOADS["none"], 1, 1.0) as idle:
        idle.begin()
        assert idle.follow()() is None
