# SPDX-License-Identifier: GPL-2.0-or-later
"""A load that a farm states of a board is proven by the idle time that the board counted, or it is not proven."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fastenough.board import marks_in
from fastenough.facts import collect, profile_sha256
from fastenough.farm.judging import verdicts_on
from fastenough.history.boards import BoardColumns
from fastenough.jobs import pull as job
from fastenough.link import LocalLink
from fastenough.loads.read_back import with_proof
from fastenough.model import Outcome, Requirement
from fastenough.recording import Head, LoadStated, read_recording
from fastenough.recording.building import HeadAdditions, line_bytes
from fastenough.store import Store
from tests.support import recordings as made
from tests.support.cli_calls import ROOT
from tests.support.pass_checker import contradictions
from tests.support.privileges import require_root
from tests.support.processes import eventually
from tests.support.rings import files, start

SECOND = 10**9
IDLE = LoadStated("none", busy_at_most=0.1)
BUSY = LoadStated("controller", busy_at_least=0.5)
Shares = Sequence[tuple[float, float]]
"""Of each interval: for which share of it the CPU was idle that was idle least, and the one that was idle most."""


def interval(shares: tuple[float, float] | None, begin_ns: int, length_ns: int) -> bytes:
    counters = {
        name: None if shares is None else round(share * length_ns)
        for name, share in zip(("least_idle_ns", "most_idle_ns"), shares or (0, 0), strict=True)
    }
    return line_bytes(
        {
            "type": "interval",
            "begin": {"mono_ns": begin_ns},
            "end": {"mono_ns": begin_ns + length_ns},
            "counters": counters,
        }
    )


def proof(
    stated: LoadStated, shares: Sequence[tuple[float, float] | None], length_ns: int = 300 * SECOND
) -> dict[str, Any]:
    lines = [interval(each, number * length_ns, length_ns) for number, each in enumerate(shares)]
    *_, end = with_proof([*lines, line_bytes({"type": "end"})], stated)
    return dict(json.loads(end)["load"])


def test_an_idle_board_is_idle_on_each_cpu_in_each_interval() -> None:
    assert proof(IDLE, [(0.95, 0.99)] * 144)["ran"] is True
    hogged = proof(IDLE, [(0.95, 0.99)] * 100 + [(0.6, 0.99)] * 3 + [(0.95, 0.99)] * 41)
    assert hogged["ran"] is False
    assert hogged["reasons"] == [
        "a CPU was busy for 40% of the 5 min before 8.42 h, and at most 10% was stated (3 of 144 stretches)"
    ]


def test_a_board_under_load_is_busy_on_each_cpu_in_each_interval() -> None:
    assert proof(BUSY, [(0.1, 0.4)] * 144)["ran"] is True
    paused = proof(BUSY, [(0.1, 0.4)] * 143 + [(0.1, 0.9)])
    assert paused["ran"] is False and "busy for 10% of the 5 min before 12 h" in paused["reasons"][0]
    assert proof(BUSY, [(0.0, 0.9)] * 144)["ran"] is False, "one of its CPUs was idle all the time"


def test_what_was_not_counted_is_not_shown() -> None:
    """An older probe, a CPU that was unplugged, and intervals too short for ticks: none of them shows anything."""
    assert "unknown for 1 interval" in proof(IDLE, [(1.0, 1.0), None])["reasons"][0]
    assert proof(IDLE, [])["ran"] is False
    assert proof(IDLE, [(0.2, 1.0)] * 500, SECOND // 50)["ran"] is False, "short intervals hide no load"
    assert proof(IDLE, [(1.0, 1.0)] * 500, SECOND // 50)["ran"] is True


def keep(store: Store, idle: float) -> list[str]:
    """As a pull stores it: 32 s that pass at 1 ms, of a board that is stated to be idle; what speaks against that."""
    writer = store.begin(None)
    path = made.write(
        store.path / "made.jsonl",
        made.Plan(values=made.quiet(writer.id), run_id=writer.id, head={"load": {"name": "none", "busy_at_most": 0.1}}),
    )
    head, *rest = map(json.loads, path.read_bytes().splitlines())
    for line in rest:
        if line["type"] == "interval":
            length_ns = line["end"]["mono_ns"] - line["begin"]["mono_ns"]
            line["counters"] |= dict.fromkeys(("least_idle_ns", "most_idle_ns"), round(idle * length_ns))
    lines = [line_bytes(head), *with_proof(map(line_bytes, rest), IDLE)]
    for line in lines:
        writer.line(line)
    writer.end()
    return contradictions(b"".join(lines), 10.0**6)


def test_what_is_proven_may_pass_and_what_is_not_may_only_fail(tmp_path: Path) -> None:
    def said(limit_ns: int) -> BoardColumns:
        return verdicts_on(Store(tmp_path), "testboard", asdict(Requirement(limit_ns)))

    assert not keep(Store(tmp_path), 0.97)
    assert (said(10**6)["verdict"], said(1000)["verdict"]) == ("PASS", "FAIL")
    assert keep(Store(tmp_path), 0.5) == ["it was not as busy as stated"] * 2
    assert (said(10**6)["verdict"], said(1000)["verdict"]) == ("INCONCLUSIVE", "FAIL")
    reason = said(10**6)["verdict_reason"]
    assert "no proof that the board had load none throughout the run: a CPU was busy for 50%" in reason


def _stated_load(load: LoadStated, head: Head) -> HeadAdditions:
    return HeadAdditions("here", load=load)


@pytest.mark.slow
def test_the_ring_of_a_real_probe_tells_how_busy_its_cpu_was(probe_binary: str, tmp_path: Path) -> None:
    """A CPU that another process fills is busy, and not idle, however busy the rest of this machine is."""
    hog = subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", "while True: pass"])
    ring = tmp_path / "ring"
    ring.mkdir(mode=0o700)
    service = start(probe_binary, ring, "--report=1500ms", "--ring-cycle=3s")
    try:
        assert eventually(lambda: len(files(ring)) > 1, 30)
    finally:
        for process in (service, hog):
            process.kill()
            process.communicate()
    for stated, ran in ((BUSY, True), (IDLE, False)):
        store = Store(tmp_path / stated.name)
        told = job.BoardNames("here", partial(_stated_load, stated))
        first = job.pull(LocalLink(), str(ring), store, told, lambda: None).stored[0]
        kept = store.load(first.run_id)
        assert kept.head.load == stated and kept.end is not None and kept.end.load is not None
        assert kept.end.load.ran is ran, kept.end.load.reasons


def bare_metal(lines: Sequence[bytes], stolen_ns: int) -> bytes:
    """A recording made here, as if a hypervisor had taken this from each interval, and as much in all."""
    said = list(map(json.loads, lines))
    for line in said:
        if "counters" in line:
            line["counters"]["steal_ns"] = stolen_ns
    return b"".join(map(line_bytes, said))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stolen_ns", "facts", "verdict"),
    [
        (0, {"hypervisor": None}, "PASS"),
        (0, {"hypervisor": "kvm", "steal_so_far_ns": 10**9}, "INCONCLUSIVE"),
        (10**8, {"hypervisor": "kvm"}, "INCONCLUSIVE"),
        (0, {"hypervisor": None, "emulated": True}, "INCONCLUSIVE"),
    ],
)
def test_the_ring_of_a_bare_board_passes_and_one_from_which_time_is_taken_does_not(
    real_ring: Sequence[bytes], tmp_path: Path, stolen_ns: int, facts: dict[str, Any], verdict: str
) -> None:
    """All is as the real probe recorded it under a real load, but for who was beneath the machine."""
    ring, store = tmp_path / "ring", Store(tmp_path / "store")
    ring.mkdir(mode=0o700)
    run = json.loads(real_ring[0])["run_id"]
    (ring / f"{1:010}-{run}.jsonl").write_bytes(bare_metal(real_ring, stolen_ns))
    bare = {"hypervisor": None, "emulated": False, "steal_so_far_ns": 0}
    profile = {**collect(LocalLink()), **bare, **facts}
    added = HeadAdditions("testboard", None, BUSY, profile, profile_sha256(profile), marks=marks_in(profile))
    told = job.BoardNames("testboard", lambda _: added)
    pulled = job.pull(LocalLink(), str(ring), store, told, lambda: None)
    assert [one.run_id for one in pulled.stored] == [run]
    said = verdicts_on(store, "testboard", asdict(Requirement(5 * SECOND, return_time_ns=2 * SECOND)))
    assert said["verdict"] == verdict, said["verdict_reason"]


@pytest.fixture(scope="module")
def real_ring(probe_binary: str, tmp_path_factory: pytest.TempPathFactory) -> Sequence[bytes]:
    """The lines of a ring's recording: the service's probe for 12 s, on all CPUs, each of which is busy."""
    require_root("real-time priorities")
    ring = tmp_path_factory.mktemp("ring")
    ring.chmod(0o700)
    hogs = [
        subprocess.Popen(["nice", "-n", "19", "taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass"])
        for cpu in os.sched_getaffinity(0)
    ]
    service = subprocess.Popen(
        [
            probe_binary,
            "timer",
            "--interval=1ms",
            "--report=3s",
            "--ring-cycle=12s",
            "--priority=98",
            "--interval-k=4",
            "--quiet",
            "--until-interrupt",
            f"--ring={ring}",
        ]
    )
    try:
        assert eventually(lambda: len(files(ring)) > 1, 60)
    finally:
        for process in (service, *hogs):
            process.kill()
            process.wait()
    return files(ring)[0].read_bytes().splitlines(keepends=True)


def test_the_service_that_boards_are_given_is_one_that_the_probe_takes(probe_binary: str, tmp_path: Path) -> None:
    unit = (ROOT / "packaging" / "farm" / "fastenough-probe.service").read_text().replace("\\\n", " ")
    (command,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    (interval,) = re.findall(r"^Environment=FASTENOUGH_INTERVAL=(.*)$", unit, re.MULTILINE)
    words = (
        command.replace("/var/lib/fastenough/ring", str(tmp_path))
        .replace("${FASTENOUGH_INTERVAL}", interval)
        .replace("--priority 98", "--policy other --allow-difference --default-system")
        .split()
    )
    tmp_path.chmod(0o700)
    service = subprocess.Popen([probe_binary, *words[1:]])
    try:
        assert eventually(lambda: len(files(tmp_path)) == 1, 30)
        service.send_signal(signal.SIGINT)
        assert service.wait(30) == 0
    finally:
        service.kill()
    (recording,) = map(read_recording, files(tmp_path))
    assert recording.outcome is Outcome.COMPLETED and recording.head.interval_ns == 300 * SECOND
    (interval,) = recording.intervals
    assert interval.counters["least_idle_ns"] is not None
