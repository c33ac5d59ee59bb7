# SPDX-License-Identifier: GPL-2.0-or-later
"""Brown and Martin's experiment, end to end: real firmware, real kernels, real tasks, and every edge accounted for."""

from __future__ import annotations

import csv
import functools
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.analysis import judge
from fastenough.analysis.edge_agreement import agreement
from fastenough.board import virtual as board_module
from fastenough.campaign import Campaign, Progress, expand, read_plan, run_campaign
from fastenough.campaign.acts import instrument_request
from fastenough.gauge.run import Periodic, Response
from fastenough.gauge.session import GaugeLost
from fastenough.model import BadInput, Outcome, Verdict
from fastenough.recording import Recording
from fastenough.report import write_report
from fastenough.store import Store
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.gauge import SimulatedGauge
from fastenough.virtual.kernels import Kernel
from fastenough.virtual.module import build_module
from fastenough.virtual.packages import fetch
from fastenough.virtual.pins import Pins
from tests.support.presence import present
from tests.support.processes import eventually, with_words
from tests.support.virtual_boards import require_simulated_gauge

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ROOT / "campaigns" / "brown-martin.toml"
CELLS = set(itertools.product(("response", "periodic"), ("linux-user", "linux-kernel"), ("stock", "rt")))
LEAST_EDGES = 20


@pytest.fixture(scope="module", autouse=True)
def gauge_can_be_simulated() -> None:
    require_simulated_gauge()


def plan(folder: Path, **changes: str) -> Path:
    """The shipped plan with other values, each as TOML."""
    text = SHIPPED.read_text()
    for key, value in changes.items():
        text, count = re.subn(rf"(?m)^{key} = [^#\n]*", f"{key} = {value} ", text)
        assert count == 1
    path = folder / "plan.toml"
    path.write_text(text)
    return path


def key(recording: Recording) -> tuple[str, str, str]:
    configuration = recording.head.configuration
    assert configuration is not None
    return recording.head.probe, recording.head.implementation, configuration.name


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, list[Recording]]:
    """Every cell, for two seconds each."""
    folder = tmp_path_factory.mktemp("experiment")
    store = Store(folder / "store")
    campaign = run_campaign(read_plan(plan(folder, duration='"2s"')), store)
    return campaign, [store.load(run) for run in campaign.runs]


def measured_outside(recordings: list[Recording]) -> list[Recording]:
    return [recording for recording in recordings if recording.head.instrument]


@pytest.mark.timeout(600)
def test_every_cell_is_measured_by_the_instrument(experiment: tuple[Campaign, list[Recording]]) -> None:
    campaign, recordings = experiment
    outside = measured_outside(recordings)
    assert {key(recording) for recording in outside} == CELLS
    assert not campaign.stopped
    for recording in outside:
        assert recording.outcome is Outcome.COMPLETED, recording.end
        assert "emulated" in recording.head.marks
        instrument = present(recording.head.instrument, "instrument")
        assert instrument["firmware"]
        assert instrument["port"] == "simulated"
        assert instrument["self_test"]["passed"]
        assert recording.head.cost_ns["gauge_offset_ns"] == 0, "the simulated wire takes no time"
        assert all(recording.totals[series.id].total >= LEAST_EDGES for series in recording.series)


def test_sent_is_seen_is_answered_is_returned(experiment: tuple[Campaign, list[Recording]]) -> None:
    for recording in measured_outside(experiment[1]):
        counts = agreement(recording)
        assert counts is not None
        assert counts.complete, (key(recording), counts.text)
        assert counts.lost_uncounted == 0
        assert (counts.sent is None) == (recording.head.probe == "periodic")
        assert recording.end
        simulator = recording.end.counters
        edges_in, returned = (present(simulator[name], name) for name in ("simulator_edges_in", "edges_returned"))
        assert edges_in >= returned
        assert simulator["simulator_bytes_dropped"] == 0


def test_the_board_says_itself_beside_it(experiment: tuple[Campaign, list[Recording]]) -> None:
    own = [recording for recording in experiment[1] if not recording.head.instrument]
    assert {key(recording) for recording in own} == CELLS
    for recording in own:
        assert recording.outcome is Outcome.COMPLETED
        assert {"self-measured", "emulated"} <= set(recording.head.marks)


