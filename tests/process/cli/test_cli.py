# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line as people use it: in a process of its own, from an empty directory."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from fastenough.cli import SECTIONS, cli
from fastenough.cli.commands import Command
from fastenough.recording import read_recording
from tests.support.json_documents import require_valid
from tests.support.privileges import require_root
from tests.support.processes import eventually, recorded

pytestmark = pytest.mark.untimed

ROOT = Path(__file__).resolve().parents[3]
Fastenough = Callable[..., "subprocess.CompletedProcess[str]"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"}


def argv(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "fastenough", *arguments]


@pytest.fixture
def fastenough(tmp_path: Path) -> Fastenough:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv(*arguments), cwd=tmp_path, env=ENVIRONMENT, text=True, capture_output=True, timeout=120, check=False
        )

    return call


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory, probe_binary: Path) -> Path:
    """A directory with a store of two runs, made by ``fastenough run``."""
    home = tmp_path_factory.mktemp("measured")
    subprocess.run(
        argv("run", "timer", "interval=1ms", "--loads", "none,cpu", "--duration", "2s"),
        cwd=home,
        env=ENVIRONMENT,
        check=True,
        timeout=120,
    )
    return home


def run_ids(home: Path) -> list[str]:
    listed = subprocess.check_output(argv("list", "--json"), cwd=home, env=ENVIRONMENT)
    return [run["id"] for run in json.loads(listed)]


WRONG = [
    ("frobnicate",),
    ("assess", "--limit", "fast"),
    ("assess", "--limit", "0us"),
    ("assess", "--limit", "100"),
    ("assess", "--limit", "100us", "--miss-rate", "200%"),
    ("assess", "--limit", "100us", "--miss-rate", "often"),
    ("assess", "--limit", "100us", "--confidence", "100%"),
    ("assess", "--miss-rate", "5%"),
    ("assess", "--loads", "none,bogus"),
    ("assess", "--loads", ""),
    ("assess", "--loads", "cpu,cpu"),
    ("assess", "--duration", "3s"),
    ("assess", "--priority", "0"),
    ("assess", "--priority", "100"),
    ("assess", "--interval", "0", "--loads", "none", "--duration", "2s"),
    ("assess", "--interval", "5h", "--loads", "none", "--duration", "2s"),
    ("assess", "--board", "mars", "--loads", "none", "--duration", "2s"),
    ("assess", "--store", "/proc/nowhere", "--loads", "none", "--duration", "2s"),
    ("assess", "--out", "/proc/nowhere", "--loads", "none", "--duration", "2s"),
    ("run",),
    ("run", "nosuchprobe", "--duration", "1s"),
    ("run", "timer", "--plan", "plan.toml"),
    ("run", "--plan", "missing.toml"),
    ("run", "timer", "affinity=99", "--duration", "1s"),
    ("run", "timer", "=5", "--duration", "1s"),
    ("list",),
    ("show", "last"),
    ("compare", "a"),
    ("compare", "a", "b"),
    ("report",),
    ("store", "rebuild"),
    ("store", "nonsense"),
]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_usage_is_one_clear_line_and_status_2(
    fastenough: Fastenough,
    tmp_path: Path,
    arguments: tuple[str, ...],
    probe_binary: Path,
) -> None:
    ended = fastenough(*arguments)
    complaint = [line for line in ended.stderr.splitlines() if line.startswith("fastenough: ")]
    assert ended.returncode == 2, ended.stderr
    assert len(complaint) == 1
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "report").exists()


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("campaign",), ("farm",), ("farm", "token"), ("store",), ("gauge",), ("bench",)])
def test_a_group_alone_prints_its_usage_on_lines_of_their_own(fastenough: Fastenough, words: tuple[str, ...]) -> None:
    ended = fastenough(*words)
    assert (ended.returncode, ended.stdout) == (2, "")
    lines = ended.stderr.splitlines()
    assert (
        lines[0].startswith(" ".join(["Usage: fastenough", *words])) and ("Commands:" if words else "Measure:") in lines
    )
    assert len(lines) > 8 and "\\x0a" not in ended.stderr


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".venv").exists(), reason="this checkout is not set up")
@pytest.mark.parametrize(("on_path", "called"), [(False, "checkout/bin/fastenough"), (True, "fastenough")])
def test_the_launcher_of_a_checkout_names_itself_in_hints(tmp_path: Path, on_path: bool, called: str) -> None:
    """From a folder with a module that would come before Python's own."""
    (tmp_path / "checkout").symlink_to(ROOT)
    (tmp_path / "json.py").write_text("raise SystemExit(99)\n")
    path = f"{ROOT / 'bin'}:{os.environ['PATH']}" if on_path else os.environ["PATH"]
    for words, hint in ((("list", "--store", "empty"), "assess"), (("show",), "list")):
        ended = subprocess.run(
            [called, *words], cwd=tmp_path, env={"PATH": path}, text=True, capture_output=True, timeout=60, check=False
        )
        assert ended.returncode in (0, 2)
        assert f"{called} {hint}" in (ended.stdout + ended.stderr).replace("'", "").split("with: ")[-1]


