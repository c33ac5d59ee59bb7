# SPDX-License-Identifier: GPL-2.0-or-later
"""``show --follow`` looks into a run that somebody else records, whatever becomes of that run meanwhile."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fastenough.store import RunWriter, Store
from tests.support.cli_calls import environment, fastenough
from tests.support.ordinary_user import ordinary_user
from tests.support.privileges import needs_root
from tests.support.processes import eventually
from tests.support.recordings import Plan, latencies, write
from tests.support.terminal import Terminal, screen

pytestmark = pytest.mark.untimed


@dataclass
class Recorded:
    """A run in a store that is recorded line by line, as fast as the test wants."""

    home: Path
    lines: list[bytes] = field(default_factory=list)
    writer: RunWriter | None = None

    def begin(self, *, intervals: int = 8, cpus: int = 2, **more: object) -> RunWriter:
        self.writer = Store(self.home / "fastenough-data").begin({})
        head = {"parameters": {"interval_ns": 1_000_000, "duration_ns": intervals * 2_000_000_000}}
        plan = Plan(
            latencies(1, intervals=intervals, cpus=cpus), run_id=self.writer.id, load="cpu", head=head | dict(more)
        )
        self.lines = write(self.home / "scratch", plan).read_bytes().splitlines(keepends=True)
        return self.writer

    def add(self, lines: int) -> None:
        assert self.writer is not None
        for line in self.lines[:lines]:
            self.writer.line(line)
        del self.lines[:lines]

    @property
    def live(self) -> Path:
        assert self.writer is not None
        return self.writer.path / "recording.jsonl"


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    Store(tmp_path / "fastenough-data")
    return Recorded(tmp_path)


class Follower:
    """``show --follow`` with pipes for its streams."""

    def __init__(self, cwd: Path, *arguments: str, before: tuple[str, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [*before, sys.executable, "-u", "-m", "fastenough", "show", "--follow", *arguments],
            cwd=cwd,
            env=environment(),
            stdout=(cwd / "said").open("wb"),
            stderr=(cwd / "complaints").open("wb"),
        )
        self._cwd = cwd

    @property
    def said(self) -> str:
        return (self._cwd / "said").read_text()

    @property
    def complaints(self) -> str:
        return (self._cwd / "complaints").read_text()

    def until(self, words: str, times: int = 1) -> None:
        assert eventually(lambda: (self.said + self.complaints).count(words) >= times, 60), self.said + self.complaints

    def end(self) -> int:
        return self.process.wait(60)


@pytest.fixture
def followers() -> Iterator[list[Follower]]:
    """Those that a failed test has left running are ended."""
    started: list[Follower] = []
    yield started
    for follower in started:
        if follower.process.poll() is None:
            follower.process.kill()
            follower.process.wait()


def test_a_run_is_followed_to_its_end(recorded: Recorded, followers: list[Follower]) -> None:
    """Each interval is told as it comes; the last words are those of the run, and the status is 0."""
    writer = recorded.begin()
    recorded.add(2)
    followers.append(Follower(recorded.home))
    follower = followers[0]
    follower.until("2 s of 16 s, 14 s left")
    recorded.add(1)
    follower.until("4 s of 16 s, 12 s left")
    assert follower.process.poll() is None
    recorded.add(len(recorded.lines))
    assert follower.end() == 0, follower.complaints
    writer.end()
    first, *_, last, see = follower.said.splitlines()
    assert "load cpu" in first and "kernel 6.1.0-30-rt-amd64 (preempt-rt)" in first
    assert last.startswith("completed after 16 s: 32,000 samples, maximum ")
    assert see == f"see: fastenough show {writer.id}"
    assert follower.complaints == ""


@pytest.mark.slow
def test_a_run_that_has_ended_is_told_at_once(recorded: Recorded) -> None:
    writer = recorded.begin()
    recorded.add(len(recorded.lines))
    writer.end()
    for named in ("last", writer.id, f"fastenough-data/runs/{writer.id}"):
        ended = fastenough("show", "--follow", named, cwd=recorded.home)
        assert ended.returncode == 0, ended.stderr
        assert b"completed after 16 s: 32,000 samples" in ended.stdout


def test_a_run_that_begins_later_is_waited_for(recorded: Recorded, followers: list[Follower]) -> None:
    followers.append(Follower(recorded.home))
    followers[0].until("no run in progress")
    recorded.begin()
    recorded.add(len(recorded.lines))
    assert followers[0].end() == 0
    assert "completed after 16 s" in followers[0].said


@pytest.mark.slow
def test_a_run_that_was_killed_is_unfinished(recorded: Recorded, followers: list[Follower]) -> None:
    """The kernel gives up the dead writer's lock: nobody will add anything."""
    writer = recorded.begin()
    recorded.add(4)
    followers.append(Follower(recorded.home))
    followers[0].until("6 s of 16 s")
    writer.close()
    assert followers[0].end() == 4
    assert "unfinished: the recording process has ended; no new data since 20" in followers[0].said


