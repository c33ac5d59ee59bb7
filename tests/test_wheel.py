# SPDX-License-Identifier: GPL-2.0-or-later
"""``pip install .`` gives the whole thing: bench, schema and probe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_wheel_is_whole(tmp_path: Path) -> None:
    tools = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    wheels = tmp_path / "wheels"
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index",
                    "-w", str(wheels), str(ROOT)], check=True, env=tools, timeout=280)
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    site = next(home.glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run([str(home / "bin" / "pip"), "install", "-q", "--no-deps", "--no-index", *map(str, wheels.iterdir())],
                   check=True)

    doctor = subprocess.run([str(home / "bin" / "fastenough"), "doctor", "--json"], cwd=tmp_path, text=True,
                            capture_output=True, check=False)
    probe = next(finding for finding in json.loads(doctor.stdout) if finding["matter"] == "probe")
    assert probe["text"] == str(home / "bin" / "fastenough-probe")
    ran = subprocess.run([str(home / "bin" / "fastenough"), "run", "timer", "policy=other", "allow-difference",
                          "--duration", "1s"], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
