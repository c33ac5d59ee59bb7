# SPDX-License-Identifier: GPL-2.0-or-later
"""The probe as it is shipped (one static file, many architectures) and as it is checked (sanitizers)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fastenough.model import Outcome
from fastenough.recording import read_recording
from tests.support.packaging_programs import release
from tests.support.tools import ROOT, build_probe, require

pytestmark = pytest.mark.untimed

CROSS = release.architectures()
FIRST = ("armhf", "powerpc", "amd64-musl")
"""32 bits, the other order of bytes, and another C library; guests run arm64, and ``make bench`` tries all."""


def _program_headers(binary: Path | str) -> str:
    return subprocess.run(
        ["readelf", "--wide", "--program-headers", str(binary)], capture_output=True, text=True, check=True
    ).stdout


def test_the_probe_depends_on_nothing(probe_binary: str) -> None:
    headers = _program_headers(probe_binary)
    assert "LOAD" in headers
    assert "INTERP" not in headers and "DYNAMIC" not in headers


@pytest.mark.slow
@pytest.mark.parametrize(
    "architecture", [pytest.param(name, marks=[] if name in FIRST else [pytest.mark.matrix]) for name in CROSS]
)
def test_cross_built_probe_records_there(tmp_path: Path, architecture: str) -> None:
    runner = CROSS[architecture].runner
    require(CROSS[architecture].compiler, runner)
    as_released = ("--cross-file", str(ROOT / CROSS[architecture].cross_file), "-Ddebug=false")
    binary = build_probe(tmp_path / "build", *as_released)
    assert "INTERP" not in _program_headers(binary)
    path = tmp_path / "r"
    done = subprocess.run(
        [
            runner,
            str(binary),
            "timer",
            "-D",
            "500ms",
            "-i",
            "2ms",
            "--report",
            "100ms",
            "--method",
            "futex",
            "--allow-difference",
            "--json",
            "--record",
            str(path),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    recording = read_recording(path)
    assert recording.outcome is Outcome.COMPLETED
    for wakeup, corrected in zip(recording.named("wakeup"), recording.named("wakeup_corrected"), strict=True):
        periods = recording.totals[corrected.id].total
        assert recording.totals[wakeup.id].total + recording.missed(corrected.id) == periods >= 100


@pytest.mark.slow
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    probe = build_probe(
        tmp_path / "build",
        "-Dprobe_static=false",
        "-Db_sanitize=address,undefined",
        "-Db_lundef=false",
        "-Dbuildtype=debugoptimized",
    )
    listed = subprocess.run([str(probe), "--list"], capture_output=True, text=True, check=True).stdout
    for name in (line.split()[0] for line in listed.splitlines()):
        path = tmp_path / name
        done = subprocess.run(
            [
                str(probe),
                name,
                "-D",
                "300ms",
                "--report",
                "50ms",
                "--allow-difference",
                "--json",
                "--record",
                str(path),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
        assert done.returncode in (0, 2, 4, 5), (name, done.stderr)
        assert done.returncode == 2 or read_recording(path).end is not None
    for method in ("clock_nanosleep-rel", "nanosleep", "posix-timer", "timerfd", "futex", "ppoll", "setitimer"):
        done = subprocess.run(
            [str(probe), "timer", "--method", method, "-D", "100ms", "--allow-difference", "-a", "0", "-h", "50"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), method
