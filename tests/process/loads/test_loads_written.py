# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads that a person writes: a file, its own proof, and what is said of what cannot be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fastenough.campaign import read_plan
from fastenough.campaign.load_file import named_loads, read_load
from fastenough.link import LocalLink
from fastenough.loads import LOADS, Load, RunningLoad
from fastenough.model import BadInput, Outcome
from fastenough.store import Store
from tests.support.cli_calls import command_line
from tests.support.processes import eventually

ROOT = Path(__file__).resolve().parents[3]
WORKS = '''
name = "copies"
source = "this test"
commands = [["sh", "-c", """while dd if=/dev/zero of={scratch}/file bs=64k count=16 status=none
do echo >>{scratch}/done; done"""]]
tools = ["dd"]
cpu-share = 0.01
bytes-written-per-s = 1000
processes = 1
counter = ["sh", "-c", "cat {scratch}/done | wc -l"]
counter-per-s = 0.5
disk-mb = 1
'''


def _file(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_load_in_a_file_runs_and_its_own_counter_proves_it(tmp_path: Path) -> None:
    load = read_load(_file(tmp_path, WORKS))
    assert (load.name, load.source, load.tools, load.disk_bytes) == ("copies", "this test", ("dd",), 1 << 20)
    with RunningLoad(LocalLink(), load, 1, 10) as running:
        running.begin()
        assert eventually(lambda: (running.proof().counted or 0) > 3 and running.proof().ran), running.proof()


@pytest.mark.slow
@pytest.mark.parametrize("counter", ["echo 5", "echo done", "exit 3", "echo 9 >&2", "sleep 60"])
def test_a_counter_that_stands_or_says_no_number_is_no_proof(counter: str, tmp_path: Path) -> None:
    text = WORKS.replace("cat {scratch}/done | wc -l", counter)
    with RunningLoad(LocalLink(), read_load(_file(tmp_path, text)), 1, 10) as running:
        running.begin()
        assert eventually(lambda: (running.proof().bytes_written or 0) > 100_000)
        proof = running.proof()
    assert not proof.ran
    assert any(
        reason.startswith("load copies too weak: 0 counts of its own counter, expected") for reason in proof.reasons
    )


@pytest.mark.slow
def test_the_command_line_takes_files_beside_names(tmp_path: Path) -> None:
    assert list(named_loads(["none", str(_file(tmp_path, WORKS)), "cpu"])) == ["none", "copies", "cpu"]
    other = _file(tmp_path, WORKS, "other.toml")
    done = command_line(
        "run",
        "timer",
        "policy=other",
        "interval=10ms",
        "--duration",
        "2s",
        "--loads",
        f"none,{other}",
        "--store",
        str(tmp_path / "store"),
    )
    assert done.returncode == 0, done.stderr
    idle, loaded = (Store(tmp_path / "store").load(run) for run in done.stdout.split()[:2])
    assert (idle.outcome, loaded.outcome) == (Outcome.COMPLETED, Outcome.COMPLETED)
    assert loaded.head.load is not None and loaded.head.load.name == "copies"
    assert loaded.end is not None and loaded.end.load is not None
    assert loaded.end.load.ran and (loaded.end.load.counted or 0) > 0
    assert loaded.aggregate.load.ran and not loaded.aggregate.load.gone


def test_a_plan_names_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "loads").mkdir()
    _file(tmp_path / "loads", WORKS)
    plan = read_plan(
        _file(
            tmp_path,
            'name = "p"\nloads = ["copies"]\n[[load]]\nfile = "loads/mine.toml"\n[[run]]\nprobe = "timer"\n',
            "plan.toml",
        )
    )
    assert plan.load("copies") == read_load(tmp_path / "loads" / "mine.toml")
    assert [entry.loads for entry in plan.entries] == [("copies",)]


def test_the_load_shown_is_a_load(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "loads.md").read_text(), re.DOTALL)
    load = read_load(_file(tmp_path, shown))
    assert isinstance(load, Load) and load.name not in LOADS and load.expects.counted_per_s > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "mine.toml: name is missing"),
        ('name = "x"', "mine.toml: commands is missing"),
        ('name = "cpu"\ncommands = [["true"]]', "mine.toml:1: name 'cpu' is invalid"),
        ('name = "../x"\ncommands = [["true"]]', "mine.toml:1: name '../x' is invalid"),
        ('name = "x"\ncommands = ["true"]', "mine.toml:2: commands must be a list of lists"),
        ('name = "x"\ncommands = [["a\\u0000b"]]', "mine.toml:2: commands must be a list of lists"),
        (
            'name = "x"\ncommands = [["true"]]\ncounter = ["x"]',
            "mine.toml:3: counter and counter-per-s require each other",
        ),
        (
            'name = "x"\ncommands = [["true"]]\ncounter-per-s = 1',
            "mine.toml:3: counter and counter-per-s require each other",
        ),
        (
            'name = "x"\ncommands = [["true"]]\ncounter = [1]\ncounter-per-s = 1',
            "mine.toml:3: counter must be a command",
        ),
        ('name = "x"\ncommands = [["true"]]\nswitches-per-s = nan', "mine.toml:3: switches-per-s = nan is out of"),
        ('name = "x"\ncommands = [["true"]]\nbytes-read-per-s = 1' + "0" * 400, "mine.toml:3: 1000"),
        ('name = "x"\ncommands = [["true"]]\nbytes-read-per-s = 1e300', "mine.toml:3: bytes-read-per-s = 1"),
        ('name = "x"\ncommands = [["true"]]\ndisk-mb = 9999999999', "mine.toml:3: disk-mb = 9999999999 is too large"),
        ('name = "x"\ncommands = [["true"]]\nprocesses = -1', "mine.toml:3: processes must be at least 0"),
        ('name = "x"\ncommands = [["true"]]\nfile = "y.toml"', "mine.toml:3: unknown key 'file'"),
        ('name = "x"\ncommands = [["true"]]\nspeed = 1', "mine.toml:3: unknown key 'speed'"),
        ("name = ", "mine.toml: invalid TOML"),
    ],
)
def test_what_cannot_be_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_load(_file(tmp_path, text))
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.untimed
@pytest.mark.slow
def test_files_that_are_none_and_hostile_names_are_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "x.toml"
    folder.mkdir()
    hostile = f"{tmp_path}/\x1b[31m\nred.toml"
    for word in ("no-such.toml", str(folder), "/dev/zero/x.toml", hostile):
        done = command_line("run", "timer", "--loads", word, "--store", str(tmp_path / "store"))
        assert done.returncode == 2, done
        assert len(done.stderr.splitlines()) == 1 and "\x1b" not in done.stderr and "Traceback" not in done.stderr
    _file(tmp_path, WORKS, "a.toml"), _file(tmp_path, WORKS, "b.toml")
    with pytest.raises(BadInput, match=r"b\.toml: load copies is defined twice"):
        named_loads([str(tmp_path / "a.toml"), str(tmp_path / "b.toml")])
    with pytest.raises(BadInput, match=r"plan\.toml:3: load 1: unknown key 'name'"):
        read_plan(
            _file(
                tmp_path, 'name = "p"\n[[load]]\nname = "y"\nfile = "a.toml"\n[[run]]\nprobe = "timer"\n', "plan.toml"
            )
        )
