# SPDX-License-Identifier: GPL-2.0-or-later
"""A device that gives no sound bank: one line that says so, status 4, and no crash."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

PROBE = Path(__file__).resolve().parents[3] / "build" / "target" / "probe" / "fastenough-probe"
MAGIC, VERSION = 0x4B4E4246, 5


def probed(device: Path) -> tuple[int, str]:
    done = subprocess.run(
        [PROBE, "kernel", f"--device={device}", "--duration=10ms"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not done.stdout
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "0 bytes are no bank"),
        (b"{}", "2 bytes are no bank"),
        (bytes(100_000), "not a bank of fastenough.ko"),
        (
            struct.pack("=III", MAGIC, VERSION + 1, 12),
            f"banks have version {VERSION + 1}, this probe reads version {VERSION}",
        ),
        (struct.pack("=III", MAGIC, VERSION, 12), "the bank is truncated after 12 bytes"),
        (struct.pack("=IIII", MAGIC, VERSION, 50_000, 0xFFFFFFFF) + b"\xff" * 49_984, "the bank's task is unknown"),
    ],
)
def test_what_is_no_bank_fails_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    device = tmp_path / "device"
    device.write_bytes(content)
    status, stderr = probed(device)
    assert (status, stderr.count("\n")) == (4, 1)
    assert said in stderr


def test_a_device_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    status, stderr = probed(tmp_path / "nowhere")
    assert (status, stderr.count("\n")) == (2, 1)
    assert "load the module first" in stderr
