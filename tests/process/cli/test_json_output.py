# SPDX-License-Identifier: GPL-2.0-or-later
"""The documents of ``--json`` have the form of docs/schemas: commands that need no machine, on stored runs.

Those that measure are validated where the tests run them, by `require_valid`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from fastenough.analysis.change_effects import ChangeEffect
from fastenough.analysis.injections import InjectionResult
from fastenough.analysis.station_delays import StationAgreement, StationResult
from fastenough.cli import (
    audit,
    bench,
    calibrate,
    calibrate_monitor,
    cli,
    farm_alert,
    farm_bisect,
    farm_boards,
    gauge,
    hunt,
)
from fastenough.cli.output import print_json
from fastenough.farm.bisect import bisect
from fastenough.farm.state_file import Beat, FarmState
from fastenough.farm.state_machine import BoardPhase, BoardState
from fastenough.gauge.flash import BOARDS
from fastenough.hunt.phases import Confirmed
from fastenough.hunt.search import Search
from fastenough.hunt.space import Part
from fastenough.hunt.trials import FinishedTrial, Phase, TrialRequest
from fastenough.jobs.audit import Audit, AuditTrials
from fastenough.jobs.calibrate import WitnessResult
from fastenough.jobs.calibrate_monitor import StationTrial
from fastenough.jobs.hunt import HuntResult
from fastenough.jobs.hunt_report import MonitoredRun
from fastenough.loads import Load
from fastenough.store import Store
from fastenough.virtual.bench_process import BenchState
from tests.process.cli.test_cli_variants import keep
from tests.support import recordings as made
from tests.support.cli_calls import ROOT
from tests.support.json_documents import require_valid
from tests.support.recordings import latencies
from tests.unit.analysis.test_bound_composed import Kernel
from tests.unit.farm.test_farm_bisect import NAMES, QUESTION, Simulated, rates
from tests.unit.farm.test_farm_file import FARM
from tests.unit.hunt.test_hunt_search import SPACE
from tests.unit.recording.test_samples_parquet import END, HEAD, block

pytestmark = pytest.mark.untimed

LIMITS = """
[[limit]]
quantile = "95%"
slower-by = "1us"
[[limit]]
limit = "1ms"
miss-rate = 0
"""
_CYCLICTEST = ROOT / "tests" / "cases" / "exchange" / "cyclictest-2.10-histogram.txt"
_UNSIGNALLED = SimpleNamespace(listen=lambda: None)
"""Signals are those of the tests."""
COMMANDS: dict[str, Sequence[Sequence[str]]] = {
    "list": [(), ("--last", "1")],
    "show": [("last",)],
    "report": [("--limit", "1ms"), ("--limit", "1us", "--beside", "at91sam"), ()],
    "pack": [("--limit", "1ms", "--out", "pack.zip")],
    "verify": [("pack.zip",)],
    "compare": [("BASE", "LAST")],
    "check": [("LAST", "--baseline", "BASE", "--limits", "limits.toml"), ("LAST", "--baseline", "BASE")],
    "advise": [("--limit", "100us", "--probe", "timer"), ("--limit", "100us", "--miss-rate", "5%", "--probe", "timer")],
    "plan-test": [("--limit", "100us"), ("--limit", "4us", "--miss-rate", "50%", "--expect", "last")],
    "fleet": [("--limit", "100us"), ("--limit", "4us", "--miss-rate", "50%", "last")],
    "reference": [(), ("at91sam",)],
    "campaign plan": [("quick",)],
    "campaign status": [()],
    "list-probes": [(), ("timer",)],
    "audit": [()],
    "assess": [("--task", "period=1ms compute=2ms")],
    "bound": [("trace.txt",)],
    "doctor": [()],
    "gauge list": [()],
    "bench status": [()],
    "bench down": [()],
    "store verify": [()],
    "store rebuild": [()],
    "store export-samples": [("samples", "samples.parquet")],
    "import": [("cyclictest",)],
    "export": [("last",)],
    "completion": [("bash",)],
    "web": [("--out-dir", "site")],
    "farm status": [("farm.toml",)],
    "farm rebuild": [("farm.toml",)],
    "farm board rename": [("farm.toml", "testboard", "press-1")],
    "farm board retire": [("farm.toml", "other")],
    "farm board withdraw": [("farm.toml", "press-1")],
    "farm token add": [("lab", "--board", "press-1")],
    "farm token list": [()],
    "farm token revoke": [("lab",)],
    "farm quarantine list": [()],
    "farm user add": [("taker1", "--role", "taker", "--site", "lab")],
    "farm user conf": [()],
    "farm user list": [()],
    "farm user revoke": [("taker1",)],
}
"""Arguments of each command that is tried, in this order."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs, two of them of one campaign, and a file for each command that reads one."""
    home = tmp_path_factory.mktemp("documents")
    with closing(Store(home / "fastenough-data")) as store:
        keep(store, home / "scratch", values=latencies(1))
        planned = {"campaign": "c", "plan_sha256": "p", "positions": 2, "planned": ("one", "two")}
        for position in range(2):
            values = [[row + 3000 for row in rows] for rows in latencies(position)]
            keep(store, home / "scratch", values=values, origin=planned | {"position": position})
        made_runs = [run.id for run in store.runs()]
    (home / "runs").write_text(" ".join(made_runs))
    (home / "limits.toml").write_text(LIMITS)
    (home / "trace.txt").write_text("# tracer: nop\n" + "\n".join(Kernel(4, 1, 2, 2, False, 5, [(6, 3)]).run().lines))
    (home / "samples").write_bytes(HEAD + block(0, [(10, 5)], 0) + END)
    (home / "farm.toml").write_text(FARM)
    with closing(Store(home / "store")) as store:
        keep(store, home / "scratch", begin_ns=made.WALL_NS)
    with closing(FarmState(home / "state")) as state:
        state.put("testboard", BoardState(phase=BoardPhase.MEASURING))
        state.beat(Beat(1, 1.0, "all well"))
    return home


