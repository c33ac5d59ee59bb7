# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough bound``: the bound beside what was seen in the same trace, and one line where none can be had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_calls import command_line
from test_bound_composed import Kernel

from fastenough.jobs.bound import EVENTS, TRACEFS, require_events
from fastenough.link import LocalLink
from fastenough.model import NotApplicable


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
    assert "12.0" in shown and "longest seen" in shown and "never a PASS" in shown


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


@pytest.mark.parametrize(("content", "said"), [
    (b"", "no event preempt_disable"), (b"\0\xff" * 200_000, "no event preempt_disable"),
    (b"CPU:1 [LOST 5 EVENTS]\n", "has lost events"),
])
def test_what_is_no_trace_is_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "other").write_bytes(content)
    done = command_line("bound", str(tmp_path / "other"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr and "other: " in done.stderr


def test_a_kernel_without_the_events_is_not_applicable(tmp_path: Path) -> None:
    if all(Path(f"{TRACEFS}/events/{event}").exists() for event in EVENTS):
        require_events(LocalLink())
        return
    with pytest.raises(NotApplicable, match=r"preemptirq|tracefs"):
        require_events(LocalLink())
    done = command_line("bound", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, "", 1)
