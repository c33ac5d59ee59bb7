# SPDX-License-Identifier: GPL-2.0-or-later
"""Xenomai where it is not: refused with its reason, by the bench, by the build and by the probe built for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fastenough.board.base import Booted
from fastenough.implementations import Act, find_implementation
from fastenough.link import FakeLink
from fastenough.link.modules import insert_module
from fastenough.model import BadInput, Configuration, NotApplicable
from fastenough.settings import Settings
from fastenough.virtual.meson_build import require_tool, tools_path
from tests.support.cli_calls import environment
from tests.support.tools import ROOT, program

pytestmark = pytest.mark.untimed

XENOMAI = find_implementation("xenomai-user")
IN_KERNEL = find_implementation("xenomai-kernel")
CORE = {"/proc/xenomai/version": "3.2.7\n"}


def _on(files: dict[str, str]) -> Booted:
    return Booted(FakeLink(files, {}), Configuration("cobalt"), "/bin/fastenough-probe")


@pytest.mark.parametrize(
    ("probe", "parameters", "said"),
    [
        ("mutex", {}, "use one of timer, response, periodic"),
        ("timer", {"method": ["futex"]}, "clock_nanosleep-abs, clock_nanosleep-rel, timerfd"),
        ("response", {"way": ["sysfs"]}, "choose one of auto, rtdm"),
        ("timer", {"policy": ["deadline"]}, "choose one of fifo, rr, other"),
    ],
)
def test_what_it_can_never_do_is_refused_before_anything_is_booted(
    probe: str, parameters: dict[str, list[str]], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        XENOMAI.check(probe, parameters, {})


def test_what_it_can_do_is_not_refused() -> None:
    XENOMAI.check("timer", {"method": ["timerfd"], "interval": ["1ms"], "policy": ["fifo"]}, {})


def test_what_its_module_can_never_do_is_refused_before_anything_is_booted() -> None:
    with pytest.raises(BadInput, match="xenomai-kernel has no probe 'spin'; use one of response, periodic, timer"):
        IN_KERNEL.check("spin", {}, {})
    with pytest.raises(
        BadInput, match="xenomai-kernel does not support method=timerfd; choose one of timer-handler, ker"
    ):
        IN_KERNEL.check("timer", {"method": ["timerfd"]}, {})
    IN_KERNEL.check("timer", {"method": ["kernel-thread"], "interval": ["1ms"], "priority": [80]}, {})


def test_a_board_without_the_core_or_without_the_module_is_not_applicable() -> None:
    with pytest.raises(NotApplicable, match="no Cobalt core, and so no RTDM"):
        IN_KERNEL.needs(_on({}))
    with pytest.raises(NotApplicable, match="kernel module fastenough_rtdm is not available"):
        IN_KERNEL.needs(_on(CORE))


@pytest.mark.parametrize(("core_stopped", "refusal"), [("Y", NotApplicable), ("N", OSError)])
def test_a_module_whose_core_is_stopped_is_not_applicable(core_stopped: str, refusal: type[Exception]) -> None:
    told = "/sys/module/fastenough_rtdm/parameters"
    link = FakeLink(
        {
            "/lib/fastenough_rtdm.ko": "\0parmtype=explain:bool\0",
            f"{told}/refused": "it will not\n",
            f"{told}/core_stopped": f"{core_stopped}\n",
        },
        {"insmod /lib/fastenough_rtdm.ko explain=1": "", "rmmod fastenough_rtdm": ""},
    )
    with pytest.raises(refusal, match="it will not"):
        insert_module(link, "/lib/fastenough_rtdm.ko")


def test_a_chip_that_rtdm_has_no_lines_of_needs_the_module_for_them(tmp_path: Path) -> None:
    act = Act("response", {"chip": "9030000.pl061", "in": 0, "out": 1})
    with (
        Settings(FakeLink({}, {}), tmp_path / "journal") as settings,
        pytest.raises(NotApplicable, match="kernel module fastenough_rtdm_gpio is not available"),
        XENOMAI.start(_on(CORE), act, settings),
    ):
        pass


def test_a_board_without_the_core_or_without_the_probe_is_not_applicable() -> None:
    with pytest.raises(NotApplicable, match=r"no Cobalt core.*Mercury is Linux"):
        XENOMAI.needs(_on({}))
    with pytest.raises(NotApplicable, match="the board has no fastenough-probe-xenomai"):
        XENOMAI.needs(_on(CORE))


@pytest.mark.slow
@pytest.mark.skipif(Path("/proc/xenomai").exists(), reason="this machine has the core")
@pytest.mark.parametrize("name", ["xenomai-user", "xenomai-kernel"])
def test_this_machine_says_why_not(name: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "fastenough",
            "run",
            "timer",
            "interval=1ms",
            "--duration",
            "1s",
            "--implementation",
            name,
        ],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 5 and "no Cobalt core" in done.stderr, done.stderr


def _configured(tmp_path: Path, path: str) -> subprocess.CompletedProcess[str]:
    command = [
        require_tool("meson", "meson"),
        "setup",
        "-Dpython_package=false",
        "-Dmonitor=disabled",
        "-Dprobe_platform=xenomai",
        str(tmp_path / "build"),
        str(ROOT),
    ]
    return subprocess.run(
        command, env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=120, check=False
    )


def _without_xenomai() -> str:
    return os.pathsep.join(
        folder for folder in tools_path().split(os.pathsep) if not (Path(folder) / "xeno-config").exists()
    )


def test_it_is_not_built_without_xenomai(tmp_path: Path) -> None:
    done = _configured(tmp_path, _without_xenomai())
    assert done.returncode and "no xeno-config" in done.stdout, done.stdout


def test_it_is_not_built_for_mercury(tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "xeno-config"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho mercury\n")
    tool.chmod(0o755)
    done = _configured(tmp_path, f"{tool.parent}{os.pathsep}{_without_xenomai()}")
    assert done.returncode and "Linux with another API" in done.stdout, done.stdout


@pytest.mark.skipif(shutil.which("xeno-config") is None, reason="Xenomai is not installed here")
@pytest.mark.skipif(Path("/proc/xenomai").exists(), reason="this machine has the core")
def test_the_real_library_refuses_a_kernel_without_its_core(tmp_path: Path) -> None:
    assert _configured(tmp_path, os.environ["PATH"]).returncode == 0
    probe = program(tmp_path / "build", "target/probe/fastenough-probe-xenomai")
    done = subprocess.run([probe, "timer", "-D", "1s", "-q"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5 and "Cobalt core not enabled in kernel" in done.stderr, done.stderr