def test_settings_are_the_papers_as_read_back(experiment: tuple[Campaign, list[Recording]]) -> None:
    for recording in measured_outside(experiment[1]):
        made = {setting.name: setting for setting in recording.head.settings}
        assert made["rt-ceiling"].in_effect == "fifo:5"
        assert [name for name in made if name.startswith("pin ")]
        timer = made["timer-threads"]
        if key(recording)[2] == "rt":
            assert timer.in_effect == "fifo:99"
        else:
            assert timer.reason and "not applicable" in timer.reason


def test_the_report_has_no_empty_cell_and_no_verdict(
    experiment: tuple[Campaign, list[Recording]], tmp_path: Path
) -> None:
    recordings = measured_outside(experiment[1])
    assessment = judge(recordings, None)
    own_priority = os.geteuid() == 0  # without it the plan's control-priority is not in effect
    ends = [recording.end for recording in recordings if recording.end is not None]
    whole = not any(series.lost for end in ends for series in end.series.values())  # a busy bench may lose edges
    sound = own_priority and whole
    assert assessment.verdict is (Verdict.INCONCLUSIVE if sound else Verdict.BROKEN), assessment.reasons
    write_report(recordings, assessment, tmp_path)
    for probe in ("response", "periodic"):
        for table in ("percentiles", "frequencies"):
            with (tmp_path / "tables" / f"{probe}-{table}.csv").open(newline="") as stream:
                rows = list(csv.DictReader(stream))
            assert len(rows) == 4
            assert all(value for row in rows for value in row.values())
    with (tmp_path / "tables" / "agreement.csv").open(newline="") as stream:
        assert [row["conclusion"] for row in csv.DictReader(stream)] == ["agree"] * len(CELLS)


def _instruments(bench: int) -> list[int]:
    """Simulated gauges of a bench's boards; tests that run beside this one have boards of their own."""
    return with_words("gauge-realtime", f"fastenough-board-{bench}-")


def test_nothing_is_left_behind(experiment: tuple[Campaign, list[Recording]], state_directory: Path) -> None:
    assert experiment
    assert eventually(lambda: not _instruments(os.getpid()))
    assert all(not journal.read_bytes() for journal in state_directory.glob("*.journal"))
    assert not list(Path(tempfile.gettempdir()).glob(f"fastenough-board-{os.getpid()}-*"))


