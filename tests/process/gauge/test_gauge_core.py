# SPDX-License-Identifier: GPL-2.0-or-later
"""The instrument's core knows no machine: it runs on one invented here, with another tick, limits and memory."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.c_scanner import without_comments_and_strings
from tests.support.tools import ROOT

pytestmark = pytest.mark.untimed

GAUGE = ROOT / "gauge"
MACHINE = """
#ifndef GAUGE_HARDWARE_H
#define GAUGE_HARDWARE_H
#include "flat_memory.h"
#define MACHINE_NAME "invented"
#define MACHINE_TICK_PS 8000
#define MACHINE_K 7
#define MACHINE_BITS 30
#define MACHINE_CARRIES 20
#define MACHINE_QUEUE 64
#define MACHINE_SHORTEST_PERIOD 125
#define MACHINE_SHORTEST_TIMEOUT 32
#define MACHINE_WAIT_MIN 375
#define MACHINE_WAIT_MAX 883875
#define MACHINE_SELFTEST_WAIT 12500
#define MACHINE_SELFTEST_TIMEOUT 125000
#endif
"""
ASK = """
#include <stdio.h>
#include "gauge.h"
#include "host_machine.h"
int main(void)
{
	host_begin();
	host.responds = true;
	fputs(host_command("id"), stdout);
	fputs(host_command("periodic period=124"), stdout);
	fputs(host_command("response timeout=31"), stdout);
	fputs(host_command("response"), stdout);
	printf("%u to %u\\n", gauge.response.min_wait, gauge.response.min_wait + gauge.response.span);
	return 0;
}
"""
WORDS_OF_MACHINES = re.compile(r"avr|atmega|rp2040|\bpico\b|\buno\b|\b16_?000_?000|62_?500|mhz|F_CPU", re.IGNORECASE)


def on_machine(tmp_path: Path, machine: str, main: Path) -> Path:
    """A program of the core on a machine that this header states."""
    (tmp_path / "hardware.h").write_text(machine)
    program = tmp_path / main.stem
    subprocess.run(
        [
            "cc",
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O1",
            '-DGAUGE_VERSION="0"',
            f"-I{tmp_path}",
            f"-I{GAUGE / 'core'}",
            f"-I{GAUGE / 'tests'}",
            f"-I{ROOT / 'format'}",
            "-o",
            program,
            main,
            GAUGE / "tests" / "host_machine.c",
            *sorted((GAUGE / "core").glob("*.c")),
        ],
        check=True,
    )
    return program


def test_the_core_runs_on_another_machine(tmp_path: Path) -> None:
    checked = subprocess.run(
        [on_machine(tmp_path, MACHINE, GAUGE / "tests" / "core_check.c")], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    ask = tmp_path / "ask.c"
    ask.write_text(ASK)
    said = subprocess.run([on_machine(tmp_path, MACHINE, ask)], capture_output=True, text=True, check=True).stdout
    assert "mcu=invented protocol=3 tick_ps=8000 k=7 bits=30 " in said
    assert "error period must be a number from 125 to 1073741822" in said
    assert "error timeout must be a number from 32 to 1073741823" in said
    assert "375 to 883875" in said


def test_a_machine_that_the_core_cannot_run_on_does_not_build(tmp_path: Path) -> None:
    for wrong in (
        ("MACHINE_BITS 30", "MACHINE_BITS 31"),
        ("MACHINE_QUEUE 64", "MACHINE_QUEUE 12"),
        ("MACHINE_WAIT_MIN 375", "MACHINE_WAIT_MIN 900000"),
    ):
        with pytest.raises(subprocess.CalledProcessError):
            on_machine(tmp_path, MACHINE.replace(*wrong), GAUGE / "tests" / "core_check.c")


def test_the_core_names_no_machine() -> None:
    sources = sorted((GAUGE / "core").glob("*.[ch]"))
    assert len(sources) > 15
    named = [
        f"{path.name}: {found.group()}" for path in sources for found in WORDS_OF_MACHINES.finditer(path.read_text())
    ]
    assert not named
    conditions = [
        path.name
        for path in sources
        for line in without_comments_and_strings(path.read_text()).splitlines()
        if re.match(r"\s*#\s*(if|ifdef|elif)\b", line)
    ]
    assert not conditions, "which machine this is, only its hardware.h says"


def _with_common(header: Path) -> str:
    """A header, and what both sizes of the host have in common."""
    text, common = header.read_text(), GAUGE / "tests" / "host_hardware.h"
    return text + common.read_text() if common.name in text else text


def test_each_machine_states_the_same_names() -> None:
    headers = [
        *(GAUGE / port / "hardware.h" for port in ("avr", "rp2040")),
        *sorted((GAUGE / "tests").glob("*/hardware.h")),
    ]
    names = {path: set(re.findall(r"#define (MACHINE_\w+)", _with_common(path))) for path in headers}
    expected = set(re.findall(r"#define (MACHINE_\w+)", MACHINE))
    assert len(headers) >= 4
    assert all(stated == expected for stated in names.values()), names
