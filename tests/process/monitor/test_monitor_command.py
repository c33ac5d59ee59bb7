# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough monitor`` and the monitor beside a run: what the bench does with what a monitor records."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fastenough.campaign import monitoring
from fastenough.cli import monitor, output
from fastenough.cli.monitor import missing
from fastenough.cli.progress_wording import heading
from fastenough.implementations import Act
from fastenough.implementations.task import Refused
from fastenough.link import Completed, LocalLink
from fastenough.model import BadInput, ExitStatus, NotApplicable, Outcome
from fastenough.recording import read_recording
from fastenough.recording.building import line_bytes
from fastenough.recording.culprits import NAMED_KEYS
from fastenough.recording.wakeups import NOISE, STATIONS, SUMS
from fastenough.store import Store
from fastenough.store.directory import SEALED_FILE
from tests.support.cli_calls import ROOT
from tests.support.json_documents import require_valid
from tests.support.monitor_recordings import Watched, lines
from tests.support.paper_monitor import install
from tests.support.privileges import require_root


def test_the_options_are_told() -> None:
    page = (ROOT / "docs" / "monitor.md").read_text()
    assert [
        option
        for one in monitor.command.params
        for option in one.opts
        if option != "--store" and f"`{option}`" not in page
    ] == []
    assert [name for name in (*STATIONS, *SUMS, *NOISE) if f"`{name}`" not in page] == []
    assert [key for key in NAMED_KEYS if f"`{key}`" not in page] == []


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _with(monkeypatch: pytest.MonkeyPatch, program: Path) -> None:
    monkeypatch.setattr(monitoring, "find_monitor", lambda link: str(program))


def _monitor(*words: str) -> int:
    return int(monitor.command.main(args=["--store", "store", *words], standalone_mode=False))


def _runs(home: Path) -> list[str]:
    return [run.id for run in Store(home / "store").runs()]


