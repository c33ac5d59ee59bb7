# SPDX-License-Identifier: GPL-2.0-or-later
"""Every command that the documents show is run as it is written, or is listed with what it needs beyond this machine.

Only times are shortened, and words that stand for a file or a run are replaced by one.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from fastenough.cli import COMMANDS
from fastenough.model import ExitStatus
from fastenough.store import Store
from tests.support import worked_example
from tests.support.cli_calls import ROOT, command_line
from tests.support.documented import WHOLE, documented_commands, is_incomplete
from tests.support.huge_pages import other_value
from tests.support.privileges import require_root

NEEDS = (
    (r"ssh://|labgrid:|--board beagle|https?://|--install", "another machine"),
    (r"\bvirtual\b|^bench |^farm (try|bisect)", "guests: test_virtual_*.py and test_farm_*.py boot them"),
    (r"--board \"?deterministic", "guests: test_worked_example.py and test_deterministic_board.py boot them"),
    (r"^gauge |--plan FILE|campaign run (FILE|campaigns/brown-martin)", "an instrument: test_gauge_*.py simulate it"),
    (
        r"^farm (run|alert|status)|^web",
        "a farm that runs until it is ended: test_farm_*.py and test_web_command.py",
    ),
    (r"^farm (judge|first-change|causes|kernels)", "the archive of a fleet: test_archive_workers.py has one"),
    (r"^farm order", "a board that publishes: test_orders.py has one"),
    (
        r"^hunt|^audit --measure|^calibrate|^campaign (run quick|resume)|^ab .*interval=|^assess --task",
        "many minutes: the command's own tests shorten it",
    ),
    (
        r"^monitor|--monitor|--implementation linux-kernel|run timerlat",
        "BPF or a module: test_monitor_*.py, test_module_*.py",
    ),
    (r"^show --follow", "a run that is under way: test_cli_follow.py has one"),
    (r"trace\.dat|SAMPLES", "a file of the kernel's or the probe's: test_bound_*.py, test_samples_parquet.py"),
    (r"^bisect ", "the repository of a kernel: test_bisect.py has one, with stand-ins for builds and guests"),
    (r"^completion fish >|^gauge flash", "a place outside the folder"),
)
"""What a documented command needs that is not here, by a pattern of its words."""
ADDED = {
    "run": "--duration 200ms",
    "ab": "--rounds 3",
    "ab --rounds 3": "--duration 200ms",
    "assess --task": "--duration 18s",
    "assess": "--duration 6s",
}
"""Times of commands that name none; an assessment shares its time among six loads (of three probes for tasks), a second
for each at least."""
SHORTER = (
    (r"--duration \S+", "--duration 200ms"),
    (r"--rounds \d+", "--rounds 3"),
    (r"--budget \S+", "--budget 5s"),
    (r"--phases \d+", "--phases 2"),
)
_BEFORE = {
    "farm token revoke rack-5": "farm token add rack-5 --board r5s7",
    "farm user conf > users.conf": "farm user add taker --role taker --site lab",
    "verify evidence.zip": "pack --limit 100us --out evidence.zip",
}
"""What a page has its reader do first."""
_CHANGES_HUGE_PAGES = "transparent-huge-pages="
"""Words of a command that needs another value than the one that is in effect, and no other test that changes it."""
MOST_TRIES = 10
"""Of what a busy machine may disturb."""
VERDICTS = (ExitStatus.DONE, ExitStatus.FAIL, ExitStatus.INCONCLUSIVE, ExitStatus.NOT_APPLICABLE)
"""Statuses of a command that was understood and has done its work; a machine that lacks a feature says so."""
_LOAD = 'name = "own"\nsource = "this test"\ncommands = [["sh", "-c", "while :; do :; done"]]\ncpu-share = 0.001\n'
_LIMITS = """[[limit]]
probe = "timer"
limit = "1h"
miss-rate = "0.5"
longest-burst = 1
[[limit]]
probe = "timer"
quantile = "50%"
slower-by = "1h"
"""
_FARM = 'store = "fastenough-data"\nstate = "farm"\n[[board]]\nname = "r1s1"\nlink = "ssh://root@r1s1"\n'


def needed(words: str) -> str:
    """What a command needs beyond this machine; empty where it is to be run."""
    return next((reason for pattern, reason in NEEDS if re.search(pattern, words)), "")


def commands(*, here: bool) -> list[str]:
    """The documented commands, each once: those to be run here, or the others.

    test_worked_example.py runs those of the worked example.
    """
    whole = {
        words
        for page, words in documented_commands()
        if page != worked_example.PAGE and not is_incomplete(words) and (words not in COMMANDS or words in WHOLE)
    }
    return sorted(words for words in whole if bool(needed(words)) != here)


def _lacked_cpu(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether a run failed because others took the CPU time of its load, as on a busy machine."""
    return done.returncode == ExitStatus.BROKEN and "too weak" in done.stderr


