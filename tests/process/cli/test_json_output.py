# SPDX-License-Identifier: GPL-2.0-or-later
"""The documents of ``--json`` have the form of docs/schemas: commands that need no machine, on stored runs.

Those that measure are validated where the tests run them, by `require_valid`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from fastenough.cli import cli
from fastenough.farm.state_file import Beat, FarmState
from fastenough.farm.state_machine import BoardPhase, BoardState
from fastenough.store import Store
from tests.process.cli.test_cli_variants import keep
from tests.support import recordings as made
from tests.support.cli_calls import ROOT
from tests.support.json_documents import require_valid
from tests.support.recordings import latencies
from tests.unit.analysis.test_bound_composed import Kernel
from tests.unit.farm.test_farm_file import FARM
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
COMMANDS = {
    "list": [(), ("--last", "1")],
    "show": [("last",)],
    "report": [("--limit", "1ms"), ("--limit", "1us", "--beside", "at91sam"), ()],
    "compare": [("BASE", "LAST")],
    "check": [("LAST", "--baseline", "BASE", "--limits", "limits.toml"), ("LAST", "--baseline", "BASE")],
    "advise": [("--limit", "100us", "--probe", "timer"), ("--limit", "100us", "--miss-rate", "5%", "--probe", "timer")],
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
