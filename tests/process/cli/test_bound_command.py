# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough bound``: the bound beside what was seen in the same trace, and one line where none can be had."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fastenough.jobs import bound
from fastenough.jobs.bound import EVENTS, TRACEFS, bounds_of, require_events, trace_cmd_lines
from fastenough.link import LocalLink
from fastenough.model import BadInput, FastenoughError, NotApplicable
from tests.support.cli_calls import command_line
from tests.unit.analysis.test_bound_composed import Kernel

pytestmark = pytest.mark.untimed


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Of one CPU: 4 µs off, 1 asked, 2 and 2 to schedule, and an interrupt of 3 µs while a task was woken."""
    path = tmp_path / "trace.txt"
    path.write_text("# tracer: nop\n" + "\n".join(Kernel(4, 1, 2, 2, False, 5, [(6, 3)]).run().lines) + "\n")
    return path


def test_the_bound_stands_beside_what_was_seen(trace: Path) -> None:
    done = command_line("bound", str(trace), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (cpu,) = json.loads(done.stdout)
    terms = cpu["traced"]["blocking"]
    assert terms == {"poid_ns": 4000, "paie_ns": 1000, "psd_ns": 4000, "dst_ns": 2000}
    bounds = {one["interrupts"]: one["latency_ns"] for one in cpu["bounds"]}
    assert bounds["none"] == 9000
    assert 0 < cpu["traced"]["observed_ns"] <= bounds["the longest, once"] == 12_000
    shown = command_line("bound", str(trace)).stdout
    assert "12.0" in shown and "longest observed" in shown and "never gives a PASS" in shown


def test_the_report_has_the_same_numbers(trace: Path, tmp_path: Path) -> None:
    done = command_line("bound", str(trace), "--report", str(tmp_path / "told"))
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads((tmp_path / "told" / "report.json").read_text())
    (terms,), (bounds,) = (told["tables"][name]["rows"][1:] for name in ("bound-terms", "bound"))
    assert terms[1:5] == [4000, 1000, 4000, 2000] and bounds[1:3] == [9000, 12_000]
    assert told["assessment"]["verdict"] == "INCONCLUSIVE"
    assert "12.0" in (tmp_path / "told" / "index.html").read_text()


def test_standard_input_is_a_trace_too(trace: Path) -> None:
    done = command_line("bound", "-", before=["sh", "-c", f'exec "$@" <{trace}', "sh"])
    assert done.returncode == 0 and "CPU 0" in done.stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no event preempt_disable"),
        (b"\0\xff" * 200_000, "no event preempt_disable"),
        (b"CPU:1 [LOST 5 EVENTS]\n", "has lost events"),
    ],
)
def test_what_is_no_trace_is_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "other").write_bytes(content)
    done = command_line("bound", str(tmp_path / "other"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr and "other: " in done.stderr


@pytest.fixture
def trace_dat(tmp_path: Path) -> Iterator[Callable[[bool], Path]]:
    """Records a trace.dat of this kernel's sched_switch, where asked for with a buffer that overflows."""
    name = f"fastenough-test-{os.getpid()}"
    instance = Path(TRACEFS, "instances", name)
    if shutil.which("trace-cmd") is None or not os.access(instance.parent, os.W_OK):
        pytest.skip("needs trace-cmd, and the right to record in tracefs")

    def record(loses: bool) -> Path:
        instance.mkdir()
        (instance / "buffer_size_kb").write_text("4" if loses else "1024")
        (instance / "events/sched/sched_switch/enable").write_text("1")
        _switch_tasks(50)
        if loses:
            with (instance / "trace_pipe").open("rb", buffering=0) as pipe:
                pipe.read(64)
            _switch_tasks(2000)
        (instance / "tracing_on").write_text("0")
        path = tmp_path / "trace.dat"
        subprocess.run(
            ["trace-cmd", "extract", "-B", name, "-o", str(path)], cwd=tmp_path, check=True, capture_output=True
        )
        return path

    yield record
    if instance.exists():
        instance.rmdir()


def _switch_tasks(times: int) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as echo:
        assert echo.stdin is not None and echo.stdout is not None
        for _ in range(times):
            echo.stdin.write(b"x")
            echo.stdin.flush()
            echo.stdout.read(1)


def test_a_trace_dat_is_read_by_trace_cmd(trace_dat: Callable[[bool], Path]) -> None:
    lines = list(trace_cmd_lines(trace_dat(False)))
    assert sum("sched_switch:" in line for line in lines) >= 50
    with pytest.raises(BadInput, match="no event preempt_disable"):
        bounds_of(lines)


def test_a_trace_dat_that_lost_events_is_refused(trace_dat: Callable[[bool], Path]) -> None:
    done = command_line("bound", str(trace_dat(True)))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "has lost events" in done.stderr


@pytest.mark.parametrize(("more", "status"), [("", 0), ("CPU:7 [204600 EVENTS DROPPED]", 2)])
def test_what_trace_cmd_reports_of_a_trace_dat_is_read(trace: Path, tmp_path: Path, more: str, status: int) -> None:
    """A stand-in for trace-cmd that answers its report alone."""
    (tmp_path / "trace.dat").write_bytes(b"\x17\x08\x44tracing7\0")
    (tmp_path / "trace-cmd").write_text(f"""#!/bin/sh
[ "$*" = "report -N -t -l -i {tmp_path}/trace.dat" ] || exit 1
/bin/cat {trace}; echo '{more}'
""")
    (tmp_path / "trace-cmd").chmod(0o755)
    before = ["env", f"PATH={tmp_path}:{os.environ['PATH']}"]
    done = command_line("bound", "--json", str(tmp_path / "trace.dat"), before=before)
    assert done.returncode == status, done.stderr
    if status:
        assert "has lost events" in done.stderr and done.stderr.count("\n") == 1
    else:
        assert json.loads(done.stdout) == json.loads(command_line("bound", "--json", str(trace)).stdout)


def test_a_damaged_trace_dat_is_one_line(tmp_path: Path) -> None:
    damaged = tmp_path / "trace.dat"
    damaged.write_bytes(b"\x17\x08\x44tracing7\0" + bytes(100))
    for before in ([], ["env", f"PATH={tmp_path}"]):
        done = command_line("bound", str(damaged), before=before)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "trace-cmd" in done.stderr


def test_a_kernel_without_the_events_is_not_applicable(tmp_path: Path) -> None:
    if all(Path(f"{TRACEFS}/events/{event}").exists() for event in EVENTS):
        require_events(LocalLink())
        return
    with pytest.raises(NotApplicable, match=r"preemptirq|tracefs"):
        require_events(LocalLink())
    done = command_line("bound", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, "", 1)


def test_a_trace_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However quickly its lines come, and however slowly."""
    taken = bound._bounded_lines("board", (b"x" * 100 for _ in range(20)), 60.0)
    assert len(list(taken)) == 20
    monkeypatch.setattr(bound, "_MOST_BYTES", 1000)
    with pytest.raises(FastenoughError, match="wrote more than"):
        list(bound._bounded_lines("board", itertools.repeat(b"x" * 100), 60.0))
    now_s = itertools.count(0.0, 5.0)
    monkeypatch.setattr("fastenough.jobs.bound.time.monotonic", lambda: next(now_s))
    with pytest.raises(FastenoughError, match="has not finished its trace"):
        list(bound._bounded_lines("board", itertools.repeat(b"\n"), 60.0))
