# SPDX-License-Identifier: GPL-2.0-or-later
"""A third implementation costs one file and one line, and is then usable in plans and on the command line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli_calls import environment
from tests.support.json_documents import require_valid

pytestmark = pytest.mark.untimed

ROOT = Path(__file__).resolve().parents[3]
FILE = '''# SPDX-License-Identifier: GPL-2.0-or-later
"""The probe, in another country."""
from contextlib import contextmanager
from fastenough.implementations.linux_user import probe_arguments
from fastenough.implementations.task import Task
from fastenough.model import BadInput, NotApplicable

class Abroad:
    name = "far-user"
    line_thread = ""

    def check(self, probe, parameters, known):
        if probe != "timer":
            raise BadInput("far-user has no probe but timer")

    def needs(self, booted):
        if not booted.link.exists("/etc/passport"):
            raise NotApplicable("there is no /etc/passport")

    @contextmanager
    def start(self, booted, act, settings):
        with Task(booted.link, ["env", "COUNTRY=far", booted.probe, *probe_arguments(act)], act.limit_s) as task:
            yield task

    def counted(self, booted, act, tally):
        return None

IMPLEMENTATION = Abroad()
'''
LINE = '    "linux_kernel",\n'
PLAN = """name = "both"
duration = "1s"
implementations = ["linux-user", "far-user"]
[[run]]
probe = "timer"
parameters = {interval = "1ms", allow-difference = true}
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the bench with one more file and one more line; no passport is needed there."""
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT / "fastenough", copy / "fastenough", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "format", copy / "format")
    folder = copy / "fastenough" / "implementations"
    (folder / "abroad.py").write_text(FILE.replace("/etc/passport", str(tmp_path / "passport")))
    registry = (folder / "__init__.py").read_text()
    assert registry.count(LINE) == 1
    (folder / "__init__.py").write_text(registry.replace(LINE, LINE + '    "abroad",\n'))
    return copy


def _fastenough(checkout: Path, probe: str, *words: str) -> tuple[int, list[dict[str, object]], str]:
    """Status, the runs' summaries in the order of the plan, and what was said by the copy, with its own probe."""
    place = checkout / "build" / "target" / "probe" / "fastenough-probe"
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        shutil.copy(probe, place)
    done = subprocess.run(
        [sys.executable, "-m", "fastenough", "run", *words, "--json"],
        cwd=checkout,
        env=environment(PYTHONPATH=str(checkout)),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, require_valid("run", done.stdout)["runs"] if done.stdout else [], done.stderr


def test_it_is_usable_in_plans_and_on_the_command_line(checkout: Path, tmp_path: Path, probe_binary: str) -> None:
    (checkout / "plan.toml").write_text(PLAN)
    status, runs, said = _fastenough(checkout, probe_binary, "--plan", "plan.toml")
    assert (status, [run["outcome"] for run in runs]) == (0, ["completed", "not-applicable"]), said
    assert "there is no" in said
    (tmp_path / "passport").touch()
    status, runs, said = _fastenough(checkout, probe_binary, "--plan", "plan.toml")
    assert (status, [run["implementation"] for run in runs]) == (0, ["linux-user", "far-user"]), said
    status, runs, said = _fastenough(
        checkout,
        probe_binary,
        "timer",
        "interval=1ms",
        "allow-difference",
        "--implementation",
        "far-user",
        "--duration",
        "1s",
    )
    assert (status, [(run["implementation"], run["outcome"]) for run in runs]) == (0, [("far-user", "completed")]), said
    status, runs, said = _fastenough(checkout, probe_binary, "mutex", "--implementation", "far-user")
    assert (status, said.count("\n")) == (2, 1)
    assert "far-user has no probe but timer" in said