def leaves(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with its path."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(below, f"{path} {name}")


@pytest.mark.parametrize(("path", "command"), list(leaves(cli, "fastenough")))
def test_every_command_has_help_and_json(path: str, command: click.Command) -> None:
    assert command.help, path
    assert any("--json" in parameter.opts for parameter in command.params), path
    first, _, more = command.help.partition("\n\n")
    assert len(" ".join(first.split())) < 60 and first.endswith(".") and more, path


_FILES = ("FARM.toml", "trace.dat", "baseline.jsonl.zst", "limits.toml", "cyclictest.json", "token", "samples.bin")


@pytest.mark.parametrize(("path", "command"), list(leaves(cli, "fastenough")))
def test_every_command_has_an_example_that_parses(
    path: str, command: click.Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in _FILES:
        (tmp_path / name).touch()
    assert isinstance(command, Command) and path in command.example
    words = shlex.split(command.example.replace('eval "$(', "").replace(')"', "").partition(">")[0])
    arguments = words[len(path.split()) :]
    above: click.Context | None = None
    for name in path.split()[:-1]:
        above = click.Context(command if above is None else above.command, info_name=name, parent=above)
    command.make_context(path.rsplit(maxsplit=1)[-1], arguments, parent=above)
    assert command.example in command.get_help(click.Context(command, info_name=path))


FORMER = [
    ("assess", "--load", "--loads", "none", "loads"),
    ("run", "--load", "--loads", "none", "loads"),
    ("audit", "--load", "--loads", "none", "loads"),
    ("farm bisect", "--load", "--loads", "none", "loads"),
    ("assess", "--out-dir", "--out", "there", "out"),
    ("report", "--out-dir", "--out", "there", "out"),
    ("advise", "--out-dir", "--out", "there", "out"),
    ("audit", "--out-dir", "--report", "there", "report_path"),
    ("hunt", "--out-dir", "--report", "there", "report_path"),
    ("bound", "--out-dir", "--report", "there", "report_path"),
    ("web", "--out-dir", "--into", "there", "out_dir"),
    ("gauge run", "--out", "--record", "there", "record"),
]


@pytest.mark.parametrize(("path", "option", "former", "value", "parameter"), FORMER)
def test_former_spellings_are_accepted_and_not_shown(
    path: str, option: str, former: str, value: str, parameter: str
) -> None:
    command = dict(leaves(cli, "fastenough"))[f"fastenough {path}"]
    new, old = (
        command.make_context(path, [name, value], resilient_parsing=True).params[parameter] for name in (option, former)
    )
    assert new == old and new
    shown = command.get_help(click.Context(command, info_name=path))
    assert re.search(rf"^ +{option}\b", shown, re.MULTILINE) and not re.search(rf"^ +{former} ", shown, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "suggested", "help_of"),
    [
        (("asess",), "'assess'", "fastenough --help"),
        (("farm", "statsu"), "'status'", "fastenough farm --help"),
        (("farm", "token", "ad"), "'add'", "fastenough farm token --help"),
        (("gauge", "flsh"), "'flash'", "fastenough gauge --help"),
        (("assess", "--lod", "none"), "'--load'", "fastenough assess --help"),
        (("monitor", "--thresold", "1ms"), "'--threshold'", "fastenough monitor --help"),
    ],
)
def test_unknown_names_get_the_nearest(
    fastenough: Fastenough, arguments: tuple[str, ...], suggested: str, help_of: str
) -> None:
    ended = fastenough(*arguments)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert suggested in ended.stderr and f"(see {help_of})" in ended.stderr and "--loads" not in ended.stderr


def test_commands_are_grouped_as_their_page_says(fastenough: Fastenough) -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    documented = [
        (heading, re.findall(r"^\| `fastenough ([\w-]+)`", text, re.MULTILINE))
        for heading, text in re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", page, re.MULTILINE)
    ]
    assert [(heading, list(names)) for heading, names in SECTIONS.items()] == documented[: len(SECTIONS)]
    shown = fastenough("--help").stdout.splitlines()
    headings = [line.rstrip(":") for line in shown if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options", *SECTIONS, "Example"]


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "widest"), [("60", 60), ("100", 100), ("200", 120), (None, 80)])
def test_help_is_as_wide_as_the_terminal_and_at_most_120(columns: str | None, widest: int, tmp_path: Path) -> None:
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "COLUMNS"}
    shown = subprocess.check_output(
        argv("assess", "--help"),
        cwd=tmp_path,
        env=environment | ({} if columns is None else {"COLUMNS": columns}),
        text=True,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert widest - 12 <= max(map(len, shown.splitlines())) <= widest


def test_json_objects_have_the_version_and_the_keys_of_their_page(fastenough: Fastenough, probe_binary: Path) -> None:
    page = (ROOT / "docs" / "json.md").read_text()
    for path, _ in leaves(cli, ""):
        assert f"`{path.strip()}`" in page, path
    for words in (["list-probes"], ["campaign", "plan", "quick"], ["completion", "bash"], ["farm", "token", "list"]):
        name = " ".join(words[:-1] if words[0] in ("completion",) or words[-1] == "quick" else words)
        document = require_valid(name, fastenough(*words, "--json").stdout)
        row = next(line for line in page.splitlines() if line.startswith(f"| [`{name}`]("))
        assert document["version"] == 2
        assert list(document) == re.findall(r"`(\w+)`", row.split("|")[2])


def test_list_and_show(measured: Path, fastenough: Fastenough) -> None:
    runs = run_ids(measured)
    assert len(runs) == 2
    listed = fastenough("list", "--store", str(measured / "fastenough-data"))
    assert all(run in listed.stdout for run in runs)
    shown = fastenough("show", "last", "--store", str(measured / "fastenough-data"))
    assert "wakeup_corrected" in shown.stdout
    document = require_valid(
        "show", fastenough("show", runs[0], "--json", "--store", str(measured / "fastenough-data")).stdout
    )
    assert document["end"]["outcome"] == "completed"
    assert document["head"]["load"]["name"] == "none"
    corrected = [entry["measures"] for entry in document["measures"] if entry["series"]["name"] == "wakeup_corrected"]
    taken = [entry["measures"] for entry in document["measures"] if entry["series"]["name"] == "wakeup"]
    for act, due in zip(taken, corrected, strict=True):
        assert act["n"] + act["missed"] == due["n"]


@pytest.mark.slow
def test_compare_names_what_differs(measured: Path, fastenough: Fastenough) -> None:
    first, second = run_ids(measured)
    ended = fastenough("compare", first, second, "--limit", "100us", "--store", str(measured / "fastenough-data"))
    assert ended.returncode == 0, ended.stderr
    assert "different load: 'none' against 'cpu'" in ended.stdout


@pytest.mark.slow
def test_store_is_rebuilt_and_verified(measured: Path, fastenough: Fastenough, tmp_path: Path) -> None:
    before = run_ids(measured)
    (measured / "fastenough-data" / "index.sqlite").unlink()
    store = str(measured / "fastenough-data")
    assert fastenough("store", "rebuild", "--store", store).returncode == 0
    assert run_ids(measured) == before
    assert fastenough("store", "verify", "--store", store).returncode == 0


@pytest.mark.slow
def test_report_on_runs_measured_before(measured: Path, fastenough: Fastenough, tmp_path: Path) -> None:
    ended = fastenough("report", "--store", str(measured / "fastenough-data"), "--limit", "1ns", "--json")
    assert ended.returncode == 1, ended.stderr
    assert require_valid("report", ended.stdout)["assessment"]["verdict"] == "FAIL"
    assert (tmp_path / "report" / "index.html").stat().st_size > 10_000


def test_assess_leaves_a_report_and_the_verdicts_status(
    fastenough: Fastenough,
    tmp_path: Path,
    probe_binary: Path,
) -> None:
    require_root("a real-time run")
    ended = fastenough("assess", "--limit", "1h", "--loads", "none,cpu", "--duration", "4s", "--json")
    document = require_valid("assess", ended.stdout)
    assert document["assessment"]["verdict"] == "INCONCLUSIVE"
    assert ended.returncode == 3
    assert (tmp_path / "report" / "index.html").is_file()
    assert document["assessment"]["next_steps"]


@pytest.mark.slow
def test_a_report_is_enough_where_no_verdict_is_asked_for(
    fastenough: Fastenough,
    tmp_path: Path,
    probe_binary: Path,
) -> None:
    require_root("a real-time run")
    words = ("assess", "--any-verdict", "--limit", "1h", "--loads", "none", "--duration", "1s")
    assert fastenough(*words).returncode == 0
    assert (tmp_path / "report" / "index.html").is_file()


@pytest.mark.slow
def test_a_board_that_cannot_be_reached_is_one_error(fastenough: Fastenough, tmp_path: Path) -> None:
    """No run is kept, and the last report stays."""
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "index.html").write_text("last")
    ended = fastenough("assess", "--any-verdict", "--board", "ssh://root@127.0.0.1:9", "--duration", "12s")
    assert ended.returncode == 4
    assert ended.stderr.count("cannot be reached") == ended.stderr.count("\n") == 1
    assert (tmp_path / "report" / "index.html").read_text() == "last"
    assert not list(tmp_path.glob("fastenough-data/runs/*"))