@pytest.mark.slow
def test_a_run_that_hangs_is_said_to_and_ctrl_c_ends_the_wait(recorded: Recorded, followers: list[Follower]) -> None:
    recorded.begin()
    recorded.add(4)
    followers.append(Follower(recorded.home))
    followers[0].until("no new data since 20")
    assert "; stopping in 2" in followers[0].said
    followers[0].process.send_signal(signal.SIGINT)
    assert followers[0].end() == 128 + signal.SIGINT
    assert followers[0].complaints.strip() == ""


@pytest.mark.slow
def test_a_torn_line_is_no_line_until_it_is_whole(recorded: Recorded, followers: list[Follower]) -> None:
    recorded.begin()
    recorded.add(2)
    followers.append(Follower(recorded.home))
    followers[0].until("2 s of 16 s")
    size, torn = recorded.live.stat().st_size, recorded.lines[0]
    with recorded.live.open("ab") as stream:
        stream.write(torn[:-20])
    time.sleep(0.6)
    os.truncate(recorded.live, size)
    time.sleep(0.6)
    with recorded.live.open("ab") as stream:
        stream.write(torn[:20])
        stream.flush()
        time.sleep(0.6)
        stream.write(torn[20:])
    del recorded.lines[0]
    recorded.add(len(recorded.lines))
    assert followers[0].end() == 0, followers[0].complaints
    assert "completed after 16 s" in followers[0].said
    assert "another file" not in followers[0].said


def _follow_own_file(recorded: Recorded, followers: list[Follower]) -> Path:
    """A file that no store keeps, followed up to its second interval."""
    file = recorded.home / "own.jsonl"
    recorded.begin()
    file.write_bytes(b"".join(recorded.lines[:3]))
    followers.append(Follower(recorded.home, str(file)))
    followers[0].until("4 s of 16 s")
    return file


def test_a_file_that_is_replaced_is_read_from_its_beginning(recorded: Recorded, followers: list[Follower]) -> None:
    file = _follow_own_file(recorded, followers)
    other = recorded.home / "other.jsonl"
    other.write_bytes(b"".join(recorded.lines[:2]))
    other.replace(file)
    followers[0].until("the file was replaced")
    followers[0].until(" 2 s of 16 s")
    with file.open("ab") as stream:
        stream.write(b"".join(recorded.lines[2:]))
    assert followers[0].end() == 0


def test_a_file_that_is_shortened_is_read_from_its_beginning(recorded: Recorded, followers: list[Follower]) -> None:
    file = _follow_own_file(recorded, followers)
    os.truncate(file, len(recorded.lines[0]))
    followers[0].until("the file was replaced")
    followers[0].process.send_signal(signal.SIGTERM)
    assert followers[0].end() == 143


@pytest.mark.parametrize("whole", [True, False])
def test_a_run_that_is_sealed_meanwhile(recorded: Recorded, followers: list[Follower], whole: bool) -> None:
    """With its end, that is told; sealed by somebody else after its writer's death, it is unfinished."""
    writer = recorded.begin()
    recorded.add(2)
    followers.append(Follower(recorded.home))
    followers[0].until("2 s of 16 s")
    followers[0].process.send_signal(signal.SIGSTOP)
    if whole:
        recorded.add(len(recorded.lines))
        writer.end()
    else:
        writer.close()
        Store(recorded.home / "fastenough-data").settle()
    assert not recorded.live.exists()
    followers[0].process.send_signal(signal.SIGCONT)
    assert followers[0].end() == (0 if whole else 4)
    assert ("completed after 16 s" if whole else "its data were sealed") in followers[0].said


def test_a_run_that_is_discarded_is_gone(recorded: Recorded, followers: list[Follower]) -> None:
    writer = recorded.begin()
    recorded.add(1)
    followers.append(Follower(recorded.home, writer.id))
    followers[0].until("timer every 1 ms")
    writer.discard()
    assert followers[0].end() == 4
    assert "the file was removed" in followers[0].said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nosuchrun",), "no run in "),
        (("./nosuchfile",), "no such file"),
        (("./garbage",), "not a line of a recording"),
        (("last", "--store", "nowhere"), "no store"),
        (("last", "--json"), "cannot be used with --json"),
        (("./broken",), "series 7"),
    ],
)
def test_what_cannot_be_followed_is_one_clear_line(recorded: Recorded, arguments: tuple[str, ...], said: str) -> None:
    recorded.begin()
    (recorded.home / "garbage").write_text("{}\n")
    interval = recorded.lines[1].replace(b'"id":1,', b'"id":7,').replace(b'"id": 1,', b'"id": 7,')
    (recorded.home / "broken").write_bytes(recorded.lines[0] + interval)
    ended = fastenough("show", "--follow", *arguments, cwd=recorded.home)
    assert ended.returncode == 2, ended.stdout
    assert said in ended.stderr.decode() and ended.stderr.count(b"\n") == 1


