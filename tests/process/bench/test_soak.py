# SPDX-License-Identifier: GPL-2.0-or-later
"""The soak of make bench, small: half a minute of probe and monitor as services, thousands of times the farm's rate."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.bench import soak as bench_soak
from tests.bench.soak import Look, Pace, require_flat, soak_monitor, soak_probe
from tests.support.privileges import needs_root

HALF_A_MINUTE = Pace(30.0, 0.1, 2.0, 12.0)
UNIT = bench_soak.ROOT / "target" / "monitor" / "fastenough-monitor.service"


def unit(name: str) -> str:
    """What the unit says, lines joined."""
    found = re.search(rf"^{name}=((?:.*\\\n)*.*)$", UNIT.read_text(), re.MULTILINE)
    assert found is not None
    return found[1].replace("\\\n", " ")


@pytest.mark.slow
def test_half_a_minute_of_the_probe_as_a_service(tmp_path: Path) -> None:
    print(soak_probe(HALF_A_MINUTE, tmp_path))


@pytest.mark.slow
@needs_root("the monitor")
def test_half_a_minute_of_the_monitor_as_a_service(tmp_path: Path) -> None:
    print(soak_monitor(HALF_A_MINUTE, tmp_path))


def test_growth_is_seen() -> None:
    flat = [Look(3000, 8, 100)] * 100
    require_flat(flat)
    for late in (Look(3100, 8, 100), Look(3000, 10, 100)):
        with pytest.raises(AssertionError):
            require_flat(flat[:90] + [late] * 10)


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/usr/local/bin/fastenough-monitor", str(bench_soak.MONITOR)))
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=25", copy],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout


def allowed_calls() -> set[str]:
    """The system calls that the unit leaves, groups resolved."""
    calls, groups = set(), [word for word in unit("SystemCallFilter").split()]
    while groups:
        word = groups.pop()
        if not word.startswith("@"):
            calls.add(word)
            continue
        said = subprocess.run(["systemd-analyze", "syscall-filter", word], capture_output=True, text=True, check=True)
        groups += [line.strip() for line in said.stdout.splitlines() if line.startswith("    ") and "#" not in line]
    return calls


@needs_root("the monitor")
def test_what_the_unit_starts_runs_with_what_it_leaves(tmp_path: Path) -> None:
    """Its options, its capabilities and no more, and no system call that it forbids."""
    ring, trace = tmp_path / "ring", tmp_path / "trace"
    name, _, value = unit("Environment").partition("=")
    argv = unit("ExecStart").replace("/var/lib/fastenough/ring", str(ring)).replace(f"${{{name}}}", value).split()
    assert argv[0] == "/usr/local/bin/fastenough-monitor"
    capabilities = ",".join("+" + word.removeprefix("CAP_").lower() for word in unit("CapabilityBoundingSet").split())
    traced = ["strace", "-f", "-qq", "-o", str(trace)] if Path("/usr/bin/strace").exists() else []
    done = subprocess.run(
        [
            *traced,
            "setpriv",
            "--bounding-set",
            f"-all,{capabilities}",
            "--no-new-privs",
            bench_soak.MONITOR,
            *argv[1:],
            "--duration=2s",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    (recording,) = bench_soak.ring_of(ring, Pace(2, 300, 43200, 172800))
    assert recording.outcome == "completed"
    if traced:
        lines = trace.read_text()
        program = lines[lines.index('execve("' + str(bench_soak.MONITOR)) :]
        called = set(re.findall(r"^\d+ +(\w+)\(", program, re.MULTILINE))
        assert called and called <= allowed_calls(), called - allowed_calls()
