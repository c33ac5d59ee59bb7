# SPDX-License-Identifier: GPL-2.0-or-later
"""Probes, parameters and loads are named by the command line; what cannot be is refused in the words of who asked."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from fastenough.implementations.catalogue import in_parameters, read_catalogue
from fastenough.link import LocalLink
from tests.support.cli_calls import fastenough

pytestmark = pytest.mark.untimed


def test_the_catalogue_is_the_probes_own(probe_binary: str) -> None:
    catalogue = read_catalogue(LocalLink(), probe_binary)
    listed = subprocess.check_output([probe_binary, "--list"], text=True)
    assert list(catalogue) == [line.split()[0] for line in listed.splitlines()]
    for probe in catalogue.values():
        told = subprocess.check_output([probe_binary, probe.name, "--help"], text=True)
        assert all(f"--{parameter.name}" in told for parameter in (*probe.own, *probe.common))


@pytest.mark.slow
def test_help_of_run_names_probes_parameters_and_loads(tmp_path: Path, probe_binary: str) -> None:
    told = fastenough("run", "--help", cwd=tmp_path).stdout.decode()
    for word in ("mutex-pi", "interval=", "us", "priority=", "hackbench", "list-probes"):
        assert word in told
    own = fastenough("list-probes", "timer", cwd=tmp_path).stdout.decode()
    assert "method" in own and "\nexample: " in own
    assert "--" not in own.partition("\nexample: ")[0], "parameters are written without dashes"
    every = json.loads(fastenough("list-probes", "--json", cwd=tmp_path).stdout)
    assert "full" in every["loads"]
    in_kernel = every["implementations"]["linux-kernel"]
    assert "spin" in in_kernel and "mutex" not in in_kernel
    assert "also with --implementation linux-kernel: " in fastenough("list-probes", cwd=tmp_path).stdout.decode()
    assert {"name": "timer"}.items() <= every["probes"][0].items()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("interval=200",), "interval=200 has no unit; write interval=200us"),
        (("interval",), "interval: a value is missing; write interval=200us"),
        (("interval=5h",), "interval=5h is out of range; choose 5 µs to 10 s"),
        (("record=here",), "record is not a parameter of a run"),
        (("run-id=mine",), "run-id is not a parameter of a run"),
        (("samples=all",), "samples is not a parameter of a run"),
        (("duration=1s",), "use --duration"),
        (("priority=4", "priority=5"), "priority is given twice"),
        (("method=other",), "method=other is not known; choose one of clock_nanosleep-abs"),
        (("intervall=3us",), "probe timer has no parameter 'intervall'; see fastenough list-probes timer"),
        (("runtime=5ms",), "runtime and deadline are for policy=deadline"),
        (("relative=3",), "relative takes no value"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_is_refused_in_the_words_typed(
    tmp_path: Path, probe_binary: str, words: tuple[str, ...], said: str
) -> None:
    granted = [] if os.geteuid() == 0 else ["--as-granted"]
    ended = fastenough("run", "timer", *words, "--duration=1s", *granted, cwd=tmp_path)
    assert ended.returncode == 2
    complaint = ended.stderr.decode().splitlines()[-1]
    assert said in complaint
    assert granted or ended.stderr.count(b"\n") == 1
    for word in words:
        assert f"--{word.partition('=')[0]}" not in complaint or word.startswith("duration")
    assert not list(tmp_path.glob("fastenough-data/runs/*"))


def test_a_plan_is_told_where(tmp_path: Path, probe_binary: str) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('name = "x"\n[[run]]\nprobe = "timer"\nparameters = {interval = 200}\n')
    ended = fastenough("run", "--plan", "plan.toml", cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"fastenough: plan.toml:4: run 1: interval=200 has no unit")


@pytest.mark.slow
def test_assess_wants_units_too(tmp_path: Path, probe_binary: str) -> None:
    ended = fastenough("assess", "--interval", "200", cwd=tmp_path)
    assert ended.returncode == 2
    assert b"--interval" in ended.stderr
    assert b"write a number and a unit" in ended.stderr


@pytest.mark.slow
def test_zero_needs_no_unit(tmp_path: Path, probe_binary: str) -> None:
    assert fastenough("run", "timer", "offset=0", "--duration", "1s", cwd=tmp_path).returncode == 0


def test_the_probes_words_become_parameters() -> None:
    assert in_parameters("as in --affinity 0; leave --clock out, or --latency off") == (
        "as in affinity=0; leave clock out, or latency=off"
    )


@pytest.mark.slow
def test_reasons_are_printed_as_runs_end(tmp_path: Path, probe_binary: str) -> None:
    lacking = fastenough("run", "response", "chip=nowhere", "in=1", "out=2", "--duration", "1s", cwd=tmp_path)
    assert lacking.returncode == 5, lacking.stderr
    assert b"not-applicable" in lacking.stderr
    [reason] = [line for line in lacking.stderr.splitlines() if line.startswith(b"  ")]
    assert len(reason) > 10
    shown = fastenough("show", "last", cwd=tmp_path).stdout
    assert reason in shown


@pytest.mark.skipif(Path("/sys/devices/system/cpu/cpu0/cpuidle").exists(), reason="has idle states")
def test_settings_that_could_not_be_made_are_said_at_once(tmp_path: Path, probe_binary: str) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('name = "x"\nduration = "1s"\n[settings]\nidle-latency = 10\n[[run]]\nprobe = "timer"\n')
    ended = fastenough("run", "--plan", str(plan), cwd=tmp_path)
    said = ended.stderr.decode()
    assert "setting idle-latency: requested 10, not in effect (not applicable: " in said
    assert said.index("setting idle-latency") < said.index("[1/1]")
    assert "None" not in fastenough("show", "last", cwd=tmp_path).stdout.decode()
