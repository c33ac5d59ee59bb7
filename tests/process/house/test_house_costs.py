# SPDX-License-Identifier: GPL-2.0-or-later
"""What an addition costs, really tried in a copy of the tree: a file and a line, and the new thing is seen working."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.cli_calls import environment
from tests.support.monitor_recordings import PARTS, Watched, write
from tests.support.tools import ENVIRONMENT, TOOLS

pytestmark = pytest.mark.untimed

ROOT = Path(__file__).resolve().parents[3]
COPIED = ("fastenough", "format", "gauge", "target", "meson.build", "meson_options.txt", "pyproject.toml")
SPDX = "# SPDX-License-Identifier: GPL-2.0-or-later\n"


@dataclass
class Copy:
    """A copy of the tree, and what was done to it."""

    root: Path

    def __post_init__(self) -> None:
        self.new: list[str] = []
        self.lines: dict[str, int] = {}

    def file(self, path: str, text: str) -> None:
        target = self.root / path
        assert not target.exists()
        target.write_text(text)
        self.new.append(path)

    def line(self, path: str, before: str, line: str) -> None:
        """Adds one line in front of the only line that has these words."""
        target = self.root / path
        lines = target.read_text().splitlines(keepends=True)
        (at,) = (number for number, one in enumerate(lines) if before in one)
        target.write_text("".join([*lines[:at], line + "\n", *lines[at:]]))
        self.lines[path] = self.lines.get(path, 0) + 1

    def python(self, script: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=self.root,
            text=True,
            capture_output=True,
            env=environment(PYTHONPATH=str(self.root)),
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fastenough(self, *words: str, expected: int | None = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "fastenough", *words],
            cwd=self.root,
            text=True,
            capture_output=True,
            check=False,
            env=environment(PYTHONPATH=str(self.root)),
        )
        assert expected in (None, done.returncode), done.stderr
        return done.stdout + done.stderr

    def built(self, folder: Path, program: str) -> Path:
        """A program of the copy, built by meson."""
        commands: list[list[str | Path]] = [
            [TOOLS / "meson", "setup", folder, self.root, "-Dpython_package=false"],
            [TOOLS / "ninja", "-j2", "-C", folder, program],
        ]
        for command in commands:
            subprocess.run(command, check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
        return folder / program

    def cost(self) -> tuple[int, int, int]:
        """New files, old files touched, lines added to those."""
        return len(self.new), len(self.lines), sum(self.lines.values())


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """With what Python has compiled, so that only changed modules are compiled again."""
    root = tmp_path / "copy"
    root.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name)
        else:
            shutil.copy(source, root / name)
    return Copy(root)


def test_a_load(copy: Copy) -> None:
    copy.file(
        "fastenough/loads/mine.py",
        SPDX
        + '''"""One that sleeps."""

from fastenough.loads.load import Expectation, Load

LOAD = Load(name="mine", source="this test", tools=("sleep",), commands=(("sleep", "60"),), expects=Expectation())
''',
    )
    copy.line("fastenough/loads/__init__.py", '"rtlinux_memory",', '    "mine",')
    assert copy.cost() == (1, 1, 1)
    assert (
        copy.python(
            "from fastenough.link import LocalLink\nfrom fastenough.loads import RunningLoad, find_load\n"
            "with RunningLoad(LocalLink(), find_load('mine'), 1, 5): print('it runs')"
        )
        == "it runs\n"
    )


def test_a_fact(copy: Copy) -> None:
    copy.file(
        "fastenough/facts/mine.py",
        SPDX
        + '''"""Since when this system has been up."""

from fastenough.facts.fact import Fact, Inputs


def _up(inputs: Inputs) -> float:
    return float(inputs.text("/proc/uptime").split()[0])


FACTS = (Fact("up_s", _up, files=("/proc/uptime",), volatile=True),)
''',
    )
    copy.line("fastenough/facts/__init__.py", '"software",', '    "mine",')
    assert copy.cost() == (1, 1, 1)
    up_s = copy.python(
        "from fastenough.facts import collect\nfrom fastenough.link import LocalLink\n"
        "print(collect(LocalLink())['up_s'])"
    )
    assert float(up_s) > 0


def test_a_setting(copy: Copy) -> None:
    copy.file(
        "fastenough/settings/mine.py",
        SPDX
        + '''"""The name of this process."""

from fastenough.link import Link
from fastenough.settings.place import FilePlace
from fastenough.settings.setting import Setting, Step


def _steps(link: Link, value: object) -> list[Step]:
    return [(FilePlace("/proc/self/comm"), str(value))]


SETTINGS = (Setting("mine", "the name of this process", _steps, files=("/proc/self/comm",)),)
''',
    )
    copy.line("fastenough/settings/__init__.py", '"kernel_module",', '            "mine",')
    assert copy.cost() == (1, 1, 1)
    said = copy.python(
        "from pathlib import Path\nfrom fastenough.link import LocalLink\n"
        "from fastenough.settings import Settings, default_journal\n"
        "link = LocalLink()\nwith Settings(link, default_journal(link)) as settings:\n"
        "    settings.apply('mine', 'other')\n    print(Path('/proc/self/comm').read_text().strip())\n"
        "print(Path('/proc/self/comm').read_text().strip())"
    )
    assert said.splitlines()[0] == "other" != said.splitlines()[1]


def test_a_setting_that_is_one_integer(copy: Copy) -> None:
    row = '    ("mine", "1: scheduling by groups of tasks", "/proc/sys/kernel/sched_autogroup_enabled", 0, 1),'
    copy.line("fastenough/settings/kernel.py", '("timer-migration",', row)
    assert copy.cost() == (0, 1, 1)
    steps = copy.python(
        "from fastenough.link import FakeLink\nfrom fastenough.settings import SETTINGS\n"
        "link = FakeLink({'/proc/sys/kernel/sched_autogroup_enabled': '1'})\n"
        "((place, value),) = SETTINGS['mine'].steps(link, 0)\nprint(place, value)"
    )
    assert steps == "/proc/sys/kernel/sched_autogroup_enabled 0\n"


def test_a_check_of_the_audit(copy: Copy) -> None:
    copy.file(
        "fastenough/audit/checks/mine.py",
        SPDX
        + '''"""How many CPUs there are."""

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import CheckOutcome, Group, Severity, costs, outside


def _look(facts: Facts) -> CheckOutcome:
    return costs(f"{facts.count} of them", outside("buy more"))


CHECKS = (Check("mine", "number of CPUs", Group.CPUS, Severity.LOW, _look, reason="This test.", source="this test",
                trade_off="money"),)
''',
    )
    copy.line("fastenough/audit/checks/__init__.py", '"services",', '            "mine",')
    assert copy.cost() == (1, 1, 1)
    assert "number of CPUs" in copy.fastenough("audit")


@pytest.mark.slow
def test_a_section_of_the_report(copy: Copy, tmp_path: Path, probe_binary: str) -> None:
    copy.file(
        "fastenough/report/sections/mine.py",
        SPDX
        + '''"""How many runs there are."""

from fastenough.report.context import Context
from fastenough.report.document import Section, Text


def section(context: Context) -> Section | None:
    return Section("mine", "My section", "What this test adds.", [Text(f"{len(context.recordings)} runs.")])
''',
    )
    copy.line("fastenough/report/sections/__init__.py", '"methods:definitions",', '        "mine",')
    assert copy.cost() == (1, 1, 1)
    built = copy.root / "build" / "target" / "probe" / "fastenough-probe"
    built.parent.mkdir(parents=True)
    built.symlink_to(probe_binary)
    copy.fastenough("assess", "--duration", "1s", "--loads", "none", "--out", str(tmp_path / "report"), expected=None)
    page = (tmp_path / "report" / "index.html").read_text()
    assert "My section" in page and "1 runs." in page


def test_a_key_of_plans(copy: Copy, tmp_path: Path, probe_binary: str) -> None:
    """One that acts during the runs of its entry, and only then."""
    copy.file(
        "fastenough/campaign/run_keys/mine.py",
        SPDX
        + '''"""``while-running``: a file that exists while a run is made."""

from contextlib import contextmanager
from pathlib import Path

from fastenough.campaign.run_keys.base import RunKey


class WhileRunning(RunKey):
    name = "while-running"

    def value(self, table):
        return table.text(self.name, '"/tmp/mine"')

    @contextmanager
    def during(self, value, booted):
        path = Path(value)
        path.write_text("running")
        yield
        path.rename(path.with_suffix(".over"))


KEY = WhileRunning()
''',
    )
    copy.line("fastenough/campaign/run_keys/__init__.py", '"break_threshold",', '        "mine",')
    assert copy.cost() == (1, 1, 1)
    run = '[[run]]\nprobe = "timer"\nparameters = {interval = "1ms", allow-difference = true}\n'
    plan = tmp_path / "plan.toml"
    plan.write_text(f'name = "mine"\nduration = "1s"\n{run}{run}while-running = "{tmp_path / "mine"}"\n')
    built = copy.root / "build" / "target" / "probe" / "fastenough-probe"
    built.parent.mkdir(parents=True)
    built.symlink_to(probe_binary)
    copy.fastenough("run", "--plan", str(plan), "--store", str(tmp_path / "store"), expected=None)
    assert (tmp_path / "mine.over").read_text() == "running" and not (tmp_path / "mine").exists()
    plan.write_text(plan.read_text().replace("while-running", "while-runing"))
    assert "while-running" in copy.fastenough("run", "--plan", str(plan), expected=2)


def test_an_implementation(copy: Copy, tmp_path: Path) -> None:
    """The commands that take one accept it, ``advise`` knows its box, and its act runs."""
    copy.file(
        "fastenough/implementations/mine_user.py",
        SPDX
        + '''"""The probe, with a name of its own."""

from dataclasses import dataclass

from fastenough.implementations.linux_user import LinuxUser


@dataclass(frozen=True)
class MineUser(LinuxUser):
    name: str = "mine-user"


IMPLEMENTATION = MineUser()
''',
    )
    copy.line("fastenough/implementations/__init__.py", '"evl_kernel",', '        "mine_user",')
    assert copy.cost() == (1, 1, 1)
    for command in (("gauge", "run"), ("calibrate",)):
        assert "mine-user" in "".join(copy.fastenough(*command, "--help").split()), command
    (tmp_path / "plan.toml").write_text(
        'name = "mine"\nimplementations = ["mine-user"]\n[[run]]\nprobe = "timer"\nparameters = {interval = "1ms"}\n'
    )
    planned = copy.python(
        "from pathlib import Path\nfrom fastenough.campaign import expand, read_plan\n"
        "from fastenough.analysis.advice import approach_of\n"
        f"(run,) = expand(read_plan(Path({str(tmp_path / 'plan.toml')!r})))\n"
        "print(run.implementation, approach_of(run.implementation, 'rt'))"
    )
    assert planned == "mine-user user-rt\n"


def test_a_page_of_the_website(copy: Copy, tmp_path: Path) -> None:
    copy.file(
        "fastenough/web/pages/mine.py",
        SPDX
        + '''"""How many boards there are."""

from fastenough.history import board_statuses
from fastenough.report.document import Section, Text
from fastenough.web.rendering import page_of_section
from fastenough.web.site import Site


def _section(site: Site) -> Section:
    boards = board_statuses(site.history, site.viewer, site.now_s)
    return Section("mine", "My page", "What this test adds.", [Text(f"{len(boards)} boards.")])


PAGES = page_of_section("/mine/", _section, menu="Mine")
''',
    )
    copy.line("fastenough/web/pages/__init__.py", '"badge",', '                "mine",')
    assert copy.cost() == (1, 1, 1)
    site, output = tmp_path / "site", ROOT / "tests/cases/exchange/cyclictest-2.4-histogram.txt"
    copy.fastenough("import", str(output), "--store", str(tmp_path / "store"))
    copy.fastenough("web", "--store", str(tmp_path / "store"), "--all-boards", "--out-dir", str(site))
    page = (site / "mine" / "index.html").read_text()
    assert "<h1>My page</h1>" in page and "<p>1 boards.</p>" in page and 'href="index.json"' in page
    assert json.loads((site / "mine" / "index.json").read_text())["parts"][0]["text"] == "1 boards."
    assert '<a href="./mine/">Mine</a>' in (site / "index.html").read_text()


def test_a_family_of_instruments(copy: Copy, tmp_path: Path) -> None:
    """One whose boot loader is a drive: a file is copied there."""
    drive = tmp_path / "drive"
    drive.mkdir()
    copy.file(
        "fastenough/gauge/flash/drive.py",
        SPDX
        + '''"""Boards that are a drive while they wait for firmware."""

import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DriveBoard:
    image: str
    build_needs: str = "nothing"

    def flash(self, port: str, image: Path, dry_run: bool = False) -> None:
        if not dry_run:
            shutil.copy(image, port)


BOARDS = {"drive": DriveBoard("drive/gauge-drive.uf2")}
''',
    )
    copy.line("fastenough/gauge/flash/__init__.py", '"avr",', '    "drive",')
    assert copy.cost() == (1, 1, 1)
    assert "gauge-drive.uf2 is not built; install nothing" in copy.fastenough(
        "gauge", "flash", "drive", str(drive), expected=5
    )
    image = copy.root / "build" / "gauge" / "drive" / "gauge-drive.uf2"
    image.parent.mkdir(parents=True)
    image.write_bytes(b"firmware")
    assert "nothing written" in copy.fastenough("gauge", "flash", "drive", str(drive), "--dry-run")
    assert not list(drive.iterdir())
    assert "firmware written" in copy.fastenough("gauge", "flash", "drive", str(drive))
    assert (drive / image.name).read_bytes() == b"firmware"


ACT = """
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <sched.h>