@pytest.mark.parametrize("command", COMMANDS)
def test_a_document_has_the_form_of_its_schema(command: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    first, *_, last = (home / "runs").read_text().split()
    stands_for = {"BASE": first, "LAST": last, "cyclictest": str(_CYCLICTEST)}
    for arguments in COMMANDS[command]:
        words = [stands_for.get(word, word) for word in arguments]
        done = CliRunner().invoke(cli, [*command.split(), "--json", *words], obj=_UNSIGNALLED, catch_exceptions=False)
        require_valid(command, done.stdout)


SEARCH = Search(SPACE, ("none", "full"), 1, random.Random(1), "full")
FOUND = Confirmed((Part("a", (0,)), Part("b", (1,))), "full", 12.5, 11.25, 0.001)
LOAD = Load("none", "no load")
STATE = BenchState("rt", "6.1.0-rt", 7, 8, 12.5, False, "/run/bench", None, "no firmware")
TRIED = ChangeEffect({"turbo": "off"}, "none", 0, None, None, ("too few rounds",), "c")


def _hunted(found: Confirmed | None, culprit: MonitoredRun | None) -> None:
    made = (FinishedTrial(TrialRequest("full", Phase.FIXED), (1000,), "run-1"),)
    hunt._print_result(HuntResult("c", replace(SEARCH, result=found), 2, made, 1), culprit, None, True)


def _tried() -> None:
    trials = AuditTrials((TRIED,), (("smt", "not there"),), (TRIED,), {"turbo": "off"}, (TRIED,))
    audit._print_result(Audit("local", "a machine", ()), trials, audit._Details(False, False), True)


def _calibrated() -> None:
    row = InjectionResult(1000, 5, 0, 5, 1010, 1020, 10)
    results = [WitnessResult("hog", "timer", (row,)), WitnessResult("gauge", "timer", reason="no gauge")]
    print_json({"board": "local", "calibrations": [calibrate._plain(one) for one in results]})


def _stations() -> None:
    row = StationResult("irq", 1000, 5, 0, 0, 5, 0, 1010, 10, 1000, (("task hog", 5),))
    trials = [
        StationTrial("irq", 0, (row,), unrecorded_by_reason=(("late", 1),)),
        StationTrial("irq", 1, reason="no module"),
    ]
    agreed = StationAgreement(100, 98, 97, (10, 20), (("asleep", 1),))
    agreement = [asdict(agreed) | {"unexplained": agreed.unexplained}]
    print_json({"board": "local", "stations": list(map(calibrate_monitor._plain, trials)), "agreement": agreement})


RESULTS: dict[str, list[Callable[[], object]]] = {
    "hunt": [lambda: _hunted(None, None), lambda: _hunted(FOUND, MonitoredRun(LOAD, ("run-2",), "task hog"))],
    "audit": [_tried],
    "calibrate": [_calibrated, _stations],
    "bench up": [lambda: bench._print(STATE, True)],
    "bench status": [lambda: bench._print(STATE, True)],
    "farm run": [lambda: farm_boards.line_printer(True)("one line")],
    "farm take": [lambda: farm_boards.line_printer(True)("one line")],
    "farm try": [lambda: farm_boards.line_printer(True)("one line")],
    "farm alert": [lambda: farm_alert._print_faults(["a receiver does not answer"], True)],
}
"""Of commands that need a machine: what prints a result that is made here."""


@pytest.mark.parametrize("command", RESULTS)
def test_a_result_that_is_made_up_has_the_form_of_its_schema(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for print_result in RESULTS[command]:
        print_result()
        require_valid(command, capsys.readouterr().out)


def test_a_bisection_has_the_form_of_its_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bisect(NAMES, Simulated(tmp_path, rates(4)), QUESTION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(farm_bisect, "_bisect", lambda *_: found)
    words = "farm bisect a b --board local --limit 1ms --miss-rate 1% --longest-burst 3 --json"
    done = CliRunner().invoke(cli, words.split(), obj=_UNSIGNALLED, catch_exceptions=False)
    assert require_valid("farm bisect", done.stdout)["measurements"] == found.measurements


def test_a_written_firmware_has_the_form_of_its_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    written = SimpleNamespace(flash=lambda *_: None)
    monkeypatch.setattr(gauge, "find_firmware", lambda _: Path("gauge.hex"))
    monkeypatch.setitem(BOARDS, "uno", written)
    words = ["gauge", "flash", "uno", "/dev/ttyACM0", "--json"]
    done = CliRunner().invoke(cli, words, obj=_UNSIGNALLED, catch_exceptions=False)
    assert require_valid("gauge flash", done.stdout)["written"]
