# SPDX-License-Identifier: GPL-2.0-or-later
"""``pip install .`` gives the whole thing: bench, probe, firmware, and the sources of what is built for boards."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from fastenough.gauge.flash import BOARDS as GAUGE_BOARDS
from fastenough.web.asset_files import assets
from tests.support.farm_data import FarmData
from tests.support.packaging_programs import release
from tests.support.tools import require
from tests.support.websites import command_serving

pytestmark = [pytest.mark.slow, pytest.mark.untimed]

ROOT = Path(__file__).resolve().parents[3]
TOOLS = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
IN_WHEEL = {
    "fastenough": "",
    "campaigns": "fastenough/sources/",
    "format": "fastenough/sources/",
    "gauge": "fastenough/sources/",
    "target": "fastenough/sources/",
    "meson.build": "fastenough/sources/",
    "meson_options.txt": "fastenough/sources/",
}
"""What is committed in these folders lies in the wheel, below which folder."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheels")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-build-isolation",
            "--no-deps",
            "--no-index",
            "-w",
            out,
            ROOT,
        ],
        check=True,
        env=TOOLS,
        timeout=280,
    )
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def home(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, and what it depends on."""
    home = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    site = next(home.glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run([home / "bin" / "pip", "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    return home


def test_the_wheel_is_whole(wheel: Path) -> None:
    require("avr-gcc")
    require("arm-none-eabi-gcc")
    packed = {name.rpartition(".data/purelib/")[2] for name in zipfile.ZipFile(wheel).namelist()}
    listed = subprocess.run(
        ["git", "ls-files", *IN_WHEEL, ":!gauge/sim"], cwd=ROOT, text=True, capture_output=True, check=True
    ).stdout.splitlines()
    expected = {IN_WHEEL[name.partition("/")[0]] + name for name in listed}
    assert len(expected) > 500
    assert not expected - packed
    assert {f"fastenough/recording/recording-{version}.schema.json" for version in (1, 2)} <= packed
    assert {f"fastenough/firmware/{Path(board.image).name}" for board in GAUGE_BOARDS.values()} <= packed
    assert [name for name in packed if name.endswith("/scripts/fastenough-probe")]
    assert {f"fastenough/web/assets/{name}" for name in (*assets(), "uPlot.LICENSE")} <= packed


def test_the_wheel_states_the_licences_of_what_it_holds(wheel: Path) -> None:
    packed = zipfile.ZipFile(wheel)
    [metadata] = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
    stated = re.findall(r"^License-Expression: (.*)$", packed.read(metadata).decode(), re.MULTILINE)
    assert stated == ["GPL-2.0-or-later AND (GPL-2.0-or-later WITH Linux-syscall-note) AND MIT"]
    assert [name for name in packed.namelist() if name.endswith(".dist-info/licenses/COPYING")]
    held = {
        match[1].decode()
        for name in packed.namelist()
        if (match := re.search(rb"SPDX-License-Identifier: ([\w.-]+(?: WITH [\w-]+)?)", packed.read(name)[:300]))
    }
    assert held == {"GPL-2.0-or-later", "GPL-2.0-or-later WITH Linux-syscall-note"}
    assert not [name for name in packed.namelist() if "/gauge/sim/" in name]


def test_the_installed_bench_measures(home: Path, tmp_path: Path) -> None:
    doctor = subprocess.run(
        [home / "bin" / "fastenough", "doctor", "--json"], cwd=tmp_path, text=True, capture_output=True, check=False
    )
    probe = next(finding for finding in json.loads(doctor.stdout) if finding["subject"] == "probe")
    assert probe["text"] == str(home / "bin" / "fastenough-probe")
    ran = subprocess.run(
        [home / "bin" / "fastenough", "run", "timer", "policy=other", "allow-difference", "--duration", "1s"],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_the_installed_website_draws_what_it_brings_along(home: Path, farm: FarmData, tmp_path: Path) -> None:
    require("chromium")
    shutil.copytree(farm.store.path, tmp_path / "store", ignore=shutil.ignore_patterns("*T12*", "index.sqlite*"))
    with (
        command_serving(home / "bin" / "fastenough", cwd=tmp_path, options=("--store", "store")) as (_, url),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{url}board/{farm.injected.board}/")
        page.wait_for_selector("body[data-drawn]:not([data-failed])", state="attached")
        assert page.locator("#maxima .u-over").count() == 1
        browser.close()
    assert f"{url}assets/uPlot.iife.min.js" in asked and all(one.startswith(url) for one in asked)


def test_the_installed_bench_builds_the_probe_for_a_board(home: Path, tmp_path: Path) -> None:
    architecture = release.architectures()["riscv64"]
    require(architecture.compiler, architecture.runner)
    probe = tmp_path / "probe"
    ask = (
        "import sys; from pathlib import Path; from fastenough.board.files import file_for\n"
        "Path(sys.argv[1]).write_bytes(file_for('riscv64'))"
    )
    built = subprocess.run(
        [home / "bin" / "python", "-c", ask, probe],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        env=TOOLS | {"FASTENOUGH_CACHE": str(tmp_path / "cache")},
        check=False,
    )
    assert built.returncode == 0, built.stderr
    probe.chmod(0o755)
    release.try_out(probe, architecture)