#include "frame.h"

static void yield_worker(struct worker *self, void *series)
{
	while (run_continues(self)) {
		int64_t begin_ns = mono_ns();

		sched_yield();
		series_add(series, mono_ns() - begin_ns);
	}
}

static void yield_setup(struct run *run)
{
	struct series *series = run_add_series(run, &(struct series_spec){
		.name = "yield", .from = "call of sched_yield", .to = "its return", .clock = "monotonic",
		.cpu = run_cpu(run, 0)});

	run_add_worker(run, &(struct worker_spec){
		.name = "yield", .cpu = run_cpu(run, 0), .function = yield_worker, .argument = series});
}

const struct probe yield_probe = {.name = "yield", .summary = "what does giving way cost?", .setup = yield_setup};
"""


@pytest.mark.slow
def test_a_timed_act(copy: Copy, tmp_path: Path) -> None:
    copy.file("target/probe/acts/yield.c", ACT.lstrip())
    copy.line(
        "target/probe/acts/meson.build", "  'spin': {", "  'yield': {'needs': 'sync', 'files': files('yield.c')},"
    )
    assert copy.cost() == (1, 1, 1)
    program, record = copy.built(tmp_path / "build", "target/probe/fastenough-probe"), tmp_path / "record"
    subprocess.run(
        [
            program,
            "yield",
            "--policy",
            "other",
            "--loops",
            "1000",
            "--allow-difference",
            "--record",
            record,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    end = json.loads(record.read_text().splitlines()[-1])
    assert end["outcome"] == "completed"
    assert end["series"][0]["stored"] + end["series"][0]["lost"] == end["series"][0]["taken"] > 0


STATION = """
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "station.h"