def test_what_is_watched_is_an_ordinary_run(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _with(monkeypatch, install(home))
    assert _monitor("--comm", "robot", "--threshold", "50us", "--duration", "1s") == ExitStatus.DONE
    (run,) = _runs(home)
    kept = Store(home / "store").load(run)
    assert kept.outcome is Outcome.COMPLETED and kept.head.probe == "monitor" and kept.head.run_id == run
    assert kept.head.load is not None and kept.head.load.name == "as found"
    assert kept.head.profile is not None and kept.head.profile["kernel"]["release"] == os.uname().release
    said = kept.head.parameters["said"]
    assert said == "--comm=robot --threshold=50us --report=1s --duration=1000ms --record=-"
    shown = capsys.readouterr().out
    assert "robot (pid 4711, fifo 80) waited for kworker/0:1" in shown, shown
    assert "most of it runnable-to-running" in shown
    assert f"see: fastenough show {run}" in shown


def test_an_ordinary_process_is_watched_and_said_to_be_one(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _with(monkeypatch, install(home))
    assert _monitor("--pid", str(os.getpid()), "--duration", "200ms") == ExitStatus.DONE
    kept = Store(home / "store").load("last")
    assert {f"--pid={os.getpid()}", "--policy=any"} <= set(kept.head.parameters["said"].split())
    assert "SCHED_OTHER" in capsys.readouterr().err
    assert _monitor("--pid", str(os.getpid()), "--policy", "rr", "--duration", "200ms") == ExitStatus.DONE
    assert "--policy=rr" in Store(home / "store").load("last").head.parameters["said"].split()


@pytest.mark.parametrize(("policy", "parts"), [("any", ["pid 4711", "SCHED_OTHER"]), ("real-time", ["pid 4711"])])
def test_the_headline_names_what_is_watched(tmp_path: Path, policy: str, parts: list[str]) -> None:
    head = next(lines(Watched(intervals=1, head={"parameters": {"pid": 4711, "policy": policy}})))
    (tmp_path / "head.jsonl").write_bytes(line_bytes(head))
    said = heading(read_recording(tmp_path / "head.jsonl").head)
    assert [part for part in ("pid 4711", "SCHED_OTHER") if part in said] == parts


@pytest.mark.parametrize(
    ("words", "said"), [((), "--duration 1s"), (("--duration", "1s", "--pid", "1"), "--pid is not supported: .*--comm")]
)
def test_a_deterministic_board_watches_for_a_time_and_no_process(home: Path, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        _monitor("--board", "deterministic", *words)
    assert _runs(home) == []


def test_a_process_that_is_not_there_is_bad_input(home: Path) -> None:
    with pytest.raises(BadInput, match="no such process"):
        _monitor("--pid", "4194304", "--duration", "1s")
    assert _runs(home) == []


def test_until_ctrl_c_is_a_whole_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with(monkeypatch, install(home))
    threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    assert _monitor() == ExitStatus.DONE
    kept = Store(home / "store").load("last")
    assert kept.outcome is Outcome.COMPLETED and kept.reasons == ()
    assert kept.aggregate.intervals > 0


def test_the_stream_is_one_object_a_line(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _with(monkeypatch, install(home))
    assert _monitor("--duration", "1s", "--json") == ExitStatus.DONE
    told = require_valid("monitor", capsys.readouterr().out)
    kept = Store(home / "store").load("last")
    assert [told[0]["type"], told[-1]["type"]] == ["begin", "end"] and told[0]["run"] == kept.run_id
    assert told[-1]["outcome"] == "completed" and told[-1]["counters"]["monitor_dropped"] == 0
    wakeups = [one for one in told if one["type"] == "wake-up"]
    assert len(wakeups) == kept.aggregate.intervals, "two series tell of each, and it is one wake-up"
    assert {one["longest"] for one in wakeups} == {"runnable-to-running"}
    assert {one["blamed"] for one in wakeups} == {"task kworker/0:1"}
    assert all(sum(one["stations"].values()) == one["delay_ns"] for one in wakeups)
    last = [one for one in told if one["type"] == "interval"][-1]
    seen = {(one["station"], one["cpu"]): one for one in last["stations"]}
    for series in kept.series:
        assert seen[series.name, series.cpu]["worst_ns"] == kept.totals[series.id].maximum


@contextlib.contextmanager
def _narrow_pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Standard output is a pipe that takes one page until somebody reads it; the end to read from."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    with os.fdopen(reading, "rb"), os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        yield reading


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--json",), ()])
def test_a_reader_that_stands_still_holds_up_no_recording(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    _with(monkeypatch, install(home))
    monkeypatch.setattr(output, "_PATIENCE_S", 0.5)
    with _narrow_pipe(monkeypatch):
        assert _monitor("--duration", "2s", *words) == ExitStatus.DONE
    (run,) = _runs(home)
    assert Store(home / "store").load(run).outcome is Outcome.COMPLETED
    assert (home / "store" / "runs" / run / SEALED_FILE).is_file()
    assert re.search(r"(?m)^fastenough: [1-9]\d* lines dropped: ", capsys.readouterr().err)


def test_what_a_reader_missed_is_told_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_MOST_WAITING", 20_000)
    with _narrow_pipe(monkeypatch) as reading, output.never_waiting(sys.stdout, missing) as stream:
        for number in range(1000):
            stream.write(f"{number:099}\n")
        told = os.read(reading, 100)
        while len(told) < 10_000:
            told += os.read(reading, 100)
        stream.write("1000\n")
        threading.Thread(target=lambda: stream.write("1001\n")).start()
        while b"1001" not in told:
            told += os.read(reading, 4096)
    *numbers, gap, last, newest = told.splitlines()
    assert list(map(int, numbers)) == list(range(len(numbers))), "in order, and nothing between them is missing"
    assert json.loads(gap) == {"type": "missing", "lines": 1000 - len(numbers)}
    assert (last, newest) == (b"1000", b"1001")


@pytest.mark.parametrize(
    ("refusing", "said"),
    [
        ((5, "need root, or CAP_BPF and CAP_PERFMON"), "need root, or CAP_BPF and CAP_PERFMON"),
    ],
)
def test_what_the_monitor_refuses_is_not_applicable(
    home: Path, monkeypatch: pytest.MonkeyPatch, refusing: tuple[int, str], said: str
) -> None:
    _with(monkeypatch, install(home, refusing=refusing))
    with pytest.raises(NotApplicable, match=said):
        _monitor("--duration", "1s")
    assert _runs(home) == []


class _Ordinary(LocalLink):
    """The machine for a user who has no capabilities."""

    def run(self, argv: Sequence[str], timeout_s: float = 10.0, input: bytes = b"") -> Completed:
        return super().run(["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", *argv], timeout_s, input)


@pytest.mark.parametrize(("link", "error"), [(_Ordinary(), NotApplicable), (LocalLink(), Refused)])
def test_rights_that_are_lacking_are_no_bad_input(tmp_path: Path, link: LocalLink, error: type[Exception]) -> None:
    require_root("the difference to root")
    program = install(tmp_path, refusing=(2, "the monitor needs root"))
    with pytest.raises(error, match=r"^the monitor needs root$"):
        monitoring._start(link, str(program), Act("monitor"))


class _Without(LocalLink):
    """The machine, without one of its files or programs."""

    def __init__(self, absent: str) -> None:
        super().__init__()
        self._absent = absent
        self.name = "elsewhere"

    def exists(self, path: str) -> bool:
        return path != self._absent and super().exists(path)

    def which(self, tool: str) -> str | None:
        return None if tool == self._absent else super().which(tool)


@pytest.mark.parametrize(
    ("absent", "said"), [("/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF=y"), ("fastenough-monitor", "make monitor")]
)
def test_what_is_lacking_is_said_with_the_fix(absent: str, said: str) -> None:
    with pytest.raises(NotApplicable, match=said):
        monitoring.find_monitor(_Without(absent))


def test_a_monitor_that_dies_leaves_a_failed_run_with_its_reason(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with(monkeypatch, install(home, dying=True))
    assert _monitor("--duration", "1s") == ExitStatus.BROKEN
    kept = Store(home / "store").load("last")
    assert kept.outcome is Outcome.FAILED and "status 3" in kept.reasons[0]
    assert kept.aggregate.intervals == 10, "what it had recorded is kept"