class Unplugging:
    """Watches the progress, and pulls the instrument's plug in the middle of the second run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gauges: list[SimulatedGauge] = []
        begin = SimulatedGauge.__init__

        def remember(gauge: SimulatedGauge, directory: Path, pins: Pins) -> None:
            begin(gauge, directory, pins)
            self.gauges.append(gauge)

        monkeypatch.setattr(SimulatedGauge, "__init__", remember)

    def __call__(self, progress: Progress) -> None:
        if progress.run == 2 and progress.phase == "measuring":
            os.kill(self.gauges[-1].pid, signal.SIGKILL)


def test_an_instrument_unplugged_in_mid_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "store")
    path = plan(tmp_path, duration='"3s"', configurations='["stock"]', implementations='["linux-user"]')
    with pytest.raises(GaugeLost, match="unplugged"):
        run_campaign(read_plan(path), store, Unplugging(monkeypatch))
    runs = [store.load(run.id) for run in store.runs()]
    first, last = measured_outside(runs)
    assert first.outcome is Outcome.COMPLETED
    assert last.outcome is Outcome.FAILED
    assert last.end is not None and "unplugged" in last.end.reasons[0]
    assert last.head.probe == "periodic"
    assert last.totals[0].total > 0


def test_a_guest_that_does_not_come_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = functools.partial(VirtualBoard, snapshot=False, boot_timeout_s=0.01)
    monkeypatch.setattr(board_module, "VirtualBoard", impatient)
    store = Store(tmp_path / "store")
    campaign = run_campaign(read_plan(plan(tmp_path, configurations='["stock"]')), store)
    recordings = [store.load(run) for run in campaign.runs]
    assert len(recordings) == 4
    for recording in recordings:
        assert recording.outcome is Outcome.FAILED
        assert recording.end is not None and "does not start" in recording.end.reasons[0]


def test_a_module_that_does_not_match_fails_its_cells_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_another_kernel(kernel: Kernel, folder: Path) -> Path:
        return build_module(fetch("rt" if kernel.name == "stock" else "stock"))

    monkeypatch.setattr(board_module, "build_module", of_another_kernel)
    store = Store(tmp_path / "store")
    campaign = run_campaign(read_plan(plan(tmp_path, configurations='["stock"]', duration='"1s"')), store)
    recordings = [store.load(run) for run in campaign.runs]
    outcomes = {key(recording)[:2]: recording.outcome for recording in recordings}
    assert outcomes["response", "linux-user"] is outcomes["periodic", "linux-user"] is Outcome.COMPLETED
    failed = [recording for recording in recordings if recording.head.implementation == "linux-kernel"]
    assert len(failed) == 2
    for recording in failed:
        assert recording.outcome is Outcome.FAILED
        assert recording.end is not None and "was built for kernel" in recording.end.reasons[0]


@pytest.mark.parametrize(
    ("kernel", "where"),
    [
        ("rt-amd64", "linux-kernel"),
        *(
            pytest.param(*each, marks=pytest.mark.matrix)
            for each in (("rt-amd64", "linux-user"), ("rt-armhf", "linux-kernel"), ("rt-armhf", "linux-user"))
        ),
    ],
)
def test_both_tasks_are_measured_on_other_architectures(kernel: str, where: str, tmp_path: Path) -> None:
    changes = {"configurations": f'["{kernel}"]', "implementations": f'["{where}"]', "duration": '"2s"'}
    store = Store(tmp_path / "store")
    campaign = run_campaign(read_plan(plan(tmp_path, **changes)), store)
    outside = measured_outside([store.load(run) for run in campaign.runs])
    assert len(outside) == 2
    for run in outside:
        counts = agreement(run)
        assert run.outcome is Outcome.COMPLETED, run.end
        assert counts is not None and counts.complete and counts.lost_uncounted == 0, counts


def test_interrupted_it_ends_in_good_order(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from fastenough.store import Store; "
        "from fastenough.campaign import read_plan, run_campaign; "
        "done = run_campaign(read_plan(Path(sys.argv[1])), Store(Path(sys.argv[2])), "
        "lambda progress: print(progress.phase, flush=True)); print('stopped', done.stopped, flush=True)"
    )
    path = plan(tmp_path, duration='"60s"', configurations='["stock"]')
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path), str(tmp_path / "store")], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    watchdog = threading.Timer(250.0, process.kill)
    watchdog.start()
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "measuring":
            process.send_signal(signal.SIGINT)
            break
    rest = process.stdout.read()
    watchdog.cancel()
    assert process.wait(120) == 0
    assert eventually(lambda: not _instruments(process.pid))
    assert rest.strip().splitlines()[-1] == "stopped True"
    store = Store(tmp_path / "store")
    (outside,) = measured_outside([store.load(run.id) for run in store.runs()])
    counts = agreement(outside)
    assert outside.outcome is Outcome.ABORTED
    assert counts is not None and counts.complete, counts


def test_the_shipped_plan_is_the_papers() -> None:
    shipped = read_plan(SHIPPED)
    assert shipped.instrument is not None
    specs = expand(shipped)
    assert {(spec.probe, spec.implementation, spec.configuration) for spec in specs} == CELLS
    requests = {spec.probe: instrument_request(spec.probe, spec.parameters) for spec in specs}
    assert requests == {"response": Response(3_000, 7_071_000, 10**9), "periodic": Periodic(7_071_000, 10**9)}
    assert shipped.settings == {"control-priority": 10, "rt-ceiling": 5, "irq-threads": 99, "timer-threads": 99}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"board": '"local"'}, "require each other"),
        ({"instrument": '"/dev/ttyACM0"'}, "require each other"),
        ({"configurations": '["stock", "moon"]'}, "configurations"),
        ({"implementations": '["linux-user", "linux-user"]'}, "list each word once"),
        ({"loads": '["nothing-known"]'}, "loads"),
        ({"duration": '"soon"'}, "no duration"),
        ({"rt-ceiling": "[1]"}, "rt-ceiling"),
        ({"period": '"7071ns"'}, "even number"),
        ({"min": '"8ms"'}, "max must not be below min"),
        ({"name": '"x"\nmost = 1'}, "unknown key 'most'"),
    ],
)
def test_a_plan_that_cannot_be_is_one_line(tmp_path: Path, changes: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput, match=said) as error:
        read_plan(plan(tmp_path, **changes))
    assert "plan.toml:" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.fixture(autouse=True)
def no_guest_is_left() -> Iterator[None]:
    yield
    assert eventually(lambda: not _instruments(os.getpid()))