WAKEUP_STATION(interrupt_to_running)
{
	return between(wakeup->interrupt_ns, wakeup->running_ns);
}
"""


@pytest.mark.slow
def test_a_station_of_the_monitor(copy: Copy, tmp_path: Path) -> None:
    """It is in the monitor, and in the report of what the monitor records.  The kernel runs it in
    tests/process/monitor/test_monitor_kernel.py."""
    copy.file("target/monitor/stations/interrupt_to_running.bpf.c", STATION.lstrip())
    copy.line(
        "target/monitor/stations/meson.build",
        "  'noise-interrupt': {",
        "  'interrupt-to-running': {'origin': 'timer', 'from': 'timer interrupt', 'to': 'task switched in'},",
    )
    assert copy.cost() == (1, 1, 1)
    assert b"interrupt-to-running" in copy.built(tmp_path / "build", "target/monitor/fastenough-monitor").read_bytes()
    recorded = write(tmp_path / "recording.jsonl", Watched())
    recorded.write_text(recorded.read_text().replace("expiry-to-running", "interrupt-to-running"))
    named = copy.python(
        "from pathlib import Path\nfrom fastenough.analysis import judge\n"
        "from fastenough.recording import read_recording\nfrom fastenough.report.context import make_context\n"
        "from fastenough.report.sections import stations\n"
        f"runs = [read_recording(Path({str(recorded)!r}))]\n(group,) = make_context(runs, judge(runs)).watched\n"
        "print(*(kind.series.name for kind in stations.station_kinds(group)))"
    )
    assert named.split()[-1] == "interrupt-to-running" and len(named.split()) == len(PARTS) + 2


def test_an_importer(copy: Copy, tmp_path: Path) -> None:
    copy.file(
        "fastenough/exchange/mine.py",
        SPDX
        + """\"\"\"A tool that prints one latency a line.\"\"\"

