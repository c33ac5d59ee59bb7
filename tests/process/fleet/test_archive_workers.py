# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs over the archive of a fleet on real workers: their number and their death change no result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastjsonschema
import numpy as np
import pytest
from distributed import LocalCluster

from fastenough.cli.farm_causes import FindCauses
from fastenough.cli.farm_judge import JudgeBoards
from fastenough.fleet.workers import BoardJob, Workers, over_boards
from fastenough.model import BadInput, Requirement, Unavailable
from tests.support.cli_calls import ROOT, command_line
from tests.support.fleet_archive import SlowJob, by_hand, latencies, machine, row, write
from tests.support.recorded_causes import event, write_events

pytestmark = pytest.mark.untimed
BOARDS = 8
BAD = 5
JOB = JudgeBoards(Requirement(100_000))
CAUSES = FindCauses(100_000)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Boards that are within 100 µs, except one; each has events of one cause, and one has a second cause."""
    rows, events = [], []
    for number in range(BOARDS):
        random = np.random.default_rng(number)
        for hour in range(6):
            values = latencies(random, 6000)
            values[0] = 500_000 if (number, hour) == (BAD, 3) else values[0]
            rows.append(("panel", row(machine(number), f"run-{number}", (0, hour), values)))
            cause = "interrupt eth0" if (number, hour) == (BAD, 3) else "task kworker/0:1"
            found = event(machine(number), cause, 200_000 + number, (f"run-{number}", 0, hour))
            events.append(("panel", found))
    return write_events(tmp_path_factory.mktemp("workers") / "archive", rows, events)


def _killed(folder: Path, kills: int, stopped: threading.Event) -> list[int]:
    """Kill workers with SIGKILL while they compute: each the first time that it notes its id."""
    killed: list[int] = []
    while not stopped.is_set() and len(killed) < kills:
        for process in {int(path.name) for path in folder.iterdir()} - set(killed):
            if len(killed) < kills:
                os.kill(process, signal.SIGKILL)
                killed.append(process)
        time.sleep(0.01)
    return killed


@pytest.mark.parametrize(
    ("processes", "kills", "job"),
    [
        pytest.param(1, 1, JOB, marks=pytest.mark.slow),
        pytest.param(2, 0, JOB, marks=pytest.mark.slow),
        (2, 2, JOB),
        pytest.param(2, 2, CAUSES, marks=pytest.mark.slow),
    ],
)
def test_neither_the_number_of_workers_nor_their_death_changes_a_result(
    archive: Path, tmp_path: Path, processes: int, kills: int, job: BoardJob[Any]
) -> None:
    killed: list[int] = []
    stopped = threading.Event()
    killer = threading.Thread(target=lambda: killed.extend(_killed(tmp_path, kills, stopped)))
    killer.start()
    try:
        results = over_boards(str(archive), SlowJob(job, tmp_path), Workers(processes=processes))
    finally:
        stopped.set()
        killer.join()
    assert len(killed) == kills
    used = {int(path.name) for path in tmp_path.iterdir()}
    assert os.getpid() not in used
    assert len(used) >= kills + 1  # others have continued the work of the killed ones
    assert results == by_hand(archive, job)
    assert [board.board for board in results] == sorted(map(machine, range(BOARDS)))


def test_the_command_names_the_board_that_exceeds_the_limit(archive: Path) -> None:
    done = command_line("farm", "judge", "--archive", str(archive), "--limit", "100us", "--workers", "1", "--json")
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    fastjsonschema.validate(json.loads((ROOT / "docs/schemas/farm-judge.json").read_text()), document)
    assert [board["board"] for board in document["boards"] if board["result"] == "exceeds"] == [machine(BAD)]
    assert [board["result"] for board in document["boards"]].count("within") == BOARDS - 1


@pytest.mark.parametrize("command", ["first-change", "kernels"])
def test_the_other_commands_print_their_documents(archive: Path, tmp_path: Path, command: str) -> None:
    listed = "".join(f"{machine(number)},{'ab'[number % 2]}\n" for number in range(BOARDS))
    (tmp_path / "kernels.csv").write_text(f"board,kernel\n{listed}")
    more = {"first-change": (), "kernels": ("--kernels", str(tmp_path / "kernels.csv"))}[command]
    done = command_line("farm", command, "--archive", str(archive), *more, "--workers", "1", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    fastjsonschema.validate(json.loads((ROOT / f"docs/schemas/farm-{command}.json").read_text()), document)
    expected = {"first-change": ("too_short", BOARDS), "kernels": ("boards", {"a": BOARDS // 2, "b": BOARDS // 2})}
    name, value = expected[command]
    assert document[name] == value


def _begin(command: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """A program of this checkout, without input and output."""
    return subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_the_command_ranks_the_planted_causes(archive: Path) -> None:
    options = ("--above", "100us", "--since", "2026-01-01", "--workers", "1", "--json")
    done = command_line("farm", "causes", "--archive", str(archive), *options)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    fastjsonschema.validate(json.loads((ROOT / "docs/schemas/farm-causes.json").read_text()), document)
    causes = document["total"]["causes"]
    assert [(found["cause"], found["boards"], found["events"], found["board"]) for found in causes] == [
        ("task kworker/*", BOARDS, 6 * BOARDS - 1, machine(BOARDS - 1)),
        ("interrupt eth0", 1, 1, machine(BAD)),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [(("--since", "yesterday"), "2026-11-28T12:00Z"), (("--above", "0us"), "longer than 0"), ((), "no causes")],
)
def test_bad_input_of_causes_is_one_line_with_status_2(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    """Also an archive that was written before there were events in it."""
    write(tmp_path, [("panel", row(machine(0), "run", (0, 0), np.array([9])))])
    done = command_line("farm", "causes", "--archive", str(tmp_path), "--workers", "1", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.slow
def test_a_scheduler_of_a_cluster_gives_the_same_results(archive: Path, tmp_path: Path) -> None:
    """A scheduler and a worker started as an administrator starts them, on loopback."""
    address_file = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(address_file)]
    scheduler = _begin([*dask, *options], tmp_path)
    worker = None
    try:
        while not address_file.exists():
            assert scheduler.poll() is None
            time.sleep(0.1)
        address = json.loads(address_file.read_text())["address"]
        with pytest.raises(Unavailable, match="no worker"):
            over_boards(str(archive), JOB, Workers(scheduler=address))
        dask = [sys.executable, "-m", "distributed.cli.dask_worker"]
        worker = _begin([*dask, address, "--no-dashboard", "--nthreads", "1"], tmp_path)
        deadline = 60
        while True:
            try:
                results = over_boards(str(archive), JOB, Workers(scheduler=address))
                break
            except Unavailable:
                deadline -= 10
                assert deadline > 0
        assert results == by_hand(archive, JOB)
    finally:
        for process in (worker, scheduler):
            if process is not None:
                process.terminate()
                process.wait(30)


@pytest.mark.slow
def test_a_scheduler_that_ends_during_the_computation_is_an_error(archive: Path, tmp_path: Path) -> None:
    with LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        ending = threading.Timer(0.0, cluster.close)

        def end_once(what: str, share: object) -> None:
            if what == "reading boards":
                ending.start()

        with pytest.raises(Unavailable, match="scheduler"):
            over_boards(
                str(archive), SlowJob(JOB, tmp_path), Workers(scheduler=cluster.scheduler_address), on_step=end_once
            )
        ending.join()


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_named(archive: Path) -> None:
    done = command_line(
        "farm", "judge", "--archive", str(archive), "--limit", "1ms", "--scheduler", "tcp://127.0.0.1:1"
    )
    assert done.returncode == 4
    assert "tcp://127.0.0.1:1" in done.stderr and "Traceback" not in done.stderr
    both = ("--scheduler", "tcp://127.0.0.1:1", "--workers", "2")
    assert command_line("farm", "judge", "--archive", str(archive), "--limit", "1ms", *both).returncode == 2


def test_without_dask_the_command_says_what_to_install(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BadInput, match="setup/install fleet"):
        over_boards(str(archive), JOB, Workers())