@pytest.mark.slow
def test_interrupted_assessment_keeps_its_data(tmp_path: Path, probe_binary: Path) -> None:
    """The runs are longer than the test may take: it is the first that is interrupted, however slow the machine is."""
    running = subprocess.Popen(
        argv("assess", "--loads", "none,cpu", "--duration", "60m"),
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    recordings = tmp_path / "fastenough-data" / "runs"
    assert eventually(
        lambda: running.poll() is not None or any(map(recorded, recordings.glob("*/recording.jsonl"))), 200
    )
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=80)
    assert "Traceback" not in errors
    sealed = list(recordings.glob("*/recording.jsonl.zst"))
    assert len(sealed) == 1, errors
    assert read_recording(sealed[0]).outcome == "aborted"


@pytest.mark.slow
def test_doctor_says_the_fix(fastenough: Fastenough, probe_binary: Path) -> None:
    findings = json.loads(fastenough("doctor", "--json").stdout)
    assert {"probe", "kernel", "loads"} <= {finding["subject"] for finding in findings}
    assert all(finding["fix"] for finding in findings if finding["state"] != "fine")


@pytest.mark.slow
def test_doctor_without_privilege_misses_real_time(tmp_path: Path, probe_binary: Path) -> None:
    """Without CAP_SYS_NICE nothing can be measured under real-time priority, and doctor says so with the fix."""
    require_root("it gives a capability away")
    ended = subprocess.run(
        ["setpriv", "--inh-caps=-sys_nice", "--bounding-set=-sys_nice", *argv("doctor", "--json")],
        cwd=tmp_path,
        env=ENVIRONMENT,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 5, ended.stderr
    priority = next(f for f in json.loads(ended.stdout) if f["subject"] == "real-time priority")
    assert priority["state"] == "missing"
    assert "rtprio" in priority["fix"]
