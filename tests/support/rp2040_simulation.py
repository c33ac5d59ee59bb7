# SPDX-License-Identifier: GPL-2.0-or-later
"""The RP2040 gauge's images, for tests: in rp2040js, by scripts."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

import pytest

from tests.support.gauge_simulation import Build, Replies, finish
from tests.support.tools import ROOT

PACKAGES = ROOT / "build" / "npm"
BOOT = "run 2000000"
IMAGES = ("rp2040", "rp2040-pins")
"""By the line they have: the USB plug, or two pins."""
K = 7


def start(
    build: Build, script: Sequence[str], image: str = IMAGES[0], port: int | None = None
) -> subprocess.Popen[str]:
    """``port``: a descriptor that it is to have, for ``serve``."""
    if shutil.which("node") is None or not (PACKAGES / "node_modules" / "rp2040js").is_dir():
        pytest.fail("rp2040js is not there, though setup/npm has it; run: setup/install test")
    file = build.directory / "gauge" / "rp2040" / f"gauge-{image}.uf2"
    process = subprocess.Popen(
        ["node", ROOT / "gauge" / "sim" / "rp2040.mjs", PACKAGES, file],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[] if port is None else [port],
    )
    assert process.stdin
    process.stdin.write("\n".join([BOOT, *script, "cost"]) + "\n")
    process.stdin.close()
    process.stdin = None
    return process


def play(build: Build, script: Sequence[str], image: str = IMAGES[0]) -> Replies:
    return finish(start(build, script, image))
