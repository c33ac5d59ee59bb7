# SPDX-License-Identifier: GPL-2.0-or-later
"""EVL where it is not: refused with its reason, by the bench, by the build and by the probe built for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fastenough.board.base import Booted
from fastenough.implementations import Act, find_implementation
from fastenough.link import FakeLink
from fastenough.model import BadInput, Configuration, NotApplicable
from fastenough.settings import Settings
from fastenough.virtual.meson_build import require_tool, tools_path
from tests.support.cli_calls import environment
from tests.support.tools import ROOT, configure, program, require

pytestmark = pytest.mark.untimed

EVL = find_implementation("evl-user")
IN_KERNEL = find_implementation("evl-kernel")
CORE = {"/dev/evl/control": ""}
MACHINE_HAS_CORE = Path("/dev/evl").exists()


def _on(files: dict[str, str]) -> Booted:
    return Booted(FakeLink(files, {}), Configuration("evl"), "/bin/fastenough-probe")


@pytest.mark.parametrize(
    ("probe", "parameters", "said"),
    [
        ("mutex", {}, "use one of timer, response, periodic"),
        ("timer", {"method": ["timerfd"]}, "evl_sleep_until, evl_timer"),
        ("response", {"way": ["cdev"]}, "choose one of auto, oob"),
        ("timer", {"policy": ["rr"]}, "choose one of fifo, other"),
    ],
)
def test_what_it_can_never_do_is_refused_before_anything_is_booted(
    probe: str, parameters: dict[str, list[str]], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        EVL.check(probe, parameters, {})


def test_what_it_can_do_is_not_refused() -> None:
    EVL.check("timer", {"method": ["evl_timer"], "interval": ["1ms"], "policy": ["fifo"]}, {})


def test_a_board_without_the_core_or_without_the_probe_is_not_applicable() -> None:
    with pytest.raises(NotApplicable, match="no EVL core"):
        EVL.needs(_on({}))
    with pytest.raises(NotApplicable, match="the board has no fastenough-probe-evl"):
        EVL.needs(_on(CORE))


def test_a_board_without_the_core_or_without_the_module_is_not_applicable() -> None:
    with pytest.raises(NotApplicable, match="no EVL core"):
        IN_KERNEL.needs(_on({}))
    with pytest.raises(NotApplicable, match="kernel module fastenough_oob is not available"):
        IN_KERNEL.needs(_on(CORE))


def test_a_chip_that_the_core_has_no_lines_of_needs_the_module_for_them(tmp_path: Path) -> None:
    act = Act("response", {"chip": "9030000.pl061", "in": 0, "out": 1})
    with (
        Settings(FakeLink({}, {}), tmp_path / "journal") as settings,
        pytest.raises(NotApplicable, match="kernel module fastenough_oob_gpio is not available"),
        EVL.start(_on(CORE), act, settings),
    ):
        pass


@pytest.mark.skipif(MACHINE_HAS_CORE, reason="this machine has the core")
@pytest.mark.parametrize("name", ["evl-user", "evl-kernel"])
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
    assert done.returncode == 5 and "no EVL core" in done.stderr, done.stderr


def _configured(tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [
        require_tool("meson", "meson"),
        "setup",
        "-Dpython_package=false",
        "-Dmonitor=disabled",
        "-Dprobe_platform=evl",
        str(tmp_path / "build"),
        str(ROOT),
    ]
    return subprocess.run(
        command,
        env=os.environ | {"PATH": tools_path()} | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_is_not_built_without_the_library(tmp_path: Path) -> None:
    done = _configured(tmp_path, PKG_CONFIG_LIBDIR=str(tmp_path), PKG_CONFIG_PATH="")
    assert done.returncode and "no libevl" in done.stdout, done.stdout


@pytest.mark.skipif(
    subprocess.run(["pkg-config", "--exists", "evl"], check=False).returncode != 0,
    reason="libevl is not installed here",
)
@pytest.mark.skipif(MACHINE_HAS_CORE, reason="this machine has the core")
def test_the_real_library_finds_no_core_here(tmp_path: Path) -> None:
    assert _configured(tmp_path).returncode == 0
    probe = program(tmp_path / "build", "target/probe/fastenough-probe-evl")
    done = subprocess.run([probe, "timer", "-D", "1s", "-q"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5 and "this kernel has no EVL core" in done.stderr, done.stderr


def test_a_cross_build_finds_the_library_by_a_second_cross_file(tmp_path: Path) -> None:
    """As docs/evl.md says: the cross files of this tree name pkg-config, a file of one's own the folder of evl.pc."""
    require("aarch64-linux-gnu-gcc", "pkg-config")
    (tmp_path / "evl.pc").write_text("Name: evl\nDescription: a stand-in\nVersion: 0.47\nLibs: -levl\n")
    (tmp_path / "evl.ini").write_text(f"[properties]\npkg_config_libdir = '{tmp_path}'\n")
    configure(
        tmp_path / "build",
        "--cross-file",
        str(ROOT / "target/cross/arm64.ini"),
        "--cross-file",
        str(tmp_path / "evl.ini"),
        "-Dprobe_platform=evl",
    )
    targets = json.loads((tmp_path / "build/meson-info/intro-targets.json").read_text())
    assert "fastenough-probe-evl" in {target["name"] for target in targets}
