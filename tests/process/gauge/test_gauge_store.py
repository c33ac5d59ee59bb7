# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough gauge run`` keeps its runs in the store, where list, show and report find them; unplugging."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastenough.analysis import grouped, judge
from fastenough.campaign.standalone_gauge import StatedBoard, StoredRun
from fastenough.gauge.run import GaugeRun, Response, RunHead
from fastenough.gauge.session import Gauge, GaugeLost
from fastenough.model import BadInput, Outcome, Requirement, Verdict
from fastenough.recording import Histogram, Recording, RecordingWriter
from fastenough.recording.building import end_series, interval_series, series_end
from fastenough.store import Store
from tests.support.cli_calls import command_line
from tests.support.gauge_simulation import Build, Follower, RealtimeGauge, realtime_gauge
from tests.support.json_documents import require_valid
from tests.support.processes import eventually, recorded

ROOT = Path(__file__).resolve().parents[3]
RESPONSE = ("--min", "500us", "--max", "2ms", "--interval", "300ms")


@pytest.mark.slow
def test_a_run_is_listed_shown_and_reported(instrument: RealtimeGauge, tmp_path: Path) -> None:
    Follower(instrument.pins)
    store = str(tmp_path / "store")
    done = command_line(
        "gauge",
        "run",
        "response",
        instrument.port,
        "--store",
        store,
        "-D",
        "1s",
        *RESPONSE,
        "--load",
        "none",
        "--board",
        "the lab's",
        "--configuration",
        "6.1-rt",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    run = require_valid("gauge run", done.stdout)["run"]
    (listed,) = json.loads(command_line("list", "--store", store, "--json").stdout)
    assert (listed["id"], listed["board"], listed["probe"], listed["load"], listed["outcome"]) == (
        run,
        "the lab's",
        "response",
        "none",
        "completed",
    )
    assert listed["samples"] == json.loads(done.stdout)["series"][0]["count"] > 0
    shown = require_valid("show", command_line("show", run, "--store", store, "--json").stdout)
    assert shown["head"]["instrument"]["mcu"] == "atmega328p"
    assert shown["head"]["run_id"] == run
    assert "emulated" in shown["head"]["marks"]
    reported = command_line("report", "--store", store, "--out", str(tmp_path / "report"), "--limit", "1s")
    assert reported.returncode == 3, reported.stdout + reported.stderr
    assert "emulated" in reported.stdout
    assert (tmp_path / "report" / "index.html").is_file()
    assert command_line("store", "verify", "--store", store).returncode == 0


@pytest.mark.slow
def test_unplugged_in_mid_run_and_back_under_another_name(gauge_build: Build, tmp_path: Path) -> None:
    """The pseudo-terminal is another one after coming back; the link, as udev makes it, is not."""
    store = Store(tmp_path / "store")
    link = str(tmp_path / "gauge")
    with realtime_gauge(gauge_build, tmp_path) as first:
        Follower(first.pins)
        before = Path(link).readlink()
        held = os.open(before, os.O_RDWR | os.O_NOCTTY)  # so that its number is free for nobody
        running = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "fastenough",
                "gauge",
                "run",
                "response",
                link,
                "--store",
                str(store.path),
                "-D",
                "60s",
                *RESPONSE,
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert eventually(lambda: any(recorded(path, 2) for path in store.path.glob("runs/*/recording.jsonl")), 120)
        first.process.kill()
        out, errors = running.communicate(timeout=60)
    assert running.returncode == 4, errors
    assert "not completed: " in out
    assert "unplugged" in out
    (cut,) = [store.load(run.id) for run in Store(store.path).runs()]
    assert cut.outcome is Outcome.FAILED
    assert cut.totals[0].total > 0
    for leftover in (tmp_path / "gauge", tmp_path / "pins"):
        leftover.unlink(missing_ok=True)
    try:
        with realtime_gauge(gauge_build, tmp_path) as second:
            Follower(second.pins)
            assert Path(link).readlink() != before
            done = command_line("gauge", "run", "response", link, "--store", str(store.path), "-D", "1s", *RESPONSE)
    finally:
        os.close(held)
    assert done.returncode == 0, done.stderr
    assert [run.outcome for run in Store(store.path).runs()] == ["failed", "completed"]


def test_unplugged_while_idle_it_is_opened_anew_once_it_is_back(gauge_build: Build, tmp_path: Path) -> None:
    link = tmp_path / "gauge"
    with realtime_gauge(gauge_build, tmp_path) as first:
        gauge = Gauge(str(link))
        gauge.reconnect()
        first.process.kill()
    with gauge:
        with pytest.raises(GaugeLost, match="did not return within 0"):
            gauge.reconnect(0.0)
        for leftover in (link, tmp_path / "pins"):
            leftover.unlink(missing_ok=True)
        with realtime_gauge(gauge_build, tmp_path) as second:
            Follower(second.pins)
            gauge.reconnect()
            with (tmp_path / "run").open("wb") as stream:
                run = GaugeRun(gauge, Response(500_000, 1_000_000, 10**9), RunHead("run", "linux-user"), stream, 10**9)
                run.begin()
                run.wait(0.5)
                assert run.end() is Outcome.COMPLETED


def test_nothing_is_kept_of_a_run_that_never_began(tmp_path: Path) -> None:
    done = command_line("gauge", "run", "response", "/dev/null", "--store", str(tmp_path / "store"))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert Store(tmp_path / "store").runs() == []
    assert not list((tmp_path / "store" / "runs").iterdir())


def test_a_serial_number_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = command_line("gauge", "run", "response", "NO-SUCH-NUMBER", "--store", str(tmp_path / "store"))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "serial number NO-SUCH-NUMBER" in done.stderr


HEAD: dict[str, Any] = {
    "type": "head",
    "format": "fastenough-recording",
    "version": 2,
    "tool": {"name": "t", "version": "1"},
    "run_id": "",
    "probe": "response",
    "implementation": "linux-user",
    "parameters": {},
    "settings": [],
    "cost": {},
    "interval_ns": 10**11,
    "begin": {"mono_ns": 0, "wall_ns": 10**18},
    "marks": [],
    "series": [
        {
            "id": 0,
            "name": "latency-falling",
            "unit": "ticks",
            "tick_ps": 62500,
            "clock": "gauge",
            "from": "a",
            "to": "b",
            "k": 10,
            "role": "verdict",
            "two_sided": False,
            "corrected": False,
            "relative": False,
        }
    ],
}


def stored(store: Store, outside: StatedBoard, serial: str | None = None, port: str = "/dev/ttyACM0") -> Recording:
    run = StoredRun(store, "response", outside)
    writer = RecordingWriter(run)
    histogram = Histogram.from_values([1600] * 100_000, 10)
    writer.line(HEAD | {"instrument": {"name": "gauge", "port": port, "serial": serial}})
    writer.line(
        {
            "type": "interval",
            "seq": 0,
            "begin": {"mono_ns": 0, "wall_ns": 10**18},
            "end": {"mono_ns": 10**11, "wall_ns": 10**18 + 10**11},
            "series": [interval_series(0, histogram)],
            "counters": {},
        }
    )
    writer.line(
        {
            "type": "end",
            "outcome": "completed",
            "reasons": [],
            "at": {"mono_ns": 10**11, "wall_ns": 10**18},
            "series": [end_series(0, series_end(histogram))],
            "counters": {},
            "events_dropped": 0,
        }
    )
    run.seal()
    assert run.writer is not None
    return store.load(run.writer.id)


def test_a_load_that_somebody_states_is_no_proof(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")

    def judged(load: str | None) -> tuple[Verdict, str]:
        assessment = judge([stored(store, StatedBoard("a", "b", load))], Requirement(1_000_000, 0.001, longest_burst=1))
        return assessment.verdict, str(assessment.reasons)

    assert judged("none")[0] is Verdict.PASS
    stated, why = judged("hackbench")
    assert stated is Verdict.INCONCLUSIVE
    assert "load hackbench was stated by the user and not verified" in why
    unstated, why = judged(None)
    assert unstated is Verdict.INCONCLUSIVE
    assert "does not state its load" in why


def test_this_machine_s_profile_is_kept_only_where_it_is_the_board(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    assert stored(store, StatedBoard("another")).head.profile is None
    own = stored(store, StatedBoard("local")).head
    assert own.profile is not None and own.profile["kernel"]
    assert own.board
    assert own.profile_sha256


def test_the_configuration_of_this_machine_may_not_contradict_its_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = {"kernel": {"release": "6.1.0-30-amd64", "preemption": "voluntary"}}
    monkeypatch.setattr("fastenough.campaign.standalone_gauge.collect", lambda link: kernel)
    store = Store(tmp_path / "store")
    with pytest.raises(BadInput, match="the name means a kernel with PREEMPT_RT"):
        StatedBoard("local", "rt").added(store)
    assert StatedBoard("local", "stock").added(store).profile == kernel


def test_runs_of_one_gauge_belong_together_whatever_its_port_was_called(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    here = StatedBoard("local", "b", "none")
    one = stored(store, here, "A1", "/dev/ttyACM0")
    two = stored(store, here, "A1", "/dev/ttyACM1")
    other = stored(store, here, "B2", "/dev/ttyACM1")
    assert grouped([one, two, other]) == [[one, two], [other]]


def test_runs_of_a_board_of_which_nothing_is_known_are_never_merged(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    one, two = (stored(store, StatedBoard("a", "b", "none"), "A1", "/dev/ttyACM0") for _ in range(2))
    assert grouped([one, two]) == [[one], [two]]