@pytest.mark.slow
@needs_root("a run that another user may not read")
@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_an_ordinary_user_looks_at_a_run_of_root(recorded: Recorded, mode: int) -> None:
    writer = recorded.begin()
    recorded.add(len(recorded.lines))
    for place in (recorded.home, *recorded.home.parents[:3]):
        place.chmod(place.stat().st_mode | 0o755)
    recorded.live.parent.chmod(mode)
    store = str(recorded.home / "fastenough-data")
    with ordinary_user(sudo=False) as user:
        for named in ((), (writer.id,)):
            ended = user.call("show", "--follow", *named, "--store", store)
            if mode == 0o755:
                assert ended.returncode == 0, ended.stderr
                assert "completed after 16 s" in ended.stdout
            else:
                assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
                assert "permission denied; run as root" in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "more"),
    [
        (80, {}),
        (200, {}),
        (40, {}),
        (80, {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}),
        (80, {"PYTHONIOENCODING": "latin-1"}),
        (80, {"NO_COLOR": "1"}),
    ],
    ids=str,
)
def test_the_picture_fits_the_terminal(recorded: Recorded, columns: int, more: dict[str, str]) -> None:
    """No line is cut or folded into figures, whatever the terminal can show."""
    recorded.begin(cpus=3)
    recorded.add(3)
    with Terminal("show", "--follow", cwd=recorded.home, columns=columns, variables=more) as terminal:
        said = terminal.picture("12 s left")
        shown = screen(said)
        assert max(map(len, shown)) <= columns
        assert "kernel 6.1.0-30-rt-amd64 (preempt-rt)" in " ".join(" ".join(shown).split())
        assert "load cpu" in " ".join(shown)
        rows = [line for line in shown if line.startswith("CPU ")]
        assert len({line.split()[1] for line in rows}) == 3
        unit = "us" if more.get("PYTHONIOENCODING") == "ascii" else "µs"
        assert all(f" {unit} " in line and ("just now" in line or " s ago" in line) for line in rows)
        assert "…" not in said and "?" not in "".join(shown)
        recorded.add(len(recorded.lines))
        status, said = terminal.end()
        assert status == 0
        assert "completed after 16 s" in " ".join(screen(said))


def test_more_cpus_than_lines_show_the_worst(recorded: Recorded) -> None:
    recorded.begin(cpus=40, intervals=3)
    recorded.add(3)
    with Terminal("show", "--follow", cwd=recorded.home, lines=16) as terminal:
        said = terminal.until(lambda said: "more with lower maxima" in said)
        assert "and 31 more" in said


def test_a_dumb_terminal_gets_lines(recorded: Recorded) -> None:
    recorded.begin()
    recorded.add(2)
    with Terminal("show", "--follow", cwd=recorded.home, variables={"TERM": "dumb"}) as terminal:
        terminal.until(lambda said: "2 s of 16 s" in said)
        recorded.add(len(recorded.lines))
        status, said = terminal.end()
    assert status == 0
    assert "\x1b" not in said


def _read_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/io").read_text().split()[1])


def test_only_what_was_added_is_read(recorded: Recorded, followers: list[Follower]) -> None:
    """Its cost is that of the lines that come, however long the recording is."""
    recorded.begin(intervals=200)
    recorded.add(150)
    followers.append(Follower(recorded.home))
    followers[0].until("4 min 58 s of ")
    before, size = _read_bytes(followers[0].process.pid), recorded.live.stat().st_size
    recorded.add(20)
    followers[0].until("5 min 38 s of ")
    added = recorded.live.stat().st_size - size
    assert added <= _read_bytes(followers[0].process.pid) - before < 3 * added < size


@pytest.mark.slow
def test_another_process_measures(tmp_path: Path, probe_binary: str, followers: list[Follower]) -> None:
    """The follower waits for a real run, and what it says last is what the run's recording says."""
    Store(tmp_path / "fastenough-data")
    followers.append(Follower(tmp_path))
    followers[0].until("no run in progress")
    ran = fastenough("run", "timer", "--duration", "4s", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert followers[0].end() == 0
    said = followers[0].said
    assert said.count("measured ") >= 2
    assert " s of 4 s, " in said
    assert re.search(r"completed after 4(\.\d+)? s: ", said)
    assert f"see: fastenough show {ran.stdout.decode().split()[0]}" in said