def _is_measured(folder: Path) -> bool:
    """Measure in an empty folder; return whether every load had its CPU time."""
    for words in ("run spin", *["run timer interval=1ms"] * 2, *["run timer interval=1ms --loads none,cpu"] * 2):
        done = command_line(*words.split(), "--duration", "200ms", cwd=folder)
        if _lacked_cpu(done):
            return False
        assert done.returncode == ExitStatus.DONE, done.stderr
    return True


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as it is after a first evening: runs of two probes, the newest of them a campaign."""
    require_root("it measures")
    folders = (tmp_path_factory.mktemp("measured") for _ in range(MOST_TRIES))
    folder = next((folder for folder in folders if _is_measured(folder)), None)
    assert folder is not None, "the loads never had their CPU time"
    for name in ("camera.toml", "worst.toml"):
        (folder / name).write_text(_LOAD)
    (folder / "limits.toml").write_text(_LIMITS)
    (folder / "farm.toml").write_text(_FARM)
    for name, case in (("cyclictest.txt", "cyclictest-2.4-quiet.txt"), ("oslat.json", "oslat-2.8.json")):
        shutil.copy(ROOT / "tests/cases/exchange" / case, folder / name)
    shutil.copytree(ROOT / "campaigns", folder / "campaigns")
    return folder


def written(words: str, folder: Path) -> list[str]:
    """The words of a command with shorter times, and with files and runs of this folder."""
    store = Store(folder / "fastenough-data")
    runs = {
        load: sorted(run.id for run in store.runs() if run.probe == "timer" and run.load == load)
        for load in ("none", "cpu")
    }
    (folder / "baseline").mkdir()
    for load, (*_, before, _) in runs.items():
        shutil.copy(store.path / "runs" / before / "recording.jsonl.zst", folder / "baseline" / f"{load}.jsonl.zst")
    for pattern, shorter in SHORTER:
        words = re.sub(pattern, shorter, words)
    if _CHANGES_HUGE_PAGES in words:
        words = re.sub(rf"{_CHANGES_HUGE_PAGES}\S+", f"{_CHANGES_HUGE_PAGES}{other_value()}", words)
    for command, shorter in ADDED.items():
        if words.startswith(f"{command} ") and shorter.split()[0] not in words:
            name, _, more = words.partition(" ")
            words = f"{name} {shorter} {more}"
    base, one, two, three = runs["none"]
    names = {
        "BASE": base,
        "OTHER": one,
        "ONE": one,
        "TWO": two,
        "THREE": three,
        "RUN": "last",
        "PROBE": "timer",
        "NAME": "beagleboard",
    }
    arguments = [names.get(word, word) for word in shlex.split(words.partition(">")[0])]
    places = [place for place, word in enumerate(arguments) if re.match(r"20\d{6}T", word)]
    for place, run in zip(places, runs["none"], strict=False):
        arguments[place] = run
    return arguments


def _tried(words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A documented command in such a folder, after what its page has the reader do first."""
    if words in _BEFORE:
        command_line(*_BEFORE[words].split(), cwd=folder)
    return command_line(*written(words, folder), cwd=folder, timeout_s=300)


@pytest.mark.slow
@pytest.mark.parametrize("words", commands(here=True))
def test_a_documented_command_works_as_written(
    words: str, measured: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if _CHANGES_HUGE_PAGES in words:
        request.getfixturevalue("huge_pages")
    tries = (_tried(words, shutil.copytree(measured, tmp_path / str(number))) for number in range(MOST_TRIES))
    done = next((done for done in tries if not _lacked_cpu(done)), None)
    assert done is not None, "its load never had its CPU time"
    assert done.returncode in VERDICTS, done.stderr
    assert "Traceback" not in done.stderr


def test_most_documented_commands_are_run() -> None:
    """And no reason for not running one is left from a command that is gone."""
    listed = commands(here=False)
    assert len(commands(here=True)) > 50
    assert [pattern for pattern, _ in NEEDS if not any(re.search(pattern, words) for words in listed)] == []