from fastenough.exchange.imported import ImportedRun, ImportedSeries
from fastenough.exchange.source import Source


class _Mine:
    what = "mytool: one latency a line"

    def recognises(self, source: Source) -> bool:
        return source.lines[0] == "mine"

    def read(self, source: Source) -> ImportedRun:
        source.whole()
        values = sorted(int(line) for line in source.lines[1:] if line)
        buckets = tuple((value, value, values.count(value)) for value in dict.fromkeys(values))
        series = ImportedSeries("wakeup", "due", "awake", 1000, len(values), values[0], values[-1], None, overflow=0,
                                buckets=buckets)
        return ImportedRun("mine", None, "linux-user", (series,))


IMPORTER = _Mine()
""",
    )
    copy.line("fastenough/exchange/__init__.py", '"osadl",', '    "mine",')
    assert copy.cost() == (1, 1, 1)
    (tmp_path / "output").write_text("mine\n7\n9\n7\n")
    told = copy.fastenough("import", str(tmp_path / "output"), "--json", "--store", str(tmp_path / "store"))
    assert json.loads(told)["runs"][0]["series"] == [
        {"name": "wakeup", "unit": "ns", "count": 3, "min": 7000, "max": 9000, "mean": None, "overflow": 0}
    ]
    assert "mytool" in copy.fastenough("import", "--help")


def test_an_exporter(copy: Copy) -> None:
    copy.file(
        "fastenough/exchange/names.py",
        SPDX
        + """\"\"\"The names of runs.\"\"\"

from collections.abc import Sequence

from fastenough.recording import Recording


def export(recordings: Sequence[Recording]) -> bytes:
    return " ".join(one.run_id for one in recordings).encode()
""",
    )
    copy.line("fastenough/exchange/__init__.py", '"openmetrics": "openmetrics",', '    "names": "names",')
    assert copy.cost() == (1, 1, 1)
    assert "names" in copy.fastenough("export", "--help")
